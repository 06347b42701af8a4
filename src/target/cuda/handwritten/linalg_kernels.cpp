#include "target/cuda/handwritten/linalg_kernels.h"

#include <algorithm>
#include <array>

#include "base/number.h"

namespace weft::target::cuda {

namespace {

constexpr size_t usual_shared_bytes = 48 << 10;
constexpr int most_warps = 8;
constexpr int word = 4;  // bytes

std::array<LinalgKernels::Matrices, 3> three(std::span<const LinalgKernels::Matrices> some) {
  std::array<LinalgKernels::Matrices, 3> out;
  std::copy(some.begin(), some.end(), out.begin());
  return out;
}

}  // namespace

LinalgKernels::LinalgKernels(Context& context, CompileSource compile)
    : kernels_(context, std::move(compile), source_of(handwritten_kernel("linalg")),
               {{"linalg_nan", {}},
                {"linalg_table", {}},
                {"linalg_rows", {}},
                {"linalg_upper", {}},
                {"linalg_conjugate", {}},
                {"linalg_q_floats", {}},
                {"linalg_q_doubles", {}},
                {"linalg_q_complex_floats", {}},
                {"linalg_q_complex_doubles", {}}}) {}

void LinalgKernels::launch(Which which, int64_t blocks, int threads, size_t shared_bytes, void** arguments) const {
  Entry entry = kernels_.entry(which);
  entry.threads = threads, entry.shared_bytes = static_cast<int64_t>(shared_bytes);
  kernels_.context().make_current();
  cuda::launch(kernels_.context(), entry, blocks, 1, arguments, "linalg");
}

void LinalgKernels::poison(const int* info, int words, int64_t count, std::span<const Matrices> results) const {
  auto r = three(results);
  std::array<int64_t, 3> numbers;
  for (size_t i = 0; i < 3; ++i) numbers[i] = static_cast<int64_t>(r[i].bytes / word);
  void* arguments[] = {&info, &words, &r[0].first, &numbers[0], &r[1].first, &numbers[1], &r[2].first, &numbers[2]};
  launch(nan, count, 128, 0, arguments);
}

void LinalgKernels::addresses(void* to, int64_t count, std::span<const Matrices> of) const {
  auto m = three(of);
  std::array<int64_t, 3> bytes;
  for (size_t i = 0; i < 3; ++i) bytes[i] = static_cast<int64_t>(m[i].bytes);
  void* arguments[] = {&to, &count, &m[0].first, &bytes[0], &m[1].first, &bytes[1], &m[2].first, &bytes[2]};
  launch(table, (count + 127) / 128, 128, 0, arguments);
}

void LinalgKernels::exchanged_rows(const int* pivots, int pivoted, uint32_t* to, int m, int64_t count) const {
  void* arguments[] = {&pivots, &pivoted, &to, &m};
  launch(rows, count, 32, static_cast<size_t>(m) * sizeof(uint32_t), arguments);
}

void LinalgKernels::upper_parts(Dtype element, const void* from, void* to, int n, int64_t count) const {
  int words = element.size() / word;
  int64_t all = count * n * n * words;
  void* arguments[] = {&from, &to, &n, &words, &all};
  launch(upper, (all + 127) / 128, 128, 0, arguments);
}

void LinalgKernels::conjugate(Dtype element, void* numbers, int64_t count) const {
  if (!is_complex(element)) return;
  int words = element.size() / word;
  void* arguments[] = {&numbers, &words, &count};
  launch(conjugates, (count + 127) / 128, 128, 0, arguments);
}

void LinalgKernels::columns_of_q(Dtype element, const void* reflections, const void* tau, void* q, int m, int n,
                                 int columns, int64_t count) const {
  const size_t column = static_cast<size_t>(m) * static_cast<size_t>(element.size());
  const int warps = static_cast<int>(std::min({static_cast<size_t>(most_warps), static_cast<size_t>(columns),
                                               std::max<size_t>(1, usual_shared_bytes / column)}));
  void* arguments[] = {&reflections, &tau, &q, &m, &n, &columns};
  const Which which = element == float32     ? q_floats
                      : element == float64   ? q_doubles
                      : element == complex64 ? q_complex_floats
                                             : q_complex_doubles;
  launch(which, count, 32 * warps, static_cast<size_t>(warps) * column, arguments);
}

}  // namespace weft::target::cuda
