/* Small files of /proc, for the writer (about its own process) and the reader (about another). No malloc. */
#ifndef MT_TRACE_PROC_H
#define MT_TRACE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads up to bytes - 1 and ends with a zero. What was read; 0 and "" on failure. */
size_t proc_read(const char *path, char *buffer, size_t bytes);

/* Field 22 of /proc/PID/stat: when the process began, in ticks since boot. 0 when it cannot be read. */
uint64_t proc_start_ticks(uint32_t pid);

/* The same; 0 also when it is over, and only its parent has not asked for its status yet. */
uint64_t proc_running_since(uint32_t pid);

/* Is it? Its first thread alone may have ended. */
bool proc_stat_is_over(const char *stat);

/* Field 22 of what stands in that file, and field 4, the parent; 0 when it is not there. */
uint64_t proc_stat_start(const char *stat);
uint64_t proc_stat_parent(const char *stat);

/* Inode of the namespace in which this process has its pid; 0 when it cannot be read. */
uint64_t proc_pid_namespace(void);

/* The boot's id without its newline; "" on failure. */
void proc_boot_id(char *buffer, size_t bytes);

#endif
