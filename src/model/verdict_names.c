/* The names of causes and kinds, as in the JSON. */
#include "model/verdict.h"

const char *verdict_cause_name(enum verdict_cause cause)
{
	static const char *const names[] = {
#define X(id, name) name,
		VERDICT_CAUSES(X)
#undef X
	};
	return names[cause < VERDICT_CAUSE_COUNT ? cause : VERDICT_UNKNOWN];
}

const char *verdict_kind_name(enum verdict_kind kind)
{
	static const char *const names[] = {
#define X(id, name) name,
		VERDICT_KINDS(X)
#undef X
	};
	return names[kind < VERDICT_KIND_COUNT ? kind : VERDICT_KIND_NONE];
}
