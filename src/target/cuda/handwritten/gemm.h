#pragma once
// Products of 16-bit matrices by a kernel of our own, for devices with groups of warps that multiply from shared memory
// (sm_90a): one program a multiprocessor goes through tiles of 128 x 256, and what follows the product is computed
// beside the products of the next tile. A library call like others: cublaslt.cpp measures it beside cuBLASLt's
// algorithms.
//
// Its rule: A, B and C have one 16-bit dtype and no batch axes; A and B are contiguous along one axis, C along its
// columns; lines begin at multiples of 16 bytes; after the product come a bias and relu, tanh's gelu (also with its
// argument written, or its slope as a factor) or a residual, and beside C the sums of each 128 of its rows. The sum is
// rounded to C's dtype before an activation or a residual.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/describe/desc.h"
#include "target/cuda/codegen/executable.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/driver/context.h"

namespace weft::target::cuda {

/// To be raised where another kernel may win: choices that were measured with the old one then go unused.
inline constexpr int product_version = 3;

inline constexpr int64_t product_rows = 128, product_columns = 256,
                         product_depth = 64;  // of a tile (at most), and of a piece of it

/// What code is made for; extents and strides are arguments.
struct ProductForm {
  Dtype dtype = bfloat16;
  bool a_turned = false, b_turned = false;  // contiguous along m, along n, not along k
  bool bias = false, residual = false, sums = false;
  kernel::Activation activation = kernel::Activation::none;
  kernel::PreActivation argument = kernel::PreActivation::none;
  int64_t columns = product_columns;  // of a tile: as many as leave little beside the matrix
  std::string symbol() const;         // of the kernel: "product_bf16_b_turned_gelu_tanh_slope"
};

/// The form, or nothing where the rule says no. `merged`: the product with its batch axes as rows.
std::optional<ProductForm> product_form(const kernel::DotDesc& desc, kernel::DotDesc* merged = nullptr);
/// Whether it is likely to beat cuBLASLt, so that it is worth compiling and measuring: large products whose tiles keep
/// all multiprocessors busy. `merged`: without batch axes.
bool product_may_win(const kernel::DotDesc& merged);

/// Source without the prelude. Arguments: tensor maps of A, B and what else is read, pointers to C, to the argument or
/// residual, to the bias and to the sums (null where there is none), m, n, k (32 bits), the distance of C's rows.
Rendered render_product(const ProductForm& form);

/// The kernel of a form on a device.
class ProductKernel {
 public:
  using Compile = std::function<std::vector<char>(const std::string& source)>;
  ProductKernel(Context& context, const ProductForm& form, Compile compile)
      : context_(context), form_(form), compile_(std::move(compile)) {}
  /// Compiles and loads it, where that has not been done.
  const Entry& entry() const;
  Context& context() const { return context_; }
  const ProductForm& form() const { return form_; }

 private:
  Context& context_;
  ProductForm form_;
  Compile compile_;
  mutable std::once_flag once_;
  mutable Entry entry_;
};

/// A product by it.
class Product final : public LibraryCall {
 public:
  Product(std::shared_ptr<const ProductKernel> kernel, const kernel::DotDesc& merged)
      : kernel_(std::move(kernel)), d_(merged) {}
  std::string name() const override;  // "product 128x256"
  /// Gives the work to the context's stream; operands are aligned to 16 bytes.
  void run(std::span<void* const> operands) const override;

 private:
  std::shared_ptr<const ProductKernel> kernel_;
  kernel::DotDesc d_;
};

}  // namespace weft::target::cuda
