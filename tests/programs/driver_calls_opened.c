/* driver_calls in a program that is not linked with CUDA, as the libraries that bring their own
 * runtime are not: libcuda.so.1 is opened, and only for itself (RTLD_LOCAL). */
#define OPENED
#include "driver_calls.c"
