// One kernel, bound to Python by its plain C interface: no torch, no binding library.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cuda_runtime.h>

#include <vector>

__global__ void scale_kernel(float factor, float *values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    values[i] *= factor;
  }
}

// Scales host numbers in place by way of the GPU.
static cudaError_t scale_on_gpu(float factor, std::vector<float> &values) {
  const int count = static_cast<int>(values.size());
  const size_t bytes = sizeof(float) * values.size();
  if (count == 0) {
    return cudaSuccess;
  }
  float *device = nullptr;
  cudaError_t error = cudaMalloc(&device, bytes);
  if (error == cudaSuccess) error = cudaMemcpy(device, values.data(), bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) {
    const int threads = 256;
    scale_kernel<<<(count + threads - 1) / threads, threads>>>(factor, device, count);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaMemcpy(values.data(), device, bytes, cudaMemcpyDeviceToHost);
  cudaFree(device);
  return error;
}

static PyObject *scale(PyObject *, PyObject *arguments) {
  double factor;
  PyObject *sequence;
  if (!PyArg_ParseTuple(arguments, "dO", &factor, &sequence)) {
    return nullptr;
  }
  PyObject *items = PySequence_Fast(sequence, "scale needs a sequence of numbers");
  if (items == nullptr) {
    return nullptr;
  }
  std::vector<float> values;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i) {
    const double value = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(items, i));
    if (value == -1.0 && PyErr_Occurred()) {
      Py_DECREF(items);
      return nullptr;
    }
    values.push_back(static_cast<float>(value));
  }
  Py_DECREF(items);
  const cudaError_t error = scale_on_gpu(static_cast<float>(factor), values);
  if (error != cudaSuccess) {
    PyErr_SetString(PyExc_RuntimeError, cudaGetErrorString(error));
    return nullptr;
  }
  PyObject *result = PyList_New(static_cast<Py_ssize_t>(values.size()));
  for (size_t i = 0; result != nullptr && i < values.size(); ++i) {
    PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), PyFloat_FromDouble(values[i]));
  }
  return result;
}

static PyObject *cuda_version(PyObject *, PyObject *) { return PyLong_FromLong(CUDART_VERSION); }

static PyMethodDef methods[] = {
    {"scale", scale, METH_VARARGS, "scale(factor, numbers): the numbers times the factor, computed on a GPU."},
    {"cuda_version", cuda_version, METH_NOARGS, "CUDART_VERSION of the build."},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
