#pragma once
// One scalar operator as a kernel, expanded and run in the interpreter.
#include <array>
#include <vector>

#include "kernel/expand/expand.h"
#include "kernel/interpret.h"
#include "kernel/tile.h"

namespace weft::test {

constexpr int64_t scalar_kernel_lanes =
    64;  // a tile; the code of long expansions grows with it, and LLVM takes its time over long code

/// y = op(arguments…) on such tiles, all of dtype `t`; buffers in the order of the arguments, then the result.
inline kernel::Kernel scalar_kernel(kernel::ScalarOp op, Dtype t) {
  using namespace kernel;
  constexpr int64_t lanes = scalar_kernel_lanes;
  Builder b("one_operator");
  const int arity = info(op).arity;
  std::vector<Ref> in;
  for (int k = 0; k < arity; ++k)
    in.push_back(b.param("x" + std::to_string(k), op == ScalarOp::select && k == 0 ? bool_ : t, false));
  const Ref out = b.param("y", info(op).result == ScalarResult::boolean ? bool_ : t, true);
  const Value start = b.mul(b.program_id(), b.index(lanes)), left = b.sub(b.symbol("n"), start);
  std::vector<Value> args;
  for (Ref r : in) args.push_back(b.load(r, start, {lanes}, {1}, {left}));
  b.store(out, b.scalar(op, args), start, {1}, {left});
  return b.finish();
}

template <class T>
std::vector<T> run_kernel(const kernel::Kernel& k, std::vector<std::vector<T>> args) {
  const int64_t n = static_cast<int64_t>(args.at(0).size());
  std::vector<T> out(static_cast<size_t>(n));
  std::vector<kernel::HostBuffer> buffers;
  for (auto& a : args) buffers.push_back({a.data(), n});
  buffers.push_back({out.data(), n});
  kernel::interpret(k, buffers, std::array{n}, (n + scalar_kernel_lanes - 1) / scalar_kernel_lanes);
  return out;
}

inline std::vector<float> run_expanded(kernel::ScalarOp op, std::vector<float> x) {
  return run_kernel<float>(kernel::expand(scalar_kernel(op, float32)), {std::move(x)});
}
inline std::vector<float> run_expanded(kernel::ScalarOp op, std::vector<float> x, std::vector<float> y) {
  return run_kernel<float>(kernel::expand(scalar_kernel(op, float32)), {std::move(x), std::move(y)});
}

}  // namespace weft::test
