/*
 * How much device memory the stand-in for NCCL takes, and when: tables, and nothing but what was
 * measured by others or follows from NCCL's documented buffers. Owns no state.
 *
 *   a communicator     init + shared, for one rank too
 *   its first collective, or its start where NCCL connects at once (before 2.22, or
 *                      NCCL_RUNTIME_CONNECT=0): channels x MiB a channel, with two ranks or more
 *   a peer to which it sends or from which it receives: peer channels x 12 MiB
 *
 * A channel's connection is 10 MiB where it receives (4 MiB simple, 0.5 LL, 4.7 LL128, in units of
 * 2 MiB) and 2 MiB where it sends: nccl#1685, allocations of 10485760 and 2097152. NCCL_BUFFSIZE
 * and its kin change that. Several machines, and what goes over a network, are not simulated.
 */
#include <limits.h>
#include <string.h>

#include "sim.h"
#include "sim_nccl.h"

#define CONNECTION_MIB 12

enum link { LINK_ANY, LINK_NVSWITCH, LINK_NVLINK, LINK_PCIE, LINK_HOST };

/* By the device's name, the first that is part of it. "Simulated GPU" and the like are LINK_ANY. */
static const struct {
	const char *part;
	enum link link;
} links[] = {
	{"H100 PCIe", LINK_PCIE},
	{"H100", LINK_NVSWITCH},
	{"H200", LINK_NVSWITCH},
	{"B200", LINK_NVSWITCH},
	{"SXM", LINK_NVLINK},
	{"GeForce", LINK_HOST}, /* no access from GPU to GPU: buffers in host memory */
	{"T4", LINK_PCIE},
	{"L4", LINK_PCIE},
	{"A10", LINK_PCIE},
	{"RTX", LINK_PCIE},
};

/*
 * The last row of the version and link that holds. MiB a channel is for two ranks and for more.
 *
 * measured: nvswitch 2.0 (torch 2.6, NCCL 2.21): 8 H100 take 2836-2844 MiB beside a context of 615
 *   (KellerJordan/modded-nanogpt, nvidia-smi after the first barrier). nvswitch 2.26 (torch 2.7 to
 *   2.10): 889-906 MiB on the same. One rank: 570 on H100 (torch 2.11), a buffer of 512 MiB on B300
 *   (nccl#2363). 32 channels a peer: 8 H100 (nccl#1685).
 *   nvlink 2.0: 544 MB for two A100, 688 for four (nccl#964, 2023).
 * assumed: init; nvswitch 2.0 for two ranks; nvlink 2.26, as on H100; PCIe and what has no link: a
 *   ring (two ranks) and a tree beside it (more); host: all in host memory.
 */
struct sizes {
	int since; /* NCCL version */
	enum link link;
	int init_mib, shared_mib, channels, pair_mib, more_mib, peer_channels;
};

static const struct sizes sizes[] = {
	{0, LINK_ANY, 16, 0, 8, 12, 24, 8},
	{0, LINK_NVSWITCH, 16, 0, 32, 44, 88, 32},
	{22600, LINK_NVSWITCH, 16, 512, 32, 12, 12, 32},
	{0, LINK_NVLINK, 16, 0, 24, 22, 28, 24},
	{22600, LINK_NVLINK, 16, 512, 24, 12, 12, 24},
	{0, LINK_PCIE, 16, 0, 4, 12, 24, 2},
	{0, LINK_HOST, 16, 0, 4, 0, 0, 2},
};

static enum link link_of(const struct nccl_comm *comm)
{
	char name[128];

	if (sim_env_number("NCCL_P2P_DISABLE", 0) != 0)
		return LINK_HOST;
	nccl_device_name(comm->device, name, sizeof(name));
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		if (strstr(name, links[i].part) != NULL)
			return links[i].link;
	}
	return LINK_ANY;
}

static const struct sizes *sizes_of(const struct nccl_comm *comm)
{
	enum link link = link_of(comm);
	const struct sizes *found = &sizes[0];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (sizes[i].link == link && sizes[i].since <= nccl_version())
			found = &sizes[i];
	}
	return found;
}

/* NCCL's own names for a limit, the newer one first. */
static int limit(const char *newer, const char *older, int fallback)
{
	return (int)sim_env_number(newer, sim_env_number(older, fallback));
}

static int between(int count, int least, int most)
{
	count = least > 0 && count < least ? least : count;
	return most > 0 && count > most ? most : count;
}

static int channel_count(const struct nccl_comm *comm, const struct sizes *row)
{
	int count = between(row->channels, comm->least_channels, comm->most_channels);

	count = between(count, limit("NCCL_MIN_CTAS", "NCCL_MIN_NCHANNELS", 0),
			limit("NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS", 0));
	return (int)sim_env_number("SIMGPU_NCCL_CHANNELS", count);
}

/* What a connection takes with the buffers that the environment asks for. */
static size_t connection_bytes(void)
{
	size_t bytes = (size_t)sim_env_number("NCCL_BUFFSIZE", 4 * SIM_MIB) +
		       (size_t)sim_env_number("NCCL_LL_BUFFSIZE", 8 * 512 * 8 * 16) +
		       (size_t)sim_env_number("NCCL_LL128_BUFFSIZE", 120 * 640 * 8 * 8);

	return sim_round_up(bytes, 2 * SIM_MIB) + 2 * SIM_MIB;
}

static int take_pieces(struct nccl_comm *comm, int count, size_t bytes)
{
	int result = NCCL_SUCCESS;

	for (int i = 0; i < count && bytes > 0 && result == NCCL_SUCCESS; i++)
		result = nccl_memory_take(&comm->memory, comm->device, bytes);
	return result;
}

static bool connects_at_once(void)
{
	return sim_env_number("NCCL_RUNTIME_CONNECT", nccl_version() >= 22200) == 0;
}

int nccl_take_init_buffers(struct nccl_comm *comm)
{
	const struct sizes *row = sizes_of(comm);
	size_t bytes = (size_t)(row->init_mib + row->shared_mib) * SIM_MIB;
	int result = take_pieces(comm, 1, sim_env_bytes("SIMGPU_NCCL_INIT", bytes));

	if (result == NCCL_SUCCESS && connects_at_once())
		result = nccl_take_collective_buffers(comm);
	return result;
}

int nccl_take_collective_buffers(struct nccl_comm *comm)
{
	const struct sizes *row = sizes_of(comm);
	int mib = comm->rank_count > 2 ? row->more_mib : row->pair_mib;
	size_t bytes = (size_t)mib * connection_bytes() / CONNECTION_MIB;

	if (comm->has_collectives || comm->rank_count < 2)
		return NCCL_SUCCESS;
	comm->has_collectives = true;
	return take_pieces(comm, channel_count(comm, row),
			   sim_env_bytes("SIMGPU_NCCL_CHANNEL", bytes));
}

int nccl_take_peer_buffers(struct nccl_comm *comm, int peer)
{
	const struct sizes *row = sizes_of(comm);
	int count = between(row->peer_channels, limit("NCCL_MIN_P2P_NCHANNELS", "", 0),
			    limit("NCCL_MAX_P2P_NCHANNELS", "", 0));

	if (peer == comm->rank || comm->has_peer[peer])
		return NCCL_SUCCESS;
	comm->has_peer[peer] = true;
	return take_pieces(comm, count, row->pair_mib ? connection_bytes() : 0);
}
