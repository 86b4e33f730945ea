/* Owns the exported CUDA functions, all expanded from the table. A wrapper only guards and forwards: it opens
 * the call, lets the note speak before or after the real function, and returns what that one returned, with
 * errno as it left it. It must never change an argument or a result. */
#include "hooks/rows.h"

#include <errno.h>

#include "recorder/probe.h"
#include "recorder/thread.h"

#define EXPORT __attribute__((visibility("default")))
#define NO_DRIVER CUDA_ERROR_NO_DEVICE
#define NO_RUNTIME cudaErrorInsufficientDriver

/* The headers are CUDA 13's: every row of that node is what they declare. Deprecated ones are hooked too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define DRIVER(symbol, ...)
#define OTHER(symbol)
#define RUNTIME(node, symbol, note, when, parameters, arguments) CHECK_##node(symbol, parameters)
#define CHECK_V11(symbol, parameters)
#define CHECK_V12(symbol, parameters)
#define CHECK_V13(symbol, parameters)                                                                            \
	_Static_assert(__builtin_types_compatible_p(__typeof__(symbol), cudaError_t parameters),                 \
		       #symbol " is not what cuda_runtime_api.h declares");
#include "hooks/hooks.def"

static inline void *real_function(enum hook_id id)
{
	void *function = __atomic_load_n(&lookup_real[id], __ATOMIC_RELAXED);
	return function ? function : lookup_resolve(id);
}

static inline bool note_runs_before(enum call_when when, const struct call *call)
{
	return (when == AROUND || when == BOTH) && call->is_outermost;
}

static inline bool note_runs_after(enum call_when when, const struct call *call)
{
	return when == ALWAYS || (call->is_outermost && (when != AROUND || call->status));
}

static inline void call_returned(struct call *call, int status)
{
	call->saved_errno = errno;
	call->status = status;
	call->phase = CALL_AFTER;
}

#define CALL_NOTE(note, arguments) note_##note(&call, UNWRAP arguments)
#define CALL_AFTER_NOTE CALL_NOTE
#define CALL_AROUND_NOTE CALL_NOTE
#define CALL_BOTH_NOTE CALL_NOTE
#define CALL_ALWAYS_NOTE CALL_NOTE
#define CALL_ALONE_NOTE(note, arguments) note_##note(&call)
#define CALL_PASS_NOTE(note, arguments) (void)0

/* Launches are many: no guard, and the real call is the last thing. */
#define WRAP_PROBE(id, type, result, missing, note, when, parameters, arguments)                                 \
	{                                                                                                        \
		type *real = (type *)real_function(id);                                                          \
		if (!real)                                                                                       \
			return missing;                                                                          \
		if (__builtin_expect(probe_is_armed(), 0))                                                       \
			note_##note();                                                                           \
		return real arguments;                                                                           \
	}
#define WRAP_AFTER WRAP
#define WRAP_AROUND WRAP
#define WRAP_BOTH WRAP
#define WRAP_ALWAYS WRAP
#define WRAP_ALONE WRAP
#define WRAP_PASS WRAP

#define WRAP(id, type, result, missing, note, when, parameters, arguments)                                       \
	{                                                                                                        \
		type *real = (type *)real_function(id);                                                          \
		if (!real)                                                                                       \
			return missing;                                                                          \
		struct call call __attribute__((cleanup(call_close)));                                           \
		call_open(&call, __builtin_frame_address(0), (const void *)real);                                \
		if (note_runs_before(when, &call))                                                               \
			CALL_##when##_NOTE(note, arguments);                                                     \
		result status = real arguments;                                                                  \
		call_returned(&call, (int)status);                                                               \
		if (note_runs_after(when, &call))                                                                \
			CALL_##when##_NOTE(note, arguments);                                                     \
		errno = call.saved_errno;                                                                        \
		return status;                                                                                   \
	}

#define DRIVER(symbol, base, note, when, parameters, arguments)                                                  \
	EXPORT CUresult CUDAAPI symbol parameters                                                                \
	WRAP_##when(DRIVER_ID(symbol), __typeof__(symbol), CUresult, NO_DRIVER, note, when, parameters, arguments)
/* The body keeps a hidden name for the look-up table; the exported alias exists only under its version node. */
#define RUNTIME(node, symbol, note, when, parameters, arguments)                                                 \
	cudaError_t RUNTIME_WRAPPER(node, symbol) parameters;                                                    \
	cudaError_t RUNTIME_WRAPPER(node, symbol) parameters                                                     \
	WRAP_##when(RUNTIME_ID(node, symbol), __typeof__(RUNTIME_WRAPPER(node, symbol)), cudaError_t,             \
		    NO_RUNTIME, note, when, parameters, arguments)                                                                        \
	EXPORT extern __typeof__(RUNTIME_WRAPPER(node, symbol)) symbol##__##node##__exported                     \
		__attribute__((alias(#symbol "__" #node)));                                                      \
	__asm__(".symver " #symbol "__" #node "__exported, " #symbol "@" NODE_##node ", remove");
#define OTHER(symbol)
#define NODE_V11 "libcudart.so.11.0"
#define NODE_V12 "libcudart.so.12"
#define NODE_V13 "libcudart.so.13"
#include "hooks/hooks.def"
