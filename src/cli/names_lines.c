/* Lines of the source, from debug information that lies on this machine. Owns libdw. Must never
 * take a file of another build for the module's, and must not let libdw go to the network unless
 * asked: a trace may name a thousand modules, and each would be a wait. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/names.h"
#include "cli/output.h"

#define PLACES_MAX 64 /* functions inlined into one another */

struct source {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf_Addr bias; /* of addresses in dwfl */
};

/* ---------- a module ---------- */

static bool is_same_build(const struct source *source, const struct def_module *module)
{
	const unsigned char *id;
	GElf_Addr at;
	int bytes = dwfl_module_build_id(source->module, &id, &at);
	return bytes > 0 && (uint32_t)bytes == module->build_id_bytes &&
	       !memcmp(id, module->build_id, (size_t)bytes);
}

/* libdw would wait for a pipe, and a device is not to be opened at all. */
static int open_regular(const char *path)
{
	struct stat file;
	if (stat(path, &file) || !S_ISREG(file.st_mode))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static bool source_open(struct source *source, const struct def_module *module)
{
	static char *no_path;
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &no_path,
	};
	int fd = *module->path == '/' ? open_regular(module->path) : -1;
	if (fd < 0)
		return false;
	source->dwfl = dwfl_begin(&callbacks);
	source->module = source->dwfl
				 ? dwfl_report_offline(source->dwfl, module->name, module->path, fd)
				 : NULL;
	if (!source->module) {
		close(fd); /* else it is libdw's */
		return false;
	}
	dwfl_report_end(source->dwfl, NULL, NULL);
	return is_same_build(source, module) && dwfl_module_getelf(source->module, &source->bias);
}

/* ---------- an address ---------- */

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	if (!name)
		name = dwarf_diename(die);
	return name ? name : "";
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;
	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value))
		return 0;
	return (uint32_t)value;
}

/* The file that an inlined function was called from. */
static const char *call_file(Dwarf_Die *unit, Dwarf_Die *die)
{
	Dwarf_Files *files;
	size_t count;
	if (dwarf_getsrcfiles(unit, &files, &count))
		return "";
	const char *file = dwarf_filesrc(files, number_of(die, DW_AT_call_file), NULL, NULL);
	return file ? file : "";
}

struct places {
	struct def_place list[PLACES_MAX];
	uint32_t count;
};

/* From the line table; the function is filled in by the scopes. */
static bool first_place(const struct source *source, Dwarf_Addr address, struct def_place *place)
{
	Dwfl_Line *line = dwfl_module_getsrc(source->module, address);
	int number = 0;
	const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	*place = (struct def_place){
		.function = "", .file = file ? file : "", .line = (uint32_t)number};
	return file;
}

/* Scopes come innermost first: each inlined function names the place that it was called from. */
static void add_scopes(struct places *places, Dwarf_Die *unit, Dwarf_Die *scopes, int count)
{
	for (int i = 0; i < count; i++) {
		int tag = dwarf_tag(&scopes[i]);
		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		places->list[places->count - 1].function = name_of(&scopes[i]);
		if (tag == DW_TAG_subprogram || places->count == PLACES_MAX)
			return;
		places->list[places->count++] = (struct def_place){
			.function = "",
			.file = call_file(unit, &scopes[i]),
			.line = number_of(&scopes[i], DW_AT_call_line),
		};
	}
}

/* The scopes around an address as they lie in the code: dwarf_getscopes() leaves an inlined
 * function for where it was defined, not for where it was called. */
static int find_scopes(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **scopes)
{
	Dwarf_Die *first = NULL;
	int count = dwarf_getscopes(unit, address, &first);
	if (count > 0)
		count = dwarf_getscopes_die(&first[0], scopes);
	free(first);
	return count;
}

static void place_frame(const struct source *source, struct defs *defs, uint32_t id,
			const struct def_native_frame *frame)
{
	struct places places = {.count = 1};
	Dwarf_Addr address = frame->offset - 1 + source->bias, bias = 0;
	Dwarf_Die *scopes = NULL, *unit = dwfl_module_addrdie(source->module, address, &bias);
	if (!first_place(source, address, &places.list[0]))
		return;
	int count = unit ? find_scopes(unit, address - bias, &scopes) : 0;
	if (count > 0)
		add_scopes(&places, unit, scopes, count);
	if (!*places.list[places.count - 1].function && frame->symbol)
		places.list[places.count - 1].function = frame->symbol;
	defs_place_native_frame(defs, id, places.list, places.count);
	free(scopes);
}

static bool has_frames(const struct defs *defs, uint32_t module)
{
	const struct def_native_frame *frame;
	for (uint32_t id = 1; (frame = defs_native_frame(defs, id)); id++)
		if (frame->module == module)
			return true;
	return false;
}

static void place_module(struct defs *defs, uint32_t id, const struct def_module *module)
{
	const struct def_native_frame *frame;
	struct source source = {0};
	if (!has_frames(defs, id))
		return;
	if (source_open(&source, module))
		for (uint32_t i = 1; (frame = defs_native_frame(defs, i)); i++)
			if (frame->module == id && frame->offset)
				place_frame(&source, defs, i, frame);
	dwfl_end(source.dwfl);
}

void names_find_lines(struct loaded *loaded, bool debuginfod)
{
	struct defs *defs = trace_own_defs(loaded->trace);
	const struct def_module *module;
	if (!debuginfod)
		unsetenv("DEBUGINFOD_URLS");
	else if (!getenv("DEBUGINFOD_URLS"))
		tell("DEBUGINFOD_URLS is not set: debug information is taken from this machine "
		     "only");
	for (uint32_t id = 1; (module = defs_module(defs, id)); id++)
		place_module(defs, id, module);
}
