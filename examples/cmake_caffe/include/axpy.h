// y += a * x on a GPU, and what it was compiled with.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// x and y are host arrays of `count` numbers. Returns 0, or CUDA's error number.
int axpy(float a, const float *x, float *y, int count);
// CUDART_VERSION of the build.
int axpy_cuda_version(void);

#ifdef __cplusplus
}
#endif
