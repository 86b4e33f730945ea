/* What a trace is called when nobody gives it a name: MEMTRACE_OUTPUT's default. */
#ifndef MT_BASE_OUTPUT_NAME_H
#define MT_BASE_OUTPUT_NAME_H

#define OUTPUT_NAME_DEFAULT "memtrace.%p"

#endif
