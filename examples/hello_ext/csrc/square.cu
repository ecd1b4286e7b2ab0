// One kernel: element-wise square.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

template <typename T>
__global__ void square_kernel(const T *__restrict__ input, T *__restrict__ output, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) {
    output[i] = input[i] * input[i];
  }
}

at::Tensor square(const at::Tensor &input) {
  TORCH_CHECK(input.is_cuda() && input.is_contiguous(), "square needs a contiguous CUDA tensor");
  const c10::cuda::CUDAGuard guard(input.device());
  at::Tensor output = at::empty_like(input);
  const int64_t count = input.numel();
  if (count == 0) {
    return output;
  }
  const int threads = 256;
  const int64_t blocks = (count + threads - 1) / threads;
  AT_DISPATCH_FLOATING_TYPES(input.scalar_type(), "square", [&] {
    square_kernel<scalar_t><<<blocks, threads, 0, c10::cuda::getCurrentCUDAStream()>>>(
        input.const_data_ptr<scalar_t>(), output.mutable_data_ptr<scalar_t>(), count);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return output;
}

int cuda_version() { return CUDART_VERSION; }
