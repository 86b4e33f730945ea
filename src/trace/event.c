/* Names of events, as `memtrace dump --json` writes them. Owns: nothing but the two tables, which
 * follow the enums of <memtrace/trace.h>; a value outside them is "unknown", never an error: a
 * later version may add some. */
#include "trace/event.h"

static const char *const what_names[MEMTRACE_WHAT_COUNT] = {
	[MEMTRACE_ALLOC] = "alloc",
	[MEMTRACE_FREE] = "free",
	[MEMTRACE_FREE_FAILED] = "free_failed",
	[MEMTRACE_MAP] = "map",
	[MEMTRACE_UNMAP] = "unmap",
	[MEMTRACE_RETAIN] = "retain",
	[MEMTRACE_RESERVE] = "reserve",
	[MEMTRACE_RELEASE] = "release",
	[MEMTRACE_BLOCK_ALLOC] = "block_alloc",
	[MEMTRACE_BLOCK_FREE] = "block_free",
	[MEMTRACE_BLOCK_OOM] = "block_oom",
	[MEMTRACE_OOM] = "oom",
	[MEMTRACE_FAILED] = "failed",
	[MEMTRACE_POOL_CREATE] = "pool_create",
	[MEMTRACE_POOL_DESTROY] = "pool_destroy",
	[MEMTRACE_POOL_TRIM] = "pool_trim",
	[MEMTRACE_POOL_READ] = "pool_read",
	[MEMTRACE_POOL_SET] = "pool_set",
	[MEMTRACE_MEMINFO] = "meminfo",
	[MEMTRACE_CAPTURE] = "capture",
	[MEMTRACE_MARK] = "mark",
	[MEMTRACE_CONTEXT] = "context",
	[MEMTRACE_CONTEXT_END] = "context_end",
	[MEMTRACE_MODULE] = "module",
	[MEMTRACE_MODULE_END] = "module_end",
	[MEMTRACE_GLOBAL] = "global",
	[MEMTRACE_GRAPH_ALLOC] = "graph_alloc",
	[MEMTRACE_GRAPH_FREE] = "graph_free",
	[MEMTRACE_GRAPH_EXEC] = "graph_exec",
	[MEMTRACE_GRAPH_LAUNCH] = "graph_launch",
	[MEMTRACE_GRAPH_EXEC_END] = "exec_end",
	[MEMTRACE_GRAPH_END] = "graph_end",
	[MEMTRACE_EXPORT] = "export",
	[MEMTRACE_BIND] = "bind",
	[MEMTRACE_UNBIND] = "unbind",
	[MEMTRACE_COPY] = "copy",
	[MEMTRACE_PHASE] = "phase",
	[MEMTRACE_READING] = "reading",
	[MEMTRACE_SETTINGS] = "settings",
	[MEMTRACE_WITNESS_ALLOC] = "seen_alloc",
	[MEMTRACE_WITNESS_FREE] = "seen_free",
	[MEMTRACE_WITNESS_END] = "seen_end",
	[MEMTRACE_READBACK] = "readback",
};

static const char *const space_names[MEMTRACE_SPACE_COUNT] = {
	[MEMTRACE_SPACE_NONE] = "none",         [MEMTRACE_SPACE_DEVICE] = "device",
	[MEMTRACE_SPACE_STREAM] = "stream",     [MEMTRACE_SPACE_VMM] = "vmm",
	[MEMTRACE_SPACE_MANAGED] = "managed",   [MEMTRACE_SPACE_ARRAY] = "array",
	[MEMTRACE_SPACE_PINNED] = "pinned",     [MEMTRACE_SPACE_REGISTERED] = "registered",
	[MEMTRACE_SPACE_EXTERNAL] = "external", [MEMTRACE_SPACE_BLOCK] = "block",
};

const char *event_what_name(unsigned what)
{
	return what < MEMTRACE_WHAT_COUNT && what_names[what] ? what_names[what] : "unknown";
}

const char *event_space_name(unsigned space)
{
	return space < MEMTRACE_SPACE_COUNT && space_names[space] ? space_names[space] : "unknown";
}
