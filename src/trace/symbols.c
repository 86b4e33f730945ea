/* An index of the functions in an ELF file. Owns the reading of ELF's tables and the choice between
 * names. Must never map the file (one that is cut short would kill the process), trust an offset or
 * a size in it, call malloc (so no qsort either), or name an address outside a function. */
#include "trace/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

#define NAME_BYTES    4096
#define NAME_PIECE    256
#define PIECE_SYMBOLS 4096
#define SYMBOLS_MAX   (4u << 20)
#define SECTIONS_MAX  4096 /* of a linked file; only object files have more */
#define SEGMENTS_MAX  256
#define NOTES_BYTES   4096
#define STEPS_BACK    256 /* to a function that encloses others */
#define RADIX_BITS    11
#define RADIX         (1u << RADIX_BITS)
#define SIZE_MAX_KEPT ((1u << 30) - 1)

struct row {
	uint64_t value;
	uint32_t name;
	uint32_t size : 30;
	uint32_t rank : 2; /* 0 global, 1 weak, 2 local */
};

struct symbols {
	struct arena *arena;
	int fd;
	uint64_t file_bytes;
	uint64_t end;          /* of executable addresses */
	uint64_t names_offset; /* the table of strings, in the file */
	uint64_t names_bytes;
	struct row *rows; /* by value */
	size_t count;
	char names[2][NAME_BYTES]; /* the best so far and the next */
};

/* ---------- the file ---------- */

static bool read_at(const struct symbols *symbols, void *to, uint64_t bytes, uint64_t offset)
{
	char *at = to;
	if (offset > symbols->file_bytes || bytes > symbols->file_bytes - offset)
		return false;
	while (bytes) {
		ssize_t got = pread(symbols->fd, at, bytes, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		bytes -= (uint64_t)got;
		offset += (uint64_t)got;
	}
	return true;
}

/* 0 and the file's size, or -errno. O_PATH: a device is not even opened. */
static int size_of(const char *path, int flags, int *fd, uint64_t *bytes)
{
	struct stat file;
	*fd = open(path, flags | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (fstat(*fd, &file) || !S_ISREG(file.st_mode))
		return -EINVAL;
	*bytes = (uint64_t)file.st_size;
	return 0;
}

static int open_file(struct symbols *symbols, const char *path)
{
	int fd;
	int error = size_of(path, O_PATH, &fd, &symbols->file_bytes);
	if (fd >= 0)
		close(fd);
	return error ? error
		     : size_of(path, O_RDONLY | O_NONBLOCK, &symbols->fd, &symbols->file_bytes);
}

static bool is_of_this_machine(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == EM_X86_64 && header->e_phnum <= SEGMENTS_MAX &&
	       header->e_shnum <= SECTIONS_MAX && header->e_phentsize == sizeof(Elf64_Phdr) &&
	       (!header->e_shnum || header->e_shentsize == sizeof(Elf64_Shdr));
}

/* ---------- segments: the build and where code ends ---------- */

static bool notes_have_id(const char *notes, size_t bytes, const uint8_t *id, uint32_t id_bytes)
{
	Elf64_Nhdr note;
	for (size_t at = 0; bytes - at >= sizeof note;) {
		memcpy(&note, notes + at, sizeof note);
		uint64_t id_at = at + sizeof note + (((uint64_t)note.n_namesz + 3) & ~(uint64_t)3);
		uint64_t next = id_at + (((uint64_t)note.n_descsz + 3) & ~(uint64_t)3);
		if (id_at + note.n_descsz > bytes)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
		    !memcmp(notes + at + sizeof note, "GNU", sizeof "GNU"))
			return note.n_descsz == id_bytes && !memcmp(notes + id_at, id, id_bytes);
		at = next < bytes ? next : bytes;
	}
	return false;
}

static bool segment_has_id(const struct symbols *symbols, const Elf64_Phdr *segment,
			   const uint8_t *id, uint32_t id_bytes)
{
	char notes[NOTES_BYTES];
	size_t bytes = segment->p_filesz < sizeof notes ? segment->p_filesz : sizeof notes;
	return segment->p_type == PT_NOTE && read_at(symbols, notes, bytes, segment->p_offset) &&
	       notes_have_id(notes, bytes, id, id_bytes);
}

static int read_segments(struct symbols *symbols, const Elf64_Ehdr *header, const uint8_t *id,
			 uint32_t id_bytes)
{
	Elf64_Phdr segment;
	bool is_same = !id_bytes;
	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (!read_at(symbols, &segment, sizeof segment,
			     header->e_phoff + i * sizeof segment))
			return -EINVAL;
		uint64_t end = segment.p_vaddr + segment.p_memsz;
		if (segment.p_type == PT_LOAD && segment.p_flags & PF_X && end > symbols->end)
			symbols->end = end;
		is_same = is_same || segment_has_id(symbols, &segment, id, id_bytes);
	}
	return is_same ? 0 : -ESTALE;
}

/* ---------- symbols ---------- */

static void add_row(struct symbols *symbols, const Elf64_Sym *symbol)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info), bind = ELF64_ST_BIND(symbol->st_info);
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
	    !symbol->st_name || symbol->st_name >= symbols->names_bytes ||
	    symbol->st_value >= symbols->end)
		return;
	symbols->rows[symbols->count++] = (struct row){
		.value = symbol->st_value,
		.name = symbol->st_name,
		.size = symbol->st_size < SIZE_MAX_KEPT ? (uint32_t)symbol->st_size : SIZE_MAX_KEPT,
		.rank = bind == STB_LOCAL ? 2 : bind == STB_WEAK,
	};
}

static bool read_rows(struct symbols *symbols, const Elf64_Shdr *table, size_t count)
{
	size_t piece_bytes = PIECE_SYMBOLS * sizeof(Elf64_Sym);
	Elf64_Sym *piece = arena_alloc(symbols->arena, piece_bytes);
	bool is_read = piece;
	for (size_t at = 0; at < count && is_read; at += PIECE_SYMBOLS) {
		size_t some = count - at < PIECE_SYMBOLS ? count - at : PIECE_SYMBOLS;
		is_read = read_at(symbols, piece, some * sizeof *piece,
				  table->sh_offset + at * sizeof *piece);
		for (size_t i = 0; i < some && is_read; i++)
			add_row(symbols, &piece[i]);
	}
	arena_free(symbols->arena, piece, piece_bytes);
	return is_read;
}

static void move_by_digit(const struct row *from, struct row *to, size_t count, unsigned shift)
{
	uint32_t starts[RADIX] = {0}, sum = 0;
	for (size_t i = 0; i < count; i++)
		starts[from[i].value >> shift & (RADIX - 1)]++;
	for (unsigned digit = 0; digit < RADIX; digit++) {
		uint32_t in_digit = starts[digit];
		starts[digit] = sum;
		sum += in_digit;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[from[i].value >> shift & (RADIX - 1)]++] = from[i];
}

static uint64_t largest_value(const struct symbols *symbols)
{
	uint64_t largest = 0;
	for (size_t i = 0; i < symbols->count; i++)
		if (symbols->rows[i].value > largest)
			largest = symbols->rows[i].value;
	return largest;
}

static int sort_rows(struct symbols *symbols, size_t capacity)
{
	uint64_t largest = largest_value(symbols);
	struct row *rows = symbols->rows;
	struct row *other = arena_alloc(symbols->arena, capacity * sizeof *other);
	if (!other)
		return -ENOMEM;
	for (unsigned shift = 0; shift < 64 && largest >> shift; shift += RADIX_BITS) {
		struct row *swap = rows;
		move_by_digit(rows, other, symbols->count, shift);
		rows = other;
		other = swap;
	}
	symbols->rows = rows;
	arena_free(symbols->arena, other, capacity * sizeof *other);
	return 0;
}

/* 0; -ENOENT when the table has no function in it. */
static int read_table(struct symbols *symbols, const Elf64_Shdr *table, const Elf64_Shdr *strings)
{
	uint64_t count = table->sh_size / sizeof(Elf64_Sym);
	if (strings->sh_type != SHT_STRTAB || strings->sh_offset > symbols->file_bytes ||
	    strings->sh_size > symbols->file_bytes - strings->sh_offset || count > SYMBOLS_MAX ||
	    table->sh_size > symbols->file_bytes)
		return -ENOENT;
	symbols->names_offset = strings->sh_offset;
	symbols->names_bytes = strings->sh_size;
	symbols->count = 0;
	symbols->rows = arena_alloc(symbols->arena, count * sizeof *symbols->rows);
	if (!symbols->rows)
		return -ENOMEM;
	if (!read_rows(symbols, table, count) || !symbols->count)
		return -ENOENT;
	return sort_rows(symbols, count);
}

static int read_sections(struct symbols *symbols, const Elf64_Ehdr *header)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	size_t bytes = header->e_shnum * sizeof(Elf64_Shdr);
	Elf64_Shdr *sections = arena_alloc(symbols->arena, bytes);
	int error = sections ? -ENOENT : -ENOMEM;
	if (sections && !read_at(symbols, sections, bytes, header->e_shoff))
		return -EINVAL;
	for (unsigned kind = 0; kind < 2; kind++)
		for (unsigned i = 0; i < header->e_shnum && error == -ENOENT; i++)
			if (sections[i].sh_type == types[kind] &&
			    sections[i].sh_link < header->e_shnum)
				error = read_table(symbols, &sections[i],
						   &sections[sections[i].sh_link]);
	return error == -ENOENT ? -EINVAL : error;
}

static int load(struct symbols *symbols, const char *path, const uint8_t *id, uint32_t id_bytes)
{
	Elf64_Ehdr header;
	int error = open_file(symbols, path);
	if (error)
		return error;
	if (!read_at(symbols, &header, sizeof header, 0) || !is_of_this_machine(&header))
		return -EINVAL;
	error = read_segments(symbols, &header, id, id_bytes);
	return error ? error : read_sections(symbols, &header);
}

struct symbols *symbols_open(const char *path, const uint8_t *build_id, uint32_t build_id_bytes)
{
	struct arena *arena = arena_create();
	struct symbols *symbols = arena ? arena_alloc(arena, sizeof *symbols) : NULL;
	int error = -ENOMEM;
	if (symbols) {
		symbols->arena = arena;
		symbols->fd = -1;
		error = load(symbols, path, build_id, build_id_bytes);
		if (!error)
			return symbols;
		if (symbols->fd >= 0)
			close(symbols->fd);
	}
	arena_release(arena);
	errno = -error;
	return NULL;
}

void symbols_close(struct symbols *symbols)
{
	if (!symbols)
		return;
	close(symbols->fd);
	arena_release(symbols->arena); /* the symbols are in it */
}

/* ---------- look-up ---------- */

static size_t first_above(const struct symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symbols->rows[middle].value > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Rows [start, end) have one value; `next` is the one after it. Without a size it ends there. */
static bool group_contains(const struct symbols *symbols, size_t start, size_t end,
			   uint64_t address)
{
	uint64_t value = symbols->rows[start].value, size = 0;
	for (size_t i = start; i < end; i++)
		if (symbols->rows[i].size > size)
			size = symbols->rows[i].size;
	if (size)
		return address - value < size;
	return end == symbols->count ? address < symbols->end : address < symbols->rows[end].value;
}

/* Reads in pieces: tables of names are large, names are short. */
static bool read_name(const struct symbols *symbols, uint32_t name, char to[NAME_BYTES])
{
	size_t used = 0, most = NAME_BYTES - 1;
	if (most > symbols->names_bytes - name)
		most = symbols->names_bytes - name;
	while (used < most) {
		size_t some = most - used < NAME_PIECE ? most - used : NAME_PIECE;
		if (!read_at(symbols, to + used, some, symbols->names_offset + name + used))
			return false;
		if (memchr(to + used, 0, some))
			return *to;
		used += some;
	}
	to[used] = 0;
	return *to;
}

static size_t underscores(const char *name)
{
	return !strncmp(name, "_Z", 2) ? 0 : strspn(name, "_");
}

/* Of names of equal rank the one with fewer underscores in front: malloc, not __libc_malloc. */
static const char *best_name(struct symbols *symbols, size_t start, size_t end)
{
	const char *best = NULL;
	unsigned best_rank = 3;
	for (size_t i = start; i < end; i++) {
		unsigned rank = symbols->rows[i].rank;
		char *to = symbols->names[best == symbols->names[0]];
		if (rank > best_rank || !read_name(symbols, symbols->rows[i].name, to))
			continue;
		if (best && rank == best_rank && underscores(to) >= underscores(best))
			continue;
		best = to;
		best_rank = rank;
	}
	return best;
}

const char *symbols_find(struct symbols *symbols, uint64_t address, uint64_t *offset)
{
	size_t end = first_above(symbols, address), stop = end > STEPS_BACK ? end - STEPS_BACK : 0;
	while (end > stop) {
		size_t start = end - 1;
		while (start > stop && symbols->rows[start - 1].value == symbols->rows[start].value)
			start--;
		if (group_contains(symbols, start, end, address)) {
			*offset = address - symbols->rows[start].value;
			return best_name(symbols, start, end);
		}
		end = start;
	}
	return NULL;
}
