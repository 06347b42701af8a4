#include "target/cpu/routines/calls.h"

#include <string_view>

namespace weft::target {
namespace {

struct Offer {
  std::string_view name;
  std::shared_ptr<const LibraryCall> (*make)(const kernel::CallDesc&);
};

constexpr Offer offers[] = {
    {"sort", cpu_sort},
    {"searchsorted", cpu_searchsorted},
    {"fft", cpu_fft},
    {"rfft", cpu_fft},
    {"irfft", cpu_fft},
    {"cholesky", cpu_cholesky},
    {"solve_triangular", cpu_solve_triangular},
    {"lu", cpu_lu},
    {"qr", cpu_qr},
    {"svd", cpu_svd},
    {"eigh", cpu_eigh},
    {"real_eig", cpu_eig},
    {"complex_cholesky", cpu_cholesky},
    {"complex_solve_triangular", cpu_solve_triangular},
    {"complex_lu", cpu_lu},
    {"complex_qr", cpu_qr},
    {"complex_svd", cpu_svd},
    {"complex_eigh", cpu_eigh},
    {"complex_eig", cpu_eig},
    {"convolution", onednn_convolution},
    {"convolution_input", onednn_convolution_input},
    {"convolution_weights", onednn_convolution_weights},
};

}  // namespace

std::shared_ptr<const LibraryCall> cpu_call(const kernel::CallDesc& desc) {
  for (const Offer& offer : offers)
    if (offer.name == desc.name) return offer.make(desc);
  return nullptr;
}

}  // namespace weft::target
