/* What a program may do that a careless tracer breaks. It is not linked with CUDA.
 *
 *   guest default NAME
 *   guest weak|reopen|errno|throw|jump|handler|asks|null|parent
 *   guest open LIBRARY now|deepbind|new
 *   guest outer|frees LIBRARY
 *   guest two DRIVER OTHER
 *   guest through LIBRARY DRIVER
 *
 * default looks NAME up in the whole process, beyond itself and in the program; weak refers weakly
 * to functions of CUDA and calls those that are there; reopen opens the driver, uses it and closes
 * it, again and again; errno prints it after calls; throw and jump leave a call of the driver by an
 * exception or by longjmp; handler allocates in a signal handler that interrupts the driver; asks
 * allocates nothing; open opens LIBRARY by dlopen, with RTLD_DEEPBIND or in a new namespace; outer
 * has LIBRARY open another by its own RUNPATH; frees has it free memory in its destructor; null asks
 * for the free memory with places missing; parent prints whether getppid() answers; two uses two
 * drivers, each by its handle; through opens DRIVER, then LIBRARY, and allocates by what the latter
 * exports. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

typedef int allocate_function(uint64_t *, size_t);
typedef int free_function(uint64_t);

extern int cudaMalloc(void **, size_t) __attribute__((weak));
extern int cuMemAlloc_v2(uint64_t *, size_t) __attribute__((weak));
extern int cuInit(unsigned) __attribute__((weak));
extern int cuDeviceGet(int *, int) __attribute__((weak)); /* not in the table of hooks */

static void must(const char *what, int is_true)
{
	if (is_true)
		return;
	printf("%s: no\n", what);
	exit(1);
}

/* ---------- look-ups ---------- */

static void print_found(const char *where, const void *found)
{
	const char *error = dlerror();
	printf("%s %s, dlerror %s\n", where, found ? "found" : "NULL",
	       !error                              ? "none"
	       : strstr(error, "undefined symbol") ? "undefined symbol"
						   : error);
}

static int look_up_everywhere(char **words)
{
	dlerror();
	print_found("default", dlsym(RTLD_DEFAULT, words[0]));
	print_found("next", dlsym(RTLD_NEXT, words[0]));
	print_found("next again", dlsym(RTLD_NEXT, words[0]));
	print_found("program", dlsym(dlopen(NULL, RTLD_NOW), words[0]));
	print_found("versioned", dlvsym(RTLD_DEFAULT, words[0], "libcudart.so.12"));
	return 0;
}

static int call_weak(char **words)
{
	uint64_t address = 0;
	(void)words;
	printf("cudaMalloc %s\n", cudaMalloc ? "there" : "NULL");
	if (cuMemAlloc_v2)
		must("an error without a driver", cuMemAlloc_v2(&address, 100) != 0);
	if (cuInit)
		must("an error at the start", cuInit(0) != 0);
	printf("cuDeviceGet %s\n", cuDeviceGet ? "there" : "NULL");
	return 0;
}

/* ---------- opening and closing ---------- */

static int is_mapped(const char *name)
{
	char line[4096];
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof line, maps))
		found = found || strstr(line, name);
	if (maps)
		fclose(maps);
	return found;
}

static uint64_t allocate_in(void *library, size_t bytes)
{
	uint64_t address = 0;
	allocate_function *allocate =
		library ? (allocate_function *)dlsym(library, "cuMemAlloc_v2") : NULL;
	must("cuMemAlloc_v2", allocate != NULL);
	must("an allocation", !allocate(&address, bytes));
	return address;
}

/* The loader puts a library where there is room: where this one was there is none any more. */
static void keep_place(const void *address)
{
	uintptr_t page = (uintptr_t)address & ~(uintptr_t)4095;
	mmap((void *)page, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void *open_driver(int flags)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | flags);
	must("libcuda.so.1", library != NULL);
	((int (*)(unsigned))dlsym(library, "cuInit"))(0);
	return library;
}

static int reopen(char **words)
{
	void *last = NULL;
	(void)words;
	for (int i = 0; i < 3; i++) {
		void *library = open_driver(0);
		uint64_t address = allocate_in(library, 1000);
		void *marker = dlsym(library, "throwing_callback");
		must("a free", !((free_function *)dlsym(library, "cuMemFree_v2"))(address));
		must("another place", !marker || marker != last);
		last = marker;
		dlclose(library);
		printf("closed, %s\n", is_mapped("libcuda.so.1") ? "still mapped" : "gone");
		keep_place(marker);
	}
	return 0;
}

static int use_two(char **words)
{
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(words[i], RTLD_NOW | RTLD_LOCAL);
		must("a driver", library != NULL);
		printf("%#lx\n", (unsigned long)allocate_in(library, 1000) >> 40);
	}
	return 0;
}

static int allocate_through(char **words)
{
	void *driver = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
	void *library = dlopen(words[0], RTLD_NOW | RTLD_LOCAL);
	must("the driver", driver != NULL);
	must("the library", library != NULL);
	((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
	allocate_in(library, 1000);
	return 0;
}

static int open_library(char **words)
{
	void *library = NULL;
	if (!strcmp(words[1], "now"))
		library = dlopen(words[0], RTLD_NOW);
	if (!strcmp(words[1], "deepbind"))
		library = dlopen(words[0], RTLD_NOW | RTLD_DEEPBIND);
	if (!strcmp(words[1], "new"))
		library = dlmopen(LM_ID_NEWLM, words[0], RTLD_NOW);
	if (!library)
		printf("%s\n", dlerror());
	else
		allocate_in(open_driver(0), 1000);
	return !library;
}

static int open_by_runpath(char **words)
{
	void *outer = dlopen(words[0], RTLD_NOW | RTLD_LOCAL);
	must("the outer library", outer != NULL);
	printf("%d\n", ((int (*)(void))dlsym(outer, "outer_opens_inner"))());
	return 0;
}

static int free_in_destructor(char **words)
{
	void *library;
	dlclose(dlopen(NULL, RTLD_NOW));
	open_driver(RTLD_GLOBAL);
	library = dlopen(words[0], RTLD_NOW);
	must("the library that frees", library != NULL);
	((void (*)(void))dlsym(library, "frees_take"))();
	return 0;
}

/* ---------- errno ---------- */

static int keep_errno(char **words)
{
	void *library = open_driver(0);
	allocate_function *allocate = (allocate_function *)dlsym(library, "cuMemAlloc_v2");
	free_function *release = (free_function *)dlsym(library, "cuMemFree_v2");
	(void)words;
	for (int i = 0; i < 3; i++) {
		uint64_t address;
		errno = EXDEV;
		allocate(&address, 1000);
		printf("%d ", errno);
		errno = ENOTTY;
		release(address);
		printf("%d\n", errno);
	}
	return 0;
}

/* ---------- leaving a call in another way ---------- */

static jmp_buf landing;
static uintptr_t landing_frame;

static _Unwind_Reason_Code stop_at_landing(int version, _Unwind_Action actions,
					   _Unwind_Exception_Class class,
					   struct _Unwind_Exception *exception,
					   struct _Unwind_Context *context, void *argument)
{
	(void)version;
	(void)class;
	(void)exception;
	(void)argument;
	if (_Unwind_GetCFA(context) > landing_frame || (actions & _UA_END_OF_STACK))
		longjmp(landing, 1);
	return _URC_NO_REASON;
}

/* What a C++ exception does to the frames that it passes, and pthread_exit too. */
static void throw_exception(void)
{
	static struct _Unwind_Exception exception;
	_Unwind_ForcedUnwind(&exception, stop_at_landing, NULL);
	abort();
}

static void jump(void)
{
	longjmp(landing, 1);
}

static void leave_call(void *library)
{
	allocate_function *allocate = (allocate_function *)dlsym(library, "cuMemAlloc_v2");
	uint64_t address;
	landing_frame = (uintptr_t)__builtin_frame_address(0);
	if (!setjmp(landing)) {
		allocate(&address, 1);
		must("a call that does not return", 0);
	}
}

static int leave_calls(void (*how)(void))
{
	void *library = open_driver(0);
	allocate_in(library, 1000);
	*(void (**)(void))dlsym(library, "throwing_callback") = how;
	leave_call(library);
	allocate_in(library, 2000);
	leave_call(library);
	allocate_in(library, 3000);
	return 0;
}

static int leave_by_exception(char **words)
{
	(void)words;
	return leave_calls(throw_exception);
}

static int leave_by_jump(char **words)
{
	(void)words;
	return leave_calls(jump);
}

/* ---------- a signal during a call ---------- */

static void *interrupted_driver;

static void allocate_in_handler(int signal)
{
	uint64_t address = allocate_in(interrupted_driver, 5000);
	(void)signal;
	must("a free", !((free_function *)dlsym(interrupted_driver, "cuMemFree_v2"))(address));
}

static void interrupt(void)
{
	raise(SIGUSR1);
}

static int allocate_in_handlers(char **words)
{
	(void)words;
	interrupted_driver = open_driver(0);
	signal(SIGUSR1, allocate_in_handler);
	*(void (**)(void))dlsym(interrupted_driver, "throwing_callback") = interrupt;
	allocate_in(interrupted_driver, 1);
	allocate_in(interrupted_driver, 2000);
	return 0;
}

/* ---------- asking only ---------- */

static int ask(char **words)
{
	static const char *const names[] = {"cudaGetDeviceCount", "cudaDriverGetVersion",
					    "cudaRuntimeGetVersion"};
	void *runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
	char properties[8192];
	size_t unused_bytes, total_bytes;
	int number;
	(void)words;
	must("libcudart.so.13", runtime != NULL);
	for (int i = 0; i < 3; i++) {
		must(names[i], !((int (*)(int *))dlsym(runtime, names[i]))(&number));
		printf("%s %d\n", names[i], number);
	}
	must("properties",
	     !((int (*)(void *, int))dlsym(runtime, "cudaGetDeviceProperties"))(properties, 0));
	must("a context", !((int (*)(void *))dlsym(runtime, "cudaFree"))(NULL));
	must("memory", !((int (*)(size_t *, size_t *))dlsym(runtime, "cudaMemGetInfo"))(
			       &unused_bytes, &total_bytes));
	printf("%s %zu\n", properties, total_bytes);
	return 0;
}

static int leave_places_out(char **words)
{
	void *library = open_driver(0), *context;
	int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
	int (*enter)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
	int (*ask_memory)(size_t *, size_t *) =
		(int (*)(size_t *, size_t *))dlsym(library, "cuMemGetInfo_v2");
	size_t bytes = 0;
	(void)words;
	must("a context", retain && ask_memory && !retain(&context, 0) && !enter(context));
	printf("%d ", ask_memory(NULL, &bytes));
	printf("%d ", ask_memory(&bytes, NULL));
	printf("%d\n", ask_memory(NULL, NULL));
	return 0;
}

static int ask_parent(char **words)
{
	(void)words;
	printf("%s\n", getppid() > 0 ? "an answer" : "none");
	return 0;
}

static const struct {
	const char *name;
	int words;
	int (*run)(char **words);
} modes[] = {
	{"default", 1, look_up_everywhere},
	{"weak", 0, call_weak},
	{"reopen", 0, reopen},
	{"open", 2, open_library},
	{"outer", 1, open_by_runpath},
	{"frees", 1, free_in_destructor},
	{"errno", 0, keep_errno},
	{"throw", 0, leave_by_exception},
	{"jump", 0, leave_by_jump},
	{"handler", 0, allocate_in_handlers},
	{"asks", 0, ask},
	{"null", 0, leave_places_out},
	{"parent", 0, ask_parent},
	{"two", 2, use_two},
	{"through", 2, allocate_through},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (argc > 1 && !strcmp(modes[i].name, argv[1]) && argc == modes[i].words + 2)
			return modes[i].run(argv + 2);
	fprintf(stderr, "usage: see guest.c\n");
	return 2;
}
