// max(x, 0) on device memory.
#include <cuda_runtime.h>

__global__ void relu_kernel(const float *input, float *output, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    output[i] = input[i] > 0.0f ? input[i] : 0.0f;
  }
}

// Pointers are device memory. Returns 0, or CUDA's error number.
extern "C" int relu(const float *input, float *output, int count, cudaStream_t stream) {
  if (count > 0) {
    const int threads = 256;
    relu_kernel<<<(count + threads - 1) / threads, threads, 0, stream>>>(input, output, count);
  }
  return cudaGetLastError();
}
