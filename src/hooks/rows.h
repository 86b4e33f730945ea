/* Ids, prototypes and names expanded from hooks.def, for the files of this folder. */
#ifndef MT_HOOKS_ROWS_H
#define MT_HOOKS_ROWS_H

/* Every spelling as NVIDIA exports it: no _v2 or _ptsz renaming by the headers. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "hooks/call.h"

#define UNWRAP(...) __VA_ARGS__
#define DRIVER_ID(symbol) HOOK_##symbol
#define RUNTIME_ID(node, symbol) HOOK_##symbol##__##node
#define RUNTIME_WRAPPER(node, symbol) symbol##__##node

enum hook_id {
#define DRIVER(symbol, ...) DRIVER_ID(symbol),
#define RUNTIME(node, symbol, ...) RUNTIME_ID(node, symbol),
#define OTHER(symbol)
#include "hooks/hooks.def"
	HOOK_COUNT
};

/* What each call means: written by hand, a family a file. */
#define DECLARE_NOTE(note, parameters) void note_##note(struct call *, UNWRAP parameters);
#define DECLARE_AFTER DECLARE_NOTE
#define DECLARE_AROUND DECLARE_NOTE
#define DECLARE_BOTH DECLARE_NOTE
#define DECLARE_ALWAYS DECLARE_NOTE
#define DECLARE_ALONE(note, parameters) void note_##note(struct call *);
#define DECLARE_PASS(note, parameters)
#define DECLARE_PROBE(note, parameters) void note_##note(void);
#define DRIVER(symbol, base, note, when, parameters, arguments) DECLARE_##when(note, parameters)
#define RUNTIME(node, symbol, note, when, parameters, arguments) DECLARE_##when(note, parameters)
#define OTHER(symbol)
#include "hooks/hooks.def"

/* Typed slots of the real functions; NULL until first used. */
extern void *lookup_real[HOOK_COUNT] __attribute__((visibility("hidden")));
/* Finds and keeps the real function of a row; NULL when no loaded object has it. */
void *lookup_resolve(enum hook_id);

#endif
