/* Small files of /proc, for the writer (about its own process) and the reader (about another). No malloc. */
#ifndef MT_TRACE_PROC_H
#define MT_TRACE_PROC_H

#include <stddef.h>
#include <stdint.h>

/* Reads up to bytes - 1 and ends with a zero. What was read; 0 and "" on failure. */
size_t proc_read(const char *path, char *buffer, size_t bytes);

/* Field 22 of /proc/PID/stat: when the process began, in ticks since boot. 0 when it cannot be read. */
uint64_t proc_start_ticks(uint32_t pid);

/* The same of what stands in that file, and field 4, the parent; 0 when it is not there. */
uint64_t proc_stat_start(const char *stat);
uint64_t proc_stat_parent(const char *stat);

/* The boot's id without its newline; "" on failure. */
void proc_boot_id(char *buffer, size_t bytes);

#endif
