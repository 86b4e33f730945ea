/*
 * The stand-in for cuDNN's backend (graph) API: creating, filling, reading and destroying
 * descriptors.
 *
 * A descriptor is a bag: attribute name → type, count, values. This file stores whatever it is
 * given and must never decide by a list of known attributes: front ends compiled into PyTorch use
 * descriptor types and attributes newer than any published reference. Which descriptors refer to
 * which is followed by reference counts, because a caller destroys the parts of a graph long before
 * the plan that was made from them.
 */
#include "sim_cudnn.h"

#include <stdlib.h>
#include <string.h>

static size_t value_bytes(int type)
{
	switch (type) {
	case VALUE_BOOLEAN:
	case VALUE_CHAR:
		return 1;
	case VALUE_HANDLE:
	case VALUE_INT64:
	case VALUE_DOUBLE:
	case VALUE_VOID_PTR:
	case VALUE_DESCRIPTOR:
		return 8;
	case VALUE_FRACTION:
		return 16;
	default:
		return 4; /* every other type is an enumeration, a float or an int32 */
	}
}

struct backend_desc *backend_desc_new(int kind)
{
	struct backend_desc *desc = calloc(1, sizeof(*desc));

	if (desc) {
		desc->kind = kind;
		desc->references = 1;
	}
	return desc;
}

static void retain_children(int type, int64_t count, const void *values)
{
	struct backend_desc *const *children = values;

	if (type != VALUE_DESCRIPTOR)
		return;
	for (int64_t i = 0; i < count; i++) {
		if (children[i])
			__atomic_add_fetch(&children[i]->references, 1, __ATOMIC_RELAXED);
	}
}

/* Lets go of what an attribute holds; the attribute itself stays and may be filled again. */
static void drop_values(struct backend_attribute *attribute)
{
	struct backend_desc **children = attribute->values;

	if (attribute->type == VALUE_DESCRIPTOR) {
		for (int64_t i = 0; i < attribute->count; i++)
			backend_desc_release(children[i]);
	}
	free(attribute->values);
	attribute->values = NULL;
	attribute->count = 0;
}

void backend_desc_release(struct backend_desc *desc)
{
	struct backend_attribute *attribute, *next;

	if (!desc || __atomic_sub_fetch(&desc->references, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (attribute = desc->attributes; attribute; attribute = next) {
		next = attribute->next;
		drop_values(attribute);
		free(attribute);
	}
	free(desc);
}

const struct backend_attribute *backend_desc_find(const struct backend_desc *desc, int name)
{
	const struct backend_attribute *attribute = desc ? desc->attributes : NULL;

	while (attribute && attribute->name != name)
		attribute = attribute->next;
	return attribute;
}

struct backend_desc *backend_desc_child(const struct backend_desc *desc, int name)
{
	const struct backend_attribute *attribute = backend_desc_find(desc, name);

	if (!attribute || attribute->type != VALUE_DESCRIPTOR || attribute->count < 1)
		return NULL;
	return ((struct backend_desc **)attribute->values)[0];
}

static struct backend_attribute *find_or_add(struct backend_desc *desc, int name)
{
	struct backend_attribute *attribute =
		(struct backend_attribute *)backend_desc_find(desc, name);

	if (attribute)
		return attribute;
	attribute = calloc(1, sizeof(*attribute));
	if (attribute) {
		attribute->name = name;
		attribute->next = desc->attributes;
		desc->attributes = attribute;
	}
	return attribute;
}

int backend_desc_set(struct backend_desc *desc, int name, int type, int64_t count,
		     const void *values)
{
	size_t bytes = (size_t)count * value_bytes(type);
	struct backend_attribute *attribute = find_or_add(desc, name);
	void *copy = malloc(bytes + 1); /* an empty list is an attribute too */

	if (!attribute || !copy) {
		free(copy);
		return CUDNN_ALLOC_FAILED;
	}
	if (bytes)
		memcpy(copy, values, bytes);
	retain_children(type, count, values); /* before the old ones go: they may be the same */
	drop_values(attribute);
	attribute->type = type;
	attribute->count = count;
	attribute->values = copy;
	return CUDNN_SUCCESS;
}

int backend_desc_copy(struct backend_desc *to, const struct backend_desc *from)
{
	int status = CUDNN_SUCCESS;

	to->kind = from->kind;
	for (const struct backend_attribute *a = from->attributes; a && !status; a = a->next)
		status = backend_desc_set(to, a->name, a->type, a->count, a->values);
	return status;
}

/*
 * A caller that asks for descriptors passes descriptors of its own to be filled in; where it passed
 * NULL it gets a new one.
 */
static int read_descriptors(const struct backend_attribute *attribute, int64_t count, void *out)
{
	struct backend_desc *const *from = attribute->values;
	struct backend_desc **to = out;
	int status = CUDNN_SUCCESS;

	for (int64_t i = 0; i < count && !status; i++) {
		if (!from[i])
			continue;
		if (!to[i])
			to[i] = backend_desc_new(from[i]->kind);
		status = to[i] ? backend_desc_copy(to[i], from[i]) : CUDNN_ALLOC_FAILED;
	}
	return status;
}

static int read_attribute(const struct backend_attribute *attribute, int64_t wanted, void *out)
{
	int64_t count = wanted < attribute->count ? wanted : attribute->count;

	if (!out || count <= 0)
		return CUDNN_SUCCESS;
	if (attribute->type == VALUE_DESCRIPTOR)
		return read_descriptors(attribute, count, out);
	memcpy(out, attribute->values, (size_t)count * value_bytes(attribute->type));
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnBackendCreateDescriptor, int kind, struct backend_desc **desc)
{
	*desc = backend_desc_new(kind);
	return *desc ? CUDNN_SUCCESS : CUDNN_ALLOC_FAILED;
}

SIM_API(int, cudnnBackendDestroyDescriptor, struct backend_desc *desc)
{
	backend_desc_release(desc);
	return CUDNN_SUCCESS;
}

SIM_API(int, cudnnBackendSetAttribute, struct backend_desc *desc, int name, int type, int64_t count,
	const void *values)
{
	if (!desc || count < 0 || (count > 0 && !values))
		return CUDNN_BAD_PARAM;
	return backend_desc_set(desc, name, type, count, values);
}

SIM_API(int, cudnnBackendGetAttribute, struct backend_desc *desc, int name, int type,
	int64_t wanted, int64_t *count, void *out)
{
	const struct backend_attribute *attribute;
	int64_t unasked;
	int status;

	if (!desc)
		return CUDNN_BAD_PARAM;
	if (!count)
		count = &unasked;
	if (backend_answer(desc, name, wanted, count, out, &status))
		return status;
	attribute = backend_desc_find(desc, name);
	*count = attribute ? attribute->count : 0;
	return attribute ? read_attribute(attribute, wanted, out) : CUDNN_SUCCESS;
}

SIM_ACCEPT(cudnnBackendFinalize)
SIM_ACCEPT(cudnnBackendExecute)
