// A CPU's matrix products (kernels/gemm/cpu.h) as a plain caller uses them, with arrays of its own and without the
// compiler: against float64, bit by bit among forms, and by the interpreter and machine code.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/checked_memory.h"
#include "kernel/language/trace.h"
#include "kernels/gemm/cpu.h"
#include "target/target.h"

using namespace weft;
using kernels::CpuGemmForm;
using kernels::CpuGemmShape;

namespace {

constexpr std::array forms = {CpuGemmForm::blocks, CpuGemmForm::panels, CpuGemmForm::columns, CpuGemmForm::depth};

/// c = relu(a b + bias) of a [batches, rows, depth] and b [batches, depth, columns], of which each may lie with its
/// last two axes exchanged, and the sums of the rows of a and the columns of b.
struct Product {
  CpuGemmShape shape;
  Dtype operands = float32;
  std::vector<int64_t> run = {};  // rows, columns and depth of the run, where they are symbols

  int64_t extent(size_t axis) const {
    const std::array<Dim, 3> all = {shape.rows, shape.columns, shape.depth};
    return all[axis].is_static() ? all[axis].bound() : run[axis];
  }
};

k::Param array_of(k::Use use, Dtype t, int64_t batches, const Dim& first, const Dim& second, bool exchanged) {
  k::Param p{use, t, {batches, first.bound(), second.bound()}};
  p.symbols = {nullptr, first.symbol(), second.symbol()};
  if (exchanged) std::swap(p.dims[1], p.dims[2]), std::swap(p.symbols[1], p.symbols[2]);
  return p;
}

/// Returns the product as a kernel of a, b, bias, c, and the sums of a and b.
k::Program traced(const Product& p) {
  const CpuGemmShape& s = p.shape;
  const auto written = [&](int64_t batches, const Dim& first, const Dim& second) {
    return array_of(k::Use::out, s.sums, batches, first, second, false);
  };
  std::vector<k::Param> params = {array_of(k::Use::in, p.operands, s.batches, s.rows, s.depth, !s.left_along_depth),
                                  array_of(k::Use::in, p.operands, s.batches, s.depth, s.columns, s.right_along_depth),
                                  array_of(k::Use::in, s.sums, 1, 1, s.columns, false),
                                  written(s.batches, s.rows, s.columns),
                                  written(1, 1, s.rows),
                                  written(1, 1, s.columns)};
  const auto body = [&](std::span<const k::AnyRef> refs) {
    const auto turned = [&](const k::AnyRef& x, bool turn) { return turn ? x.permute({0, 2, 1}) : x; };
    const auto load = [](const k::AnyRef& rows_first, Dtype t) {
      return [=](const kernels::OperandTile& tile) {
        std::vector<k::Span> spans{{.start = k::program(0), .squeezed = true},
                                   k::ds(tile.first, tile.count).span,
                                   k::ds(tile.depth, tile.steps).span};
        if (tile.steps_first) std::swap(spans[1], spans[2]);
        return k::cast(k::load(tile.steps_first ? rows_first.permute({0, 2, 1}) : rows_first, spans), t);
      };
    };
    const auto vector = [](const k::AnyRef& x, const k::Index& first, int64_t n) {
      return std::pair(
          x, std::array<k::Span, 3>{k::Span{.squeezed = true}, k::Span{.squeezed = true}, k::ds(first, n).span});
    };
    const k::AnyRef a = turned(refs[0], !s.left_along_depth), b = turned(refs[1], !s.right_along_depth);
    kernels::CpuGemm g{.shape = s};
    g.rows = k::extent(s.rows), g.columns = k::extent(s.columns), g.depth = k::extent(s.depth);
    g.left = load(a, s.sums), g.right = load(b, s.sums);
    g.finish = [&, zero = k::constant(s.sums, 0)](const kernels::ResultTile& t, const k::Any& sums) {
      const int64_t rows = sums.dims()[0], columns = sums.dims()[1];
      const auto [bias, along] = vector(refs[2], t.column, columns);
      const k::Any result = k::apply("add", std::array{sums, k::reshape(k::load(bias, along), {1, columns})});
      k::store(refs[3],
               std::array{k::Span{.start = k::program(0), .squeezed = true}, k::ds(t.row, rows).span,
                          k::ds(t.column, columns).span},
               k::apply("max", std::array{result, zero}));
    };
    g.ahead = [&](const kernels::OperandTile& t) {
      k::prefetch(b, std::array{k::Span{.start = k::program(0), .squeezed = true}, k::ds(t.first, 1).span,
                                k::ds(t.depth, t.steps).span});
    };
    const auto sums_to = [&](const k::AnyRef& to) {
      return [&, to](const k::Index& first, const k::Index&, const k::Any& sums) {
        const auto [array, along] = vector(to, first, sums.dims()[0]);
        k::store(array, along, sums);
      };
    };
    if (s.batches == 1) g.left_sums = sums_to(refs[4]), g.right_sums = sums_to(refs[5]);
    kernels::cpu_gemm(g);
  };
  return k::trace_with(
      "product", params, [&](auto) { return kernels::cpu_gemm_grid(s); }, body);
}

struct Array {
  Dtype dtype;
  std::vector<int64_t> dims;
  std::vector<char> bytes;
  double at(int64_t batch, int64_t i, int64_t j) const {
    const Number n = kernel::read_element(bytes.data(), dtype, (batch * dims[1] + i) * dims[2] + j);
    return is_float(dtype) ? n.real() : static_cast<double>(n.i);
  }
};

/// Runs the product by the interpreter and by machine code, compares their bits, and returns the arrays.
std::vector<Array> ran(const Product& p, const k::Program& program) {
  std::mt19937 engine(11);
  std::vector<Array> arrays;
  for (const k::Param& param : program.params()) {
    Array& x = arrays.emplace_back(Array{param.dtype, param.dims, {}});
    const int64_t n = param.dims[0] * param.dims[1] * param.dims[2];
    x.bytes.resize(static_cast<size_t>(n * param.dtype.size()));
    for (int64_t k = 0; k < n; ++k) {
      const auto v = static_cast<int64_t>(engine() % 2001) - 1000;
      const Number number =
          is_float(param.dtype) ? Number::of_real(static_cast<double>(v) / 700) : Number::of_int(v % 100);
      kernel::write_element(x.bytes.data(), param.dtype, k, kernel::round_to(number, param.dtype));
    }
  }
  std::vector<int64_t> extents;
  for (const Symbol* symbol : program.symbols())
    for (const auto& [dim, n] : {std::pair(p.shape.rows, 0), {p.shape.columns, 1}, {p.shape.depth, 2}})
      if (dim.symbol() == symbol) extents.push_back(p.run[static_cast<size_t>(n)]);
  std::vector<Array> compiled = arrays;
  const auto pointers = [](std::vector<Array>& all) {
    std::vector<void*> out;
    for (Array& x : all) out.push_back(x.bytes.data());
    return out;
  };
  program.interpret(pointers(arrays), extents);
  std::vector<void*> buffers = pointers(compiled);
  const auto code = target::cpu().compile(std::span(&program.data().kernel, 1));
  const target::Segment segment{buffers, extents, program.programs(extents)};
  code[0]->run(std::span(&segment, 1), 1e9);
  for (size_t k = 0; k < arrays.size(); ++k) CHECK(arrays[k].bytes == compiled[k].bytes);
  return arrays;
}

/// Checks results against float64: of floats within the rounding of as many additions.
void check(const Product& p, const std::vector<Array>& x) {
  const CpuGemmShape& s = p.shape;
  const double ulp = s.sums == float64 ? 0x1p-52 : s.sums == int32 ? 0 : 0x1p-23;
  const auto left = [&](int64_t batch, int64_t i, int64_t l) {
    return s.left_along_depth ? x[0].at(batch, i, l) : x[0].at(batch, l, i);
  };
  const auto right = [&](int64_t batch, int64_t l, int64_t j) {
    return s.right_along_depth ? x[1].at(batch, j, l) : x[1].at(batch, l, j);
  };
  const int64_t rows = p.extent(0), columns = p.extent(1), depth = p.extent(2);
  int64_t wrong = 0;
  const auto note = [&](double got, double want, double size) { wrong += !(std::abs(got - want) <= 4 * ulp * size); };
  for (int64_t batch = 0; batch < s.batches; ++batch)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = x[2].at(0, 0, j), size = std::abs(sum);
        for (int64_t l = 0; l < depth; ++l) {
          const double term = left(batch, i, l) * right(batch, l, j);
          sum += term, size += std::abs(term);
        }
        note(x[3].at(batch, i, j), std::max(sum, 0.0), size);
      }
  const auto check_sums = [&](const Array& got, int64_t n, const auto& value) {
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0, size = 0;
      for (int64_t l = 0; l < depth; ++l) sum += value(i, l), size += std::abs(value(i, l));
      note(got.at(0, 0, i), sum, size);
    }
  };
  if (s.batches == 1) {
    check_sums(x[4], rows, [&](int64_t i, int64_t l) { return left(0, i, l); });
    check_sums(x[5], columns, [&](int64_t j, int64_t l) { return right(0, l, j); });
  }
  CHECK(wrong == 0);
}

std::vector<Array> checked(const Product& p) {
  CAPTURE(static_cast<int>(p.shape.form));
  INFO(fmt::format("{} x {} x {} x {}, lanes {}, registers {}, {} {}", p.shape.batches, p.extent(0), p.extent(1),
                   p.extent(2), p.shape.lanes, p.shape.registers, p.shape.left_along_depth, p.shape.right_along_depth));
  std::vector<Array> arrays = ran(p, traced(p));
  check(p, arrays);
  return arrays;
}

CpuGemmShape shape(CpuGemmForm form, int64_t rows, int64_t columns, int64_t depth) {
  CpuGemmShape s{form, 1, rows, columns, depth};
  s.left_along_depth = true, s.right_along_depth = form == CpuGemmForm::depth;
  return s;
}

}  // namespace

TEST_CASE("a CPU's products: every form with edges, in every layout, by machine code as by the interpreter") {
  struct Extents {
    int64_t rows, columns, depth;
  };
  for (const CpuGemmForm form : forms)
    for (const Extents& n : {Extents{24, 32, 8}, {13, 37, 19}, {3, 70, 270}, {1, 5, 1}, {40, 3, 9}})
      for (const bool wide : {false, true}) {
        CpuGemmShape s = shape(form, n.rows, n.columns, n.depth);
        if (wide) s.lanes = 16, s.registers = 32, s.columns_first = true, s.left_along_depth = false;
        if (wide && form == CpuGemmForm::blocks) s.right_along_depth = true;
        checked({s});
      }
}

TEST_CASE("a CPU's products are chains of fused multiply-adds: forms and block sizes change no bits") {
  std::vector<std::vector<char>> results;
  for (const CpuGemmForm form : {CpuGemmForm::blocks, CpuGemmForm::panels, CpuGemmForm::columns})
    for (const int64_t lanes : {4, 8}) {
      CpuGemmShape s = shape(form, 8, 70, 300);
      s.lanes = lanes, s.registers = lanes == 4 ? 16 : 32, s.processors = lanes;
      results.push_back(checked({s})[3].bytes);
    }
  for (const std::vector<char>& r : results) CHECK(r == results[0]);
}

TEST_CASE("a CPU's products of other dtypes, in batches, with blocks of several programs") {
  for (const CpuGemmForm form : forms) {
    CpuGemmShape s = shape(form, 7, 21, 33);
    checked({s, bfloat16});
    s.sums = int32;
    checked({s, int8});
    s.sums = float64, s.lanes = 4, s.batches = 3;
    checked({s, float64});
  }
  CpuGemmShape large = shape(CpuGemmForm::blocks, 90, 110, 20);
  CHECK(kernels::cpu_gemm_part(large).rows < 90);
  CHECK(kernels::cpu_gemm_part(large).columns < 110);
  checked({large});
}

TEST_CASE("a CPU's products of lengths that a run has") {
  for (const CpuGemmForm form : forms) {
    CpuGemmShape s = shape(form, 1, 1, 1);
    s.rows = symbol("rows", 20), s.columns = symbol("columns", 50), s.depth = symbol("depth", 290);
    const k::Program program = traced({s});
    for (const std::vector<int64_t>& run : std::vector<std::vector<int64_t>>{{20, 50, 290}, {1, 33, 257}, {17, 2, 3}})
      check({s, float32, run}, ran({s, float32, run}, program));
  }
}

TEST_CASE("a program packs panels without guards, and reads ahead along the contracted axis") {
  std::istringstream blocks(traced({shape(CpuGemmForm::blocks, 25, 70, 300)}).to_string());
  int packed = 0;
  for (std::string line; std::getline(blocks, line);) {
    CHECK(line.find("gather") == std::string::npos);
    if (line.find(" l0[") == std::string::npos && line.find(" l1[") == std::string::npos) continue;
    ++packed;
    CHECK(line.find("limit(") == std::string::npos);
  }
  CHECK(packed == 8);  // two stores and two loads of each slice but the last, and of the last
  CHECK(traced({shape(CpuGemmForm::depth, 2, 8, 64)}).to_string().find("prefetch p1") != std::string::npos);
}
