/* The table at run time: real functions, and the replacement of looked-up pointers by wrappers. */
#ifndef MT_HOOKS_LOOKUP_H
#define MT_HOOKS_LOOKUP_H

#include <stdbool.h>

/* A name that CUDA could own: "cu" and an upper-case letter, or "cuda". Not cudnn…, cublas…, curand…. */
bool lookup_is_cuda_name(const char *name);

/* `found` is what a real look-up of `name` gave. The wrapper of exactly that function if it is in the table
 * (told by address, so that other versions and ABIs pass through), else `found`. */
void *lookup_substitute(const char *name, void *found);

/* A function of the table, by its exact name. */
bool lookup_is_in_table(const char *name);

/* True for an address inside libmemtrace.so. */
bool lookup_is_own(const void *address);

/* Every real function is found anew at its next call: libraries may be gone or moved. */
void lookup_forget(void);

#endif
