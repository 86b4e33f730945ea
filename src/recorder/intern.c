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
#include "recorder/intern_private.h"
#include "recorder/session.h"
#include "recorder/thread.h"

#define STACKS_CAPACITY (1u << 17)
#define FRAMES_CAPACITY (1u << 16)
#define STRINGS_CAPACITY (1u << 15)
#define MODULES_CAPACITY (1u << 12)

/* Pages are touched only when used. */
static void *map_zeroed(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED)
		return NULL;
	madvise(pages, bytes, MADV_DONTFORK);
	return pages;
}

int intern_init(struct intern *intern)
{
	pthread_mutex_init(&intern->lock, NULL);
	bool ok = id_table_init(&intern->stacks, STACKS_CAPACITY) && id_table_init(&intern->frames, FRAMES_CAPACITY) &&
		  id_table_init(&intern->strings, STRINGS_CAPACITY) &&
		  id_table_init(&intern->modules, MODULES_CAPACITY);
	intern->frame_bits = map_zeroed(FRAMES_CAPACITY);
	intern->frame_steps = map_zeroed(FRAMES_CAPACITY * sizeof *intern->frame_steps);
	intern->stack_steps = map_zeroed(STACKS_CAPACITY * sizeof *intern->stack_steps);
	intern->stack_optimizers = map_zeroed(STACKS_CAPACITY);
	ok = ok && intern->frame_bits && intern->frame_steps && intern->stack_steps && intern->stack_optimizers;
	return ok ? 0 : -ENOMEM;
}

static void hold_begin(struct intern_hold *hold)
{
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGXFSZ); /* these two are ours to take where a write of ours raises them (sink.c) */
	sigdelset(&all, SIGPIPE);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &hold->cancel_state);
	pthread_sigmask(SIG_SETMASK, &all, &hold->signals);
}

static void hold_end(const struct intern_hold *hold)
{
	pthread_sigmask(SIG_SETMASK, &hold->signals, NULL);
	pthread_setcancelstate(hold->cancel_state, NULL);
}

void intern_lock(struct intern *intern, struct intern_hold *hold)
{
	hold_begin(hold);
	pthread_mutex_lock(&intern->lock);
}

bool intern_try_lock(struct intern *intern, struct intern_hold *hold)
{
	hold_begin(hold);
	if (!pthread_mutex_trylock(&intern->lock))
		return true;
	hold_end(hold);
	return false;
}

void intern_unlock(struct intern *intern, const struct intern_hold *hold)
{
	pthread_mutex_unlock(&intern->lock);
	hold_end(hold);
}

/* ---------- records ---------- */

void *intern_record_begin(struct session *session, enum memtrace_definition_kind kind, uint32_t id, size_t bytes)
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
bool intern_record_end(struct session *session)
{
	const struct memtrace_definition *head = (const void *)session->intern.record;
	struct patience patience = { .session = session };
	int error;
	while ((error = writer_define(&session->writer, head, head->bytes)) == -EAGAIN)
		if (!dump_is_waited_for(&patience))
			return false;
	return !error;
}

uint32_t intern_string(struct session *session, const char *text)
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
	struct memtrace_def_string *def = intern_record_begin(session, MEMTRACE_DEF_STRING, intern->last_string + 1,
						       sizeof *def + length);
	def->length = (uint32_t)length;
	memcpy(def->text, text, length);
	if (!intern_record_end(session))
		return 0;
	id_table_put(&intern->strings, key, ++intern->last_string, 0);
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

uint32_t intern_module(struct session *session, const void *address)
{
	struct intern *intern = &session->intern;
	char buffer[1024];
	const struct link_map *map = elf_object_of(address);
	if (!map)
		return 0;
	uint32_t path = intern_string(session, module_path(map, buffer, sizeof buffer));
	uint64_t key = id_mix(id_mix(2, path), map->l_addr) | 1;
	uint32_t id = id_table_get(&intern->modules, key);
	if (id || id_table_is_full(&intern->modules))
		return id;
	struct memtrace_def_module *def = intern_record_begin(session, MEMTRACE_DEF_MODULE, intern->last_module + 1,
						       sizeof *def);
	def->path = path;
	module_range(def, map, address);
	if (!intern_record_end(session))
		return 0;
	id_table_put(&intern->modules, key, ++intern->last_module, 0);
	return intern->last_module;
}

/* ---------- threads, devices, facts ---------- */

uint32_t intern_thread(struct session *session)
{
	struct intern_hold hold;
	struct intern *intern = &session->intern;
	char name[17] = "";
	prctl(PR_GET_NAME, name);
	thread_self.is_engine = !strncmp(name, "pt_autograd", 11);
	intern_lock(intern, &hold);
	uint32_t text = intern_string(session, name);
	struct memtrace_def_thread *def = intern_record_begin(session, MEMTRACE_DEF_THREAD, intern->last_thread + 1,
						       sizeof *def);
	def->tid = (uint32_t)syscall(SYS_gettid);
	def->name = text;
	uint32_t id = intern_record_end(session) ? ++intern->last_thread : 0;
	intern_unlock(intern, &hold);
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
	struct intern_hold hold;
	struct intern *intern = &session->intern;
	if (ordinal >= 64)
		return;
	uint64_t *known = &intern->devices_known[2 * ordinal];
	uint64_t name_key = name ? hash_text(name) : 0;
	if ((!name || known[0] == name_key) && (!total_bytes || known[1] == total_bytes))
		return;
	intern_lock(intern, &hold);
	uint32_t text = name ? intern_string(session, name) : 0;
	struct memtrace_def_device *def = intern_record_begin(session, MEMTRACE_DEF_DEVICE, ordinal + 1, sizeof *def);
	def->name = text;
	def->total_bytes = total_bytes;
	if (intern_record_end(session)) {
		known[0] = name ? name_key : known[0];
		known[1] = total_bytes ? total_bytes : known[1];
	}
	intern_unlock(intern, &hold);
}

static void define_info(struct session *session, enum memtrace_info info, const char *text)
{
	uint32_t id = intern_string(session, text);
	if (!id)
		return;
	struct memtrace_def_info *def = intern_record_begin(session, MEMTRACE_DEF_INFO, (uint32_t)info, sizeof *def);
	def->head.flags = session->intern.info_counts[info];
	def->text = id;
	if (intern_record_end(session))
		session->intern.info_counts[info]++;
}

uint32_t intern_text(struct session *session, const char *text)
{
	struct intern_hold hold;
	intern_lock(&session->intern, &hold);
	uint32_t id = intern_string(session, text);
	intern_unlock(&session->intern, &hold);
	return id;
}

void intern_info(struct session *session, enum memtrace_info info, const char *text)
{
	struct intern_hold hold;
	intern_lock(&session->intern, &hold);
	define_info(session, info, text);
	intern_unlock(&session->intern, &hold);
}

bool intern_try_info(struct session *session, enum memtrace_info info, const char *text)
{
	struct intern_hold hold;
	if (!intern_try_lock(&session->intern, &hold))
		return false;
	define_info(session, info, text);
	intern_unlock(&session->intern, &hold);
	return true;
}

static bool define_symbol(struct session *session, uint32_t native_frame, const char *symbol, uint64_t offset)
{
	uint32_t name = intern_string(session, symbol);
	if (!name)
		return false;
	struct memtrace_def_symbol *def = intern_record_begin(session, MEMTRACE_DEF_SYMBOL, native_frame, sizeof *def);
	def->name = name;
	def->offset = offset;
	return intern_record_end(session);
}

bool intern_try_symbol(struct session *session, uint32_t native_frame, const char *symbol, uint64_t offset)
{
	struct intern_hold hold;
	if (!intern_try_lock(&session->intern, &hold))
		return false;
	bool is_defined = define_symbol(session, native_frame, symbol, offset);
	intern_unlock(&session->intern, &hold);
	return is_defined;
}
