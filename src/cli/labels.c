/* Owns the table of final labels: eight bytes an event, filled while the model replays the trace. */
#include "cli/labels.h"

#include <stdlib.h>
#include <string.h>

#define IS_FREE 1u

static struct labels *of_observer(struct model_observer *observer)
{
	return (struct labels *)observer;
}

static void set(struct labels *labels, uint64_t sequence, uint64_t value)
{
	if (sequence >= labels->capacity && !labels->failed) {
		size_t capacity = sequence * 2 + 1024;
		uint64_t *rows = capacity < SIZE_MAX / sizeof *rows ?
					 realloc(labels->rows, capacity * sizeof *rows) :
					 NULL;
		labels->failed = !rows;
		if (!rows)
			return;
		memset(rows + labels->capacity, 0, (capacity - labels->capacity) * sizeof *rows);
		labels->rows = rows;
		labels->capacity = capacity;
	}
	if (sequence < labels->capacity)
		labels->rows[sequence] = value;
}

static void labelled(struct model_observer *observer, uint64_t born, uint8_t label)
{
	set(of_observer(observer), born, (uint64_t)(label + 1) << 1);
}

static void freed(struct model_observer *observer, uint64_t born, uint64_t died)
{
	set(of_observer(observer), died, (born + 1) << 1 | IS_FREE);
}

void labels_open(struct labels *labels, const char *path)
{
	*labels = (struct labels){.observer = {labelled, freed}};
	if (load_open(&labels->loaded, path))
		return;
	labels->is_open = true;
	labels->loaded.observer = &labels->observer;
	load_replay(&labels->loaded);
}

void labels_close(struct labels *labels)
{
	if (labels->is_open)
		load_close(&labels->loaded);
	free(labels->rows);
	*labels = (struct labels){0};
}

const char *labels_category(const struct labels *labels, uint64_t sequence)
{
	uint64_t row = sequence < labels->capacity ? labels->rows[sequence] : 0;
	if (row & IS_FREE)
		row = (row >> 1) - 1 < labels->capacity ? labels->rows[(row >> 1) - 1] : 0;
	if (!row || row & IS_FREE || !labels->loaded.model)
		return NULL;
	return model_category_name(
		model_label_category(labels->loaded.model, (uint8_t)((row >> 1) - 1)));
}
