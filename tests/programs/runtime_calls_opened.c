/* runtime_calls in a program that is not linked with CUDA: any runtime is opened, and only for
 * itself. */
#define OPENED
#include "runtime_calls.c"
