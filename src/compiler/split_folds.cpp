#include "compiler/split_folds.h"

#include <algorithm>

#include "compiler/access.h"
#include "compiler/rewrite.h"

namespace weft::compiler {

namespace {

constexpr int64_t programs_wanted = 2048;

/// The folded axes of a fold, if they lie beside each other and have known lengths.
struct Run {
  size_t first = 0, end = 0;
  int64_t length = 1;  // of all of them together
  bool innermost = false;
};

bool run_of(const IrNode& fold, const Shape& shape, Run& run) {
  const auto& axes = fold.attrs.axes;
  if (axes.empty()) return false;
  run.first = static_cast<size_t>(axes.front());
  run.end = static_cast<size_t>(axes.back()) + 1;
  if (run.end - run.first != axes.size()) return false;
  for (size_t k = run.first; k < run.end; ++k) {
    if (!shape[k].is_static()) return false;
    run.length *= shape[k].bound();
  }
  run.innermost = true;
  for (size_t k = run.end; k < shape.size(); ++k) run.innermost = run.innermost && shape[k] == 1;
  return true;
}

/// Into how many parts: a divisor of the length, cut where the axes' own borders are, so that indices stay simple. 1: leave it.
int64_t parts(const Run& run, const Shape& shape, int64_t kept) {
  const int64_t rows = run.innermost ? kept : (kept + 127) / 128;  // programs without a cut
  const int64_t least = run.innermost ? 4096 : 32;                 // elements of a part
  if (rows >= programs_wanted / 4 || run.length < 4 * least) return 1;
  const int64_t wanted = std::min(programs_wanted / rows, run.length / least);
  int64_t count = 1;
  for (size_t k = run.first; k < run.end && count < wanted; ++k) {
    const int64_t n = shape[k].bound();
    int64_t cut = 1;  // of this axis: the largest divisor that is wanted
    for (int64_t d = 1; d <= n && count * d <= wanted; ++d)
      if (n % d == 0) cut = d;
    count *= cut;
    if (cut != n) break;
  }
  return count;
}

class Splitter : Rewriter {
 public:
  explicit Splitter(Ir ir) : Rewriter(std::move(ir)) {}

  Ir run() {
    return rewrite([&](int, IrNode node) { return node.op == graph::Op::fold ? fold(std::move(node)) : add(std::move(node)); });
  }

 private:
  int fold(IrNode node) {
    const graph::Type operand = to_[node.inputs[0]].type;
    Run run;
    if (!run_of(node, operand.shape, run)) return add(std::move(node));
    const int64_t count = parts(run, operand.shape, volume(node.type.shape));
    if (count <= 1) return add(std::move(node));
    const Dtype dtype = is_low_float(operand.dtype) ? float32 : operand.dtype;
    int v = cast(node.inputs[0], dtype);

    Shape shape(operand.shape.begin(), operand.shape.begin() + static_cast<std::ptrdiff_t>(run.first));
    shape.push_back(count);
    shape.push_back(run.length / count);
    shape.insert(shape.end(), operand.shape.begin() + static_cast<std::ptrdiff_t>(run.end), operand.shape.end());
    v = shaped(graph::Op::reshape, v, shape);
    v = one_axis(node, v, run.first + 1, dtype);
    v = one_axis(node, v, run.first, dtype);
    return cast(v, node.type.dtype);
  }

  int one_axis(const IrNode& like, int operand, size_t axis, Dtype dtype) {
    IrNode node = made(graph::Op::fold, {operand}, to_[operand].type.shape, dtype);
    node.attrs.reducer = like.attrs.reducer;
    node.attrs.axes = {static_cast<int64_t>(axis)};
    node.type.shape.erase(node.type.shape.begin() + static_cast<std::ptrdiff_t>(axis));
    return add(std::move(node));
  }
};

}  // namespace

Ir split_folds(Ir ir) { return Splitter(std::move(ir)).run(); }

}  // namespace weft::compiler
