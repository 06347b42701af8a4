#pragma once
#include "helpers.h"

/// The parts of the module weft.core.
namespace weft::python {

/// Defines dtypes, their categories and limits, and what prints numbers.
void define_dtypes(nb::module_& m);
/// Defines devices, streams and memory.
void define_devices(nb::module_& m);
/// Defines Length.
void define_lengths(nb::module_& m);
/// Defines the class array.
nb::class_<array> define_array(nb::module_& m);
/// Defines functions that take any number of arrays or Python's own types.
void define_functions(nb::module_& m);
/// Defines what reads and writes files of arrays and functions.
void define_files(nb::module_& m);
/// Defines kernels of users from CUDA C++ text.
void define_kernels(nb::module_& fast);
/// Defines streams of other libraries, as contexts.
void define_cuda_streams(nb::module_& cuda);
/// Defines the kernel language.
void define_kernel_language(nb::module_& m);
/// Defines groups of processes.
void define_distributed(nb::module_& m);

// Generated from the public headers by bindings/python.py.
void define_operations_a(nb::module_& m);
void define_operations_b(nb::module_& m);
void define_linalg(nb::module_& m);
void define_fft(nb::module_& m);
void define_random(nb::module_& m);
void define_fast(nb::module_& m);
void define_methods(nb::class_<array>& c);

}  // namespace weft::python
