"""Small traces by hand, from include/memtrace/trace.h alone: all definitions lie in the window, all
events in the ring, as a process leaves them that is killed at once, or, if it ended, in the window."""

import struct

PAGE = 4096
RING_SLOTS = 1024
RING = 2 * PAGE
DEFINITIONS = RING + RING_SLOTS * 64
HALF_BYTES = 16 * PAGE
EVENTS = DEFINITIONS + 2 * HALF_BYTES
EVENTS_BYTES = 2 * PAGE
CHUNKS = EVENTS + EVENTS_BYTES

ALLOC, FREE, BLOCK_ALLOC, BLOCK_FREE, OOM = 1, 2, 9, 10, 12
DEVICE, BLOCK = 1, 9
ENDED = {"running": 0, "exit": 1, "_exit": 2, "quick_exit": 3, "abort": 4}
SLOT = "<QQQQQQIIBBBBi"
INFO = {"argv": 1, "rank": 2, "cwd": 6, "framework": 7, "tree": 10, "notice": 11}


def varint(number):
    code = b""
    while number > 0x7F:
        code += bytes([number & 0x7F | 0x80])
        number >>= 7
    return code + bytes([number])


def zigzag(number):
    return (number << 1 ^ number >> 63) & (1 << 64) - 1


def multiple(number):
    """Bytes: multiples of 512 are shorter."""
    return varint(number << 1 | 1 if number % 512 else number // 512 << 1)


def row(index, slot, skipped, previous):
    """One event with a head of its own."""
    _, _, address, size, extra, stream, stack, thread, what, space, device, flags, status = slot
    delta = address - previous
    code = zigzag(delta) << 1 | 1 if delta % 512 else zigzag(delta // 512) << 1
    return (
        varint(index)
        + bytes([what, space, device, flags | (0x80 if skipped else 0)])
        + varint(thread) + varint(stream) + varint(zigzag(status))
        + (varint(skipped) if skipped else b"")
        + varint(stack) + varint(code) + multiple(size)
        + (varint(zigzag(size - extra) + 1) if extra else b"\0")
    )


class HandTrace:
    """Definitions and events are added in order; bytes() is the file."""

    def __init__(self, pid=4242):
        self.pid = pid
        self.definitions = b""
        self.counts = {}
        self.slots = []
        self.lost = 0
        self.unpublished = set()
        self.ended, self.status, self.end_ns = "exit", 0, 5_000_000_000
        self.start_realtime_ns = 0

    def define(self, kind, body, number=None, flags=0):
        if number is None:
            number = self.counts[kind] = self.counts.get(kind, 0) + 1
        body += b"\0" * (-(12 + len(body)) % 8)
        self.definitions += struct.pack("<HHII", kind, flags, 12 + len(body), number) + body
        return number

    def string(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        return self.define(1, struct.pack("<I", len(data)) + data)

    def info(self, key, text):
        index = self.counts[key] = self.counts.get(key, -1) + 1
        self.define(8, struct.pack("<I", self.string(text)), INFO[key], flags=index)

    def module(self, path):
        body = struct.pack("<IQQQI20s", self.string(path), 0x1000, 0x2000, 0x3000, 0, b"")
        return self.define(2, body)

    def frame(self, file, line, function):
        return self.define(3, struct.pack("<IIi", self.string(file), self.string(function), line))

    def stack(self, *frames, owner=0):
        return self.define(5, struct.pack(f"<III{len(frames)}I", owner, len(frames), 0, *frames))

    def thread(self, tid, name):
        return self.define(6, struct.pack("<III", tid, self.string(name), 0))

    def device(self, ordinal, name, total_bytes):
        # A hole before the 64-bit field: the struct is naturally aligned.
        self.define(7, struct.pack("<IQ", self.string(name), total_bytes), ordinal + 1)

    def event(self, what, space, address=0, size=0, stack=0, extra=0, device=0, status=0, stream=0):
        ticket = len(self.slots)
        self.slots.append(
            struct.pack(
                SLOT,
                ticket + 1, (ticket + 1) * 1_024_000, address, size, extra, stream, stack, 1,
                what, space, device, 0, status,
            )
        )

    def header(self):
        page = struct.pack(
            "<8sIIQQQ40s40s10Q",
            b"mtrace\r\n", 1, self.pid, self.start_realtime_ns, 0, 1, b"another boot", b"memtrace 0.1.0",
            PAGE, RING, RING_SLOTS, DEFINITIONS, 2 * HALF_BYTES, EVENTS, EVENTS_BYTES, PAGE,
            CHUNKS, CHUNKS,
        )
        return page.ljust(PAGE, b"\0")

    def live(self):
        page = bytearray(PAGE)
        struct.pack_into("<Q", page, 0, len(self.slots))
        if ENDED[self.ended]:
            struct.pack_into("<Q", page, 64, len(self.slots))
            struct.pack_into("<Q", page, 96, len(self.unpublished))
        struct.pack_into("<Q", page, 128, self.lost)
        struct.pack_into(
            "<IiQi", page, 192, ENDED[self.ended], self.status if ENDED[self.ended] else -1,
            self.end_ns, 0,
        )
        return bytes(page)

    def ring(self):
        return b"".join(
            bytes(64) if ticket in self.unpublished else slot
            for ticket, slot in enumerate(self.slots)
        )

    def window(self):
        rows, times, count, expected, address, moment = b"", b"", 0, 0, 0, 0
        for ticket, packed in enumerate(self.slots):
            if ticket in self.unpublished:
                continue
            slot = struct.unpack(SLOT, packed)
            rows += row(count, slot, ticket - expected, address)
            times += varint(zigzag((slot[1] >> 10) - moment))
            count, expected, address, moment = count + 1, ticket + 1, slot[2], slot[1] >> 10
        head = struct.pack("<5Q", 0, count, len(rows), len(times), 0)
        return (head + rows).ljust(PAGE, b"\0") + times

    def bytes(self):
        has_ended = bool(ENDED[self.ended])
        definitions = struct.pack("<IIQ", 1, 1, len(self.definitions)) + self.definitions
        return (
            self.header()
            + self.live()
            + (b"" if has_ended else self.ring()).ljust(RING_SLOTS * 64, b"\0")
            + definitions.ljust(2 * HALF_BYTES, b"\0")
            + (self.window() if has_ended else b"").ljust(EVENTS_BYTES, b"\0")
        )

    def write(self, path):
        path.write_bytes(self.bytes())
        return path


def small_run(**fields):
    """A program without PyTorch: two allocations of 3 and 5 MiB, the first freed."""
    trace = HandTrace()
    for name, value in fields.items():
        setattr(trace, name, value)
    trace.info("argv", "/usr/bin/app")
    trace.info("argv", "--size=8")
    trace.info("cwd", "/home/me")
    trace.thread(4242, "app")
    trace.device(0, "Simulated A100", 80 << 30)
    app = trace.module("/usr/bin/app")
    first = trace.stack(trace.frame("/home/me/train.py", 7, "main"), owner=app)
    second = trace.stack(trace.frame("/home/me/evil\x1b[2J\n.py", 8, "f"), owner=app)
    trace.event(ALLOC, DEVICE, 0x7F0000000000, 3 << 20, first)
    trace.event(ALLOC, DEVICE, 0x7F0000300000, 5 << 20, second)
    trace.event(FREE, DEVICE, 0x7F0000000000, 0, first)
    return trace
