/*
 * Where the ranks of a communicator meet: a file of /dev/shm that their processes map, named after
 * the communicator's unique id. Owns the layout of that file, the lanes of messages in it, and how
 * one learns that a rank is gone: it locks a byte of the file, and the lock ends with its process.
 *
 * The file is of mode 0600, taken only if it is this user's, and unlinked once all ranks are in it
 * (after a kill: nccl_sweep.c). Its pages exist where something was said. Must never wait but in
 * nccl_room_wait().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"
#include "sim_nccl.h"

#define PAGE_BYTES 4096

enum { NOT_YET, HERE, GONE };

struct room_rank {
	uint32_t state;
	pid_t pid;
	uint64_t taken; /* of what all do together */
};

struct room_lane {
	uint64_t said, taken;
	struct nccl_message messages[NCCL_SLOTS];
};

/* All zeros is how it begins, but for the magic, which comes first. */
struct room_file {
	uint32_t magic, come_count;
	uint32_t bell, listener_count;
	uint32_t result; /* an nccl_result; 0: well */
	char why[240];
	struct room_rank ranks[];
};

struct nccl_room {
	struct nccl_room *next;
	char path[96]; /* empty: nobody else's */
	pid_t pid; /* that entered it: a child of that has no say in what becomes of the file */
	int descriptor, rank_count;
	int user_count; /* ranks of this process, and who waits */
	size_t bytes;
	struct room_file *file;
	struct room_lane *lanes;
	char *contents;
};

static pthread_mutex_t rooms_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl_room *rooms;

/* ---- the layout ---- */

int nccl_lane_between(const struct nccl_room *room, int from, int to)
{
	return room->rank_count * (1 + from) + to;
}

static size_t lane_count(int rank_count)
{
	return (size_t)rank_count * (size_t)(1 + rank_count);
}

static size_t lanes_offset(int rank_count)
{
	size_t bytes = sizeof(struct room_file) + (size_t)rank_count * sizeof(struct room_rank);
	return sim_round_up(bytes, PAGE_BYTES);
}

static size_t contents_offset(int rank_count)
{
	size_t bytes = lane_count(rank_count) * sizeof(struct room_lane);
	return lanes_offset(rank_count) + sim_round_up(bytes, PAGE_BYTES);
}

static char *contents_at(const struct nccl_room *room, int lane, uint64_t number)
{
	size_t slot = (size_t)lane * NCCL_SLOTS + number % NCCL_SLOTS;
	return room->contents + slot * NCCL_CONTENTS_BYTES;
}

/* ---- entering ---- */

static int open_file(struct nccl_room *room)
{
	struct stat about;

	room->descriptor = open(room->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (room->descriptor < 0)
		return -1;
	if (fstat(room->descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
	    about.st_uid == geteuid() && ftruncate(room->descriptor, (off_t)room->bytes) == 0 &&
	    posix_fallocate(room->descriptor, 0, (off_t)contents_offset(room->rank_count)) == 0)
		return 0;
	close(room->descriptor);
	return -1;
}

static int map_file(struct nccl_room *room)
{
	bool is_shared = room->path[0] != '\0';
	int flags = MAP_SHARED | MAP_NORESERVE | (is_shared ? 0 : MAP_ANONYMOUS);

	if (is_shared && open_file(room) != 0)
		return -1;
	void *mapped = mmap(NULL, room->bytes, PROT_READ | PROT_WRITE, flags, room->descriptor, 0);
	if (mapped == MAP_FAILED) {
		if (is_shared)
			close(room->descriptor);
		return -1;
	}
	room->file = mapped;
	__atomic_store_n(&room->file->magic, NCCL_ROOM_MAGIC, __ATOMIC_RELEASE);
	room->lanes = (void *)((char *)mapped + lanes_offset(room->rank_count));
	room->contents = (char *)mapped + contents_offset(room->rank_count);
	return 0;
}

static struct nccl_room *room_new(const char *name, int rank_count)
{
	struct nccl_room *room = calloc(1, sizeof(*room));

	if (room == NULL)
		return NULL;
	*room = (struct nccl_room){.descriptor = -1, .rank_count = rank_count, .pid = getpid()};
	room->bytes = contents_offset(rank_count) +
		      lane_count(rank_count) * NCCL_SLOTS * NCCL_CONTENTS_BYTES;
	if (rank_count > 1) {
		nccl_room_sweep();
		snprintf(room->path, sizeof(room->path), NCCL_ROOM_FOLDER "/" NCCL_ROOM_PREFIX "%s",
			 (unsigned)geteuid(), name);
	}
	if (map_file(room) != 0) {
		free(room);
		return NULL;
	}
	room->next = rooms;
	rooms = room;
	return room;
}

static struct nccl_room *room_find(const char *name)
{
	struct nccl_room *room = rooms;
	const char *at;

	while (room && (!(at = strstr(room->path, "-nccl")) || strcmp(at + 1, name) != 0))
		room = room->next;
	return room;
}

static bool lock_rank(const struct nccl_room *room, int rank)
{
	struct flock asked = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};

	return room->descriptor < 0 || fcntl(room->descriptor, F_SETLK, &asked) == 0;
}

static void ring(struct nccl_room *room)
{
	__atomic_add_fetch(&room->file->bell, 1, __ATOMIC_ACQ_REL);
	if (__atomic_load_n(&room->file->listener_count, __ATOMIC_ACQUIRE) > 0)
		syscall(SYS_futex, &room->file->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void come_in(struct nccl_room *room, int rank)
{
	struct room_rank *own = &room->file->ranks[rank];

	room->user_count++;
	own->pid = getpid();
	if (!lock_rank(room, rank))
		sim_warn("two processes call themselves rank %d of one communicator", rank);
	__atomic_store_n(&own->state, HERE, __ATOMIC_RELEASE);
	uint32_t count = __atomic_add_fetch(&room->file->come_count, 1, __ATOMIC_ACQ_REL);
	if (count == (uint32_t)room->rank_count && room->path[0] != '\0')
		unlink(room->path);
	ring(room);
}

struct nccl_room *nccl_room_enter(const char *name, int rank_count, int rank)
{
	pthread_mutex_lock(&rooms_lock);
	struct nccl_room *room = rank_count > 1 ? room_find(name) : NULL;
	if (room == NULL)
		room = room_new(name, rank_count);
	if (room != NULL)
		come_in(room, rank);
	pthread_mutex_unlock(&rooms_lock);
	return room;
}

bool nccl_room_is_complete(const struct nccl_room *room)
{
	return __atomic_load_n(&room->file->come_count, __ATOMIC_ACQUIRE) >=
	       (uint32_t)room->rank_count;
}

static void unlink_early(const struct nccl_room *room)
{
	if (room->path[0] != '\0' && room->pid == getpid() && !nccl_room_is_complete(room))
		unlink(room->path);
}

static void room_release(struct nccl_room *room)
{
	struct nccl_room **link = &rooms;

	while (*link != room)
		link = &(*link)->next;
	*link = room->next;
	unlink_early(room);
	munmap(room->file, room->bytes);
	if (room->descriptor >= 0)
		close(room->descriptor);
	free(room);
}

void nccl_room_hold(struct nccl_room *room)
{
	pthread_mutex_lock(&rooms_lock);
	room->user_count++;
	pthread_mutex_unlock(&rooms_lock);
}

void nccl_room_drop(struct nccl_room *room)
{
	pthread_mutex_lock(&rooms_lock);
	if (--room->user_count == 0)
		room_release(room);
	pthread_mutex_unlock(&rooms_lock);
}

void nccl_room_leave(struct nccl_room *room, int rank)
{
	__atomic_store_n(&room->file->ranks[rank].state, GONE, __ATOMIC_RELEASE);
	ring(room);
	nccl_room_drop(room);
}

/* A process that ends before the others came. */
__attribute__((destructor)) static void unlink_rooms(void)
{
	for (const struct nccl_room *room = rooms; room != NULL; room = room->next)
		unlink_early(room);
}

bool nccl_room_is_gone(struct nccl_room *room, int rank)
{
	const struct room_rank *other = &room->file->ranks[rank];
	uint32_t state = __atomic_load_n(&other->state, __ATOMIC_ACQUIRE);
	struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};

	if (state != HERE)
		return state == GONE;
	if (other->pid == getpid() || room->descriptor < 0)
		return false;
	return fcntl(room->descriptor, F_GETLK, &found) == 0 && found.l_type == F_UNLCK;
}

/* ---- messages ---- */

static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

/* What all readers of a lane have taken. */
static uint64_t taken_of(const struct nccl_room *room, int lane)
{
	if (lane >= room->rank_count)
		return load(&room->lanes[lane].taken);
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < room->rank_count; i++) {
		uint64_t taken = load(&room->file->ranks[i].taken);
		least = taken < least ? taken : least;
	}
	return least;
}

/* A full /dev/shm must not kill who writes to it. */
static bool has_pages(const struct nccl_room *room, const char *at, size_t bytes)
{
	static bool said;
	off_t offset = at - (const char *)room->file;

	if (room->descriptor < 0 || posix_fallocate(room->descriptor, offset, (off_t)bytes) == 0)
		return true;
	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		sim_warn("/dev/shm is full: what ranks send each other reads as zeros");
	return false;
}

bool nccl_room_say(struct nccl_room *room, int lane, uint64_t number,
		   const struct nccl_message *message, const void *contents)
{
	struct room_lane *at = &room->lanes[lane];
	struct nccl_message *said = &at->messages[number % NCCL_SLOTS];

	if (load(&at->said) != number || number >= taken_of(room, lane) + NCCL_SLOTS)
		return false;
	*said = *message;
	char *place = contents_at(room, lane, number);
	if (message->contents_bytes > 0 && has_pages(room, place, message->contents_bytes))
		memcpy(place, contents, message->contents_bytes);
	else
		said->contents_bytes = 0;
	__atomic_store_n(&at->said, number + 1, __ATOMIC_RELEASE);
	ring(room);
	return true;
}

const struct nccl_message *nccl_room_hear(struct nccl_room *room, int lane, uint64_t number,
					  const void **contents)
{
	struct room_lane *at = &room->lanes[lane];

	if (load(&at->said) <= number)
		return NULL;
	const struct nccl_message *said = &at->messages[number % NCCL_SLOTS];
	*contents = said->contents_bytes > 0 ? contents_at(room, lane, number) : NULL;
	return said;
}

void nccl_room_take(struct nccl_room *room, int lane, uint64_t count)
{
	__atomic_store_n(&room->lanes[lane].taken, count, __ATOMIC_RELEASE);
	ring(room);
}

void nccl_room_take_all(struct nccl_room *room, int rank, uint64_t count)
{
	__atomic_store_n(&room->file->ranks[rank].taken, count, __ATOMIC_RELEASE);
	ring(room);
}

bool nccl_room_is_taken(struct nccl_room *room, int lane, uint64_t count)
{
	return load(&room->lanes[lane].taken) >= count;
}

/* ---- failing and waiting ---- */

void nccl_room_fail(struct nccl_room *room, int result, const char *format, ...)
{
	uint32_t well = 0, writing = UINT32_MAX;
	char why[sizeof(room->file->why)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	if (!__atomic_compare_exchange_n(&room->file->result, &well, writing, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	memcpy(room->file->why, why, sizeof(why));
	__atomic_store_n(&room->file->result, (uint32_t)result, __ATOMIC_RELEASE);
	sim_warn("%s", why);
	ring(room);
}

int nccl_room_result(struct nccl_room *room, const char **why)
{
	uint32_t result = __atomic_load_n(&room->file->result, __ATOMIC_ACQUIRE);

	if (result == UINT32_MAX) /* about to be known */
		return NCCL_SUCCESS;
	if (why != NULL)
		*why = room->file->why;
	return (int)result;
}

uint32_t nccl_room_bell(struct nccl_room *room)
{
	return __atomic_load_n(&room->file->bell, __ATOMIC_ACQUIRE);
}

void nccl_room_wait(struct nccl_room *room, uint32_t heard, long limit_ms)
{
	const struct timespec limit = {limit_ms / 1000, limit_ms % 1000 * 1000000};

	__atomic_add_fetch(&room->file->listener_count, 1, __ATOMIC_ACQ_REL);
	syscall(SYS_futex, &room->file->bell, FUTEX_WAIT, heard, &limit, NULL, 0);
	__atomic_sub_fetch(&room->file->listener_count, 1, __ATOMIC_ACQ_REL);
}
