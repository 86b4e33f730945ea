/* The version of memtrace, as the tool and its reports print it. */
#ifndef MT_REPORT_VERSION_H
#define MT_REPORT_VERSION_H

#ifndef REPORT_VERSION
#define REPORT_VERSION "0.1.0"
#endif

#endif
