// A C++ program on the runtime API: containers on device memory, threads, streams, an array, memory that is
// given back by destructors. Prints what it holds and what the device says, a JSON line.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

static void must(cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
	std::exit(1);
}

static size_t used_bytes()
{
	size_t unused, total;
	must(cudaMemGetInfo(&unused, &total));
	return total - unused;
}

struct device_free {
	void operator()(void *pointer) const { must(cudaFree(pointer)); }
};

using device_memory = std::unique_ptr<void, device_free>;

static device_memory allocate(size_t bytes)
{
	void *pointer;
	must(cudaMalloc(&pointer, bytes));
	return device_memory(pointer);
}

int main()
{
	constexpr size_t kib = 1024, mib = kib * kib;
	must(cudaFree(nullptr)); // makes the context
	size_t context_bytes = used_bytes();

	std::vector<device_memory> kept(8);
	std::vector<std::thread> threads;
	for (size_t i = 0; i < kept.size(); i++)
		threads.emplace_back([&kept, i] { kept[i] = allocate((i + 1) * 64 * kib); });
	for (auto &thread : threads)
		thread.join();
	size_t live = 36 * 64 * kib;

	cudaStream_t stream;
	must(cudaStreamCreate(&stream));
	void *ordered, *pinned;
	must(cudaMallocAsync(&ordered, 32 * mib, stream));
	live += 32 * mib;
	must(cudaHostAlloc(&pinned, 3 * mib, cudaHostAllocDefault));

	cudaArray_t array;
	cudaChannelFormatDesc channels = { 16, 16, 0, 0, cudaChannelFormatKindUnsigned };
	must(cudaMallocArray(&array, &channels, 2048, 512));
	live += 2048 * 512 * 2 * 2;
	size_t peak = live + 10 * mib;
	{
		device_memory scratch = allocate(10 * mib);
	}
	kept.pop_back();
	live -= 8 * 64 * kib;
	std::printf("{\"live_bytes\": %zu, \"peak_bytes\": %zu, \"pinned_bytes\": %zu, \"allocations\": 11, "
		    "\"frees\": 2, \"used_bytes\": %zu, \"context_bytes\": %zu, \"has_kernel\": false}\n",
		    live, peak, 3 * mib, used_bytes(), context_bytes);
	for (auto &memory : kept)
		memory.release(); // what is held, is held to the end
}
