/*
 * How the libraries above the runtime reach the driver. The genuine ones contain a static runtime
 * of their own: what they do is visible to who watches libcuda.so.1, and to nobody who watches
 * libcudart.so. The stand-ins take the same way, and must never call the runtime library.
 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

/* An entry of the driver as CUDA 12 knows it (CUDA 13 changed some arguments); NULL when absent. */
void *sim_driver_entry(const char *name);

/* Sets `count` 32-bit words of device memory to zero, in stream order. Nothing when address is NULL
 * or there is no driver. */
void sim_driver_zero_words(void *address, size_t count, void *stream);

#pragma GCC visibility pop

#endif
