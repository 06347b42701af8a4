#include "kernel/describe/attention_desc.h"

#include <fmt/format.h>

#include "kernel/rules.h"

namespace weft::kernel {

double AttentionDesc::flops() const {
  double pairs = static_cast<double>(queries) * static_cast<double>(keys);
  if (causal) pairs -= 0.5 * static_cast<double>(queries) * static_cast<double>(queries - 1);
  const double products = derivative ? 3.0 * static_cast<double>(width) + 2.0 * static_cast<double>(value_width)
                                     : static_cast<double>(width + value_width);
  return 2.0 * static_cast<double>(batch * heads) * pairs * products;
}

Digest AttentionDesc::digest() const {
  Hasher h;
  h.text("attention")
      .number(dtype.val())
      .number(scale)
      .number(causal)
      .number(derivative)
      .number(numerics.deterministic);
  for (int64_t n : {batch, heads, kv_heads, queries, keys, width, value_width}) h.number(n);
  for (const Strides* strides : {&q, &k, &v, &o, &g, &dq, &dk, &dv})
    for (int64_t s : *strides) h.number(s);
  return h.finish();
}

std::string AttentionDesc::to_string() const {
  std::string s = fmt::format("attention{} {} [{},{}]x{}x{}x{}", derivative ? "_vjp" : "",
                              kernel::to_string(Type{dtype, {}}), batch, heads, queries, keys, width);
  if (value_width != width) s += fmt::format("/{}", value_width);
  if (kv_heads != heads) s += fmt::format(" {} key heads", kv_heads);
  return causal ? s + " causal" : s;
}

}  // namespace weft::kernel
