/* Reads the names in mangled C++ symbols. Owns what of them is shown: namespaces, classes, the
 * function; what is not shown is read by cxx_skip.c. The symbol may be anything: depth and steps
 * are bounded, and reading stops at what the ABI does not know. Must never allocate. */
#include <string.h>

#include "base/cxx_private.h"

#define DEPTH_MAX 96
#define STEPS_MAX 20000

bool cxx_enter(struct cxx *cxx)
{
	if (cxx->depth >= DEPTH_MAX || ++cxx->steps > STEPS_MAX)
		return false;
	cxx->depth++;
	return true;
}

/* ---------- what is shown ---------- */

static void show(struct cxx *cxx, const char *text, size_t bytes)
{
	if (!cxx->quiet)
		text_add_bytes(&cxx->out, text, bytes);
}

void cxx_show(struct cxx *cxx, const char *word)
{
	show(cxx, word, strlen(word));
}

static void show_colons(struct cxx *cxx)
{
	if (!cxx->quiet && cxx->out.used_bytes && cxx->out.data[cxx->out.used_bytes - 1] != ' ')
		cxx_show(cxx, "::");
}

static void repeat_from_now(struct cxx *cxx, const char *name, size_t bytes)
{
	if (cxx->quiet)
		return;
	cxx->last = name;
	cxx->last_bytes = bytes;
}

static void show_component(struct cxx *cxx, const char *name, size_t bytes)
{
	show_colons(cxx);
	show(cxx, name, bytes);
	repeat_from_now(cxx, name, bytes);
}

/* A lambda's call, and lambdas in lambdas, are one word: what matters is the function around them.
 */
static bool is_in_lambda(const struct cxx *cxx)
{
	static const char lambda[] = "{lambda}";
	size_t bytes = sizeof lambda - 1, used = cxx->out.used_bytes;
	return !cxx->quiet && used >= bytes && !memcmp(cxx->out.data + used - bytes, lambda, bytes);
}

/* ---------- components ---------- */

bool cxx_source_name(struct cxx *cxx)
{
	size_t bytes = 0;
	if (cxx_peek(cxx, 0) < '1' || cxx_peek(cxx, 0) > '9')
		return false;
	for (char c; c = cxx_peek(cxx, 0), c >= '0' && c <= '9'; cxx->at++)
		if ((bytes = bytes * 10 + (size_t)(c - '0')) > (size_t)(cxx->end - cxx->at))
			return false;
	if (bytes > (size_t)(cxx->end - cxx->at))
		return false;
	if (bytes >= 10 && !memcmp(cxx->at, "_GLOBAL__N", 10))
		show_component(cxx, "(anonymous namespace)", strlen("(anonymous namespace)"));
	else
		show_component(cxx, cxx->at, bytes);
	cxx->at += bytes;
	return true;
}

static const struct operator
{
	char code[3];
	const char *spelling;
}
operators[] = {
	{"aN", "&="},       {"aS", "="},       {"aa", "&&"},       {"ad", "&"},
	{"an", "&"},        {"at", "alignof"}, {"aw", "co_await"}, {"az", "alignof"},
	{"cl", "()"},       {"cm", ","},       {"co", "~"},        {"dV", "/="},
	{"da", "delete[]"}, {"de", "*"},       {"dl", "delete"},   {"ds", ".*"},
	{"dt", "."},        {"dv", "/"},       {"eO", "^="},       {"eo", "^"},
	{"eq", "=="},       {"ge", ">="},      {"gt", ">"},        {"ix", "[]"},
	{"lS", "<<="},      {"le", "<="},      {"ls", "<<"},       {"lt", "<"},
	{"mI", "-="},       {"mL", "*="},      {"mi", "-"},        {"ml", "*"},
	{"mm", "--"},       {"na", "new[]"},   {"ne", "!="},       {"ng", "-"},
	{"nt", "!"},        {"nw", "new"},     {"oR", "|="},       {"oo", "||"},
	{"or", "|"},        {"pL", "+="},      {"pl", "+"},        {"pm", "->*"},
	{"pp", "++"},       {"ps", "+"},       {"pt", "->"},       {"qu", "?"},
	{"rM", "%="},       {"rS", ">>="},     {"rm", "%"},        {"rs", ">>"},
	{"ss", "<=>"},      {"st", "sizeof"},  {"sz", "sizeof"},
};

const char *cxx_operator(struct cxx *cxx)
{
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		if (cxx_take_two(cxx, operators[i].code))
			return operators[i].spelling;
	return NULL;
}

/* cv <type>: the type is not named, only what kind of function it is. */
static bool conversion(struct cxx *cxx)
{
	cxx->quiet++;
	bool is_read = cxx_skip_type(cxx);
	cxx->quiet--;
	show_component(cxx, "operator type", strlen("operator type"));
	return is_read;
}

static bool operator_name(struct cxx *cxx)
{
	if (cxx_take_two(cxx, "cv"))
		return conversion(cxx);
	if (cxx_take_two(cxx, "li")) {
		show_component(cxx, "operator\"\"", strlen("operator\"\""));
		cxx->quiet++;
		bool is_read = cxx_source_name(cxx);
		cxx->quiet--;
		return is_read;
	}
	const char *spelling = cxx_operator(cxx);
	if (!spelling)
		return false;
	if (is_in_lambda(cxx) && *spelling == '(')
		return true;
	show_component(cxx, "operator", strlen("operator"));
	if (*spelling >= 'a' && *spelling <= 'z')
		cxx_show(cxx, " ");
	cxx_show(cxx, spelling);
	return true;
}

/* C1 … C5, CI1 <base type>; D0 … D5: named like the class before. */
static bool constructor_or_destructor(struct cxx *cxx)
{
	bool is_destructor = cxx_take(cxx, 'D');
	const char *name = cxx->last;
	size_t bytes = cxx->last_bytes;
	if (!is_destructor && !cxx_take(cxx, 'C'))
		return false;
	bool is_inherited = !is_destructor && cxx_take(cxx, 'I');
	if (cxx_peek(cxx, 0) < '0' || cxx_peek(cxx, 0) > '9' || (!name && !cxx->quiet))
		return false;
	cxx->at++;
	show_colons(cxx);
	cxx_show(cxx, is_destructor ? "~" : "");
	show(cxx, name, bytes);
	return !is_inherited || cxx_skip_type(cxx);
}

/* Ut [number] _ of a type without a name, Ul <parameters> E [number] _ of a lambda. */
static bool unnamed(struct cxx *cxx)
{
	bool is_lambda = cxx_take_two(cxx, "Ul");
	if (!is_lambda && !cxx_take_two(cxx, "Ut"))
		return false;
	cxx->quiet++;
	bool is_read = true;
	while (is_lambda && is_read && !cxx_take(cxx, 'E'))
		is_read = cxx_skip_type(cxx);
	cxx->quiet--;
	const char *word = is_lambda ? "{lambda}" : "{unnamed}";
	if (!is_lambda || !is_in_lambda(cxx))
		show_component(cxx, word, strlen(word));
	return is_read && cxx_skip_number(cxx) && cxx_take(cxx, '_');
}

/* DC <source name>+ E */
static bool structured_binding(struct cxx *cxx)
{
	while (!cxx_take(cxx, 'E'))
		if (!cxx_source_name(cxx))
			return false;
	return true;
}

static bool tags(struct cxx *cxx)
{
	bool is_read = true;
	cxx->quiet++;
	while (is_read && cxx_take(cxx, 'B'))
		is_read = cxx_source_name(cxx);
	cxx->quiet--;
	return is_read;
}

bool cxx_unqualified(struct cxx *cxx)
{
	char c = cxx_peek(cxx, 0), next = cxx_peek(cxx, 1);
	bool is_read;
	if (c == 'L' || c == 'F') { /* internal linkage, a friend */
		cxx->at++;
		c = cxx_peek(cxx, 0);
	}
	if (c >= '1' && c <= '9')
		is_read = cxx_source_name(cxx);
	else if (c == 'U')
		is_read = unnamed(cxx);
	else if (c == 'D' && next == 'C')
		is_read = cxx_take_two(cxx, "DC") && structured_binding(cxx);
	else if (c == 'C' || c == 'D')
		is_read = constructor_or_destructor(cxx);
	else
		is_read = operator_name(cxx);
	return is_read && tags(cxx);
}

static const struct known {
	char code;
	const char *scope, *name;
} known[] = {
	{'a', "std::", "allocator"},
	{'b', "std::", "basic_string"},
	{'s', "std::", "string"},
	{'i', "std::", "istream"},
	{'o', "std::", "ostream"},
	{'d', "std::", "iostream"},
	{'t', "", "std"},
};

/* S_, S<digits or capitals>_: something that was named before, mostly in what is not shown. */
static bool earlier(struct cxx *cxx)
{
	for (char c; c = cxx_peek(cxx, 0), (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');)
		cxx->at++;
	if (!cxx_take(cxx, '_'))
		return false;
	show_component(cxx, "..", 2);
	return true;
}

bool cxx_substitution(struct cxx *cxx)
{
	if (!cxx_take(cxx, 'S'))
		return false;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!cxx_take(cxx, known[i].code))
			continue;
		show_colons(cxx);
		cxx_show(cxx, known[i].scope);
		cxx_show(cxx, known[i].name);
		const char *name = known[i].code == 's' ? "basic_string" : known[i].name;
		repeat_from_now(cxx, name, strlen(name));
		return tags(cxx);
	}
	return earlier(cxx);
}

/* ---------- names ---------- */

static bool arguments(struct cxx *cxx)
{
	cxx->quiet++;
	bool is_read = cxx_skip_arguments(cxx);
	cxx->quiet--;
	if (!is_in_lambda(cxx))
		cxx_show(cxx, "<...>");
	return is_read;
}

/* A template parameter or a decltype as the scope of a name: only in what is not shown. */
static bool scope_type(struct cxx *cxx)
{
	cxx->quiet++;
	bool is_read = cxx_skip_type(cxx);
	cxx->quiet--;
	show_component(cxx, "..", 2);
	return is_read;
}

static bool nested_component(struct cxx *cxx)
{
	char c = cxx_peek(cxx, 0), next = cxx_peek(cxx, 1);
	if (c == 'S')
		return cxx_substitution(cxx);
	if (c == 'I')
		return arguments(cxx);
	if (c == 'T' || (c == 'D' && (next == 't' || next == 'T')))
		return scope_type(cxx);
	if (c == 'M') /* of a lambda in a member's initialiser */
		return cxx_take(cxx, 'M');
	return cxx_unqualified(cxx);
}

static bool nested(struct cxx *cxx)
{
	while (strchr("HrVKRO", cxx_peek(cxx, 0)) && cxx_peek(cxx, 0))
		cxx->at++;
	while (!cxx_take(cxx, 'E'))
		if (!nested_component(cxx))
			return false;
	return true;
}

/* _ <digit>, __ <digits> _ */
static void discriminator(struct cxx *cxx)
{
	if (!cxx_take(cxx, '_'))
		return;
	bool is_long = cxx_take(cxx, '_');
	cxx_skip_number(cxx);
	if (is_long)
		cxx_take(cxx, '_');
}

/* Z <function> E <name in it>; the name may be missing (s: a string). */
static bool local(struct cxx *cxx)
{
	if (!cxx_encoding(cxx) || !cxx_take(cxx, 'E'))
		return false;
	if (cxx_take(cxx, 's')) {
		discriminator(cxx);
		return true;
	}
	if (cxx_take(cxx, 'd')) { /* in a default argument */
		cxx_skip_number(cxx);
		cxx_take(cxx, '_');
	}
	bool is_read = cxx_any_name(cxx);
	discriminator(cxx);
	return is_read;
}

static bool plain(struct cxx *cxx)
{
	bool is_std = cxx_peek(cxx, 1) == 't';
	if (cxx_peek(cxx, 0) != 'S')
		return cxx_unqualified(cxx);
	return cxx_substitution(cxx) && (!is_std || cxx_unqualified(cxx));
}

static bool scoped(struct cxx *cxx)
{
	if (cxx_take(cxx, 'N'))
		return nested(cxx);
	if (cxx_take(cxx, 'Z'))
		return local(cxx);
	return plain(cxx) && (cxx_peek(cxx, 0) != 'I' || arguments(cxx));
}

bool cxx_any_name(struct cxx *cxx)
{
	return cxx_enter(cxx) && cxx_leave(cxx, scoped(cxx));
}
