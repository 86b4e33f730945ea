/* Stands before libmemtrace.so in LD_PRELOAD and writes down each look-up of a driver's function that a CUDA
 * runtime makes, a JSON line each, to the file that the environment names in LOOKUPS: what was asked, what was
 * answered, and what the driver itself answers to the same question. Answers pass through unchanged. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int get_proc(const char *, void **, int, uint64_t);
typedef int get_proc_v2(const char *, void **, int, uint64_t, int *);
typedef void *find_symbol(void *, const char *);

static get_proc *next_get_proc, *driver_get_proc;
static get_proc_v2 *next_get_proc_v2, *driver_get_proc_v2;

static find_symbol *c_library_dlsym(void)
{
	static find_symbol *found;
	if (!found)
		found = (find_symbol *)dlvsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), "dlsym", "GLIBC_2.2.5");
	return found;
}

/* "file!symbol+offset in the file" of a function, or "none". */
static void place_of(const void *function, char *text, size_t size)
{
	Dl_info info;
	if (!function || !dladdr(function, &info)) {
		snprintf(text, size, "%s", function ? "nowhere" : "none");
		return;
	}
	const char *slash = strrchr(info.dli_fname, '/');
	snprintf(text, size, "%s!%s+0x%lx", slash ? slash + 1 : info.dli_fname, info.dli_sname ? info.dli_sname : "?",
		 (unsigned long)((const char *)function - (const char *)info.dli_fbase));
}

struct answer {
	int code, status;
	const void *function;
};

static void write_down(const char *how, const char *name, int version, uint64_t flags, struct answer given,
		       struct answer true_one)
{
	char ours[300], theirs[300];
	int saved = errno;
	const char *path = getenv("LOOKUPS");
	FILE *file = path ? fopen(path, "a") : NULL;
	place_of(given.function, ours, sizeof ours);
	place_of(true_one.function, theirs, sizeof theirs);
	if (file) {
		fprintf(file,
			"{\"how\": \"%s\", \"name\": \"%s\", \"version\": %d, \"flags\": %d, \"given\": \"%s\", "
			"\"true\": \"%s\", \"codes\": [%d, %d], \"statuses\": [%d, %d]}\n",
			how, name, version, (int)flags, ours, theirs, given.code, true_one.code, given.status,
			true_one.status);
		fclose(file);
	}
	errno = saved;
}

static get_proc recorded_get_proc;
static get_proc_v2 recorded_get_proc_v2;

/* A look-up that is looked up is recorded from then on: what is given for it is ours. */
static void *stand_before(void *given, void *true_one, const char *symbol)
{
	if (given && !strcmp(symbol, "cuGetProcAddress")) {
		next_get_proc = (get_proc *)given;
		driver_get_proc = (get_proc *)true_one;
		return (void *)recorded_get_proc;
	}
	if (given && !strcmp(symbol, "cuGetProcAddress_v2")) {
		next_get_proc_v2 = (get_proc_v2 *)given;
		driver_get_proc_v2 = (get_proc_v2 *)true_one;
		return (void *)recorded_get_proc_v2;
	}
	return given;
}

/* The driver's own name of a function, which tells which of its spellings it is. */
static const char *name_in_driver(const void *function)
{
	Dl_info info;
	return function && dladdr(function, &info) && info.dli_sname ? info.dli_sname : "";
}

static int recorded_get_proc(const char *name, void **function, int version, uint64_t flags)
{
	void *found = NULL;
	struct answer true_one = { driver_get_proc(name, &found, version, flags), 0, found };
	int code = next_get_proc(name, function, version, flags);
	write_down("cuGetProcAddress", name, version, flags, (struct answer){ code, 0, *function }, true_one);
	*function = stand_before(*function, found, name_in_driver(found));
	return code;
}

static int recorded_get_proc_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
	void *found = NULL;
	int true_status = -1;
	struct answer true_one = { driver_get_proc_v2(name, &found, version, flags, &true_status), true_status, found };
	int code = next_get_proc_v2(name, function, version, flags, status);
	struct answer given = { code, status ? *status : true_status, *function };
	write_down("cuGetProcAddress_v2", name, version, flags, given, true_one);
	*function = stand_before(*function, found, name_in_driver(found));
	return code;
}

void *dlsym(void *handle, const char *name)
{
	static find_symbol *next;
	if (!next)
		next = (find_symbol *)c_library_dlsym()(RTLD_NEXT, "dlsym");
	if (name[0] != 'c' || name[1] != 'u')
		return next(handle, name);
	void *found = next(handle, name), *true_one = c_library_dlsym()(handle, name);
	write_down("dlsym", name, 0, 0, (struct answer){ 0, 0, found }, (struct answer){ 0, 0, true_one });
	return stand_before(found, true_one, name);
}
