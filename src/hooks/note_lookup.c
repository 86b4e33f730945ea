/* What look-ups mean: the real one has been made; its answer is replaced when it is a function of the table. */
#include "hooks/lookup.h"
#include "hooks/rows.h"

static void note_lookup(struct call *call, const char *name, void **function)
{
	if (!call->status && name && function)
		*function = lookup_substitute(name, *function);
}

void note_cuGetProcAddress(struct call *call, const char *name, void **function, int version, cuuint64_t flags)
{
	(void)version;
	(void)flags;
	note_lookup(call, name, function);
}

void note_cuGetProcAddress_v2(struct call *call, const char *name, void **function, int version, cuuint64_t flags,
			      CUdriverProcAddressQueryResult *found)
{
	(void)version;
	(void)flags;
	(void)found;
	note_lookup(call, name, function);
}

void note_cudaGetDriverEntryPoint_v11(struct call *call, const char *name, void **function, unsigned long long flags)
{
	(void)flags;
	note_lookup(call, name, function);
}

void note_cudaGetDriverEntryPoint(struct call *call, const char *name, void **function, unsigned long long flags,
				  enum cudaDriverEntryPointQueryResult *found)
{
	(void)flags;
	(void)found;
	note_lookup(call, name, function);
}

void note_cudaGetDriverEntryPointByVersion(struct call *call, const char *name, void **function,
					   unsigned int version, unsigned long long flags,
					   enum cudaDriverEntryPointQueryResult *found)
{
	(void)version;
	(void)flags;
	(void)found;
	note_lookup(call, name, function);
}
