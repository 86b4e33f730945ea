/* The version of memtrace: in traces, reports and the tool. */
#ifndef MT_BASE_VERSION_H
#define MT_BASE_VERSION_H

#define VERSION_TEXT "0.1.0"

#endif
