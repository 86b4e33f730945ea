/* Owns the reading of .eh_frame: the search table finds a function's description, whose little program is run up
 * to the instruction asked for. Only what a walk needs is followed: the frame address, rbp and the return address;
 * anything else about those three makes the rule "hard". Sources: the DWARF 4 standard, section 6.4, and the LSB's
 * chapter on .eh_frame and .eh_frame_hdr. It must never follow a pointer outside the module's own tables. */
#include "recorder/cfi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "recorder/elf.h"

#define REGISTER_BP 6
#define REGISTER_SP 7
#define REGISTER_RA 16
#define STATES_MAX 8

struct row { /* of the table that the program describes */
	int cfa_register;
	int64_t cfa_offset;
	bool cfa_is_word;  /* the address is the word found there */
	bool bp_is_saved;
	bool bp_by_bp;     /* saved relative to rbp itself */
	int64_t bp_offset;
	bool is_outermost; /* the return address is undefined */
	bool is_hard;
};

struct reader {
	const uint8_t *at, *end;
};

static uint64_t read_uleb(struct reader *reader)
{
	uint64_t value = 0;
	for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
		uint8_t byte = *reader->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

static int64_t read_sleb(struct reader *reader)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte = 0;
	do {
		if (reader->at >= reader->end)
			break;
		byte = *reader->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 64);
	if (shift < 64 && byte & 0x40)
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

static uint64_t read_fixed(struct reader *reader, unsigned bytes)
{
	uint64_t value = 0;
	if (reader->end - reader->at < (ptrdiff_t)bytes) {
		reader->at = reader->end;
		return 0;
	}
	memcpy(&value, reader->at, bytes);
	reader->at += bytes;
	return value;
}

#define ENCODING_RELATIVE 0x10 /* to where the value stands */

/* DW_EH_PE_*: the low nibble is the form. */
static uint64_t read_encoded(struct reader *reader, unsigned encoding)
{
	uint64_t here = (uint64_t)(uintptr_t)reader->at, value;
	switch (encoding & 15) {
	case 1: value = read_uleb(reader); break;
	case 2: value = read_fixed(reader, 2); break;
	case 3: value = read_fixed(reader, 4); break;
	case 9: value = (uint64_t)read_sleb(reader); break;
	case 10: value = (uint64_t)(int16_t)read_fixed(reader, 2); break;
	case 11: value = (uint64_t)(int32_t)read_fixed(reader, 4); break;
	default: value = read_fixed(reader, 8); break;
	}
	return (encoding & 0x70) == ENCODING_RELATIVE ? value + here : value;
}

/* ---------- finding the description ---------- */

struct description {
	uintptr_t start, end;          /* of the function */
	struct reader common, own;     /* programs */
	int64_t code_factor, data_factor;
	unsigned encoding;
	bool is_signal;
};

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

static bool describe(struct description *found, uintptr_t pc)
{
	memset(found, 0, sizeof *found);
	const uint8_t *header = elf_unwind_table_of((const void *)pc);
	const uint8_t *at = header ? search_table(header, pc) : NULL;
	return at && read_description(found, at) && pc >= found->start && pc < found->end;
}

/* ---------- running the program ---------- */

struct machine {
	struct row row, initial, saved[STATES_MAX];
	unsigned saved_count;
	const struct description *description;
	uintptr_t location, wanted;
};

static void save_register(struct row *row, uint64_t number, int64_t offset)
{
	if (number == REGISTER_BP) {
		row->bp_is_saved = true;
		row->bp_by_bp = false;
		row->bp_offset = offset;
	} else if (number == REGISTER_RA) {
		row->is_outermost = false;
		row->is_hard |= offset != -8;
	}
}

static void restore_register(struct machine *machine, uint64_t number)
{
	if (number != REGISTER_BP)
		return;
	machine->row.bp_is_saved = machine->initial.bp_is_saved;
	machine->row.bp_by_bp = machine->initial.bp_by_bp;
	machine->row.bp_offset = machine->initial.bp_offset;
}

static void lose_register(struct row *row, uint64_t number)
{
	if (number == REGISTER_RA)
		row->is_outermost = true;
	else if (number == REGISTER_BP)
		row->bp_is_saved = false;
}

#define OP_BREG0 0x70
#define OP_DEREF 0x06

/* Expressions: only "the word at register + offset" is known, as compilers write it for realigned stacks. */
static void run_cfa_expression(struct row *row, struct reader body)
{
	uint8_t op = (uint8_t)read_fixed(&body, 1);
	int64_t offset = read_sleb(&body);
	bool is_known = op >= OP_BREG0 && op < OP_BREG0 + 32 && body.end - body.at == 1 && *body.at == OP_DEREF;
	row->is_hard |= !is_known;
	row->cfa_register = op - OP_BREG0;
	row->cfa_offset = offset;
	row->cfa_is_word = true;
}

static void run_expression(struct row *row, uint64_t number, struct reader body, bool is_address)
{
	if (number != REGISTER_BP && number != REGISTER_RA)
		return;
	uint8_t op = (uint8_t)read_fixed(&body, 1);
	int64_t offset = read_sleb(&body);
	bool is_known = number == REGISTER_BP && is_address && op == OP_BREG0 + REGISTER_BP && body.at == body.end;
	row->is_hard |= !is_known;
	row->bp_is_saved = row->bp_by_bp = true;
	row->bp_offset = offset;
}

static struct reader read_block(struct reader *program)
{
	uint64_t bytes = read_uleb(program);
	struct reader block = { program->at, program->at + bytes };
	if (bytes > (uint64_t)(program->end - program->at))
		block.end = program->end;
	program->at = block.end;
	return block;
}

static void push_state(struct machine *machine)
{
	if (machine->saved_count < STATES_MAX)
		machine->saved[machine->saved_count++] = machine->row;
	else
		machine->row.is_hard = true;
}

static void pop_state(struct machine *machine)
{
	if (machine->saved_count)
		machine->row = machine->saved[--machine->saved_count];
	else
		machine->row.is_hard = true;
}

/* The instructions that move to a later address. True: beyond the wanted one, the row is complete. */
static bool advance(struct machine *machine, uint64_t units)
{
	machine->location += units * (uint64_t)machine->description->code_factor;
	return machine->location > machine->wanted;
}

static void run_definition(struct machine *machine, uint8_t op, struct reader *program)
{
	struct row *row = &machine->row;
	int64_t factor = machine->description->data_factor;
	switch (op) {
	case 0x0c: /* def_cfa */
		row->cfa_register = (int)read_uleb(program);
		row->cfa_offset = (int64_t)read_uleb(program);
		row->cfa_is_word = false;
		break;
	case 0x0d: row->cfa_register = (int)read_uleb(program); break;
	case 0x0e: row->cfa_offset = (int64_t)read_uleb(program); break;
	case 0x0f: run_cfa_expression(row, read_block(program)); break;
	case 0x12: /* def_cfa_sf */
		row->cfa_register = (int)read_uleb(program);
		row->cfa_offset = read_sleb(program) * factor;
		row->cfa_is_word = false;
		break;
	case 0x13: row->cfa_offset = read_sleb(program) * factor; break;
	case 0x2e: read_uleb(program); break; /* GNU_args_size */
	default: row->is_hard = true; break;
	}
}

static void run_register(struct machine *machine, uint8_t op, struct reader *program)
{
	struct row *row = &machine->row;
	int64_t factor = machine->description->data_factor;
	uint64_t number = read_uleb(program);
	switch (op) {
	case 0x05: save_register(row, number, (int64_t)read_uleb(program) * factor); break; /* offset_extended */
	case 0x06: restore_register(machine, number); break;
	case 0x07: lose_register(row, number); break; /* undefined */
	case 0x08: if (number == REGISTER_BP) row->bp_is_saved = false; break; /* same_value */
	case 0x09: /* register */
		read_uleb(program);
		row->is_hard |= number == REGISTER_BP || number == REGISTER_RA;
		break;
	case 0x10: run_expression(row, number, read_block(program), true); break;
	case 0x16: run_expression(row, number, read_block(program), false); break;
	case 0x11: save_register(row, number, read_sleb(program) * factor); break; /* offset_extended_sf */
	default: /* val_offset, val_offset_sf */
		read_sleb(program);
		row->is_hard |= number == REGISTER_BP || number == REGISTER_RA;
		break;
	}
}

static bool is_register_op(uint8_t op)
{
	return (op >= 0x05 && op <= 0x09) || op == 0x10 || op == 0x11 || (op >= 0x14 && op <= 0x16);
}

/* True: the wanted address is reached. */
static bool run_extended(struct machine *machine, uint8_t op, struct reader *program)
{
	switch (op) {
	case 0x00: return false; /* nop */
	case 0x01: machine->location = read_encoded(program, machine->description->encoding);
		return machine->location > machine->wanted;
	case 0x02: return advance(machine, read_fixed(program, 1));
	case 0x03: return advance(machine, read_fixed(program, 2));
	case 0x04: return advance(machine, read_fixed(program, 4));
	case 0x0a: push_state(machine); return false;
	case 0x0b: pop_state(machine); return false;
	default: break;
	}
	if (is_register_op(op))
		run_register(machine, op, program);
	else
		run_definition(machine, op, program);
	return false;
}

static void run(struct machine *machine, struct reader program)
{
	while (program.at < program.end && !machine->row.is_hard) {
		uint8_t op = *program.at++, low = op & 0x3f;
		bool is_reached = false;
		switch (op >> 6) {
		case 1: is_reached = advance(machine, low); break;
		case 2: save_register(&machine->row, low,
				      (int64_t)read_uleb(&program) * machine->description->data_factor);
			break;
		case 3: restore_register(machine, low); break;
		default: is_reached = run_extended(machine, op, &program); break;
		}
		if (is_reached)
			return;
	}
}

static struct cfi_rule rule_of(const struct row *row)
{
	struct cfi_rule rule = { .bp_offset = CFI_BP_KEPT, .kind = CFI_HARD };
	bool by_bp = row->cfa_register == REGISTER_BP;
	if (row->is_outermost)
		return (struct cfi_rule){ .kind = CFI_END };
	if (row->is_hard || (!by_bp && row->cfa_register != REGISTER_SP) || row->bp_by_bp != (row->cfa_is_word && row->bp_is_saved))
		return rule;
	if (row->cfa_offset != (int32_t)row->cfa_offset || (row->bp_is_saved && row->bp_offset != (int16_t)row->bp_offset))
		return rule;
	rule.cfa_offset = (int32_t)row->cfa_offset;
	if (row->bp_is_saved)
		rule.bp_offset = (int16_t)row->bp_offset;
	if (row->cfa_is_word)
		rule.kind = by_bp ? CFI_BP_DEREF : CFI_SP_DEREF;
	else
		rule.kind = by_bp ? CFI_BP : CFI_SP;
	return rule;
}

struct cfi_rule cfi_rule_at(uintptr_t pc)
{
	struct description found;
	struct machine machine;
	if (!describe(&found, pc))
		return (struct cfi_rule){ .kind = CFI_END };
	if (found.is_signal)
		return (struct cfi_rule){ .kind = CFI_SIGNAL };
	memset(&machine, 0, sizeof machine);
	machine.description = &found;
	machine.location = found.start;
	machine.wanted = UINTPTR_MAX;
	run(&machine, found.common);
	machine.initial = machine.row;
	machine.wanted = pc;
	run(&machine, found.own);
	return rule_of(&machine.row);
}

int cfi_function_at(uintptr_t pc, uintptr_t *start, uintptr_t *end)
{
	struct description found;
	if (!describe(&found, pc))
		return 0;
	*start = found.start;
	*end = found.end;
	return 1;
}
