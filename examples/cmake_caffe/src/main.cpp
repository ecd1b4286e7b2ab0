// Shows that the library links and, on a machine with a GPU, that its kernel runs.
#include <cstdio>
#include <cstring>

#include "axpy.h"

int main(int argc, char **argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("axpy for CUDA %d\n", axpy_cuda_version());
    return 0;
  }
  const float x[] = {1, 2, 3};
  float y[] = {10, 20, 30};
  const int error = axpy(2, x, y, 3);
  if (error != 0) {
    std::fprintf(stderr, "axpy failed with CUDA error %d\n", error);
    return 1;
  }
  std::printf("%g %g %g\n", y[0], y[1], y[2]);
  return y[0] == 12 && y[1] == 24 && y[2] == 36 ? 0 : 1;
}
