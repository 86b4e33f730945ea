/* Which block of PyTorch's lies in which segment, and what lies free between them: at the end of the
 * program's own code, and when memory ran out. A segment is what the caching allocator obtained in one
 * call, or a run of mapped pages (expandable). Made at these moments only, in time and memory linear in
 * the live blocks. Same thread rules as model.h. */
#ifndef MT_MODEL_SEGMENTS_H
#define MT_MODEL_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct model;

struct segment_block {
	uint64_t address, bytes;
	uint64_t asked_bytes; /* 0 unknown */
	uint64_t born;	      /* sequence */
	uint64_t stream;      /* c10's */
	uint32_t stack;
	uint16_t thread; /* id, 0 unknown */
	uint8_t label;   /* then: see model_label_category() */
};

struct segment {
	uint64_t address, bytes;
	uint64_t live_bytes;
	uint64_t releasable_bytes; /* all, if it holds no block; of an expandable one the pages that hold none */
	uint64_t largest_hole_bytes;
	uint64_t stream; /* of the last block in it */
	uint32_t stack;	 /* of the call that obtained its beginning */
	uint32_t first_block, block_count; /* in the map's blocks */
	bool is_expandable;
	bool is_small;	  /* for requests up to 1 MiB: shares nothing with larger ones */
	bool is_captured; /* obtained while a CUDA graph was captured: a private pool's */
};

struct segment_map {
	struct arena *arena;
	struct segment *segments; /* by address */
	size_t segment_count;
	struct segment_block *blocks; /* by address */
	size_t block_count;
	uint64_t unplaced_bytes; /* of blocks in memory that was not seen */
};

/* NULL: no such device, or OOM, or no memory for it. They live as long as the model; `now` until the next call. */
const struct segment_map *model_segments_now(const struct model *, unsigned ordinal);
const struct segment_map *model_segments_at_oom(const struct model *, size_t index);

/* The free range after the `index`-th block of a segment, or before its first (index 0); 0 to block_count.
 * In [*address, +bytes); bytes 0: none. */
uint64_t segment_hole(const struct segment_map *, const struct segment *, uint32_t index, uint64_t *address);

/* ---------- metrics ---------- */

struct segment_metrics {
	uint64_t reserved_bytes, allocated_bytes;
	uint64_t external_bytes;   /* reserved - allocated = releasable + pinned */
	uint64_t releasable_bytes; /* cache: goes back when the allocator empties it */
	uint64_t pinned_bytes;	   /* free, in segments (pages) that hold a live block */
	uint64_t internal_bytes;   /* allocated - asked, as far as that is known */
	uint64_t unasked_bytes;	   /* allocated blocks of which it is not */
	uint64_t largest_hole_bytes;
	uint64_t sole_pinned_bytes; /* free in segments that one single block keeps */
	size_t segments;
	double largest_hole_index; /* 1 - largest hole / external; 0: one hole, or none */
};

enum { SEGMENT_CLASSES_MAX = 16 };

struct segment_class { /* segments that share nothing with others */
	uint64_t stream;
	bool is_small, is_captured;
	struct segment_metrics metrics;
};

struct segment_metrics segment_metrics_of(const struct segment_map *);
/* Those of most external bytes first; returns how many were written, at most `capacity`. */
size_t segment_classes_of(const struct segment_map *, struct segment_class *classes, size_t capacity);

/* 1 - the bytes in which requests of `bytes` would fit / external; 0 when nothing is free. */
double segment_unusable_index(const struct segment_map *, uint64_t bytes);

struct segment_pinner { /* live blocks of one stack that keep free memory from going back */
	uint32_t stack;
	uint32_t segments;	/* that they keep */
	uint32_t sole_segments; /* that nothing else keeps */
	uint64_t live_bytes;
	uint64_t hostage_bytes; /* free in those segments: its share by number of blocks */
	uint64_t sole_bytes;
	uint64_t oldest_born, newest_born; /* sequences */
};

/* Those of most hostage bytes first; returns how many were written, at most `capacity`. `arena` for the count. */
size_t segment_pinners_of(const struct segment_map *, struct arena *, struct segment_pinner *pinners, size_t capacity);

#endif
