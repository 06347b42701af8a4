// Kernels of the explicit level: every supported compiler takes them.
#include "kernel/language/asynchronous_kernels.h"

std::vector<test_kernels::AsyncKernel> all() { return test_kernels::asynchronous_kernels(); }
