/* The functions of one ELF file by their address, from .symtab or else .dynsym.
 *
 * The file may be hostile, may be changed or cut short meanwhile, and is never mapped: what is read
 * is checked against its size, and what does not check out is left out. A name is only given to
 * addresses inside the function. Memory is mapped, not from malloc: this also runs in the traced
 * program when it ends. One thread at a time. */
#ifndef MT_TRACE_SYMBOLS_H
#define MT_TRACE_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct symbols;

/* Opens `path` and sorts its functions: 16 bytes and about 40 ns each, names are read when they are
 * asked for. `build_id_bytes` 0: whatever build it is. NULL and errno: as of open(); EINVAL it is
 * no ELF file of this machine or has no functions; ESTALE it is another build; ENOMEM. */
struct symbols *symbols_open(const char *path, const uint8_t *build_id, uint32_t build_id_bytes);
void symbols_close(struct symbols *);

/* The symbol (mangled) of the function that contains an address of the file (run-time address -
 * load bias), and how far into it; NULL: none does. Of several names for one function the most
 * public one. Names longer than 4 KiB are cut. Valid until the next call. */
const char *symbols_find(struct symbols *, uint64_t address, uint64_t *offset);

#endif
