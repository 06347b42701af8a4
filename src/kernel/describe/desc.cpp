#include "kernel/describe/desc.h"

#include <fmt/format.h>

#include "kernel/rules.h"

namespace weft::kernel {

const char* name(Activation activation) {
  const char* names[] = {"none", "relu", "gelu", "gelu_tanh", "sigmoid", "tanh"};
  return names[static_cast<size_t>(activation)];
}

double DotDesc::flops() const {
  double total = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double extras = (bias ? 1.0 : 0.0) + (residual ? 1.0 : 0.0);
  total += extras * static_cast<double>(m) * static_cast<double>(n);
  for (int64_t extent : batch) total *= static_cast<double>(extent);
  return total;
}

Digest DotDesc::digest() const {
  Hasher h;
  for (Dtype t : {a, b, c}) h.number(t.val());
  for (const auto* list : {&batch, &a_batch, &b_batch, &c_batch}) {
    h.number(list->size());
    for (int64_t v : *list) h.number(v);
  }
  for (int64_t v : {m, n, k, a_m, a_k, b_k, b_n, c_m, c_n}) h.number(v);
  return h.number(bias)
      .number(activation)
      .number(sum)
      .number(residual)
      .number(pre_activation)
      .number(scales)
      .number(numerics.tf32)
      .finish();  // matmuls give the same bits in every run anyway
}

std::string DotDesc::to_string() const {
  auto type = [](Dtype t) { return kernel::to_string(Type{t, {}}); };
  std::string s = "dot " + type(c);
  if (!(a == c && b == c)) s = fmt::format("dot {}x{}->{}", type(a), type(b), type(c));
  s += fmt::format(" [{}]x{}x{}x{}", fmt::join(batch, ","), m, n, k);
  if (scales > 0) s += fmt::format(" scales({})", scales);
  if (bias) s += " +bias";
  if (activation != Activation::none)
    s += std::string(" ") + name(activation) +
         (pre_activation == PreActivation::stored       ? " +argument"
          : pre_activation == PreActivation::derivative ? "'"
                                                        : "");
  if (residual) s += " +residual";
  if (sum != OperandSum::none) s += sum == OperandSum::a ? " sum(a)" : sum == OperandSum::b ? " sum(b)" : " sum(c)";
  return s;
}

Digest CallDesc::digest() const {
  Hasher h;
  h.text(name).number(integers.size());
  for (int64_t v : integers) h.number(v);
  for (const auto* list : {&inputs, &outputs}) {
    h.number(list->size());
    for (const Array& a : *list) {
      h.number(a.dtype.val()).number(a.used).number(a.extents.size());
      for (int64_t n : a.extents) h.number(n);
    }
  }
  return h.number(numerics.tf32).number(numerics.deterministic).finish();
}

std::string CallDesc::to_string() const {
  const auto text = [](const Array& a) {
    return fmt::format(" {}[{}]{}", kernel::to_string(Type{a.dtype, {}}), fmt::join(a.extents, ","),
                       a.used ? "" : " unused");
  };
  std::string s = fmt::format("{}({})", name, fmt::join(integers, ","));
  for (const Array& a : inputs) s += text(a);
  s += " ->";
  for (const Array& a : outputs) s += text(a);
  return s;
}

}  // namespace weft::kernel
