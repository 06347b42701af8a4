// weft bench dot: matrix products by generated code and by the library, alternately in one run.
#include <fmt/format.h>

#include "compiler/program.h"
#include "tools/weft/bench/support.h"
#include "weft/compile.h"
#include "weft/ops.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

struct Product {
  const char* name;
  int m, n, k;
  bool transpose_a, transpose_b;  // the operand is transposed in memory
};

constexpr Product products[] = {
    {"1024", 1024, 1024, 1024, false, false},         {"1024_b_across", 1024, 1024, 1024, false, true},
    {"1024_a_across", 1024, 1024, 1024, true, false}, {"linear_768", 256, 768, 768, false, true},
    {"linear_3072", 256, 3072, 768, false, true},     {"decode_768", 1, 768, 768, false, true},
    {"decode_3072", 1, 3072, 768, false, true},       {"decode_50304", 1, 50304, 768, false, true},
    {"decode_8_rows", 8, 3072, 768, false, true},
};

/// Returns the product as a program of its own, under a policy that allows libraries or not.
ArrayFunction program_of(const Product& p, bool libraries, const std::vector<array>& operands) {
  const ArrayFunction product = [p](const std::vector<array>& in) {
    return std::vector<array>{
        matmul(p.transpose_a ? transpose(in[0]) : in[0], p.transpose_b ? transpose(in[1]) : in[1])};
  };
  return compiled_as(product, operands, libraries);
}

}  // namespace

void bench_dot(const BenchOptions& o) {
  const Dtype dtype = compute_dtype(o.dtype);
  for (const Product& p : products) {
    const array a = random::normal(p.transpose_a ? Shape{p.k, p.m} : Shape{p.m, p.k}, dtype, 0, 1, random::key(0));
    const array b = random::normal(p.transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n}, dtype, 0, 1, random::key(1));
    eval(a, b);
    const auto own = program_of(p, false, {a, b}), library = program_of(p, true, {a, b});
    const double flops = 2.0 * p.m * p.n * p.k;
    const int64_t inner =
        std::max<int64_t>(1, static_cast<int64_t>(2e7 / flops));  // calls of a repetition, so that it lasts long enough
    const auto rate = [&](const auto& program, int64_t reps) {
      const auto run = [&] {
        for (int64_t k = 0; k < inner; ++k) eval(program({a, b}));
      };
      return flops * static_cast<double>(inner) / median_of(reps, run, o.cpu_time) / 1e6;
    };
    std::vector<double> ours, theirs;  // alternately: other work of the machine affects both
    for (int turn = 0; turn < 3; ++turn) {
      ours.push_back(rate(own, reps_of(o, 9)));
      theirs.push_back(rate(library, reps_of(o, 9)));
    }
    std::sort(ours.begin(), ours.end());
    std::sort(theirs.begin(), theirs.end());
    Row(fmt::format("dot_{}", p.name), o)
        .number("gflops", ours[1])
        .number("library_gflops", theirs[1])
        .number("of_library", ours[1] / theirs[1])
        .number("operand_GBps", ours[1] * static_cast<double>(b.nbytes()) / flops)
        .print();
  }
}

}  // namespace weft::tool
