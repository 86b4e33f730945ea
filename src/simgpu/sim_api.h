/*
 * How a stand-in library defines the functions it exports.
 *
 * The vendor's own headers of cuBLAS, cuDNN, NCCL, NVML and NVRTC are not needed to build the
 * simulated GPU (of CUPTI's only the records are), so there is no prototype to include: SIM_API declares a function and opens its
 * definition in one go, and the signature is written once. Types are the plain C types that have
 * the same size and class in the x86-64 calling convention: a handle is a pointer to a structure of
 * ours, an enumeration an int.
 */
#ifndef SIM_API_H
#define SIM_API_H

#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))

#define SIM_API(result, name, ...)           \
	SIM_EXPORT result name(__VA_ARGS__); \
	result name(__VA_ARGS__)

/*
 * Work for the device that has no host result: accepted, and nothing is computed. The parameters
 * are left out on purpose; the caller cleans up its own arguments in this calling convention, and
 * every status of success is 0.
 */
#define SIM_ACCEPT(name)         \
	SIM_API(int, name, void) \
	{                        \
		return 0;        \
	}

#endif
