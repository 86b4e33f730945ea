/* Brings the model's state to the writer, piece by piece: memory for one piece, and only while it is written. */
#include "recorder/checkpoint.h"

#include <errno.h>
#include <sys/mman.h>

#include "model/save.h"
#include "recorder/session.h"

struct pieces {
	struct session *session;
	uint8_t *memory;
	uint64_t sequence;
	uint32_t count;
};

static int put_piece(struct archive *archive, bool is_last)
{
	struct pieces *pieces = archive->context;
	size_t bytes = (size_t)(archive->at - pieces->memory);
	archive->at = pieces->memory;
	return writer_add_checkpoint(&pieces->session->writer, pieces->sequence, pieces->count++, is_last,
				     pieces->memory, bytes);
}

static int turn(struct archive *archive)
{
	return put_piece(archive, false);
}

void checkpoint_write(struct session *session, uint64_t sequence)
{
	struct pieces pieces = { .session = session, .sequence = sequence };
	struct archive archive = { .turn = turn, .context = &pieces };
	void *memory = mmap(NULL, WRITER_PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	writer_put_off_checkpoint(&session->writer);
	if (memory == MAP_FAILED)
		return;
	archive.at = pieces.memory = memory;
	archive.end = pieces.memory + WRITER_PIECE_BYTES;
	if (!model_save(session->dump.model, &archive))
		put_piece(&archive, true);
	munmap(memory, WRITER_PIECE_BYTES);
}
