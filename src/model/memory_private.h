/* Driver memory: regions at an address, physical handles and where they are mapped, pools, graphs.
 * Grouped by the file that defines it. */
#ifndef MT_MODEL_MEMORY_PRIVATE_H
#define MT_MODEL_MEMORY_PRIVATE_H

#include "model/figures_private.h"
#include "model/ranges.h"
#include "model/table.h"

struct block;

/* ---------- memory.c: what the driver gave out ---------- */

enum role {
	ROLE_OUTSIDE, /* not a caching allocator's: it is itself allocated */
	ROLE_CACHE,   /* a caching allocator hands out blocks in it */
	ROLE_TENSOR,  /* stream-ordered, one a tensor, of PyTorch's cudaMallocAsync backend */
	ROLE_EXTERNAL /* counted by whoever owns it, never here */
};

struct memory { /* what regions and handles have in common */
	uint64_t bytes;
	uint64_t born; /* sequence */
	uint32_t stack, thread;
	uint16_t owner;
	uint8_t slot, role;
	uint8_t space;
	uint8_t label;
	bool is_captured;     /* obtained while a stream was captured */
	uint32_t block_count; /* in a region: live blocks; in a handle: not used */
	uint64_t stream;      /* of the last block that was handed out in it */
	uint64_t turned;      /* sequence at which block_count last came from or went to 0 */
};

void memory_init(struct model *, struct memory *, const struct event *);
bool memory_is_counted(const struct memory *); /* on a device, and not by someone else */
/* Every figure that a change of driver memory touches. Bytes of physical handles are no cache until
 * mapped. */
void memory_change(struct model *, struct memory *, enum change, const struct event *);
/* A block landed in it: it is the caching allocator's from now on. */
void memory_become_cache(struct model *, struct memory *);

/* ---------- segment.c: which of PyTorch's memory holds blocks ---------- */

/* `block` is handed out or taken back, at an address in `span` if that is not NULL: which segments and
 * pages hold none changes. */
void segment_note_block(struct model *, struct span *, const struct block *, enum change, uint64_t sequence);
/* A segment or page without a block comes or goes. */
void segment_change_releasable(struct device *, enum change, uint64_t bytes);
/* To be called after every block was handed out: keeps the moment of the highest reserved. */
void segment_note_fullest(struct device *, const struct event *);

/* ---------- segment_map.c ---------- */

struct segment_block segment_block_of(const struct block *);
/* As it is now; NULL: no memory, or too many blocks. The map has an arena of its own. */
struct segment_map *segment_map_create(const struct model *, const struct device *);
/* The blocks without segments: those that are live, and those that were just let go. */
struct segment_map *segment_map_of_blocks(const struct model *, const struct device *);
void segment_map_release(struct segment_map *);

/* ---------- region.c: memory at an address ---------- */

enum span_kind { SPAN_REGION, SPAN_MAPPING, SPAN_RESERVATION };

struct region {
	struct span span;
	struct memory memory;
	uint64_t context;    /* of the program's own that it lives in, 0 a primary one */
	uint32_t references; /* of external memory: how often it was opened */
	uint8_t home;        /* the space whose addresses it has */
};

#define RECENT_SPANS 64

/* Spaces whose addresses have nothing to do with each other. */
struct regions {
	struct ranges device;  /* regions and mappings; a block may lie in any */
	struct ranges arrays;  /* their addresses are handles */
	struct ranges host;    /* pinned and registered */
	struct ranges imports; /* objects of other APIs: their addresses are handles */
	struct span *recent[RECENT_SPANS]; /* of `device`, as of `recent_changes` */
	uint64_t recent_changes;
};

struct ranges *region_index(struct model *, enum memtrace_space home);
void region_note_alloc(struct model *, const struct event *);
void region_note_free(struct model *, const struct event *);
void region_keep(struct model *, struct region *, const struct event *); /* its free has failed */
void region_drop(struct model *, struct region *); /* frees the struct of one that was removed */
/* Everything that lies in [start, end) of device addresses was freed without our seeing it. */
void regions_clear(struct model *, uint64_t start, uint64_t end, const struct event *);
struct span *regions_at(struct model *, uint64_t address); /* what holds it; NULL: nothing */
void regions_note_landing(struct model *, struct span *); /* of a block */
void regions_note_context_end(struct model *, const struct event *);
/* The free of external memory that was opened more than once has failed. */
void region_reopen(struct model *, uint64_t address, enum memtrace_space);

/* ---------- handle.c, mapping.c: physical memory and where it shows ---------- */

struct mapping {
	struct span span;
	uint32_t block_count;    /* live blocks that lie in it, even in part */
	bool is_counted;       /* in pytorch_reserved */
	bool was_counted;      /* when it was unmapped */
	bool is_joined;        /* it goes on where the mapping before it ends: one segment */
	struct handle *handle; /* NULL: unknown */
	struct mapping *previous, *next;      /* of the handle, or of struct undo */
	uint64_t handle_address, handle_born; /* to find it again after an unmap that failed */
};

struct handle {
	uint64_t address; /* its value */
	struct memory memory;
	uint64_t references, mapping_count;
	struct mapping *mappings;
	bool is_held; /* else a zombie */
	struct handle *zombie_previous, *zombie_next;
	UT_hash_handle hh;
};

struct handles {
	struct handle *table;
	struct handle *zombie_first, *zombie_last; /* oldest, newest */
	uint32_t zombie_count;
	struct ranges reservations;
};

void handle_note_alloc(struct model *, const struct event *);
void handle_note_free(struct model *, const struct event *);
void handle_note_retain(struct model *, const struct event *);
/* One that was saved, without mappings. 0 or -1: there is one of its value, or no memory. */
int handle_restore(struct model *, struct handle *);
void handle_keep(struct model *, uint64_t address, uint64_t born, const struct event *);
struct handle *handle_find(struct model *, uint64_t address);
void handle_forget_zombie(struct model *, uint64_t address);
/* After its references or mappings have changed. */
void handle_settle(struct model *, struct handle *, enum change, const struct event *);
void handle_become_cache(struct model *, struct handle *);

void mapping_note_map(struct model *, const struct event *);
void mapping_note_unmap(struct model *, const struct event *);
void mapping_keep(struct model *, struct mapping *, const struct event *);
/* From the tables; the struct stays until mapping_drop(). */
void mapping_remove(struct model *, struct mapping *, const struct event *);
void mapping_drop(struct model *, struct mapping *);
void mapping_detach(struct model *, struct mapping *, const struct event *); /* from its handle */
void mapping_count_cache(struct model *, struct mapping *, enum change);     /* and the segments */
void reservation_note_reserve(struct model *, const struct event *);
void reservation_note_release(struct model *, const struct event *);
void reservation_keep(struct model *, struct span *);

/* ---------- pool.c: stream-ordered pools ---------- */

struct pool {
	uint64_t address;
	uint8_t device;
	bool is_own; /* made by the program, not a device's default */
	bool is_destroyed;
	UT_hash_handle hh;
};

int pool_restore(struct model *, const struct pool *); /* 0 or -ENOMEM */
void pool_note(struct model *, const struct event *);
void pool_keep(struct model *, uint64_t address);          /* its destruction failed */
uint8_t pool_device(struct model *, const struct event *); /* of a stream-ordered allocation */
void pool_note_tensor(struct device *, enum change, uint64_t bytes);

/* ---------- graph.c: memory that launches of graphs obtain and give back ---------- */

struct graph_node { /* in the order in which they were added, which is one that they may run in */
	uint64_t address, bytes;
	uint32_t stack;
	uint8_t device;
	bool is_free;
};

struct graph { /* or an executable one, which has a copy of the nodes */
	uint64_t address;
	struct graph_node *nodes;
	uint32_t count, capacity;
	UT_hash_handle hh;
};

/* One of `table` that was saved, without nodes; and one more node. NULL: there is one, or no memory. */
struct graph *graph_restore(struct model *, struct graph **table, uint64_t address);
struct graph_node *graph_add_node(struct model *, struct graph *);
void graph_note_node(struct model *, const struct event *);
void graph_note_capture(struct model *, const struct event *);
void graph_note_exec(struct model *, const struct event *);
void graph_note_launch(struct model *, const struct event *);
void graph_note_end(struct model *, const struct event *);

#endif
