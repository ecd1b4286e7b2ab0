// What the library was compiled with.
#include <cuda_runtime.h>

extern "C" int relu_cuda_version() { return CUDART_VERSION; }
