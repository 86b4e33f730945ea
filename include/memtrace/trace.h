/* The memtrace trace file (`.mtrace`), version 1: its specification.
 *
 * A reader can be written from this header alone. One file a process. All integers are little-endian,
 * fixed-width and naturally aligned; zero means "nothing" or "unknown"; a reader skips kinds that it does
 * not know and trusts no length and no id.
 *
 *     header page | live page | ring | definitions window | events window | chunk | chunk | chunk ...
 *
 * Everything before the first chunk is the *front*. The traced process maps it shared and stores into it;
 * what was stored survives the death of the process (not of the machine). The dump thread of the process
 * moves events from the ring to the events window, in ticket order, and a full window to a chunk. So an
 * event may be found in up to three places; its sequence number (its ticket) says which it is:
 *
 *   1. chunks hold the sequences [first_sequence, last_sequence] that they name;
 *   2. the events window holds `count` events from `first_sequence` on: those not above the last chunk's
 *      last_sequence are duplicates and are skipped;
 *   3. the ring holds the tickets from max(live.consumed, next sequence) to live.head: a slot is valid for
 *      ticket t only if its turn is t + 1. An invalid one was taken but not published when the process
 *      died: it is counted as in flight and skipped.
 *
 * Rows in chunks and windows are a compact code (see "Event rows"); slots in the ring are struct
 * memtrace_slot.
 */
#ifndef MEMTRACE_TRACE_H
#define MEMTRACE_TRACE_H

#include <stdint.h>

#define MEMTRACE_MAGIC "mtrace\r\n" /* 8 bytes, without the terminating zero */
#define MEMTRACE_VERSION 1
#define MEMTRACE_PAGE 4096
#define MEMTRACE_RAW_MAX (16u << 20) /* a chunk never unpacks to more */

/* What happened. The names in comments are those of `memtrace dump --json`. */
enum memtrace_what {
	MEMTRACE_ALLOC = 1,    /* alloc: memory obtained; of vmm: a physical handle (address = handle) */
	MEMTRACE_FREE,         /* free: noted before the call that frees */
	MEMTRACE_FREE_FAILED,  /* free_failed: the free with sequence `extra` failed with `status` */
	MEMTRACE_MAP,          /* map: [address, +bytes) now shows the physical handle `extra`; of array space: a part of
				* the sparse array address, bytes 0: unknown; that part does not hold the handle here */
	MEMTRACE_UNMAP,        /* unmap: noted before the call */
	MEMTRACE_RETAIN,       /* retain: one more reference to the handle `address` */
	MEMTRACE_RESERVE,      /* reserve: address space, no memory */
	MEMTRACE_RELEASE,      /* release: of reserved address space, noted before the call */
	MEMTRACE_BLOCK_ALLOC,  /* block_alloc: PyTorch's caching allocator handed out a block */
	MEMTRACE_BLOCK_FREE,   /* block_free: it took one back */
	MEMTRACE_BLOCK_OOM,    /* block_oom: PyTorch gives up: `bytes` could not be had */
	MEMTRACE_OOM,          /* oom: a driver or runtime allocation of `bytes` failed for want of memory */
	MEMTRACE_FAILED,       /* failed: an allocation call failed for another reason, `status` says which */
	MEMTRACE_POOL_CREATE,  /* pool_create: address = pool handle, extra = 1 for a device's default pool, 2 for its
				* current one, 3 for another process's */
	MEMTRACE_POOL_DESTROY, /* pool_destroy: address = pool handle */
	MEMTRACE_POOL_TRIM,    /* pool_trim: address = pool handle (0: a device's graph memory), bytes = kept at least */
	MEMTRACE_POOL_READ,    /* pool_read: the program read attribute `extra` of pool `address`: `bytes` */
	MEMTRACE_POOL_SET,     /* pool_set: the program set attribute `extra` of pool `address` to `bytes` */
	MEMTRACE_MEMINFO,      /* meminfo: the program asked: `bytes` free of `extra` on the device */
	MEMTRACE_CAPTURE,      /* capture: stream capture began (extra 1) or ended (extra 0) on `stream`; address = the graph
				* that came of it, 0 none */
	MEMTRACE_MARK,         /* mark: the program says that a step of its own ended; extra = string id of its name */
	/* What has no size of its own, but explains memory that no allocation accounts for. Never counted. */
	MEMTRACE_CONTEXT,      /* context: address = context, extra = enum memtrace_context */
	MEMTRACE_CONTEXT_END,  /* context_end: the same; what it takes with it: see enum memtrace_context */
	MEMTRACE_MODULE,       /* module: code was loaded, address = module, extra = 1: library */
	MEMTRACE_MODULE_END,   /* module_end: it was unloaded */
	MEMTRACE_GLOBAL,       /* global: a variable of module `extra` (0 unknown) stands at address; bytes 0: unknown */
	MEMTRACE_GRAPH_ALLOC,  /* graph_alloc: graph `extra` (while captured: what will be, from stream `extra`) got a node
				* that allocates: live from each launch on */
	MEMTRACE_GRAPH_FREE,   /* graph_free: the same, a node that frees address at each launch */
	MEMTRACE_GRAPH_EXEC,   /* graph_exec: address = executable graph made of graph `extra` as it is now */
	MEMTRACE_GRAPH_LAUNCH, /* graph_launch: of the executable graph address; only once a graph_alloc was seen */
	MEMTRACE_GRAPH_EXEC_END, /* exec_end: address = executable graph; what it allocated stays */
	MEMTRACE_GRAPH_END,    /* graph_end: address = graph */
	MEMTRACE_EXPORT,       /* export: address (of vmm: handle, of stream: pool) may be held by other processes too */
	MEMTRACE_BIND,         /* bind: [.., +bytes) of multicast handle address shows `extra` (handle or address) */
	MEMTRACE_UNBIND,       /* unbind: and no more, on device */
	/* What tells what memory is for. No memory changes, and not every occurrence is recorded. */
	MEMTRACE_COPY,         /* copy: of `bytes` to the block `address`, from the host; extra: from that address if
				* the call does not say where it is */
	MEMTRACE_PHASE,        /* phase: the thread launched a kernel after a backward, its stack tells what for; or it is in
				* the step of another optimizer than before. address = the optimizer, as an object of
				* Python that may be at the same place later; 0: none, or not known */
	MEMTRACE_READING,      /* reading: what NVML says is in use on device: `bytes` by this process (0: it shows no
				* processes), `extra` in all, address = the device's size; status 1: memory of this
				* process changed meanwhile, it agrees with no moment. Has no thread and no stack */
	MEMTRACE_SETTINGS,     /* settings: the program changed those of PyTorch's allocator, before this event and after the
				* last block event; extra = string id of what it set, 0 unknown */
	/* What CUPTI told beside the hooks (MEMTRACE_INFO_CHECK): never counted, but compared. Delivered late, in CUPTI's
	 * order; time_ns is when it happened, thread and stack are unknown. */
	MEMTRACE_WITNESS_ALLOC, /* seen_alloc: [address, +bytes) of space was obtained */
	MEMTRACE_WITNESS_FREE,  /* seen_free: it was given back; space as the call says, so stream or device */
	MEMTRACE_WITNESS_END,   /* seen_end: CUPTI was asked for all it had; what comes later it does not tell */
	MEMTRACE_READBACK,      /* readback: `bytes` at address were copied to the host (MEMTRACE_READBACKS) */
	MEMTRACE_WHAT_COUNT
};

/* Which kind of memory. */
enum memtrace_space {
	MEMTRACE_SPACE_NONE = 0,
	MEMTRACE_SPACE_DEVICE,     /* device: cudaMalloc, cuMemAlloc and the like */
	MEMTRACE_SPACE_STREAM,     /* stream: stream-ordered, from a pool */
	MEMTRACE_SPACE_VMM,        /* vmm: physical handles and their mappings */
	MEMTRACE_SPACE_MANAGED,    /* managed */
	MEMTRACE_SPACE_ARRAY,      /* array: arrays and mipmaps; address = handle; bytes as its elements take them */
	MEMTRACE_SPACE_PINNED,     /* pinned: page-locked host memory that CUDA allocated; of alloc: extra = flags */
	MEMTRACE_SPACE_REGISTERED, /* registered: host memory of the program, page-locked later; the same */
	MEMTRACE_SPACE_EXTERNAL,   /* external: owned by another process or API, or counted elsewhere: never counted.
				    * Of alloc: extra = the space that address is one of (vmm: a handle); it may be
				    * given back there, as if it were memory of that space. bytes 0: unknown */
	MEMTRACE_SPACE_BLOCK,      /* block: a block of PyTorch's caching allocator */
	MEMTRACE_SPACE_COUNT
};

/* Kinds of contexts. The end of one gives back what was obtained in it of device, managed and array space: of an
 * own one what names it in `stream`, of a primary one what names none on its device. Physical handles and pools
 * belong to the device and stay; of page-locked memory it is not known. Only ends that are certain are recorded:
 * a primary context's at a reset, and at its last release as far as its retains were seen. */
enum memtrace_context {
	MEMTRACE_CONTEXT_OWN = 0, /* cuCtxCreate */
	MEMTRACE_CONTEXT_PRIMARY, /* a device's */
	MEMTRACE_CONTEXT_GREEN    /* a part of a device; memory obtained in it is the primary one's */
};

#define MEMTRACE_DEVICE_UNKNOWN 0xff
#define MEMTRACE_DEVICE_HOST 0xfe /* a handle or pool whose memory is the host's */

/* Event flags. */
#define MEMTRACE_AT_EXIT 0x01    /* the Python interpreter was finalising: the program's own code had ended */
#define MEMTRACE_CAPTURING 0x02  /* the thread was capturing a stream when this happened */
#define MEMTRACE_ASYNC_POOL 0x04 /* stream space: from an explicit pool, its handle in `extra` */
/* Three bits of a block_alloc: 1 to 5 for a tensor whose elements have 1, 2, 4, 8 or 16 bytes; else unknown. */
#define MEMTRACE_ELEMENT 0x38
#define MEMTRACE_ELEMENT_SHIFT 3

/* ---------- the front ---------- */

/* Offset 0, one page. Written once when the file is made; only end_offset changes later. */
struct memtrace_header {
	char magic[8];
	uint32_t version;
	uint32_t pid;
	uint64_t start_realtime_ns;  /* CLOCK_REALTIME at the start of the trace */
	uint64_t start_monotonic_ns; /* CLOCK_MONOTONIC then; event times are relative to it */
	uint64_t pid_start_ticks;    /* field 22 of /proc/PID/stat: tells a live pid from a re-used one */
	char boot_id[40];            /* /proc/sys/kernel/random/boot_id, zero-terminated */
	char producer[40];           /* "memtrace 0.1.0", zero-terminated; MEMTRACE_REPAIRED at its end: see there */
	uint64_t live_offset;
	uint64_t ring_offset;
	uint64_t ring_slots; /* a power of two */
	uint64_t definitions_offset;
	uint64_t definitions_bytes; /* both halves; each begins with struct memtrace_definitions_window */
	uint64_t events_offset;
	uint64_t events_bytes; /* begins with struct memtrace_events_window */
	uint64_t times_offset; /* the times column of the events window, from events_offset */
	uint64_t chunks_offset;
	uint64_t end_offset; /* end of the last complete chunk; chunks_offset when there is none */
	char front_path[256]; /* "", or where the front is, zero-terminated: see below */
	uint64_t bound_bytes; /* the file is not to become larger, 0: no bound; see "A bounded trace" */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid, in which `pid` is its number; 0 unknown */
};

/* At the end of the producer: made of what could be read of a damaged trace, or of one whose process was killed. It
 * is sound; what it lacks was lost before, and is still in its counters and in the gaps of its sequences. */
#define MEMTRACE_REPAIRED ", repaired"
/* Behind that one: parts of the old file could not be read. What was in them may be events that no counter knows of,
 * or definitions that events here refer to. */
#define MEMTRACE_CUT ", cut"

/* A front elsewhere. On a file system where a shared mapping does not survive the process (network, FUSE) the front
 * is the content of another file, on the machine that made the trace: with the same offsets, and a header that is
 * equal but for end_offset. The trace itself has a copy of the header page and of the live page, made after each
 * chunk, and nothing up to chunks_offset. At a normal end everything is in chunks, front_path is "" and the other file
 * is removed. When that file is gone otherwise (another machine), what came after the last chunk is lost. */

/* At live_offset, one page. Counters that the process keeps current; each on a cache line of its writers. */
struct memtrace_live {
	_Alignas(64) uint64_t head;     /* the next ticket */
	uint64_t consumed_seen;         /* the process's own: `consumed` when a hook last looked at it */
	_Alignas(64) uint64_t consumed; /* tickets below are in the window or a chunk */
	uint64_t unwritten;             /* of those, events that could not be stored (disk full) */
	uint64_t frozen;                /* ticket of the first event flagged AT_EXIT, plus one; 0: none */
	uint64_t disagreements;         /* block events after which PyTorch's own total was not ours */
	uint64_t in_flight;             /* tickets given up by the dump thread: never published */
	_Alignas(64) uint64_t lost;     /* events that found no room and took no ticket */
	uint64_t stacks_lost;           /* events whose stack is unknown because the tables were full */
	uint64_t late;                  /* events after the trace was closed; once `ended` is set, so are the
					 * tickets from consumed to head */
	uint64_t blind_lookups;         /* look-ups of a known name whose answer was no known function */
	uint64_t blind_deepbind;        /* dlopen with RTLD_DEEPBIND */
	uint64_t blind_dlmopen;         /* dlmopen into another namespace */
	_Alignas(64) uint32_t ended;    /* enum memtrace_ended */
	int32_t status;                 /* exit status, if it ended by itself and that is known; else -1 */
	uint64_t end_time_ns;           /* since the start of the trace */
	int32_t write_errno;            /* why writing stopped, 0: it did not */
};

enum memtrace_ended {
	MEMTRACE_RUNNING = 0,
	MEMTRACE_EXIT,
	MEMTRACE_UNDERSCORE_EXIT,
	MEMTRACE_QUICK_EXIT,
	MEMTRACE_ABORT /* abort(), when its own code had ended; `status` is what exit was called with */
};

/* A slot of the ring, 64 bytes. Ticket t uses slot t & (ring_slots - 1). */
struct memtrace_slot {
	uint64_t turn; /* t + 1 once the rest is stored */
	uint64_t time_ns; /* since the start of the trace */
	uint64_t address;
	uint64_t bytes;
	uint64_t extra; /* see the kind; of allocations: bytes asked for, 0 unknown */
	uint64_t stream; /* CUstream handle; of blocks c10's stream id; of allocations in device, managed and array
			  * space the context, if it is not the primary one */
	uint32_t stack; /* id of a stack definition */
	uint32_t thread; /* id of a thread definition */
	uint8_t what;
	uint8_t space;
	uint8_t device;
	uint8_t flags;
	int32_t status; /* the API's error code, 0 success */
};

/* ---------- definitions ----------
 * A window half and the raw content of a definitions chunk are the same: records, one after another. A
 * definition stands in the file before the first event that uses it is published. A half is in use when
 * `state` is 1 (open) or 2 (full, may also be in a chunk already); reading a definition twice is harmless. */
struct memtrace_definitions_window {
	uint32_t state;      /* 0 empty, 1 open, 2 full */
	uint32_t order;      /* grows with every opened half */
	uint64_t used_bytes; /* of complete records after this struct */
};

enum memtrace_definition_kind {
	MEMTRACE_DEF_STRING = 1,
	MEMTRACE_DEF_MODULE,
	MEMTRACE_DEF_PYTHON_FRAME,
	MEMTRACE_DEF_NATIVE_FRAME,
	MEMTRACE_DEF_STACK,
	MEMTRACE_DEF_THREAD,
	MEMTRACE_DEF_DEVICE,
	MEMTRACE_DEF_INFO,
	MEMTRACE_DEF_SYMBOL
};

/* Every record begins with this; `bytes` is the whole record, a multiple of 8, header included. Ids of a
 * kind count up from 1 in the order of definition. */
struct memtrace_definition {
	uint16_t kind;
	uint16_t flags;
	uint32_t bytes;
	uint32_t id;
};

struct memtrace_def_string { /* any bytes: a reader escapes control characters and invalid UTF-8 */
	struct memtrace_definition head;
	uint32_t length; /* bytes follow, no terminating zero needed */
	char text[];
};

struct memtrace_def_module {
	struct memtrace_definition head;
	uint32_t path; /* string id */
	uint64_t base; /* load bias: file address = run-time address - base */
	uint64_t start, end; /* run-time range */
	uint32_t build_id_bytes; /* up to 20 */
	uint8_t build_id[20];
};

struct memtrace_def_python_frame {
	struct memtrace_definition head;
	uint32_t file, function; /* string ids */
	int32_t line;
};

struct memtrace_def_native_frame {
	struct memtrace_definition head;
	uint32_t module;
	uint64_t offset; /* return address - module base */
};

/* The function of a native frame, as far as the program itself could tell. Written late, most of them at the end:
 * a trace has some, all or none. */
struct memtrace_def_symbol {
	struct memtrace_definition head; /* id: of the native frame; a second one for it is skipped */
	uint32_t name;   /* string id: the symbol as the linker knows it, perhaps cut at its end */
	uint64_t offset; /* return address - the function's first address */
};

#define MEMTRACE_STACK_TRUNCATED 1        /* in head.flags: there were more Python frames … */
#define MEMTRACE_STACK_NATIVE_TRUNCATED 2 /* … or native frames between these and Python's or the thread's first */

struct memtrace_def_stack {
	struct memtrace_definition head;
	uint32_t owner; /* module id: the first module on the native stack that is not CUDA's own */
	uint32_t python_count, native_count;
	uint32_t frames[]; /* python_count ids, innermost first, then native_count ids */
};

struct memtrace_def_thread {
	struct memtrace_definition head;
	uint32_t tid;
	uint32_t name; /* string id */
	uint32_t reserved;
};

struct memtrace_def_device { /* id is the ordinal + 1; a later one with the same id adds what it knows */
	struct memtrace_definition head;
	uint32_t name; /* string id, 0 unknown */
	uint64_t total_bytes; /* 0 unknown */
};

enum memtrace_info {
	MEMTRACE_INFO_ARGUMENT = 1, /* argv, one record an argument, in order */
	MEMTRACE_INFO_RANK,
	MEMTRACE_INFO_WORLD_SIZE,
	MEMTRACE_INFO_LOCAL_RANK,
	MEMTRACE_INFO_HOST,
	MEMTRACE_INFO_CWD,
	MEMTRACE_INFO_FRAMEWORK,  /* "torch 2.15.0+cu132" */
	MEMTRACE_INFO_ALLOC_CONF, /* PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF */
	MEMTRACE_INFO_PYTHON,     /* "3.11.7" */
	MEMTRACE_INFO_TREE,       /* id of the `memtrace run` that this process belongs to; OUTER/INNER of one in another */
	MEMTRACE_INFO_NOTICE,     /* something the reader of a report should know, in words */
	MEMTRACE_INFO_CHECK,      /* "cupti": that one tells beside the hooks what it sees */
	MEMTRACE_INFO_SOURCE,     /* "cupti": memory is told by that one, without threads and stacks */
	MEMTRACE_INFO_COUNT
};

struct memtrace_def_info {
	struct memtrace_definition head; /* id: enum memtrace_info; flags: which text under that key, from 0 */
	uint32_t text; /* string id */
};

/* ---------- events ----------
 * The events window: this struct, then rows from events_offset + sizeof on, and the times column from
 * events_offset + times_offset on. `count` is stored last: what it covers is complete. */
struct memtrace_events_window {
	uint64_t first_sequence;
	uint64_t count;
	uint64_t rows_bytes;
	uint64_t times_bytes;
	uint64_t base_time_ns;
};

/* Event rows. varint: 7 bits a byte, low first, bit 7 = more follow, at most 10 bytes. zigzag(n) =
 * (n << 1) ^ (n >> 63). A row is:
 *     varint head         index into the heads seen so far in this chunk or window; an index equal to
 *                         their number is a new head, and then follow:
 *                           u8 what, u8 space, u8 device, u8 flags,
 *                           varint thread, varint stream, varint zigzag(status)
 *     varint skipped      only if head's flags byte, as stored, has bit 7: sequences passed over before
 *                         this event (in flight or lost); bit 7 is not part of the event's flags
 *     varint stack
 *     varint address      d = address - previous row's address (0 at the start), as int64:
 *                         d % 512 == 0: zigzag(d / 512) << 1; else zigzag(d) << 1 | 1;
 *                         if zigzag(d) >= 2^63: the code 1, and then a varint of the address itself
 *     varint bytes        bytes % 512 == 0: bytes / 512 << 1; else bytes << 1 | 1;
 *                         if bytes >= 2^63: the code 1, and then a varint of the bytes themselves
 *     varint extra        0: zero; else zigzag(bytes - extra) + 1, modulo 2^64. Of block_free it is not stored.
 * The times column has one varint an event: zigzag(t - previous t), t = time_ns >> MEMTRACE_TIME_SHIFT, the
 * first against base_time_ns >> MEMTRACE_TIME_SHIFT. So times in chunks are multiples of 1,024 ns. */
#define MEMTRACE_TIME_SHIFT 10
#define MEMTRACE_SKIPPED 0x80

/* ---------- chunks ---------- */
enum memtrace_chunk_kind {
	MEMTRACE_CHUNK_DEFINITIONS = 1,
	MEMTRACE_CHUNK_EVENTS,
	MEMTRACE_CHUNK_CHECKPOINT,
	MEMTRACE_CHUNK_FREE
};

#define MEMTRACE_CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */

struct memtrace_chunk {
	uint32_t magic;
	uint16_t kind;
	uint16_t version; /* of the kind, 1 */
	uint32_t raw_bytes;
	uint32_t stored_bytes; /* of what follows: a zstd frame, perhaps one to be skipped after it; the next chunk
				* begins at the next multiple of 8 */
	uint64_t first_sequence, last_sequence; /* of definitions: their order (may be 0) and 0 */
	uint64_t base_time_ns;
	uint32_t count; /* events */
	uint32_t rows_bytes; /* raw = rows, then times */
	uint64_t checksum; /* memtrace_checksum of this struct with checksum = 0, then of the stored bytes */
};

/* A bounded trace. When a chunk would make the file larger than bound_bytes, the oldest events chunks are given up
 * and later chunks of any kind lie where they were: so in such a file
 *   - chunks of events are to be read in the order of their first_sequence, chunks of definitions in the order of
 *     theirs (1, 2, 3 …: what is 0 stands in the order of the file);
 *   - a chunk of the kind free is room: its stored_bytes are anything, and its checksum is that of its header alone;
 *   - every chunk takes a multiple of 64 bytes, so that no header lies across two pages: it is replaced at once or not at all. The room is taken
 *     by writing what follows the new chunk's header, then the header; the chain of chunks is whole at any moment.
 * A checkpoint is the state of the producer's model before the event `first_sequence`, for whoever wants figures of
 * the whole run and not only of the events that are left. It has one or more chunks, with first_sequence and
 * last_sequence the same, count = 0, 1, 2 …, and rows_bytes 1 in the last one. Their raw contents, one after another,
 * are private to the version of the producer that the header names. Replay begins at the oldest whole checkpoint; what
 * comes before it is incomplete. Definitions and the newest whole checkpoint are never given up.
 *
 * The checksum: over 8-byte words w, the last one padded with zeros: h = (h ^ w) * 0x9E3779B97F4A7C15;
 * h ^= h >> 32. h starts as 56, the size of the struct; the stored bytes go on from there.
 *
 * Limits that a reader may hold a writer to: at most 1,024 heads in a window or chunk, a front of at most 64 MiB,
 * sequences below 2^62. Chunks that check out are valid beyond end_offset too: the process may have died between
 * writing one and moving the end. */

#endif
