/*
 * Looking entries up by name, as every CUDA runtime since 11.3 does.  The table `sim_entries` is
 * made of exports/libcuda.so.1.txt.  An entry that changed its arguments has several spellings
 * (cuFoo, cuFoo_v2, ...); asked for cuFoo, we give the newest that the asked version knows, and for
 * a caller with a default stream per thread its _ptsz or _ptds twin where there is one.
 *
 * cuGetExportTable knows the ids of our own CUPTI and NCCL alone and answers "not found" to all others:
 * the genuine runtime uses it to check that its driver is genuine, and that check is never forged.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_stream.h"

#define NAME_ROOM	 128
#define MISSING_SAID_MAX 4

static int compare(const void *name, const void *entry)
{
	return strcmp(name, ((const struct sim_entry *)entry)->name);
}

static const struct sim_entry *entry_find(const char *name)
{
	return bsearch(name, sim_entries, sim_entry_count, sizeof(sim_entries[0]), compare);
}

static const struct sim_entry *entry_find_twin(const char *name, const char *suffix)
{
	char twin[NAME_ROOM];

	int length = snprintf(twin, sizeof(twin), "%s%s", name, suffix);
	return length < (int)sizeof(twin) ? entry_find(twin) : NULL;
}

struct request {
	const char *symbol;
	int version;
	bool wants_thread_stream;
	bool is_too_new; /* the name exists, but not yet in the asked version */
};

/* A name that means another entry from some version on. */
static const char *renamed(const char *symbol, int version)
{
	bool has_flags = strcmp(symbol, "cuGraphInstantiate") == 0 && version >= 12000;
	return has_flags ? "cuGraphInstantiateWithFlags" : symbol;
}

static sim_function *spelling_find(struct request *request, const char *version_suffix)
{
	char name[NAME_ROOM];
	const struct sim_entry *entry = entry_find_twin(request->symbol, version_suffix);
	const struct sim_entry *twin = NULL;

	if (entry == NULL)
		return NULL;
	if (entry->since > request->version) {
		request->is_too_new = true;
		return NULL;
	}
	snprintf(name, sizeof(name), "%s", entry->name);
	if (request->wants_thread_stream)
		twin = entry_find_twin(name, "_ptsz");
	if (request->wants_thread_stream && twin == NULL)
		twin = entry_find_twin(name, "_ptds");
	return twin != NULL ? twin->function : entry->function;
}

/* What shares pictures with other APIs: bindings ask for these first, and nothing here computes one. */
static bool is_for_graphics(const char *symbol)
{
	static const char *const apis[] = {"EGL", "GL", "VDPAU", "Egl"};

	for (size_t i = 0; i < sizeof(apis) / sizeof(apis[0]); i++)
		if (strstr(symbol, apis[i]) != NULL)
			return true;
	return false;
}

/*
 * The first names that we lack, a line each; the last says that others are not named. Bindings for other
 * languages ask for every name they know, and use few.
 */
void simgpuNameMissing(const char *symbol)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char said[MISSING_SAID_MAX][NAME_ROOM];
	static size_t count;
	size_t i = 0;

	if (is_for_graphics(symbol))
		return;
	pthread_mutex_lock(&lock);
	while (i < count && strncmp(said[i], symbol, NAME_ROOM - 1) != 0)
		i++;
	if (i == count && count < MISSING_SAID_MAX) {
		snprintf(said[count++], NAME_ROOM, "%s", symbol);
		sim_warn("%.100s is asked for and missing in %s (CUDA %d.%d): if the program then "
			 "goes another way, figures from here on are a lower bound%s",
			 symbol, strncmp(symbol, "cuda", 4) == 0 ? "libcudart" : SIM_SONAME,
			 CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10,
			 count == MISSING_SAID_MAX ? " (others are not named)" : "");
	}
	pthread_mutex_unlock(&lock);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	static const char *const suffixes[] = {"_v4", "_v3", "_v2", ""};
	struct request request = {
		.symbol = symbol != NULL ? renamed(symbol, version) : NULL,
		.version = version,
		.wants_thread_stream = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0,
	};
	sim_function *found = NULL;

	if (symbol == NULL || function == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; found == NULL && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		found = spelling_find(&request, suffixes[i]);
	memcpy(function, &found, sizeof(found));
	if (found == NULL && !request.is_too_new && *symbol != '\0')
		simgpuNameMissing(symbol);
	if (status != NULL && found != NULL)
		*status = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (status != NULL)
		*status = request.is_too_new ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
					     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags);
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	const void *found = watch_export(id);

	if (found == NULL)
		found = gates_export(id);
	if (table != NULL)
		*table = found;
	return found != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
