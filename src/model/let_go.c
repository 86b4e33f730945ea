/* What a device has let go of since it obtained its last block: when a program comes to its end, what its functions held
 * until they returned. With what is live it makes the last moment at which the program was at work. Owns these blocks'
 * descriptions; takes O(1) an event, and no more room than the live blocks had. */
#include "model/model_private.h"

void let_go_note_alloc(struct let_go *gone, uint64_t sequence)
{
	gone->since = sequence;
	gone->bytes = 0;
	gone->count = 0;
}

struct segment_block *let_go_add(struct model *m, struct let_go *gone, const struct segment_block *block)
{
	if (model_grow(m, &gone->blocks, &gone->capacity, gone->count, sizeof *gone->blocks))
		return NULL;
	gone->blocks[gone->count] = *block;
	gone->bytes += block->bytes;
	return &gone->blocks[gone->count++];
}
