/* The card that a dry run simulates: from the simulated GPU's table, a user's file, or the card in
 * this machine. */
#ifndef MT_CLI_CARD_H
#define MT_CLI_CARD_H

#include <stdbool.h>

#include "simgpu/sim_card.h"

/* What stands for the card in this machine. */
#define CARD_LIKE_HERE "like-here"

/* `name`: a card, a file with a description, or CARD_LIKE_HERE. False: it was said why, with the
 * nearest names. */
bool card_choose(struct sim_card *, const char *name);

/* What CUDA tells of the first GPU of this machine; context from the nearest card of the table.
 * False: it was said why. */
bool card_read_here(struct sim_card *);

/* SIMGPU_CARD, for a child. False: out of memory. */
bool card_set_environment(const struct sim_card *);

#endif
