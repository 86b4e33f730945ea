/* How large the elements of tensors are, by the stack that made them: a block does not keep it, and what is told of a
 * moment is told by stack. Owns how many bytes a stack made of each size so far. Must never cost more than one row of a
 * table for an event. */
#include "base/bytes.h"
#include "model/model_private.h"

#define UNIT_BYTES 512
#define UNITS_MAX  (UINT32_MAX / 2)

static uint32_t units_of(uint64_t bytes)
{
	uint64_t units = (bytes + UNIT_BYTES - 1) / UNIT_BYTES;
	return units < UNITS_MAX ? (uint32_t)units : UNITS_MAX;
}

/* Only their ratio is of interest. */
static void halve(struct element_units *row)
{
	for (unsigned i = 0; i < ELEMENT_COUNT; i++)
		row->units[i] /= 2;
}

struct element_units *elements_of(struct model *m, uint32_t stack)
{
	if (stack >= m->element_capacity &&
	    model_grow(m, &m->elements, &m->element_capacity, stack, sizeof *m->elements))
		return NULL;
	return &m->elements[stack];
}

void elements_note(struct model *m, const struct event *e)
{
	struct element_units *row = elements_of(m, e->stack);
	if (!row)
		return;
	uint32_t *units = &row->units[event_element(e)];
	if (*units > UNITS_MAX)
		halve(row);
	*units += units_of(e->bytes);
}

struct model_elements model_elements(const struct model *m, uint32_t stack, uint64_t bytes)
{
	struct model_elements elements = {.bytes = {bytes}};
	uint64_t all = 0;
	if (stack >= m->element_capacity)
		return elements;
	const uint32_t *units = m->elements[stack].units;
	for (unsigned i = 0; i < ELEMENT_COUNT; i++)
		all += units[i];
	for (unsigned i = 1; i < ELEMENT_COUNT && all; i++) {
		elements.bytes[i] = (uint64_t)((double)bytes * units[i] / (double)all);
		elements.bytes[0] = bytes_less(elements.bytes[0], elements.bytes[i]);
	}
	return elements;
}
