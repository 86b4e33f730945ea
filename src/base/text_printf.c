/* printf for texts. Owns: the formatting of integers, strings and decimals. Must never look at the
 * locale or call into stdio (both belong to the traced program), and must never guess at an
 * argument: from a conversion that it does not know on, the format is added as it stands. */
#include <string.h>

#include "base/text.h"
#include "base/text_private.h"

struct conversion {
	bool left, zeros, thousands;
	size_t width;
	long precision; /* -1 none */
	bool is_long;   /* long long, size_t, intmax_t and ptrdiff_t are all long on x86-64 */
};

#define WIDTH_MAX      4096 /* a width from damaged data must not fill the memory */
#define INTEGER_DIGITS 32   /* 20 digits and 6 commas, or 64 bits in hexadecimal */

static void add_padded(struct text *text, const struct conversion *c, const char *sign,
		       const char *body, size_t bytes, size_t zeros)
{
	size_t sign_bytes = strlen(sign), all = sign_bytes + bytes + zeros;
	size_t fill = c->width > all ? c->width - all : 0;
	if (!c->left && !c->zeros)
		text_add_repeated(text, ' ', fill);
	text_add_bytes(text, sign, sign_bytes);
	text_add_repeated(text, '0', zeros + (!c->left && c->zeros ? fill : 0));
	text_add_bytes(text, body, bytes);
	if (c->left)
		text_add_repeated(text, ' ', fill);
}

static void add_integer(struct text *text, const struct conversion *c, const char *sign,
			uint64_t value, unsigned base, const char *digits)
{
	char buffer[INTEGER_DIGITS], *at = buffer + sizeof buffer;
	size_t count = 0;
	for (; value; value /= base) {
		if (c->thousands && count && count % 3 == 0)
			*--at = ',';
		*--at = digits[value % base];
		count++;
	}
	size_t least = c->precision < 0 ? 1 : (size_t)c->precision;
	least = least < WIDTH_MAX ? least : WIDTH_MAX;
	struct conversion padding = *c;
	padding.zeros = c->zeros && c->precision < 0;
	add_padded(text, &padding, sign, at, (size_t)(buffer + sizeof buffer - at),
		   least > count ? least - count : 0);
}

static void add_string(struct text *text, const struct conversion *c, const char *string)
{
	if (!string)
		string = "(null)";
	size_t bytes = c->precision < 0 ? strlen(string) : strnlen(string, (size_t)c->precision);
	struct conversion padding = *c;
	padding.zeros = false;
	add_padded(text, &padding, "", string, bytes, 0);
}

/* va_list is an array type on x86-64: wrapped, so that it can be handed on by address. */
struct arguments {
	va_list list;
};

static long parse_number(const char **format, struct arguments *arguments)
{
	long n = 0;
	if (**format == '*') {
		++*format;
		n = va_arg(arguments->list, int);
	} else {
		for (; **format >= '0' && **format <= '9'; ++*format)
			n = n < WIDTH_MAX ? n * 10 + (**format - '0') : WIDTH_MAX;
	}
	return n;
}

static void parse_flags(const char **format, struct conversion *c)
{
	for (;; ++*format) {
		if (**format == '-')
			c->left = true;
		else if (**format == '0')
			c->zeros = true;
		else if (**format == '\'')
			c->thousands = true;
		else
			return;
	}
}

static struct conversion parse_conversion(const char **format, struct arguments *arguments)
{
	struct conversion c = {.precision = -1};
	parse_flags(format, &c);
	long width = parse_number(format, arguments);
	c.left |= width < 0;
	width = width < 0 ? -width : width;
	c.width = (size_t)(width < WIDTH_MAX ? width : WIDTH_MAX);
	if (**format == '.') {
		++*format;
		c.precision = parse_number(format, arguments);
	}
	for (; **format && strchr("hlzjt", **format); ++*format)
		c.is_long |= **format != 'h';
	return c;
}

static uint64_t take_unsigned(const struct conversion *c, struct arguments *arguments)
{
	return c->is_long ? va_arg(arguments->list, unsigned long)
			  : va_arg(arguments->list, unsigned);
}

static void add_signed(struct text *text, const struct conversion *c, struct arguments *arguments)
{
	int64_t n = c->is_long ? va_arg(arguments->list, long) : va_arg(arguments->list, int);
	add_integer(text, c, n < 0 ? "-" : "", n < 0 ? -(uint64_t)n : (uint64_t)n, 10,
		    "0123456789");
}

static void add_pointer(struct text *text, const struct conversion *c, struct arguments *arguments)
{
	add_integer(text, c, "0x", (uintptr_t)va_arg(arguments->list, void *), 16,
		    "0123456789abcdef");
}

/* False: not a conversion of ours, so what follows in the arguments is unknown too. */
static bool add_conversion(struct text *text, char kind, const struct conversion *c,
			   struct arguments *arguments)
{
	char byte;
	switch (kind) {
	case '%':
		text_add_char(text, '%');
		return true;
	case 's':
		add_string(text, c, va_arg(arguments->list, const char *));
		return true;
	case 'c':
		byte = (char)va_arg(arguments->list, int);
		add_padded(text, c, "", &byte, 1, 0);
		return true;
	case 'd':
	case 'i':
		add_signed(text, c, arguments);
		return true;
	case 'u':
		add_integer(text, c, "", take_unsigned(c, arguments), 10, "0123456789");
		return true;
	case 'x':
		add_integer(text, c, "", take_unsigned(c, arguments), 16, "0123456789abcdef");
		return true;
	case 'X':
		add_integer(text, c, "", take_unsigned(c, arguments), 16, "0123456789ABCDEF");
		return true;
	case 'p':
		add_pointer(text, c, arguments);
		return true;
	default:
		return false;
	}
}

void text_vprintf(struct text *text, const char *format, va_list list)
{
	struct arguments arguments;
	va_copy(arguments.list, list);
	for (;;) {
		size_t plain = strcspn(format, "%");
		text_add_bytes(text, format, plain);
		format += plain;
		if (!*format)
			break;
		const char *start = format++;
		struct conversion c = parse_conversion(&format, &arguments);
		if (!*format || !add_conversion(text, *format, &c, &arguments)) {
			text_add(text, start);
			break;
		}
		format++;
	}
	va_end(arguments.list);
}

void text_printf(struct text *text, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	text_vprintf(text, format, list);
	va_end(list);
}

/* ---------- decimals ---------- */

/* The digits of a whole number above 2^63, of which a double knows no more than the first 17. */
static void add_huge(struct text *text, double whole)
{
	size_t zeros = 0;
	for (; whole >= 1e18; whole /= 10)
		zeros++;
	text_printf(text, "%llu", (unsigned long long)whole);
	text_add_repeated(text, '0', zeros);
}

void text_add_decimal(struct text *text, double value, int digits)
{
	if (value != value) {
		text_add(text, "nan");
		return;
	}
	double magnitude = __builtin_fabs(value);
	if (magnitude >= 1e18) {
		text_add(text, value < 0 ? "-" : "");
		if (__builtin_isinf(value))
			text_add(text, "inf");
		else
			add_huge(text, magnitude);
		return;
	}
	uint64_t scale = 1, whole = (uint64_t)magnitude;
	for (int i = 0; i < digits && i < 9; i++)
		scale *= 10;
	double scaled = (magnitude - (double)whole) * (double)scale;
	uint64_t part = (uint64_t)scaled;
	part += scaled - (double)part >=
		0.5; /* not + 0.5 before the cut: that would round 0.49999999999999994 up */
	whole += part / scale;
	part %= scale;
	text_add(text, value < 0 && (whole || part) ? "-" : "");
	text_printf(text, "%llu", (unsigned long long)whole);
	if (digits > 0)
		text_printf(text, ".%0*llu", digits < 9 ? digits : 9, (unsigned long long)part);
}
