/* Owns the shape of the file: the keys and words that memory_viz looks for, each stack written once. Must stay
 * what the viewers of all versions of PyTorch open: with any category they want one that is called "unknown", and
 * every live block in a segment. No malloc or stdio: see summary.c. */
#include "report/snapshot.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "model/address_map.h"
#include "model/allocator_conf.h"
#include "report/native.h"

#define WORDS(X)                                                                                        \
	X(segments) X(device) X(address) X(total_size) X(allocated_size) X(active_size)                 \
	X(requested_size) X(stream) X(segment_type) X(large) X(small) X(segment_pool_id)                \
	X(is_expandable) X(frames) X(blocks) X(size) X(state) X(active_allocated) X(inactive)           \
	X(category) X(unknown) X(device_traces) X(action) X(addr) X(device_free) X(time_us) X(name)     \
	X(filename) X(line) X(alloc) X(free_requested) X(free_completed) X(segment_alloc)               \
	X(segment_free) X(segment_map) X(segment_unmap) X(oom) X(allocator_settings)                    \
	X(external_annotations) X(max_split_size) X(garbage_collection_threshold) X(expandable_segments) \
	X(PYTORCH_CUDA_ALLOC_CONF)

#define X(word) WORD_##word,
enum word { WORDS(X) WORD_COUNT };
#undef X
#define X(word) #word,
static const char *const word_texts[] = {WORDS(X)};
#undef X

#define CATEGORIES_MAX 16

enum kept_kind { KEPT_STACK, KEPT_PYTHON, KEPT_NATIVE };

struct writer {
	const struct snapshot *of;
	const struct model_oom *oom;
	struct pickle pickle;
	struct arena *arena;
	struct address_map kept;	 /* key_of() → what pickle_keep() gave, + 1 */
	uint32_t words[WORD_COUNT];	 /* + 1 */
	const char *categories[CATEGORIES_MAX];
	uint32_t kept_categories[CATEGORIES_MAX];
	unsigned category_count;
	struct text scratch;
};

/* ---------- what is written once ---------- */

static void put_word(struct writer *w, enum word word)
{
	if (w->words[word]) {
		pickle_again(&w->pickle, w->words[word] - 1);
		return;
	}
	pickle_text(&w->pickle, word_texts[word], strlen(word_texts[word]));
	w->words[word] = pickle_keep(&w->pickle) + 1;
}

static void put_integer(struct writer *w, enum word key, uint64_t value)
{
	put_word(w, key);
	pickle_integer(&w->pickle, value);
}

static void put_choice(struct writer *w, enum word key, enum word value)
{
	put_word(w, key);
	put_word(w, value);
}

/* True: it was written before, and is again now. */
static bool put_kept(struct writer *w, uint64_t key)
{
	uint64_t kept = address_map_get(&w->kept, key);
	if (kept)
		pickle_again(&w->pickle, (uint32_t)(kept - 1));
	return kept;
}

static void keep(struct writer *w, uint64_t key)
{
	if (!address_map_put(&w->kept, w->arena, key, (uint64_t)pickle_keep(&w->pickle) + 1))
		w->pickle.error = -ENOMEM;
}

static uint64_t key_of(enum kept_kind kind, uint64_t id)
{
	return id << 2 | kind;
}

/* What anybody may have called a file: as valid UTF-8. */
static void put_text(struct writer *w, const char *text)
{
	w->scratch.used_bytes = 0;
	text_add_escaped(&w->scratch, text ? text : "");
	pickle_text(&w->pickle, w->scratch.data, w->scratch.used_bytes);
}

/* ---------- stacks ---------- */

static void put_frame(struct writer *w, const char *name, const char *file, uint32_t line)
{
	pickle_dict(&w->pickle);
	put_word(w, WORD_name);
	put_text(w, name);
	put_word(w, WORD_filename);
	put_text(w, file);
	put_integer(w, WORD_line, line);
	pickle_dict_end(&w->pickle);
}

static void put_python_frame(struct writer *w, uint32_t id)
{
	const struct def_python_frame *frame = defs_python_frame(w->of->defs, id);
	uint64_t key = key_of(KEPT_PYTHON, id);
	if (put_kept(w, key))
		return;
	put_frame(w, frame ? frame->function : "", frame ? frame->file : "",
		  frame && frame->line > 0 ? (uint32_t)frame->line : 0);
	keep(w, key);
}

static void put_native_frame(struct writer *w, uint32_t id)
{
	const struct def_native_frame *frame = defs_native_frame(w->of->defs, id);
	const struct def_module *module = frame ? defs_module(w->of->defs, frame->module) : NULL;
	uint64_t key = key_of(KEPT_NATIVE, id);
	char buffer[512];
	struct text name;
	if (put_kept(w, key))
		return;
	text_init_fixed(&name, buffer, sizeof buffer);
	if (frame && frame->name)
		text_add(&name, frame->name);
	else if (frame)
		native_add_frame(&name, w->of->defs, frame);
	put_frame(w, text_string(&name), module ? module->path : "", 0);
	keep(w, key);
}

/* Innermost first. */
static void put_new_stack(struct writer *w, const struct def_stack *stack)
{
	struct pickle_list list;
	pickle_list(&w->pickle, &list);
	for (uint32_t i = 0; stack && i < stack->native_count; i++) {
		pickle_item(&w->pickle, &list);
		put_native_frame(w, stack->native[i]);
	}
	for (uint32_t i = 0; stack && i < stack->python_count; i++) {
		pickle_item(&w->pickle, &list);
		put_python_frame(w, stack->python[i]);
	}
	pickle_list_end(&w->pickle, &list);
}

static void put_stack(struct writer *w, uint32_t id)
{
	uint64_t key = key_of(KEPT_STACK, (uint64_t)id + 1);
	put_word(w, WORD_frames);
	if (put_kept(w, key))
		return;
	put_new_stack(w, defs_stack(w->of->defs, id));
	keep(w, key);
}

/* Categories are constants of the model: their addresses tell them apart. */
static void put_category(struct writer *w, const char *category)
{
	unsigned i = 0;
	if (!category)
		return;
	put_word(w, WORD_category);
	while (i < w->category_count && w->categories[i] != category)
		i++;
	if (i < w->category_count) {
		pickle_again(&w->pickle, w->kept_categories[i]);
		return;
	}
	put_text(w, category);
	if (i == CATEGORIES_MAX)
		return;
	w->categories[i] = category;
	w->kept_categories[i] = pickle_keep(&w->pickle);
	w->category_count++;
}

/* ---------- segments ---------- */

static uint64_t asked(const struct segment_block *block)
{
	bool is_known = block->asked_bytes && block->asked_bytes <= block->bytes;
	return is_known ? block->asked_bytes : block->bytes;
}

/* Without a block: what lies free there. */
static void put_range(struct writer *w, struct pickle_list *list, uint64_t address, uint64_t bytes,
		      const struct segment_block *block)
{
	pickle_item(&w->pickle, list);
	pickle_dict(&w->pickle);
	put_integer(w, WORD_address, address);
	put_integer(w, WORD_size, bytes);
	put_integer(w, WORD_requested_size, block ? asked(block) : 0);
	put_choice(w, WORD_state, block ? WORD_active_allocated : WORD_inactive);
	put_stack(w, block ? block->stack : 0);
	if (block)
		put_category(w, model_category_name(model_label_category(w->of->model, block->label)));
	pickle_dict_end(&w->pickle);
}

static void put_blocks(struct writer *w, const struct segment_map *map, const struct segment *segment)
{
	struct pickle_list list;
	put_word(w, WORD_blocks);
	pickle_list(&w->pickle, &list);
	for (uint32_t i = 0; i <= segment->block_count; i++) {
		uint64_t address = 0, bytes = segment_hole(map, segment, i, &address);
		const struct segment_block *block = &map->blocks[segment->first_block + i];
		if (bytes)
			put_range(w, &list, address, bytes, NULL);
		if (i < segment->block_count)
			put_range(w, &list, block->address, block->bytes, block);
	}
	pickle_list_end(&w->pickle, &list);
}

static void put_segment(struct writer *w, const struct segment_map *map, const struct segment *segment)
{
	uint64_t asked_bytes = 0;
	for (uint32_t i = 0; i < segment->block_count; i++)
		asked_bytes += asked(&map->blocks[segment->first_block + i]);
	pickle_dict(&w->pickle);
	put_integer(w, WORD_device, w->oom->device);
	put_integer(w, WORD_address, segment->address);
	put_integer(w, WORD_total_size, segment->bytes);
	put_integer(w, WORD_allocated_size, segment->live_bytes);
	put_integer(w, WORD_active_size, segment->live_bytes);
	put_integer(w, WORD_requested_size, asked_bytes);
	put_integer(w, WORD_stream, segment->stream);
	put_choice(w, WORD_segment_type, segment->is_small ? WORD_small : WORD_large);
	put_integer(w, WORD_segment_pool_id, 0);
	pickle_integer(&w->pickle, segment->is_captured);
	pickle_pair(&w->pickle);
	put_word(w, WORD_is_expandable);
	pickle_bool(&w->pickle, segment->is_expandable);
	put_stack(w, segment->stack);
	put_blocks(w, map, segment);
	pickle_dict_end(&w->pickle);
}

static void put_segments(struct writer *w, const struct segment_map *map)
{
	struct pickle_list list;
	put_word(w, WORD_segments);
	pickle_list(&w->pickle, &list);
	for (size_t i = 0; i < map->segment_count; i++) {
		pickle_item(&w->pickle, &list);
		put_segment(w, map, &map->segments[i]);
	}
	pickle_list_end(&w->pickle, &list);
}

/* ---------- events ---------- */

static void put_time(struct writer *w, uint64_t time_ns)
{
	if (time_ns)
		put_integer(w, WORD_time_us, (w->of->start_realtime_ns + time_ns) / 1000);
}

static void put_entry(struct writer *w, struct pickle_list *list, enum word action,
		      const struct snapshot_event *event)
{
	pickle_item(&w->pickle, list);
	pickle_dict(&w->pickle);
	put_choice(w, WORD_action, action);
	put_integer(w, WORD_addr, event->address);
	put_integer(w, WORD_size, event->bytes);
	put_integer(w, WORD_stream, event->stream);
	put_time(w, event->time_ns);
	put_stack(w, event->stack);
	put_category(w, event->category);
	pickle_dict_end(&w->pickle);
}

static void put_event(struct writer *w, struct pickle_list *list, const struct snapshot_event *event)
{
	static const enum word actions[] = {
		[SNAPSHOT_ALLOC] = WORD_alloc,
		[SNAPSHOT_FREE] = WORD_free_completed,
		[SNAPSHOT_SEGMENT_ALLOC] = WORD_segment_alloc,
		[SNAPSHOT_SEGMENT_FREE] = WORD_segment_free,
		[SNAPSHOT_SEGMENT_MAP] = WORD_segment_map,
		[SNAPSHOT_SEGMENT_UNMAP] = WORD_segment_unmap,
	};
	if (event->action == SNAPSHOT_FREE)
		put_entry(w, list, WORD_free_requested, event);
	put_entry(w, list, actions[event->action], event);
}

static void put_oom(struct writer *w, struct pickle_list *list)
{
	bool is_known = w->oom->free_bytes != UINT64_MAX;
	pickle_item(&w->pickle, list);
	pickle_dict(&w->pickle);
	put_choice(w, WORD_action, WORD_oom);
	put_integer(w, WORD_device_free, is_known ? w->oom->free_bytes : 0);
	put_integer(w, WORD_size, w->oom->requested_bytes);
	put_integer(w, WORD_stream, 0);
	put_time(w, w->oom->time_ns);
	put_stack(w, w->oom->stack);
	put_choice(w, WORD_category, WORD_unknown);
	pickle_dict_end(&w->pickle);
}

static void put_trace(struct writer *w)
{
	struct pickle_list list;
	pickle_list(&w->pickle, &list);
	for (size_t i = 0; i < w->of->event_count; i++)
		put_event(w, &list, &w->of->events[i]);
	put_oom(w, &list);
	pickle_list_end(&w->pickle, &list);
}

static void put_traces(struct writer *w)
{
	struct pickle_list devices, none;
	put_word(w, WORD_device_traces);
	pickle_list(&w->pickle, &devices);
	for (unsigned ordinal = 0; ordinal <= w->oom->device; ordinal++) {
		pickle_item(&w->pickle, &devices);
		if (ordinal == w->oom->device)
			put_trace(w);
		else
			pickle_list(&w->pickle, &none);
	}
	pickle_list_end(&w->pickle, &devices);
}

/* ---------- the file ---------- */

static void put_settings(struct writer *w)
{
	char buffer[256];
	struct text reason;
	struct allocator_conf conf;
	const char *words = defs_info(w->of->defs, MEMTRACE_INFO_ALLOC_CONF, 0);
	allocator_conf_init(&conf, allocator_version_of(defs_info(w->of->defs, MEMTRACE_INFO_FRAMEWORK, 0)));
	text_init_fixed(&reason, buffer, sizeof buffer);
	if (words)
		allocator_conf_parse(&conf, words, &reason);
	put_word(w, WORD_allocator_settings);
	pickle_dict(&w->pickle);
	put_word(w, WORD_PYTORCH_CUDA_ALLOC_CONF);
	put_text(w, words);
	if (conf.max_split_bytes != ALLOCATOR_NO_LIMIT)
		put_integer(w, WORD_max_split_size, conf.max_split_bytes);
	put_word(w, WORD_garbage_collection_threshold);
	pickle_real(&w->pickle, conf.gc_threshold);
	put_word(w, WORD_expandable_segments);
	pickle_bool(&w->pickle, conf.is_expandable);
	pickle_dict_end(&w->pickle);
}

static void put_all(struct writer *w, const struct segment_map *map)
{
	struct pickle_list none;
	pickle_dict(&w->pickle);
	put_segments(w, map);
	put_traces(w);
	put_settings(w);
	put_word(w, WORD_external_annotations);
	pickle_list(&w->pickle, &none);
	pickle_dict_end(&w->pickle);
}

int snapshot_write(const struct snapshot *snapshot, pickle_take *take, void *context)
{
	const struct segment_map *map = model_segments_at_oom(snapshot->model, snapshot->index);
	struct arena *arena = map ? arena_create() : NULL;
	struct writer *w = arena ? arena_alloc(arena, sizeof *w) : NULL;
	int error = map ? -ENOMEM : -ENODATA;
	if (w) {
		*w = (struct writer){.of = snapshot, .arena = arena};
		w->oom = model_oom(snapshot->model, snapshot->index);
		text_init(&w->scratch);
		pickle_begin(&w->pickle, take, context);
		put_all(w, map);
		error = pickle_end(&w->pickle);
		text_release(&w->scratch);
	}
	if (arena)
		arena_release(arena);
	return error;
}
