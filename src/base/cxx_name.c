/* Names of functions as people read them. Owns what stands in place of a symbol, and where a name
 * that is too long is cut. Must never allocate, nor trust the symbol. */
#include "base/cxx_name.h"

#include <string.h>

#include "base/cxx_private.h"

#define SYMBOL_MAX  16384
#define WHOLE_BYTES 2048 /* of a name before it is cut */
#define SHOWN_MAX   100
#define HEAD_MAX    40

/* ---------- cutting ---------- */

/* Length of the first whole components that fit `most`, with the colons behind them. */
static size_t head_bytes(const char *name, size_t bytes, size_t most)
{
	size_t head = 0;
	for (size_t i = 0; i + 2 <= bytes && i + 2 <= most; i++)
		if (!memcmp(name + i, "::", 2))
			head = i + 2;
	return head;
}

/* Where the last components begin that fit `most`, colons in front; `bytes` when none does. */
static size_t tail_start(const char *name, size_t bytes, size_t most)
{
	size_t start = bytes;
	for (size_t i = bytes; i-- > 0 && bytes - i <= most;)
		if (i + 2 <= bytes && !memcmp(name + i, "::", 2))
			start = i;
	return start;
}

/* a::b::...::y::z; a single component too long loses its middle. */
static void cut(struct text *to, const char *name, size_t bytes)
{
	size_t head = head_bytes(name, bytes, HEAD_MAX);
	size_t tail = tail_start(name, bytes, SHOWN_MAX - 3 - head);
	if (tail == bytes) {
		size_t half = (SHOWN_MAX - 3 - head) / 2;
		text_add_bytes(to, name, head + half);
		text_add(to, "...");
		text_add_bytes(to, name + bytes - half, half);
		return;
	}
	text_add_bytes(to, name, head);
	text_add(to, "...");
	text_add_bytes(to, name + tail, bytes - tail);
}

static void add_name(struct text *to, const char *name, size_t bytes)
{
	if (bytes > SHOWN_MAX)
		cut(to, name, bytes);
	else
		text_add_bytes(to, name, bytes);
}

/* ---------- what a symbol stands for ---------- */

/* Thunks: h <number> _ or v <number> _ <number> _, once or (c) twice. */
static bool call_offset(struct cxx *cxx)
{
	bool is_virtual = cxx_take(cxx, 'v');
	if (!is_virtual && !cxx_take(cxx, 'h'))
		return false;
	cxx_skip_number(cxx);
	if (!cxx_take(cxx, '_') || !is_virtual)
		return !is_virtual;
	cxx_skip_number(cxx);
	return cxx_take(cxx, '_');
}

static const struct special {
	char code[3];
	const char *words;
} specials[] = {
	{"TV", "vtable for "},
	{"TT", "VTT for "},
	{"TI", "typeinfo for "},
	{"TS", "typeinfo name for "},
	{"GV", "guard variable for "},
	{"GR", "reference temporary for "},
	{"TW", ""},
	{"TH", ""},
	{"GA", ""},
};

static bool special(struct cxx *cxx, bool *is_special)
{
	*is_special = true;
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
		if (cxx_take_two(cxx, specials[i].code)) {
			cxx_show(cxx, specials[i].words);
			return cxx_any_name(cxx);
		}
	if (cxx_take_two(cxx, "Tc"))
		return call_offset(cxx) && call_offset(cxx) && cxx_encoding(cxx);
	if (cxx_peek(cxx, 0) == 'T' && (cxx_peek(cxx, 1) == 'h' || cxx_peek(cxx, 1) == 'v'))
		return cxx_take(cxx, 'T') && call_offset(cxx) && cxx_encoding(cxx);
	*is_special = false;
	return false;
}

/* The types behind a name: not shown, so what cannot be read of them costs nothing at the end. */
static void parameters(struct cxx *cxx)
{
	cxx->quiet++;
	for (char c; c = cxx_peek(cxx, 0), c && c != 'E' && c != '.';)
		if (!cxx_skip_type(cxx))
			break;
	cxx->quiet--;
}

bool cxx_encoding(struct cxx *cxx)
{
	bool is_special;
	if (!cxx_enter(cxx))
		return false;
	bool is_read = special(cxx, &is_special) || (!is_special && cxx_any_name(cxx));
	if (is_read && !is_special)
		parameters(cxx);
	return cxx_leave(cxx, is_read);
}

/* ---------- symbols ---------- */

/* memcpy@@GLIBC_2.14, foo.part.0: what the linker or compiler put behind the name. */
static size_t plain_bytes(const char *symbol, size_t bytes)
{
	size_t end = strcspn(symbol, "@");
	const char *dot = memchr(symbol, '.', end < bytes ? end : bytes);
	if (dot > symbol)
		end = (size_t)(dot - symbol);
	return end && end < bytes ? end : bytes;
}

/* What nvcc names the host side of a kernel: __device_stub__ and the kernel's symbol. */
static const char *without_stub(const char *symbol)
{
	static const char stub[] = "__device_stub__";
	bool is_stub = !strncmp(symbol, stub, sizeof stub - 1) && symbol[sizeof stub - 1];
	return is_stub ? symbol + sizeof stub - 1 : symbol;
}

static bool read_cxx(struct cxx *cxx, const char *symbol, size_t bytes)
{
	cxx->at = symbol + 2;
	cxx->end = symbol + bytes;
	return !strncmp(symbol, "_Z", 2) && cxx_encoding(cxx);
}

void cxx_name(char name[CXX_NAME_BYTES], const char *symbol)
{
	char whole[WHOLE_BYTES];
	struct cxx cxx = {.at = NULL};
	struct text short_name;
	symbol = without_stub(symbol);
	size_t bytes = strnlen(symbol, SYMBOL_MAX);
	text_init_fixed(&cxx.out, whole, sizeof whole);
	text_init_fixed(&short_name, name, CXX_NAME_BYTES);
	bool is_read = read_cxx(&cxx, symbol, bytes);
	if (is_read || cxx.last) /* of a symbol cut short: its beginning */
		add_name(&short_name, whole, cxx.out.used_bytes);
	if (!is_read && short_name.used_bytes)
		text_add(&short_name, "...");
	if (!short_name.used_bytes)
		add_name(&short_name, symbol, plain_bytes(symbol, bytes));
	text_string(&short_name);
}
