/* Memory that graphs obtain and give back when they are launched. Owns the tables of graphs and of
 * executable ones that have such nodes. Instantiating copies the nodes: what is added to the graph
 * later is not in it. A launch is played as the allocations and frees of its nodes, each with the
 * stack that added it; where the program's free is late (a graph that frees before it allocates
 * anew), what is live at the address of an allocating node was freed by the launch itself. */
#include <string.h>

#include "model/model_private.h"

static struct graph *find(struct graph *table, uint64_t address)
{
	struct graph *graph;
	HASH_FIND(hh, table, &address, sizeof address, graph);
	return graph;
}

static struct graph *add(struct model *m, struct graph **table, uint64_t address)
{
	struct graph *graph = model_new(m, sizeof *graph);
	if (!graph)
		return NULL;
	graph->address = address;
	TABLE_ADD(*table, address, graph);
	return m->failed ? NULL : graph;
}

static void drop(struct model *m, struct graph **table, uint64_t address)
{
	struct graph *graph = find(*table, address);
	if (!graph)
		return;
	HASH_DEL(*table, graph);
	arena_free(m->arena, graph->nodes, graph->capacity * sizeof *graph->nodes);
	arena_free(m->arena, graph, sizeof *graph);
}

struct graph *graph_restore(struct model *m, struct graph **table, uint64_t address)
{
	return find(*table, address) ? NULL : add(m, table, address);
}

struct graph_node *graph_add_node(struct model *m, struct graph *graph)
{
	if (model_grow(m, &graph->nodes, &graph->capacity, graph->count, sizeof *graph->nodes))
		return NULL;
	return &graph->nodes[graph->count++];
}

void graph_note_node(struct model *m, const struct event *e)
{
	struct graph *graph = find(m->graphs, e->extra);
	if (!graph)
		graph = add(m, &m->graphs, e->extra);
	struct graph_node *node = graph ? graph_add_node(m, graph) : NULL;
	if (node)
		*node = (struct graph_node){
			.address = e->address,
			.bytes = e->bytes,
			.stack = e->stack,
			.device = e->device,
			.is_free = e->what == MEMTRACE_GRAPH_FREE,
		};
}

static void append(struct model *m, struct graph *to, const struct graph *from)
{
	for (uint32_t i = 0; i < from->count; i++) {
		struct graph_node *node = graph_add_node(m, to);
		if (node)
			*node = from->nodes[i];
	}
}

/* What is captured goes by the name of the stream until the capture has ended: then it is a graph, or nothing. */
void graph_note_capture(struct model *m, const struct event *e)
{
	const struct graph *captured = find(m->graphs, e->stream);
	struct graph *graph = captured && e->address ? find(m->graphs, e->address) : NULL;
	if (captured && e->address && !graph)
		graph = add(m, &m->graphs, e->address);
	if (graph)
		append(m, graph, captured);
	drop(m, &m->graphs, e->stream);
}

void graph_note_exec(struct model *m, const struct event *e)
{
	const struct graph *graph = find(m->graphs, e->extra);
	drop(m, &m->execs, e->address); /* its end was not seen */
	struct graph *exec = graph ? add(m, &m->execs, e->address) : NULL;
	if (exec)
		append(m, exec, graph);
}

static bool is_live(struct model *m, uint64_t address)
{
	const struct span *span = ranges_at(&m->regions.device, address);
	return span && span->kind == SPAN_REGION;
}

static void play_free(struct model *m, const struct graph_node *node, struct event e)
{
	e.what = MEMTRACE_FREE;
	e.address = node->address;
	region_note_free(m, &e);
}

static void play_alloc(struct model *m, const struct graph_node *node, struct event e)
{
	if (is_live(m, node->address))
		play_free(m, node, e);
	e.what = MEMTRACE_ALLOC;
	e.address = node->address;
	e.bytes = node->bytes;
	e.stack = node->stack;
	e.device = node->device;
	e.flags |= MEMTRACE_CAPTURING;
	region_note_alloc(m, &e);
}

void graph_note_launch(struct model *m, const struct event *launch)
{
	const struct graph *exec = find(m->execs, launch->address);
	struct event e = *launch;
	e.space = MEMTRACE_SPACE_STREAM;
	e.extra = 0;
	for (uint32_t i = 0; exec && i < exec->count; i++) {
		if (exec->nodes[i].is_free)
			play_free(m, &exec->nodes[i], e);
		else
			play_alloc(m, &exec->nodes[i], e);
	}
}

void graph_note_end(struct model *m, const struct event *e)
{
	drop(m, e->what == MEMTRACE_GRAPH_END ? &m->graphs : &m->execs, e->address);
}
