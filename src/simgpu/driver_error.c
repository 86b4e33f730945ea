/*
 * Names and texts of the driver's errors, and the driver's log, which stays empty.  Owns nothing
 * but the table.
 */
#include "driver.h"
#include "sim_errors.h"

struct error_text {
	int number;
	const char *name;
	const char *text;
};

static const struct error_text texts[] = {
#define ROW(number, driver_name, runtime_name, text) {number, driver_name, text},
	SIM_ERRORS(ROW)
#undef ROW
};

static const struct error_text *text_find(CUresult error)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].number == (int)error)
			return &texts[i];
	}
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	const struct error_text *text = text_find(error);

	*name = text != NULL ? text->name : NULL;
	return text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **string)
{
	const struct error_text *text = text_find(error);

	*string = text != NULL ? text->text : NULL;
	return text != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the log: callbacks are accepted and never called ---- */

CUresult cuLogsRegisterCallback(CUlogsCallback function, void *argument,
				CUlogsCallbackHandle *handle)
{
	static char registered;

	if (function == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle != NULL)
		*handle = (CUlogsCallbackHandle)(void *)&registered;
	return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	return CUDA_SUCCESS;
}
