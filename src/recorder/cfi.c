/* Owns the running of call frame programs: a function's description holds a little program, which is run up to the
 * instruction asked for. Only what a walk needs is followed: the frame address, rbp and the return address; anything
 * else about those three makes the rule "hard". Source: the DWARF 4 standard, section 6.4. */
#include "recorder/cfi.h"
#include "recorder/cfi_private.h"

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
	if (!cfi_describe(&found, pc))
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
