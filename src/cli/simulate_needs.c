/* What libraries that a program would load need of CUDA and the simulated GPU lacks: for a program that could not
 * even start. Owns the look into their files; the loader's own words name one symbol and no reason. Must never load
 * any of them, nor claim that the program wanted it. */
#include "cli/simulate.h"

#include <fcntl.h>
#include <ftw.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/run_preload.h"
#include "cli/run_program.h"

#define NAMED_MAX  4 /* of a library's symbols */
#define TOLD_MAX   4 /* libraries */
#define FOLDERS_AT_ONCE 16

struct names {
	char **all;
	size_t count, room;
};

/* What nftw() gives its visitors no argument for. */
static struct names sonames, symbols; /* of the stand-ins, sorted */
static unsigned told_count;

/* ---------- lists of names ---------- */

static void names_add(struct names *names, const char *name)
{
	if (names->count == names->room) {
		size_t room = names->room ? 2 * names->room : 512;
		char **all = realloc(names->all, room * sizeof *all);
		if (!all)
			return;
		names->all = all;
		names->room = room;
	}
	if ((names->all[names->count] = strdup(name)))
		names->count++;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_sort(struct names *names)
{
	if (names->count)
		qsort(names->all, names->count, sizeof *names->all, compare);
}

static bool names_has(const struct names *names, const char *name)
{
	return names->count && bsearch(&name, names->all, names->count, sizeof *names->all, compare);
}

static void names_release(struct names *names)
{
	while (names->count)
		free(names->all[--names->count]);
	free(names->all);
	*names = (struct names){0};
}

/* ---------- an object's file ---------- */

static Elf_Scn *section_of(Elf *elf, GElf_Word type, GElf_Shdr *header)
{
	for (Elf_Scn *at = NULL; (at = elf_nextscn(elf, at));)
		if (gelf_getshdr(at, header) && header->sh_type == type)
			return at;
	return NULL;
}

static size_t entry_count(const GElf_Shdr *header)
{
	return header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
}

/* Does it need a stand-in, and is none itself? */
static bool needs_stand_in(Elf *elf)
{
	GElf_Shdr header;
	GElf_Dyn entry;
	bool needs = false;
	Elf_Scn *section = section_of(elf, SHT_DYNAMIC, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	for (size_t i = 0; data && i < entry_count(&header) && gelf_getdyn(data, (int)i, &entry); i++) {
		const char *name = entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME
					   ? elf_strptr(elf, header.sh_link, entry.d_un.d_val) : NULL;
		if (!name || !names_has(&sonames, name))
			continue;
		if (entry.d_tag == DT_SONAME)
			return false;
		needs = true;
	}
	return needs;
}

static bool is_cuda_name(const char *name)
{
	static const char *const beginnings[] = {
		"cuda", "cublas", "cudnn", "cusparse", "cusolver", "cufft", "curand", "cupti", "cufile",
		"__cuda", "nccl", "nvrtc", "nvml", "nvtx", "nvshmem",
	};
	if (!strncmp(name, "cu", 2) && name[2] >= 'A' && name[2] <= 'Z') /* the driver's */
		return true;
	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

/* Calls `visit` with each symbol that the object defines, or with each that it must find elsewhere. */
static void each_symbol(Elf *elf, bool is_defined, void (*visit)(struct names *, const char *), struct names *names)
{
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Scn *section = section_of(elf, SHT_DYNSYM, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	for (size_t i = 1; data && i < entry_count(&header) && gelf_getsym(data, (int)i, &symbol); i++) {
		const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
		bool is_wanted = (symbol.st_shndx != SHN_UNDEF) == is_defined &&
				 (is_defined || GELF_ST_BIND(symbol.st_info) == STB_GLOBAL);
		if (name && is_wanted)
			visit(names, name);
	}
}

static Elf *open_elf(const char *path, int *fd)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	Elf *elf = *fd >= 0 ? elf_begin(*fd, ELF_C_READ_MMAP, NULL) : NULL;
	if (elf && elf_kind(elf) == ELF_K_ELF)
		return elf;
	elf_end(elf);
	if (*fd >= 0)
		close(*fd);
	return NULL;
}

/* ---------- what is missing ---------- */

static void add_missing(struct names *missing, const char *name)
{
	if (is_cuda_name(name) && !names_has(&symbols, name))
		names_add(missing, name);
}

static void tell_missing(const char *path, const struct names *missing)
{
	char buffer[256];
	struct text list;
	text_init_fixed(&list, buffer, sizeof buffer);
	for (size_t i = 0; i < missing->count && i < NAMED_MAX; i++)
		text_printf(&list, "%s%s", i ? ", " : "", missing->all[i]);
	if (missing->count > NAMED_MAX)
		text_printf(&list, " and %zu more", missing->count - NAMED_MAX);
	tell("%s needs %s, which the simulated GPU lacks, so it cannot be loaded or ends where it calls it: if this is "
	     "what stopped the program, another version of that library may do", path, text_string(&list));
	told_count++;
}

static void look_at(const char *path)
{
	int fd;
	struct names missing = {0};
	Elf *elf = open_elf(path, &fd);
	if (!elf)
		return;
	if (needs_stand_in(elf))
		each_symbol(elf, false, add_missing, &missing);
	if (missing.count)
		tell_missing(path, &missing);
	names_release(&missing);
	elf_end(elf);
	close(fd);
}

static int visit_installed(const char *path, const struct stat *file, int type, struct FTW *place)
{
	if (type == FTW_F && S_ISREG(file->st_mode) && strstr(path + place->base, ".so"))
		look_at(path);
	return told_count >= TOLD_MAX;
}

static int visit_stand_in(const char *path, const struct stat *file, int type, struct FTW *place)
{
	int fd;
	Elf *elf = type == FTW_F && S_ISREG(file->st_mode) ? open_elf(path, &fd) : NULL;
	if (!elf)
		return 0;
	names_add(&sonames, path + place->base);
	each_symbol(elf, true, names_add, &symbols);
	elf_end(elf);
	close(fd);
	return 0;
}

/* A line of what Python said is a folder. */
static void look_into(char *folders)
{
	char *rest = folders, *folder;
	while ((folder = strsep(&rest, "\n")))
		if (*folder && told_count < TOLD_MAX)
			nftw(folder, visit_installed, FOLDERS_AT_ONCE, FTW_PHYS);
}

bool simulate_explain_needs(char *const *program)
{
	char stand_ins[PATH_MAX], path[PATH_MAX], python[PATH_MAX], folders[8192];
	told_count = 0;
	if (elf_version(EV_CURRENT) == EV_NONE || !simulate_find_stand_ins(stand_ins))
		return false;
	nftw(stand_ins, visit_stand_in, FOLDERS_AT_ONCE, FTW_PHYS);
	names_sort(&sonames);
	names_sort(&symbols);
	if (program_find(program[0], path))
		look_at(path);
	if (simulate_ask_python(program, "import sys\n"
				"for p in sys.path:\n"
				"    if p.endswith('-packages'): print(p)\n", folders, sizeof folders, python))
		look_into(folders);
	names_release(&sonames);
	names_release(&symbols);
	return told_count;
}
