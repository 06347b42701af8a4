// Products of descriptors on a GPU (kernels/gemm/desc.h), of bfloat16: the kernels that are measured beside cuBLASLt's.
#include <utility>

#include "kernels/gemm/desc.h"
#include "tools/weft/kernel/library.h"

namespace weft::tool {

namespace {

struct ProductExtents {
  int64_t rows, columns, depth;
};

/// Returns c = a b of row-major matrices.
kernel::DotDesc plain_product(const ProductExtents& e) {
  kernel::DotDesc d;
  d.a = d.b = d.c = bfloat16;
  d.m = e.rows, d.n = e.columns, d.k = e.depth;
  d.a_m = e.depth, d.a_k = 1, d.b_k = e.columns, d.b_n = 1, d.c_m = e.columns, d.c_n = 1;
  return d;
}

/// Returns c = gelu(z), z = a b + bias, with both results.
kernel::DotDesc gelu_product(const ProductExtents& e) {
  kernel::DotDesc d = plain_product(e);
  d.bias = true, d.activation = kernel::Activation::gelu_tanh;
  d.pre_activation = kernel::PreActivation::stored;
  return d;
}

/// Returns the types of the operands in their order.
std::vector<graph::Type> operand_types(const kernel::DotDesc& d) {
  std::vector<graph::Type> out{{{d.m, d.k}, d.a}, {{d.k, d.n}, d.b}};
  if (d.bias) out.push_back({{d.n}, d.c});
  if (d.pre_activation != kernel::PreActivation::none) out.push_back({{d.m, d.n}, d.c});
  out.push_back({{d.m, d.n}, d.c});
  return out;
}

LibraryKernel gpu_product(const std::string& name, const std::string& summary,
                          kernel::DotDesc (*desc_of)(const ProductExtents& e)) {
  constexpr ProductExtents usual{2048, 2048, 2048}, few{200, 136, 72};
  return {name, summary, LibraryKernel::MadeFor::gpus, [=](const target::Machine& machine, bool small) {
            const kernel::DotDesc d = desc_of(small ? few : usual);
            std::vector<kernels::GemmKernel> best = kernels::gemm_kernels(d, machine, 1);
            if (best.empty()) return SharedProgram();
            return on_arrays(std::move(best[0].kernel), best[0].programs, operand_types(d),
                             2.0 * static_cast<double>(d.m * d.n) * static_cast<double>(d.k));
          }};
}

}  // namespace

std::vector<LibraryKernel> gpu_product_kernels() {
  return {gpu_product("gemm", "matrix product of bfloat16 on a GPU's tensor cores", plain_product),
          gpu_product("gemm_gelu", "the same with a bias and gelu, whose argument is stored as well", gelu_product)};
}

}  // namespace weft::tool
