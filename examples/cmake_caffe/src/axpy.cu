// One kernel behind a C interface.
#include "axpy.h"

#include <cuda_runtime.h>

namespace {

__global__ void axpy_kernel(float a, const float *x, float *y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    y[i] += a * x[i];
  }
}

// Frees device memory however a function is left.
struct Buffer {
  float *data = nullptr;
  ~Buffer() { cudaFree(data); }
};

}  // namespace

extern "C" int axpy(float a, const float *x, float *y, int count) {
  if (count <= 0) {
    return cudaSuccess;
  }
  const size_t bytes = sizeof(float) * static_cast<size_t>(count);
  Buffer device_x, device_y;
  cudaError_t error = cudaMalloc(&device_x.data, bytes);
  if (error == cudaSuccess) error = cudaMalloc(&device_y.data, bytes);
  if (error == cudaSuccess) error = cudaMemcpy(device_x.data, x, bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) error = cudaMemcpy(device_y.data, y, bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) {
    const int threads = 256;
    axpy_kernel<<<(count + threads - 1) / threads, threads>>>(a, device_x.data, device_y.data, count);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaMemcpy(y, device_y.data, bytes, cudaMemcpyDeviceToHost);
  return error;
}

extern "C" int axpy_cuda_version(void) { return CUDART_VERSION; }
