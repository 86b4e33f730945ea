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

/* ---------- symbols ---------- */

/* memcpy@@GLIBC_2.14, foo.part.0: what the linker or compiler put behind the name. */
static size_t plain_bytes(const char *symbol, size_t bytes)
{
	size_t end = strcspn(symbol, "@");
	const char *dot = memchr(symbol, '.', end < bytes ? end : bytes);
	if (dot > symbol)
		end = (size_t)(dot - symbol);
	return end < bytes ? end : bytes;
}

/* What nvcc names the host side of a kernel: __device_stub__ and the kernel's symbol. */
static const char *without_stub(const char *symbol)
{
	static const char stub[] = "__device_stub__";
	return strncmp(symbol, stub, sizeof stub - 1) ? symbol : symbol + sizeof stub - 1;
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
