/* Owns the finding of a function's description: the module's search table leads to it (FDE), it to what it has in
 * common with others (CIE). Source: the LSB's chapter on .eh_frame and .eh_frame_hdr. It must never follow a pointer
 * outside the module's own tables. */
#include "recorder/cfi.h"
#include "recorder/cfi_private.h"
#include "recorder/elf.h"

/* The augmentation data of a CIE, letter by letter. */
static void read_augmentation(struct description *found, struct reader *cie, const char *letters)
{
	for (const char *letter = letters + 1; *letter; letter++) {
		if (*letter == 'R')
			found->encoding = (unsigned)read_fixed(cie, 1);
		else if (*letter == 'P')
			read_encoded(cie, (unsigned)read_fixed(cie, 1));
		else if (*letter == 'L')
			read_fixed(cie, 1);
		else if (*letter == 'S')
			found->is_signal = true;
	}
}

/* A length word, and a reader of that many bytes behind it. */
static struct reader entry_at(const uint8_t *at)
{
	uint32_t bytes;
	memcpy(&bytes, at, sizeof bytes);
	return (struct reader){ at + 4, at + 4 + bytes };
}

static bool read_common(struct description *found, const uint8_t *at)
{
	struct reader cie = entry_at(at);
	read_fixed(&cie, 5); /* id and version */
	const char *letters = (const char *)cie.at;
	cie.at += strlen(letters) + 1;
	found->code_factor = (int64_t)read_uleb(&cie);
	found->data_factor = read_sleb(&cie);
	read_uleb(&cie); /* the return address register: 16 on this machine */
	if (*letters == 'z') {
		uint64_t bytes = read_uleb(&cie);
		const uint8_t *program = cie.at + bytes;
		read_augmentation(found, &cie, letters);
		cie.at = program;
	}
	found->common = cie;
	return cie.at <= cie.end;
}

static bool read_description(struct description *found, const uint8_t *at)
{
	struct reader fde = entry_at(at);
	const uint8_t *here = fde.at;
	uint32_t distance = (uint32_t)read_fixed(&fde, 4);
	if (!read_common(found, here - distance))
		return false;
	found->start = read_encoded(&fde, found->encoding);
	found->end = found->start + read_encoded(&fde, found->encoding & 15);
	uint64_t bytes = read_uleb(&fde); /* augmentation: every CIE of a compiler has 'z' */
	fde.at += bytes;
	found->own = fde;
	return fde.at <= fde.end;
}

#define TABLE_ENCODING 0x3b /* sorted pairs of 32-bit offsets from the table's own start */

static const uint8_t *search_table(const uint8_t *header, uintptr_t pc)
{
	struct reader reader = { header + 4, header + 64 };
	if (header[0] != 1 || header[3] != TABLE_ENCODING)
		return NULL;
	read_encoded(&reader, header[1]);
	size_t count = read_encoded(&reader, header[2]);
	const int32_t(*pairs)[2] = (const void *)reader.at;
	int64_t key = (int64_t)(pc - (uintptr_t)header);
	size_t low = 0, high = count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (pairs[middle][0] <= key)
			low = middle;
		else
			high = middle;
	}
	return count && pairs[low][0] <= key ? header + pairs[low][1] : NULL;
}

bool cfi_describe(struct description *found, uintptr_t pc)
{
	memset(found, 0, sizeof *found);
	const uint8_t *header = elf_unwind_table_of((const void *)pc);
	const uint8_t *at = header ? search_table(header, pc) : NULL;
	return at && read_description(found, at) && pc >= found->start && pc < found->end;
}

int cfi_function_at(uintptr_t pc, uintptr_t *start, uintptr_t *end)
{
	struct description found;
	if (!cfi_describe(&found, pc))
		return 0;
	*start = found.start;
	*end = found.end;
	return 1;
}
