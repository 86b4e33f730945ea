/* Owns the definitions: what is known already, under which id, and how a new one reaches the trace. The lock is a
 * leaf; while the definitions window is full its holder waits for the dump thread, which therefore never takes it
 * (it tries). It must never call the loader or malloc. */
#include "recorder/intern.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder/elf.h"
#include "recorder/python.h"
#include "recorder/session.h"
#include "recorder/thread.h"
#include "recorder/unwind.h"

#define STACKS_CAPACITY (1u << 17)
#define FRAMES_CAPACITY (1u << 16)
#define STRINGS_CAPACITY (1u << 15)
#define MODULES_CAPACITY (1u << 12)
#define FRAME_HIDDEN UINT32_MAX

int intern_init(struct intern *intern)
{
	pthread_mutex_init(&intern->lock, NULL);
	bool ok = id_table_init(&intern->stacks, STACKS_CAPACITY) && id_table_init(&intern->frames, FRAMES_CAPACITY) &&
		  id_table_init(&intern->strings, STRINGS_CAPACITY) &&
		  id_table_init(&intern->modules, MODULES_CAPACITY);
	return ok ? 0 : -ENOMEM;
}

/* ---------- records ---------- */

static void *record_begin(struct session *session, enum memtrace_definition_kind kind, uint32_t id, size_t bytes)
{
	struct memtrace_definition *head = (void *)session->intern.record;
	size_t padded = (bytes + 7) & ~(size_t)7;
	memset(session->intern.record, 0, padded);
	head->kind = (uint16_t)kind;
	head->id = id;
	head->bytes = (uint32_t)padded;
	return head;
}

/* False when the trace could not take it in time: the id must then not be used. */
static bool record_end(struct session *session)
{
	const struct memtrace_definition *head = (const void *)session->intern.record;
	struct patience patience = { .session = session };
	int error;
	while ((error = writer_define(&session->writer, head, head->bytes)) == -EAGAIN)
		if (!dump_is_waited_for(&patience))
			return false;
	return !error;
}

static uint32_t define_string(struct session *session, const char *text)
{
	struct intern *intern = &session->intern;
	size_t length = strlen(text);
	size_t room = sizeof intern->record - sizeof(struct memtrace_def_string);
	if (length > room)
		length = room;
	uint64_t key = 1;
	for (size_t i = 0; i < length; i++)
		key = (key ^ (unsigned char)text[i]) * 0x100000001b3u;
	key = id_mix(key, length) | 1;
	uint32_t id = id_table_get(&intern->strings, key);
	if (id || id_table_is_full(&intern->strings))
		return id;
	struct memtrace_def_string *def = record_begin(session, MEMTRACE_DEF_STRING, intern->last_string + 1,
						       sizeof *def + length);
	def->length = (uint32_t)length;
	memcpy(def->text, text, length);
	if (!record_end(session))
		return 0;
	id_table_put(&intern->strings, key, ++intern->last_string);
	return intern->last_string;
}

/* ---------- modules ---------- */

struct build_id {
	const uint8_t *bytes;
	uint32_t count;
};

static struct build_id find_build_id(const ElfW(Ehdr) *header, uintptr_t bias)
{
	struct build_id none = { NULL, 0 };
	const ElfW(Phdr) *segment = (const void *)((const char *)header + header->e_phoff);
	for (unsigned i = 0; i < header->e_phnum; i++, segment++) {
		if (segment->p_type != PT_NOTE)
			continue;
		const char *at = (const char *)bias + segment->p_vaddr, *end = at + segment->p_memsz;
		while (at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *description = at + sizeof *note + ((note->n_namesz + 3) & ~3u);
			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= 20)
				return (struct build_id){ (const uint8_t *)description, note->n_descsz };
			at = description + ((note->n_descsz + 3) & ~3u);
		}
	}
	return none;
}

static const char *module_path(const struct link_map *map, char *buffer, size_t bytes)
{
	if (map->l_name[0])
		return map->l_name;
	ssize_t length = readlink("/proc/self/exe", buffer, bytes - 1);
	buffer[length > 0 ? length : 0] = 0;
	return buffer;
}

static void module_range(struct memtrace_def_module *def, const struct link_map *map, const void *address)
{
	struct elf_range range;
	def->base = map->l_addr;
	if (!elf_range_of(map, address, &range))
		return;
	def->start = range.start;
	def->end = range.end;
	struct build_id id = find_build_id((const void *)range.start, map->l_addr);
	def->build_id_bytes = id.count;
	if (id.count)
		memcpy(def->build_id, id.bytes, id.count);
}

static uint32_t define_module(struct session *session, const void *address)
{
	struct intern *intern = &session->intern;
	char buffer[1024];
	const struct link_map *map = elf_object_of(address);
	if (!map)
		return 0;
	uint32_t path = define_string(session, module_path(map, buffer, sizeof buffer));
	uint64_t key = id_mix(id_mix(2, path), map->l_addr) | 1;
	uint32_t id = id_table_get(&intern->modules, key);
	if (id || id_table_is_full(&intern->modules))
		return id;
	struct memtrace_def_module *def = record_begin(session, MEMTRACE_DEF_MODULE, intern->last_module + 1,
						       sizeof *def);
	def->path = path;
	module_range(def, map, address);
	if (!record_end(session))
		return 0;
	id_table_put(&intern->modules, key, ++intern->last_module);
	return intern->last_module;
}

/* ---------- frames and stacks ---------- */

static uint32_t define_python_frame(struct session *session, const struct python_frame *frame, uint64_t key)
{
	struct intern *intern = &session->intern;
	struct python_source source;
	if (!python_describe(frame, &source))
		return 0;
	if (source.is_hidden)
		return FRAME_HIDDEN;
	uint32_t file = define_string(session, source.file);
	uint32_t function = define_string(session, source.function);
	struct memtrace_def_python_frame *def = record_begin(session, MEMTRACE_DEF_PYTHON_FRAME,
							     intern->last_python_frame + 1, sizeof *def);
	def->file = file;
	def->function = function;
	def->line = source.line;
	if (!record_end(session))
		return 0;
	id_table_put(&intern->frames, key, ++intern->last_python_frame);
	return intern->last_python_frame;
}

static uint64_t frame_key(uint64_t hash, const struct python_frame *frame)
{
	return id_mix(hash, frame->code ^ (uint64_t)(uint32_t)frame->lasti << 40 ^ frame->guard);
}

/* 0: unknown; FRAME_HIDDEN: not to be shown. */
static uint32_t python_frame_id(struct session *session, const struct python_frame *frame)
{
	struct intern *intern = &session->intern;
	uint64_t key = frame_key(3, frame) | 1;
	uint32_t id = id_table_get(&intern->frames, key);
	if (id || id_table_is_full(&intern->frames))
		return id;
	return define_python_frame(session, frame, key);
}

static uint32_t define_native_frame(struct session *session, uintptr_t address)
{
	struct intern *intern = &session->intern;
	const void *call = (const void *)(address - 1); /* the return address may be the next function's first */
	uint32_t module = define_module(session, call);
	uint64_t base = module ? elf_object_of(call)->l_addr : 0;
	uint64_t key = id_mix(id_mix(6, address), module) | 1;
	uint32_t id = id_table_get(&intern->frames, key);
	if (id || id_table_is_full(&intern->frames))
		return id;
	struct memtrace_def_native_frame *def = record_begin(session, MEMTRACE_DEF_NATIVE_FRAME,
							     intern->last_native_frame + 1, sizeof *def);
	def->module = module;
	def->offset = address - base;
	if (!record_end(session))
		return 0;
	id_table_put(&intern->frames, key, ++intern->last_native_frame);
	return intern->last_native_frame;
}

struct walked {
	struct python_frame python[PYTHON_FRAMES_MAX];
	uintptr_t native[UNWIND_FRAMES_MAX];
	unsigned python_count;
	struct python_end python_end;
	struct unwind_result native_end;
	uintptr_t caller; /* return address of the hooked function */
};

static bool is_cuda_own(const void *address)
{
	const struct link_map *map = elf_object_of(address);
	return map && (!strncmp(elf_basename(map), "libcudart", 9) || !strncmp(elf_basename(map), "libcuda.so", 10));
}

static const void *owner_address(const struct walked *walked)
{
	for (unsigned i = 0; i < walked->native_end.count; i++) {
		const void *call = (const void *)(walked->native[i] - 1);
		if (!is_cuda_own(call))
			return call;
	}
	return (const void *)(walked->caller - 1);
}

/* False when a frame could not be defined. */
static bool define_frames(struct session *session, const struct walked *walked, struct memtrace_def_stack *counts,
			  uint32_t *ids)
{
	unsigned count = 0;
	for (unsigned i = 0; i < walked->python_count; i++) {
		uint32_t id = python_frame_id(session, &walked->python[i]);
		if (!id)
			return false;
		if (id != FRAME_HIDDEN)
			ids[count++] = id;
	}
	counts->python_count = count;
	for (unsigned i = 0; i < walked->native_end.count; i++) {
		uint32_t id = define_native_frame(session, walked->native[i]);
		if (!id)
			return false;
		ids[count++] = id;
	}
	counts->native_count = count - counts->python_count;
	return true;
}

static uint32_t define_stack(struct session *session, const struct walked *walked, uint64_t key)
{
	struct intern *intern = &session->intern;
	struct memtrace_def_stack counts = { .owner = 0 };
	uint32_t ids[PYTHON_FRAMES_MAX + UNWIND_FRAMES_MAX];
	counts.owner = define_module(session, owner_address(walked));
	if (!define_frames(session, walked, &counts, ids))
		return 0;
	size_t ids_bytes = (counts.python_count + counts.native_count) * sizeof *ids;
	struct memtrace_def_stack *def = record_begin(session, MEMTRACE_DEF_STACK, intern->last_stack + 1,
						      sizeof *def + ids_bytes);
	def->head.flags = (walked->python_end.truncated ? MEMTRACE_STACK_TRUNCATED : 0) |
			  (walked->native_end.end == UNWIND_TRUNCATED ? MEMTRACE_STACK_NATIVE_TRUNCATED : 0);
	def->owner = counts.owner;
	def->python_count = counts.python_count;
	def->native_count = counts.native_count;
	memcpy(def->frames, ids, ids_bytes);
	if (!record_end(session))
		return 0;
	id_table_put(&intern->stacks, key, ++intern->last_stack);
	return intern->last_stack;
}

static uint32_t intern_new_stack(struct session *session, const struct walked *walked, uint64_t key)
{
	struct intern *intern = &session->intern;
	pthread_mutex_lock(&intern->lock);
	uint32_t id = id_table_get(&intern->stacks, key);
	if (!id && !id_table_is_full(&intern->stacks))
		id = define_stack(session, walked, key);
	pthread_mutex_unlock(&intern->lock);
	if (!id)
		__atomic_fetch_add(&session->writer.live->stacks_lost, 1, __ATOMIC_RELAXED);
	return id;
}

static unsigned depth_limit(const struct session *session, unsigned most)
{
	return session->config.stack_depth < most ? (unsigned)session->config.stack_depth : most;
}

/* Python first: it knows where on the stack its evaluation loop is, which ends the native part. After a module was
 * closed the same addresses may be other code. */
static uint64_t walk(struct session *session, struct walked *walked, const void *frame, bool with_native)
{
	const struct config *config = &session->config;
	walked->caller = ((const uintptr_t *)frame)[1];
	walked->python_count = 0;
	walked->python_end = (struct python_end){ .truncated = false };
	walked->native_end = (struct unwind_result){ .count = 0 };
	if (config->stacks & CONFIG_PYTHON)
		walked->python_count = python_walk(walked->python, depth_limit(session, PYTHON_FRAMES_MAX),
						   &walked->python_end);
	if (with_native && config->stacks & CONFIG_NATIVE)
		walked->native_end = unwind_walk(frame, walked->native, depth_limit(session, UNWIND_FRAMES_MAX),
						 walked->python_end.loop_mark);
	uint64_t key = id_mix(4, walked->caller);
	for (unsigned i = 0; i < walked->python_count; i++)
		key = frame_key(key, &walked->python[i]);
	if (walked->native_end.count)
		key = id_mix(key, unwind_generation());
	for (unsigned i = 0; i < walked->native_end.count; i++)
		key = id_mix(key, walked->native[i]);
	return key | 1;
}

uint32_t intern_stack(struct session *session, const void *frame, bool with_native)
{
	struct thread_self *self = &thread_self;
	struct walked walked; /* 3.6 KiB, not initialised: only what the walk fills is read */
	uint64_t key = walk(session, &walked, frame, with_native);
	if (self->stack_key == key)
		return self->stack_id;
	uint32_t id = id_table_get(&session->intern.stacks, key);
	if (!id)
		id = intern_new_stack(session, &walked, key);
	self->stack_key = id ? key : 0;
	self->stack_id = id;
	return id;
}

/* ---------- threads, devices, facts ---------- */

uint32_t intern_thread(struct session *session)
{
	struct intern *intern = &session->intern;
	char name[17] = "";
	prctl(PR_GET_NAME, name);
	pthread_mutex_lock(&intern->lock);
	uint32_t text = define_string(session, name);
	struct memtrace_def_thread *def = record_begin(session, MEMTRACE_DEF_THREAD, intern->last_thread + 1,
						       sizeof *def);
	def->tid = (uint32_t)syscall(SYS_gettid);
	def->name = text;
	uint32_t id = record_end(session) ? ++intern->last_thread : 0;
	pthread_mutex_unlock(&intern->lock);
	return id;
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 5;
	for (; *text; text++)
		hash = id_mix(hash, (unsigned char)*text);
	return hash;
}

/* Name and size come by separate calls of the program: each is kept until the other is known too. */
void intern_device(struct session *session, unsigned ordinal, const char *name, uint64_t total_bytes)
{
	struct intern *intern = &session->intern;
	if (ordinal >= 64)
		return;
	uint64_t *known = &intern->devices_known[2 * ordinal];
	uint64_t name_key = name ? hash_text(name) : 0;
	if ((!name || known[0] == name_key) && (!total_bytes || known[1] == total_bytes))
		return;
	pthread_mutex_lock(&intern->lock);
	uint32_t text = name ? define_string(session, name) : 0;
	struct memtrace_def_device *def = record_begin(session, MEMTRACE_DEF_DEVICE, ordinal + 1, sizeof *def);
	def->name = text;
	def->total_bytes = total_bytes;
	if (record_end(session)) {
		known[0] = name ? name_key : known[0];
		known[1] = total_bytes ? total_bytes : known[1];
	}
	pthread_mutex_unlock(&intern->lock);
}

static void define_info(struct session *session, enum memtrace_info info, const char *text)
{
	uint32_t id = define_string(session, text);
	if (!id)
		return;
	struct memtrace_def_info *def = record_begin(session, MEMTRACE_DEF_INFO, (uint32_t)info, sizeof *def);
	def->head.flags = session->intern.info_counts[info];
	def->text = id;
	if (record_end(session))
		session->intern.info_counts[info]++;
}

void intern_info(struct session *session, enum memtrace_info info, const char *text)
{
	pthread_mutex_lock(&session->intern.lock);
	define_info(session, info, text);
	pthread_mutex_unlock(&session->intern.lock);
}

bool intern_try_info(struct session *session, enum memtrace_info info, const char *text)
{
	if (pthread_mutex_trylock(&session->intern.lock))
		return false;
	define_info(session, info, text);
	pthread_mutex_unlock(&session->intern.lock);
	return true;
}
