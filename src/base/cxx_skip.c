/* Reads what of a mangled C++ symbol is not shown: types, template arguments, expressions. Owns the
 * ABI's grammar of them, as far as it is needed to find where each ends. Nothing is written here;
 * depth and steps are bounded by cxx_enter(). */
#include <string.h>

#include "base/cxx_private.h"

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

bool cxx_skip_number(struct cxx *cxx)
{
	cxx_take(cxx, 'n');
	while (is_one_of(cxx_peek(cxx, 0), "0123456789"))
		cxx->at++;
	return true;
}

/* Any number of what `one` reads, then E. */
static bool until_end(struct cxx *cxx, bool (*one)(struct cxx *))
{
	while (!cxx_take(cxx, 'E'))
		if (!one(cxx))
			return false;
	return true;
}

/* ---------- types ---------- */

static bool optional_arguments(struct cxx *cxx)
{
	return cxx_peek(cxx, 0) != 'I' || cxx_skip_arguments(cxx);
}

/* F [Y] <types> [R|O] E */
static bool function_part(struct cxx *cxx)
{
	if ((cxx_peek(cxx, 0) == 'R' || cxx_peek(cxx, 0) == 'O') && cxx_peek(cxx, 1) == 'E')
		cxx->at++;
	return cxx_peek(cxx, 0) == 'E' || cxx_skip_type(cxx);
}

static bool function(struct cxx *cxx)
{
	cxx_take(cxx, 'Y');
	return until_end(cxx, function_part);
}

/* A [<number> or <expression>] _ <type> */
static bool array(struct cxx *cxx)
{
	if (is_one_of(cxx_peek(cxx, 0), "0123456789"))
		cxx_skip_number(cxx);
	else if (cxx_peek(cxx, 0) != '_' && !cxx_skip_expression(cxx))
		return false;
	return cxx_take(cxx, '_') && cxx_skip_type(cxx);
}

/* T_, T<number>_, TL<number>_[<number>]_; Ts, Tu, Te before a name. */
static bool parameter(struct cxx *cxx)
{
	if (is_one_of(cxx_peek(cxx, 0), "sue"))
		return cxx->at++ && cxx_any_name(cxx);
	if (cxx_take(cxx, 'L')) {
		cxx_skip_number(cxx);
		if (!cxx_take(cxx, '_'))
			return false;
	}
	cxx_skip_number(cxx);
	return cxx_take(cxx, '_') && optional_arguments(cxx);
}

/* Dv <number> _ <type>, Dv _ <expression> _ <type> */
static bool vector(struct cxx *cxx)
{
	cxx_skip_number(cxx);
	if (!cxx_take(cxx, '_'))
		return false;
	if (cxx->at[-2] == 'v' && !(cxx_skip_expression(cxx) && cxx_take(cxx, '_')))
		return false;
	return cxx_skip_type(cxx);
}

/* DF16_, DF16b, DF32x … */
static bool sized_float(struct cxx *cxx)
{
	cxx_skip_number(cxx);
	return cxx_take(cxx, '_') || cxx_take(cxx, 'b') || cxx_take(cxx, 'x');
}

static bool after_d(struct cxx *cxx)
{
	switch (cxx->at++, cxx->at[-1]) {
	case 't':
	case 'T':
		return cxx_skip_expression(cxx) && cxx_take(cxx, 'E') && optional_arguments(cxx);
	case 'p': /* a pack expanded */
	case 'o': /* noexcept, before a function */
	case 'x':
		return cxx_skip_type(cxx);
	case 'O':
		return cxx_skip_expression(cxx) && cxx_take(cxx, 'E') && cxx_skip_type(cxx);
	case 'w':
		return until_end(cxx, cxx_skip_type) && cxx_skip_type(cxx);
	case 'v':
		return vector(cxx);
	case 'F':
		return sized_float(cxx);
	default: /* Di, Dn, Da … */
		return is_one_of(cxx->at[-1], "defhiusacnykBU");
	}
}

static bool substituted(struct cxx *cxx)
{
	if (cxx_peek(cxx, 1) == 't')
		return cxx_any_name(cxx);
	return cxx_substitution(cxx) && optional_arguments(cxx);
}

static bool vendor(struct cxx *cxx, bool is_qualifier)
{
	return cxx_source_name(cxx) && optional_arguments(cxx) &&
	       (!is_qualifier || cxx_skip_type(cxx));
}

static bool type(struct cxx *cxx)
{
	while (is_one_of(cxx_peek(cxx, 0), "PROKVrCG"))
		cxx->at++;
	char c = cxx_peek(cxx, 0), next = cxx_peek(cxx, 1);
	if (c == 'S')
		return substituted(cxx);
	if (c == 'N' || c == 'Z' || is_one_of(c, "123456789") ||
	    (c == 'U' && (next == 't' || next == 'l')))
		return cxx_any_name(cxx);
	if (c)
		cxx->at++;
	switch (c) {
	case 'F':
		return function(cxx);
	case 'A':
		return array(cxx);
	case 'M':
		return cxx_skip_type(cxx) && cxx_skip_type(cxx);
	case 'T':
		return parameter(cxx);
	case 'D':
		return next && after_d(cxx);
	case 'U':
		return vendor(cxx, true);
	case 'u':
		return vendor(cxx, false);
	default:
		return is_one_of(c, "vwbcahstijlmxynofdegz");
	}
}

bool cxx_skip_type(struct cxx *cxx)
{
	return cxx_enter(cxx) && cxx_leave(cxx, type(cxx));
}

/* ---------- template arguments ---------- */

/* L <type> <value> E, L _Z <encoding> E */
static bool literal(struct cxx *cxx)
{
	if (cxx_take_two(cxx, "_Z"))
		return cxx_encoding(cxx) && cxx_take(cxx, 'E');
	if (!cxx_skip_type(cxx))
		return false;
	while (cxx_peek(cxx, 0) && cxx_peek(cxx, 0) != 'E')
		cxx->at++;
	return cxx_take(cxx, 'E');
}

static bool argument(struct cxx *cxx)
{
	if (cxx_take(cxx, 'L'))
		return literal(cxx);
	if (cxx_take(cxx, 'X'))
		return cxx_skip_expression(cxx) && cxx_take(cxx, 'E');
	if (cxx_take(cxx, 'J'))
		return until_end(cxx, argument);
	if (cxx_peek(cxx, 0) == 'I')
		return cxx_skip_arguments(cxx);
	return cxx_skip_type(cxx);
}

bool cxx_skip_arguments(struct cxx *cxx)
{
	return cxx_enter(cxx) && cxx_leave(cxx, cxx_take(cxx, 'I') && until_end(cxx, argument));
}

/* ---------- expressions ---------- */

/* A name whose meaning depends on a parameter: sr <type> <name>, srN <type> <names> E … */
static bool simple_id(struct cxx *cxx)
{
	return cxx_source_name(cxx) && optional_arguments(cxx);
}

static bool unresolved(struct cxx *cxx)
{
	cxx_take_two(cxx, "on");
	if (cxx_take_two(cxx, "dn"))
		return is_one_of(cxx_peek(cxx, 0), "123456789") ? simple_id(cxx)
								: cxx_skip_type(cxx);
	if (is_one_of(cxx_peek(cxx, 0), "123456789"))
		return simple_id(cxx);
	return cxx_operator(cxx) && optional_arguments(cxx);
}

static bool scope(struct cxx *cxx)
{
	bool is_nested = cxx_take(cxx, 'N'), has_levels = is_nested;
	if (!is_nested && is_one_of(cxx_peek(cxx, 0), "123456789"))
		has_levels = true;
	else if (!cxx_skip_type(cxx))
		return false;
	return (!has_levels || until_end(cxx, simple_id)) && unresolved(cxx);
}

/* fp [qualifiers] [number] _, fL <number> p [qualifiers] [number] _ */
static bool function_parameter(struct cxx *cxx)
{
	if (cxx->at[-1] == 'L' && !(cxx_skip_number(cxx) && cxx_take(cxx, 'p')))
		return false;
	while (is_one_of(cxx_peek(cxx, 0), "rVK"))
		cxx->at++;
	return cxx_take(cxx, 'T') || (cxx_skip_number(cxx) && cxx_take(cxx, '_'));
}

static bool conversion(struct cxx *cxx)
{
	if (!cxx_skip_type(cxx))
		return false;
	return cxx_take(cxx, '_') ? until_end(cxx, cxx_skip_expression) : cxx_skip_expression(cxx);
}

/* nw, na: <arguments> _ <type> (E, or pi <arguments> E) */
static bool creation(struct cxx *cxx)
{
	while (!cxx_take(cxx, '_'))
		if (!cxx_skip_expression(cxx))
			return false;
	if (!cxx_skip_type(cxx))
		return false;
	return cxx_take(cxx, 'E') ||
	       (cxx_take_two(cxx, "pi") && until_end(cxx, cxx_skip_expression));
}

/* How the operands of a two-letter code go: t type, e expression, E expressions up to E, a
 * arguments up to E, u unresolved name, p function parameter, o operator. */
static const struct form {
	char code[3], operands[4];
} forms[] = {
	{"cl", "E"},   {"cp", "E"},  {"tl", "tE"}, {"il", "E"}, {"dc", "te"}, {"sc", "te"},
	{"cc", "te"},  {"rc", "te"}, {"ti", "t"},  {"te", "e"}, {"st", "t"},  {"at", "t"},
	{"sz", "e"},   {"az", "e"},  {"nx", "e"},  {"tw", "e"}, {"tr", ""},   {"dt", "eu"},
	{"pt", "eu"},  {"ds", "ee"}, {"sP", "a"},  {"sp", "e"}, {"sZ", "e"},  {"qu", "eee"},
	{"fp", "p"},   {"dl", "e"},  {"da", "e"},  {"gs", "e"}, {"fl", "oe"}, {"fr", "oe"},
	{"fR", "oee"},
};

static bool operand(struct cxx *cxx, char kind)
{
	switch (kind) {
	case 't':
		return cxx_skip_type(cxx);
	case 'E':
		return until_end(cxx, cxx_skip_expression);
	case 'a':
		return until_end(cxx, argument);
	case 'u':
		return unresolved(cxx);
	case 'p':
		return function_parameter(cxx);
	case 'o':
		return cxx_operator(cxx);
	default:
		return cxx_skip_expression(cxx);
	}
}

static bool is_unary(const char *spelling, const char *code)
{
	static const char codes[] = "ps ng ad de co nt pp mm aw";
	const char *found = strstr(codes, code);
	return found && spelling;
}

static bool operation(struct cxx *cxx)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (!cxx_take_two(cxx, forms[i].code))
			continue;
		for (const char *kind = forms[i].operands; *kind; kind++)
			if (!operand(cxx, *kind))
				return false;
		return true;
	}
	const char code[3] = {cxx_peek(cxx, 0), cxx_peek(cxx, 1)};
	const char *spelling = cxx_operator(cxx);
	if (!spelling)
		return false;
	cxx_take(cxx, '_'); /* ++ and -- before their operand */
	return cxx_skip_expression(cxx) && (is_unary(spelling, code) || cxx_skip_expression(cxx));
}

static bool expression(struct cxx *cxx)
{
	char c = cxx_peek(cxx, 0);
	if (cxx_take(cxx, 'L'))
		return literal(cxx);
	if (c == 'T')
		return cxx_skip_type(cxx);
	if (is_one_of(c, "123456789"))
		return simple_id(cxx);
	if (cxx_take_two(cxx, "fL"))
		return is_one_of(cxx_peek(cxx, 0), "0123456789")
			       ? function_parameter(cxx)
			       : cxx_operator(cxx) && cxx_skip_expression(cxx) &&
					 cxx_skip_expression(cxx);
	if (cxx_take_two(cxx, "sr"))
		return scope(cxx);
	if (cxx_take_two(cxx, "on") || (c == 'd' && cxx_peek(cxx, 1) == 'n'))
		return unresolved(cxx);
	if (cxx_take_two(cxx, "cv"))
		return conversion(cxx);
	if (cxx_take_two(cxx, "nw") || cxx_take_two(cxx, "na"))
		return creation(cxx);
	if (cxx_take(cxx, 'u'))
		return cxx_source_name(cxx) && until_end(cxx, argument);
	return operation(cxx);
}

bool cxx_skip_expression(struct cxx *cxx)
{
	return cxx_enter(cxx) && cxx_leave(cxx, expression(cxx));
}
