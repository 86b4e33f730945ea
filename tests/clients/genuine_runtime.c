/* Allocates by whatever CUDA runtime it is linked with and tells what came of it. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
	void *pointer = NULL;
	cudaError_t error = cudaMalloc(&pointer, 1000);
	printf("cudaMalloc: %s\n", cudaGetErrorName(error));
	return error == cudaSuccess ? 0 : 1;
}
