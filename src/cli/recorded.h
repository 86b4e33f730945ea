/* The sequence of requests that a trace has, for a replay under other settings. */
#ifndef MT_CLI_RECORDED_H
#define MT_CLI_RECORDED_H

#include "cli/load.h"
#include "model/sequence.h"

/* Of one GPU, finished. NULL: there is none; why is said if `says_why`. */
struct sequence *recorded_sequence(const struct loaded *, unsigned ordinal, bool says_why);

#endif
