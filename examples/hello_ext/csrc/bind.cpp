// Python binding. Slim headers on purpose: torch/extension.h alone costs half a minute of compile time.
#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>

#ifdef WITH_CUDA
at::Tensor square(const at::Tensor &input);
int cuda_version();
#else
static at::Tensor square(const at::Tensor &) { throw std::runtime_error("hello_ext was built without CUDA"); }
static int cuda_version() { return 0; }
#endif

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("square", &square, "Element-wise square of a CUDA tensor");
  module.def("cuda_version", &cuda_version, "CUDART_VERSION of the build, 0 without CUDA");
}
