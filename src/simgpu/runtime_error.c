/*
 * Names and texts of the runtime's errors, and the way to the driver's entries.  Owns the table.
 */
#include "runtime.h"
#include "sim_errors.h"

struct error_text {
	int number;
	const char *name;
	const char *text;
};

static const struct error_text texts[] = {
#define ROW(number, driver_name, runtime_name, text) {number, runtime_name, text},
	SIM_ERRORS(ROW)
#undef ROW
		{35, "cudaErrorInsufficientDriver",
		 "CUDA driver version is insufficient for CUDA runtime version"},
	{98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
};

static const struct error_text *text_find(cudaError_t error)
{
	static const struct error_text unknown = {0, "unrecognized error code",
						  "unrecognized error code"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].number == (int)error)
			return &texts[i];
	}
	return &unknown;
}

const char *cudaGetErrorName(cudaError_t error)
{
	return text_find(error)->name;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return text_find(error)->text;
}

/* ---- driver entries for the program ---- */

static cudaError_t give_entry(const char *symbol, void **function, unsigned version,
			      unsigned long long flags,
			      enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	cudaError_t error =
		symbol != NULL && function != NULL ? runtime_load() : cudaErrorInvalidValue;

	if (error != cudaSuccess)
		return runtime_result(error);
	*function = NULL;
	CUresult result = runtime_find_entry(symbol, function, (int)version, flags, &found);
	if (status != NULL)
		*status = (enum cudaDriverEntryPointQueryResult)found;
	/* A name that is not there is told by `status` alone, when the caller wants it. */
	bool is_told = status != NULL && result == CUDA_ERROR_NOT_FOUND;
	return is_told ? cudaSuccess : runtime_result(result);
}

static unsigned long long with_thread_stream(unsigned long long flags)
{
	return flags == cudaEnableDefault ? cudaEnablePerThreadDefaultStream : flags;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
					     unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *status)
{
	return give_entry(symbol, function, version, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
						  unsigned version, unsigned long long flags,
						  enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
						  unsigned version, unsigned long long flags,
						  enum cudaDriverEntryPointQueryResult *status)
{
	return give_entry(symbol, function, version, with_thread_stream(flags), status);
}

/* CUDA 13's runtime still exports these two; its headers declare the first as deprecated. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
/* An argument that came with CUDA 12. */
#define STATUS_ARGUMENT(status) (RUNTIME_VERSION >= 12000 ? (status) : NULL)

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *status)
{
	return give_entry(symbol, function, RUNTIME_VERSION, flags, STATUS_ARGUMENT(status));
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
					 unsigned long long flags,
					 enum cudaDriverEntryPointQueryResult *status);
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
					 unsigned long long flags,
					 enum cudaDriverEntryPointQueryResult *status)
{
	return give_entry(symbol, function, RUNTIME_VERSION, with_thread_stream(flags),
			  STATUS_ARGUMENT(status));
}
