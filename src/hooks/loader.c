/* Interposes the loader's own look-ups. dlsym, dlvsym, dlopen and dlmopen keep the caller's identity by a tail
 * jump: RTLD_NEXT and a library's RUNPATH are counted from the object that called, and nothing of ours runs after
 * dlopen. x86-64 only. It must never answer a name that is not CUDA's. */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "recorder/elf.h"
#include "hooks/lookup.h"
#include "recorder/record.h"
#include "recorder/unwind.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* Read by the assembly below; found at first use, which may be before our constructor. */
HIDDEN void *(*loader_dlsym)(void *, const char *);
HIDDEN void *(*loader_dlvsym)(void *, const char *, const char *);
HIDDEN void *(*loader_dlopen)(const char *, int);
HIDDEN void *(*loader_dlmopen)(Lmid_t, const char *, int);
HIDDEN int (*loader_dlclose)(void *);

/* Called by the assembly. */
HIDDEN int loader_route_dlsym(void *handle, const char *name, void **answer);
HIDDEN int loader_route_dlvsym(void *handle, const char *name, const char *version, void **answer, const void *caller);
HIDDEN void loader_before_dlopen(const char *file, int flags);
HIDDEN void loader_before_dlmopen(Lmid_t space, const char *file, int flags);

/* The next definition behind us: another interposer's, else libc's. */
static void *find_libc(const char *name)
{
	return elf_find_anywhere(name, NULL);
}

static void find_real(void)
{
	if (__atomic_load_n(&loader_dlclose, __ATOMIC_ACQUIRE))
		return;
	loader_dlsym = find_libc("dlsym");
	loader_dlvsym = find_libc("dlvsym");
	loader_dlopen = find_libc("dlopen");
	loader_dlmopen = find_libc("dlmopen");
	int (*close)(void *) = find_libc("dlclose");
	__atomic_store_n(&loader_dlclose, close, __ATOMIC_RELEASE); /* last: it says that all are there */
}

/* The loader's own NULL and dlerror(), from a handle that surely does not define a CUDA name. */
static void *answer_undefined(const char *name)
{
	return loader_dlsym(loader_dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
}

/* Our own exports must not make CUDA appear where nobody else has it. */
static bool is_only_ours(const char *name)
{
	return lookup_is_in_table(name) && !elf_find_anywhere(name, NULL);
}

static bool route_default(const char *name, void **answer)
{
	void *found = loader_dlsym(RTLD_DEFAULT, name);
	if (!found)
		return false; /* perhaps in the caller's own scope: ask again as the caller */
	*answer = lookup_substitute(name, found);
	return true;
}

/* A name that its library lacks: the simulated driver, if it is there, has words for it. */
static void *tell_absent(const char *name)
{
	void (*tell)(const char *) = elf_find_anywhere("simgpuNameMissing", NULL);
	if (tell)
		tell(name);
	return NULL;
}

/* A handle whose search order leads to our own export (the main program's): as if we were not there. */
static void *without_us(const char *name, void *found)
{
	if (!found)
		return tell_absent(name);
	if (!lookup_is_own(found))
		return lookup_substitute(name, found);
	if (elf_find_anywhere(name, NULL))
		return found;
	return answer_undefined(name);
}

/* 1: *answer is the result; 0: jump on to the real function. */
HIDDEN int loader_route_dlsym(void *handle, const char *name, void **answer)
{
	find_real();
	if (!lookup_is_cuda_name(name))
		return 0;
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
		if (is_only_ours(name)) {
			*answer = answer_undefined(name);
			return 1;
		}
		return handle == RTLD_DEFAULT && route_default(name, answer);
	}
	*answer = without_us(name, loader_dlsym(handle, name));
	return 1;
}

HIDDEN extern void own_dlsym(void), own_dlvsym(void), own_dlopen(void), own_dlmopen(void);
HIDDEN int own_dlclose(void *handle);

/* One of ours, to be found by name. Their versions are glibc's, which only glibc may define. */
static void *own_function(const char *name)
{
	static const struct {
		const char *name;
		void (*function)(void);
	} own[] = { { "dlsym", own_dlsym },     { "dlvsym", own_dlvsym },   { "dlopen", own_dlopen },
		    { "dlmopen", own_dlmopen }, { "dlclose", (void (*)(void))own_dlclose } };
	for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
		if (!strcmp(own[i].name, name))
			return (void *)own[i].function;
	return NULL;
}

/* Other interposers of these functions ask for the next one by its version, and so would pass us by. */
static bool is_asked_for_ours(void *handle, const char *name, const void *caller, void **answer)
{
	static const char here;
	const struct link_map *asker = handle == RTLD_NEXT ? elf_object_of(caller) : NULL;
	const struct link_map *object = elf_object_of(&here);
	*answer = asker && asker != object ? own_function(name) : NULL;
	while (*answer && object && object != asker)
		object = object->l_prev;
	return *answer && object; /* it stands before us */
}

HIDDEN int loader_route_dlvsym(void *handle, const char *name, const char *version, void **answer, const void *caller)
{
	find_real();
	if (is_asked_for_ours(handle, name, caller, answer))
		return 1;
	if (!lookup_is_cuda_name(name))
		return 0;
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
		if (is_only_ours(name))
			*answer = answer_undefined(name);
		return is_only_ours(name);
	}
	*answer = lookup_substitute(name, loader_dlvsym(handle, name, version));
	return 1;
}

HIDDEN void loader_before_dlopen(const char *file, int flags)
{
	find_real();
	elf_loader_is_used();
	record_loader_changed();
	if (flags & RTLD_DEEPBIND)
		record_blind(RECORD_BLIND_DEEPBIND, file);
}

HIDDEN void loader_before_dlmopen(Lmid_t space, const char *file, int flags)
{
	find_real();
	elf_loader_is_used();
	record_loader_changed();
	if (flags & RTLD_DEEPBIND)
		record_blind(RECORD_BLIND_DEEPBIND, file);
	if (space != LM_ID_BASE)
		record_blind(RECORD_BLIND_DLMOPEN, file);
}

static void forget_closed(void)
{
	elf_loader_is_used();
	record_loader_changed();
	unwind_forget();
	lookup_forget();
}

/* Before, for what another thread looks up while it goes; and after, for what the library's own destructors did. */
HIDDEN int own_dlclose(void *handle)
{
	find_real();
	forget_closed();
	int result = loader_dlclose(handle);
	forget_closed();
	return result;
}

__attribute__((visibility("default"), alias("own_dlclose"))) int dlclose(void *handle);

/* A function under its own name, which another library may have taken before us, and under one that is surely ours. */
#define ENTRY(name) \
	".globl " #name ", own_" #name "\n.hidden own_" #name "\n.type " #name ",@function\n" \
	".type own_" #name ",@function\n" #name ":\nown_" #name ":\n"

/* Arguments are saved around the C part and restored before the jump; %rsp is 16-byte aligned at each call. */
__asm__(".text\n"
	ENTRY(dlsym)
	"	push %rdi\n	push %rsi\n	sub $8, %rsp\n"
	"	mov %rsp, %rdx\n"
	"	call loader_route_dlsym\n"
	"	pop %rdx\n	pop %rsi\n	pop %rdi\n"
	"	test %eax, %eax\n	jne 1f\n"
	"	jmp *loader_dlsym(%rip)\n"
	"1:	mov %rdx, %rax\n	ret\n"
	".size dlsym, .-dlsym\n"

	ENTRY(dlvsym)
	"	push %rdi\n	push %rsi\n	push %rdx\n	sub $16, %rsp\n"
	"	mov %rsp, %rcx\n	mov 40(%rsp), %r8\n"
	"	call loader_route_dlvsym\n"
	"	mov (%rsp), %rcx\n	add $16, %rsp\n	pop %rdx\n	pop %rsi\n	pop %rdi\n"
	"	test %eax, %eax\n	jne 1f\n"
	"	jmp *loader_dlvsym(%rip)\n"
	"1:	mov %rcx, %rax\n	ret\n"
	".size dlvsym, .-dlvsym\n"

	ENTRY(dlopen)
	"	push %rdi\n	push %rsi\n	sub $8, %rsp\n"
	"	call loader_before_dlopen\n"
	"	add $8, %rsp\n	pop %rsi\n	pop %rdi\n"
	"	jmp *loader_dlopen(%rip)\n"
	".size dlopen, .-dlopen\n"

	ENTRY(dlmopen)
	"	push %rdi\n	push %rsi\n	push %rdx\n"
	"	call loader_before_dlmopen\n"
	"	pop %rdx\n	pop %rsi\n	pop %rdi\n"
	"	jmp *loader_dlmopen(%rip)\n"
	".size dlmopen, .-dlmopen\n");
