/* Owns the walk and the table of rules. An entry is two words: the first names address and generation, the second
 * is the rule; a writer first makes the first word busy, so a reader that sees the name before and after reading
 * the rule has the right rule, and nothing is ever waited for. It must never read memory that a rule does not
 * lead to, and stops where a frame would not lie above the one before. */
#include "recorder/unwind.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>

#include "recorder/cfi.h"
#include "recorder/elf.h"
#include "recorder/hot.h"
#include "recorder/id_table.h"

#define ENTRIES (1u << 15)
#define FIRST_ENTRIES (1u << 10)
#define PROBES 8
#define BUSY 1
#define ADDRESS_BITS 48
#define FRAME_BYTES_MAX (64u << 20) /* of one frame: above this a rule has gone astray */

/* A rule as it is kept: all that a step needs in one word. */
struct rule {
	int32_t cfa; /* offset of the caller's frame address, a multiple of 8, and in its low bits the kind */
	int16_t bp_offset;
	uint16_t object; /* which object the code is of, by its name: the top bits of the word */
};
#define KIND_BITS 7
#define OBJECT_BITS (UINT64_MAX << ADDRESS_BITS)

struct entry {
	uint64_t name; /* return address | generation << 48; 0 free; BUSY being written */
	uint64_t rule;
};

static struct entry *entries;
/* Rules in use lie together, so that they stay in the processor's caches: entries are taken from the first `reach`,
 * twice as many once half of those are. Some rules are then no longer found, and are worked out again. */
static uint32_t reach = FIRST_ENTRIES;
static uint32_t kept; /* rules, since `reach` is what it is; about */
static uint64_t generation; /* shifted by ADDRESS_BITS */

static struct elf_range interpreter_code;

int unwind_init(void)
{
	if (!elf_can_find_objects())
		return -ENOSYS;
	if (entries)
		return 0;
	void *pages = mmap(NULL, ENTRIES * sizeof(struct entry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	if (pages == MAP_FAILED)
		return -ENOMEM;
	__atomic_store_n(&entries, pages, __ATOMIC_RELEASE);
	return 0;
}

/* The number of a generation comes again: what is kept of those before goes. */
static void empty_table(void)
{
	for (uint32_t i = 0; entries && i < ENTRIES; i++)
		__atomic_store_n(&entries[i].name, 0, __ATOMIC_RELAXED);
}

void unwind_forget(void)
{
	if (!__atomic_add_fetch(&generation, UINT64_C(1) << ADDRESS_BITS, __ATOMIC_ACQ_REL))
		empty_table();
}

void unwind_set_interpreter(uintptr_t function)
{
	struct elf_range range;
	if (cfi_function_at(function, &range.start, &range.end))
		interpreter_code = range;
}

/* ---------- the table ---------- */

static inline uint32_t bucket(uint64_t name)
{
	return (uint32_t)((name * 0x9E3779B97F4A7C15u) >> 49);
}

static inline struct entry *entry_at(uint32_t place)
{
	return &entries[place & (__atomic_load_n(&reach, __ATOMIC_RELAXED) - 1)];
}

static void count_kept(void)
{
	uint32_t now = __atomic_load_n(&reach, __ATOMIC_RELAXED);
	if (__atomic_add_fetch(&kept, 1, __ATOMIC_RELAXED) < now / 2 || now == ENTRIES)
		return;
	if (__atomic_compare_exchange_n(&reach, &now, 2 * now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&kept, 0, __ATOMIC_RELAXED);
}

static void keep_rule(uint64_t name, uint64_t packed)
{
	uint32_t at = bucket(name);
	for (unsigned i = 0; i <= PROBES; i++) {
		/* The first free entry, or one of another generation; else the last probed is given up. */
		struct entry *entry = entry_at(at + i);
		uint64_t found = __atomic_load_n(&entry->name, __ATOMIC_RELAXED);
		bool is_stale = found >> ADDRESS_BITS != name >> ADDRESS_BITS;
		if (found == BUSY || (found && !is_stale && i < PROBES - 1))
			continue;
		if (!__atomic_compare_exchange_n(&entry->name, &found, BUSY, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			return; /* another thread is at it: next time */
		__atomic_store_n(&entry->rule, packed, __ATOMIC_RELEASE);
		__atomic_store_n(&entry->name, name, __ATOMIC_RELEASE);
		count_kept();
		return;
	}
}

static uint16_t object_mark(uintptr_t pc)
{
	const struct link_map *object = elf_object_of((const void *)pc);
	uint64_t hash = 0;
	for (const char *letter = object ? object->l_name : ""; *letter; letter++)
		hash = id_mix(hash, (unsigned char)*letter);
	return (uint16_t)(hash >> 48);
}

static uint64_t work_out(uintptr_t pc)
{
	struct cfi_rule found = cfi_rule_at(pc);
	if (found.cfa_offset & KIND_BITS)
		found.kind = CFI_HARD;
	struct rule rule = { .cfa = (found.cfa_offset & ~KIND_BITS) | found.kind,
			     .bp_offset = found.bp_offset,
			     .object = object_mark(pc) };
	uint64_t packed;
	memcpy(&packed, &rule, sizeof packed);
	return packed;
}

static inline uint64_t rule_at(uintptr_t pc, uint64_t now)
{
	uint64_t name = pc | now;
	uint32_t at = bucket(name);
	for (unsigned i = 0; i < PROBES; i++) {
		const struct entry *entry = entry_at(at + i);
		uint64_t found = __atomic_load_n(&entry->name, __ATOMIC_ACQUIRE);
		if (found == name) {
			uint64_t packed = __atomic_load_n(&entry->rule, __ATOMIC_ACQUIRE);
			if (__atomic_load_n(&entry->name, __ATOMIC_RELAXED) != name)
				break;
			return packed;
		}
		if (!found)
			break;
	}
	uint64_t packed = work_out(pc);
	keep_rule(name, packed);
	return packed;
}

/* ---------- the walk ---------- */

struct cursor {
	uintptr_t ip, sp, bp;
	bool is_exact; /* ip is where execution stands, not a return address */
};

static inline uintptr_t word_at(uintptr_t address)
{
	return *(const uintptr_t *)address;
}

static bool step_out_of_signal(struct cursor *cursor)
{
	const ucontext_t *context = (const void *)cursor->sp;
	cursor->ip = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	cursor->sp = (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
	cursor->bp = (uintptr_t)context->uc_mcontext.gregs[REG_RBP];
	cursor->is_exact = true;
	return true;
}

/* False: there is no caller, or its frame does not lie above this one. */
static inline bool step(struct cursor *cursor, struct rule rule, enum cfi_kind kind)
{
	uintptr_t base = kind == CFI_BP || kind == CFI_BP_DEREF ? cursor->bp : cursor->sp;
	uintptr_t cfa = base + (uintptr_t)(intptr_t)(rule.cfa & ~KIND_BITS);
	uintptr_t bp_base;
	if (kind == CFI_SIGNAL)
		return step_out_of_signal(cursor);
	if (kind == CFI_END || kind == CFI_HARD || cfa & 7 || cfa < cursor->sp)
		return false;
	bp_base = cfa;
	if (kind >= CFI_SP_DEREF) {
		cfa = word_at(cfa);
		bp_base = cursor->bp;
	}
	if (cfa <= cursor->sp || cfa - cursor->sp > FRAME_BYTES_MAX || cfa & 7)
		return false;
	cursor->ip = word_at(cfa - 8);
	if (rule.bp_offset != CFI_BP_KEPT)
		cursor->bp = word_at(bp_base + (uintptr_t)(intptr_t)rule.bp_offset);
	cursor->sp = cfa;
	cursor->is_exact = false;
	return cursor->ip >= 4096 && cursor->ip >> ADDRESS_BITS == 0;
}

static inline bool range_has(const struct elf_range *range, uintptr_t ip)
{
	return ip - range->start < range->end - range->start;
}

MT_HOT struct unwind_result unwind_walk(const void *frame, uintptr_t *frames, unsigned capacity, uintptr_t interpreter)
{
	struct unwind_result result = { 0, UNWIND_OUTERMOST, 0 };
	uint64_t now = __atomic_load_n(&generation, __ATOMIC_RELAXED);
	const uintptr_t *saved = frame; /* the caller's rbp, then the return address; its frame begins behind */
	struct cursor cursor = { .ip = saved[1], .sp = (uintptr_t)(saved + 2), .bp = saved[0] };
	bool has_caller = entries != NULL;
	while (has_caller) {
		uintptr_t ip = cursor.ip;
		uint64_t packed = rule_at(cursor.is_exact ? ip : ip - 1, now);
		struct rule rule;
		memcpy(&rule, &packed, sizeof rule);
		enum cfi_kind kind = rule.cfa & KIND_BITS;
		has_caller = step(&cursor, rule, kind);
		if ((interpreter && has_caller && cursor.sp > interpreter) || range_has(&interpreter_code, ip)) {
			result.end = UNWIND_INTERPRETER;
			return result;
		}
		if (result.count == capacity) {
			result.end = UNWIND_TRUNCATED;
			return result;
		}
		frames[result.count++] = ip;
		result.key = id_mix(result.key, ip | (packed & OBJECT_BITS));
		if (!has_caller && kind != CFI_END)
			result.end = UNWIND_TRUNCATED;
	}
	return result;
}
