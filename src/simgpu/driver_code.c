/*
 * What a context takes beyond its own when it first uses code of some library, and when its stacks
 * grow.  Owns the account of it, a context each; it ends with the context.  How much a library
 * takes is the card's profile (sim_card.h), nothing for a card without one.
 */
#include "driver.h"
#include "sim_first_use.h"

/* Charges more of the context's device, for as long as the context lives. */
static CUresult take(CUcontext context, size_t bytes)
{
	CUresult result = bytes > 0 ? device_charge_overhead(context->device, bytes) : CUDA_SUCCESS;

	if (result == CUDA_SUCCESS)
		context->code_bytes += bytes;
	return result;
}

void code_end(CUcontext context)
{
	if (context->code_bytes > 0)
		device_uncharge_overhead(context->device, context->code_bytes);
	context->code_bytes = 0;
	context->stack_bytes = 0;
	__atomic_store_n(&context->used_codes, 0, __ATOMIC_RELAXED);
}

CUresult code_use(enum sim_code code)
{
	CUcontext context = context_of_memory();
	unsigned bit = 1U << code;
	CUresult result = CUDA_SUCCESS;

	if (context == NULL || __atomic_load_n(&context->used_codes, __ATOMIC_RELAXED) & bit)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&driver_lock);
	if (!(context->used_codes & bit))
		result = take(context, driver_machine.card->first_use_bytes[code]);
	if (result == CUDA_SUCCESS)
		__atomic_fetch_or(&context->used_codes, bit, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&driver_lock);
	return result;
}

int simgpuFirstUse(int code)
{
	return code >= 0 && code < SIM_CODE_COUNT && code_use((enum sim_code)code) != CUDA_SUCCESS ? -1 : 0;
}

/*
 * Stacks are there for every thread that the device can have at once: stack limit x multiprocessors
 * x threads (cuda-oxide#699, cmssw#51395; 216 MiB on an A100 by the default of 1 KiB, EMDC_llvm#13).
 * The default is in the context; they grow and never shrink.
 */
CUresult code_set_stack(CUcontext context, size_t stack_bytes)
{
	const struct sim_card *card = driver_machine.card;
	size_t threads = (size_t)card->multiprocessor_count * (size_t)card->threads_per_multiprocessor;
	size_t before_bytes = code_stack(context);
	CUresult result = CUDA_SUCCESS;

	if (stack_bytes > before_bytes)
		result = take(context, (stack_bytes - before_bytes) * threads);
	if (result == CUDA_SUCCESS && stack_bytes > before_bytes)
		context->stack_bytes = stack_bytes;
	return result;
}

size_t code_stack(const struct CUctx_st *context)
{
	return context->stack_bytes > 0 ? context->stack_bytes : SIM_KIB;
}
