// Derivatives of kernels from their bodies.
#include "derive_run.h"

using namespace weft;
using namespace weft::testing;

namespace {

using In1 = k::In<double, 1>;
using In2 = k::In<double, 2>;
using Out1 = k::Out<double, 1>;
using Out2 = k::Out<double, 2>;
constexpr k::Use in = k::Use::in, out = k::Use::out, in_out = k::Use::in_out;
using Refs = std::span<const k::AnyRef>;

k::Param param(k::Use use, std::vector<int64_t> dims, Dtype dtype = float64) { return {use, dtype, std::move(dims)}; }

std::string refusal(const Subject& s) {
  std::vector<char> given;
  for (size_t k = 0; k < s.params().size(); ++k) given.push_back(s.writes(k));
  try {
    kernel::reverse_derivative(s.source(), given);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

/// How the cotangents of array k are kept.
kernel::DerivedArray cotangent_of(const Subject& s, size_t k) {
  std::vector<char> given;
  for (size_t p = 0; p < s.params().size(); ++p) given.push_back(s.writes(p));
  for (const kernel::DerivedArray& a : kernel::reverse_derivative(s.source(), given).arrays)
    if (a.source == k && a.role == kernel::DerivedArray::Role::cotangent) return a;
  FAIL("there is no cotangent");
  return {};
}

k::Program softmax_rows(int64_t rows, int64_t width) {
  return k::trace("softmax", {param(in, {rows, width}), param(out, {rows, width})}, {rows}, [](Refs r) {
    const In2 x(r[0]);
    const Out2 y(r[1]);
    const auto row = k::program_id(0);
    const auto v = x(row, k::all).load();
    const auto e = k::exp(v - k::max(v, 0));
    y(row, k::all) = e / k::sum(e, 0);
  });
}

}  // namespace

TEST_CASE("derivatives of elementwise kernels follow the rows of the operators") {
  const auto s = subject(k::trace("map", {param(in, {37}), param(in, {37}), param(out, {37}), param(out, {37})}, {5},
                                  [](Refs r) {
                                    const In1 x(r[0]), y(r[1]);
                                    const Out1 p(r[2]), q(r[3]);
                                    const auto at = k::ds(k::program_id(0) * 8, 8);
                                    const auto a = x(at).load(), b = y(at).load(0.5);
                                    p(at) = k::where(a < b, k::sin(a) * b, k::exp(a - b)) + k::tanh(a) / b;
                                    q(at) = k::maximum(a, b) + k::fma(a, b, k::log(b)) + k::sqrt(b) * k::floor(a);
                                  }),
                         0.2, 1.7);
  check_derivatives(s);
  CHECK(!cotangent_of(s, 0).begins);  // each element is loaded once: nothing has to be zero before
}

TEST_CASE("derivatives of rows: softmax, layer norm with shared weights") {
  const auto s = subject(softmax_rows(5, 11));
  check_derivatives(s);
  CHECK(!cotangent_of(s, 0).begins);
  CHECK(cotangent_of(s, 0).parts == 0);
  const auto norm = subject(
      k::trace("norm", {param(in, {300, 7}), param(in, {7}), param(in, {7}), param(out, {300, 7})}, {300}, [](Refs r) {
        const In2 x(r[0]);
        const In1 w(r[1]), b(r[2]);
        const Out2 y(r[3]);
        const auto row = k::program_id(0);
        const auto v = x(row, k::all).load();
        const auto d = v - k::sum(v, 0) / 7.0;
        const auto scale = k::rsqrt(k::sum(d * d, 0) / 7.0 + 1e-3);
        y(row, k::all) = d * scale * w(k::all).load() + b(k::all).load();
      }));
  check_derivatives(norm, 1e-5);
  CHECK(cotangent_of(norm, 0).parts == 0);
  CHECK(cotangent_of(norm, 1).parts == 100);  // 3 rows each, at most 128 parts
}

TEST_CASE("derivatives of products in tiles") {
  const auto s =
      subject(k::trace("matmul", {param(in, {10, 9}), param(in, {9, 7}), param(out, {10, 7})}, {3, 2}, [](Refs r) {
        const In2 a(r[0]), b(r[1]);
        const Out2 c(r[2]);
        const auto rows = k::ds(k::program_id(0) * 4, 4), columns = k::ds(k::program_id(1) * 4, 4);
        k::Mut sum = k::zeros<double>({4, 4});
        k::loop(0, 9, 4, [&](k::Index i) {
          const auto depth = k::ds(i, 4);
          sum = k::dot(a(rows, depth).load(), b(depth, columns).load(), sum.get());
        });
        c(rows, columns) = k::sigmoid(sum.get());
      }));
  check_derivatives(s);
  CHECK(cotangent_of(s, 0).parts == 6);
}

TEST_CASE("loops keep what they carry, conditions follow the way that was taken") {
  const auto s = subject(k::trace("loops", {param(in, {6, 20}), param(out, {6})}, {6}, [](Refs r) {
    const In2 x(r[0]);
    const Out1 y(r[1]);
    const auto row = k::program_id(0);
    // An online logsumexp over as many blocks as the row's number says, and a loop within the loop.
    k::Mut m = k::scalar<double>(-1e30);
    k::Mut l = k::scalar<double>(0.0);
    k::loop(0, row + 1, 1, [&](k::Index i) {
      const auto v = x(row, k::ds(i * 4, 4)).load(-1e30);
      const auto top = k::maximum(m.get(), k::max(v, 0));
      l = l.get() * k::exp(m.get() - top) + k::sum(k::exp(v - top), 0);
      m = top;
    });
    k::Mut p = k::scalar<double>(1.0);
    k::loop(0, 3, 1, [&](k::Index i) {
      k::Mut q = p.get();
      k::loop(0, 2, 1, [&](k::Index j) { q = q.get() * x(row, i * 2 + j).load() + k::sin(q.get()); });
      k::when(row > 2, [&] { q = q.get() * q.get(); });
      p = q.get() + l.get() * 0.1;
    });
    y(row) = m.get() + k::log(l.get()) + p.get();
  }));
  check_derivatives(s, 1e-5);
}

TEST_CASE("derivatives of parallel iterations, which run one after another in them") {
  const auto s = subject(k::trace("parts", {param(in, {3, 20}), param(out, {3})}, {3}, [](Refs r) {
    const auto row = In2(r[0]).fixed(k::program_id(0));
    const auto largest = k::scratch<double>({4}), sums = k::scratch<double>({4});
    k::parallel(4, [&](k::Index part) {
      const auto v = row(k::ds(part * 5, 5)).load();
      const auto most = k::max(v, 0);
      largest(part) = most, sums(part) = k::sum(k::exp(v - most), 0);
    });
    const auto most = k::max(largest(k::all).load(), 0);
    const Out1 y(r[1]);
    y(k::program_id(0)) = most + k::log(k::sum(sums(k::all) * k::exp(largest(k::all) - most), 0));
  }));
  check_derivatives(s, 1e-5);
}

TEST_CASE("derivatives of what moves elements") {
  const auto s = subject(k::trace("moves", {param(in, {4, 6}), param(out, {4, 6}), param(out, {12})}, {1}, [](Refs r) {
    const In2 x(r[0]);
    const Out2 y(r[1]);
    const Out1 z(r[2]);
    const auto v = x(k::all, k::all).load();
    const auto t = k::reshape(k::trans(v), {4, 6});
    const auto [lo, hi] = k::split(k::reshape(v, {4, 3, 2}));
    const auto part = k::slice(v, {3, 5}, {2, 3}, {-2, -2});
    y(k::all, k::all) = t * t + k::flip(v, 1) * k::cumsum(v, 1) + k::cat(lo * hi, hi, 1);
    z(k::all) = k::reshape(k::cat(part * part, part, 0), {12});
  }));
  check_derivatives(s);
}

TEST_CASE("derivatives of reductions and scans by any function") {
  const auto s =
      subject(k::trace("reductions", {param(in, {5, 7}), param(out, {5, 6}), param(out, {5, 7})}, {1}, [](Refs r) {
        const In2 x(r[0]);
        const Out2 y(r[1]), z(r[2]);
        const auto v = x(k::all, k::all).load();
        const auto both = k::reduce(v, 1, [](auto a, auto b) { return a * b + a + b; });
        const auto columns =
            std::array{k::prod(v, 1), k::max(v, 1), k::min(v, 1), k::logsumexp(v, 1), both, k::sum(v * v, 1)};
        for (int c = 0; c < 6; ++c) y(k::all, c) = columns[static_cast<size_t>(c)];
        z(k::all, k::all) = k::cumprod(v, 1) + k::cummax(v, 1, true) * v;
      }));
  check_derivatives(s);
}

TEST_CASE("derivatives of sorting and taking") {
  const auto s = subject(k::trace(
      "order", {param(in, {3, 8}), param(in, {3, 4}, int64), param(out, {3, 8}), param(out, {3, 4})}, {3}, [](Refs r) {
        const In2 x(r[0]);
        const k::In<int64_t, 2> index(r[1]);
        const Out2 y(r[2]), z(r[3]);
        const auto row = k::program_id(0);
        const auto v = x(row, k::all).load();
        const auto sorted = k::sort(v, 0);
        y(row, k::all) = sorted * sorted + v;
        z(row, k::all) = k::take(k::exp(v), index(row, k::all).load(), 0);
      }));
  check_derivatives(s);
}

TEST_CASE("derivatives of memory: in-out arrays, scratch, gathers of equal elements, atomic sums") {
  const auto s = subject(k::trace(
      "memory", {param(in_out, {12}), param(in, {5}), param(in, {12}, int64), param(out, {12})}, {3}, [](Refs r) {
        const k::InOut<double, 1> state(r[0]);
        const In1 table(r[1]);
        const k::In<int64_t, 1> index(r[2]);
        const Out1 y(r[3]);
        const auto at = k::ds(k::program_id(0) * 4, 4);
        const auto kept = k::scratch<double>({4});
        const auto v = state(at).load(), w = k::gather(table, index(at).load());
        kept(k::all) = v * w;
        const auto once = kept(k::all).load();
        kept(k::all) = k::sin(once);
        state(at) = kept(k::all).load() * v;
        y(at) = once + state(at).load();
      }));
  check_derivatives(s);
  const auto sums =
      subject(k::trace("histogram", {param(in, {12}), param(in, {12}, int64), param(in_out, {5})}, {3}, [](Refs r) {
        const In1 x(r[0]);
        const k::In<int64_t, 1> index(r[1]);
        const k::InOut<double, 1> y(r[2]);
        const auto at = k::ds(k::program_id(0) * 4, 4);
        k::atomic("add", y, k::exp(x(at).load()), index(at).load());
      }));
  check_derivatives(sums);
}

TEST_CASE("derivatives of overlapping windows, repeated views and sequential axes") {
  const auto s = subject(k::trace("stencil", {param(in, {20}), param(in, {1, 4}), param(out, {20})}, {5}, [](Refs r) {
    const In1 x(r[0]);
    const In2 w(r[1]);
    const Out1 y(r[2]);
    const auto id = k::program_id(0);
    const auto repeated = k::sum(w.broadcast({3, 4})(k::all, k::all).load(), 0);
    y(k::ds(id * 4, 4)) = x(k::ds(id * 4 - 1, 4)).load() * x(k::ds(id * 4 + 1, 4)).load() * repeated;
  }));
  check_derivatives(s);
  const auto columns = subject(
      k::trace("columns", {param(in, {6, 8}), param(out, {8})}, {2, k::GridAxis(6, k::Order::sequential)}, [](Refs r) {
        const In2 x(r[0]);
        const Out1 y(r[1]);
        const auto at = k::ds(k::program_id(0) * 4, 4);
        const auto i = k::program_id(1);
        const auto v = x(i, at).load();
        k::when(i == 0, [&] { y(at) = v * v; });
        k::when(i > 0, [&] { y(at) = y(at).load() + v * v; });
      }));
  check_derivatives(columns);
}

namespace {

/// Returns the derivative of a kernel in reverse mode as a kernel of its own.
Subject reversed(const Subject& s) {
  std::vector<char> given;
  for (size_t k = 0; k < s.params().size(); ++k) given.push_back(s.writes(k));
  const kernel::Derivative first = kernel::reverse_derivative(s.source(), given);
  const kernel::Source source = source_of(s, first);
  std::vector<k::Param> params;
  for (size_t k = 0; k < first.arrays.size(); ++k) {
    const kernel::DerivedArray& a = first.arrays[k];
    params.push_back({!a.written ? in : a.begins ? in_out : out, float64, source.dims[k]});
  }
  auto data = std::make_shared<k::Program::Data>(k::Program::Data{first.kernel, params, first.programs});
  return subject(k::Program(std::move(data)));
}

}  // namespace

TEST_CASE("a derivative is a kernel: derivatives of derivatives") {
  check_derivatives(reversed(subject(softmax_rows(3, 5))), 1e-5);
  // Groups of programs that share weights, and read their rows twice.
  const auto s =
      subject(k::trace("scaled", {param(in, {131, 3}), param(in, {3}), param(out, {131, 3})}, {131}, [](Refs r) {
        const In2 x(r[0]);
        const In1 w(r[1]);
        const Out2 y(r[2]);
        const auto row = k::program_id(0);
        const auto size = k::sum(x(row, k::all).load() * x(row, k::all).load(), 0);
        y(row, k::all) = x(row, k::all).load() * w(k::all).load() / (size + 1.0);
      }));
  check_derivatives(s);
  check_derivatives(reversed(s), 1e-5);
}

TEST_CASE("what cannot be reversed is refused by name and line") {
  const auto bits = subject(k::trace("bits", {param(in, {4}), param(out, {4})}, {1}, [](Refs r) {
    const In1 x(r[0]);
    const Out1 y(r[1]);
    y(k::all) = k::cast<double>(k::bitcast<int64_t>(x(k::all).load()));
  }));
  CHECK(refusal(bits).starts_with("[kernel bits] "));
  CHECK(refusal(bits).find("derive_test.cpp:") != std::string::npos);
  CHECK(refusal(bits).find("bitcast: the bits of a number have no derivative: give one by custom_function") !=
        std::string::npos);
  const auto often = subject(k::trace("often", {param(in, {1}), param(out, {1})}, {1}, [](Refs r) {
    const In1 x(r[0]);
    const Out1 y(r[1]);
    k::Mut v = x(0).load();
    k::while_([&] { return v.get() < 5.0; }, [&] { v = v.get() * v.get() + 1.0; });
    y(0) = v.get();
  }));
  CHECK(refusal(often).find("runs as often as its condition says") != std::string::npos);
  const auto shared = subject(k::trace("shared", {param(in_out, {4})}, {2}, [](Refs r) {
    const k::InOut<double, 1> x(r[0]);
    x(k::program_id(0) + 2) = x(0).load() * 2.0;
  }));
  CHECK(refusal(shared).find("not known to belong to one program") != std::string::npos);
  const auto scattered =
      subject(k::trace("scattered", {param(in, {4}), param(in, {4}, int64), param(in_out, {4})}, {1}, [](Refs r) {
        const In1 x(r[0]);
        const k::In<int64_t, 1> index(r[1]);
        const k::InOut<double, 1> y(r[2]);
        k::scatter(y, x(k::all).load(), index(k::all).load());
      }));
  CHECK(refusal(scattered).find("scatter: two lanes may store to one element") != std::string::npos);
  const auto unbounded =
      subject(k::trace("unbounded", {param(in, {1}), param(in, {1}, int64), param(out, {1})}, {1}, [](Refs r) {
        const In1 x(r[0]);
        const k::In<int64_t, 1> n(r[1]);
        const Out1 y(r[2]);
        k::Mut v = x(0).load();
        k::loop(0, n(0).load(), 1, [&](k::Index) { v = v.get() * v.get(); });
        y(0) = v.get();
      }));
  CHECK(refusal(unbounded).find("loop: what it carries is needed again") != std::string::npos);
  const auto kept = subject(k::trace("kept", {param(in, {4}), param(out, {4})}, {1}, [](Refs r) {
    const In1 x(r[0]);
    const Out1 y(r[1]);
    const auto s = k::scratch<double>({4});
    s(k::all) = x(k::all).load();
    k::loop(0, 3, 1, [&](k::Index) { s(k::all) = s(k::all).load() * s(k::all).load(); });
    y(k::all) = s(k::all).load();
  }));
  CHECK(refusal(kept).find("a loop or condition reads what is stored later") != std::string::npos);
}

TEST_CASE("a loop of linear steps without a known bound needs nothing again") {
  const auto s = subject(k::trace("linear", {param(in, {12}), param(in, {1}, int64), param(out, {1})}, {1}, [](Refs r) {
    const In1 x(r[0]);
    const k::In<int64_t, 1> n(r[1]);
    const Out1 y(r[2]);
    k::Mut v = k::scalar<double>(0.0);
    k::loop(0, n(0).load() + 3, 1, [&](k::Index i) { v = v.get() * 0.5 + x(i * 2).load(); });
    y(0) = v.get();
  }));
  check_derivatives(s);
}

TEST_CASE("programs that read parts which are not known to lie apart add up in parts") {
  // The rows of a program follow from an array: nothing says that they differ.
  const auto s =
      subject(k::trace("rows", {param(in, {5, 4}), param(in, {200}, int64), param(out, {200})}, {200}, [](Refs r) {
        const In2 x(r[0]);
        const k::In<int64_t, 1> which(r[1]);
        const Out1 y(r[2]);
        const auto id = k::program_id(0);
        const auto row = x(which(id).load(), k::all).load();
        y(id) = k::sum(row * row, 0);
      }));
  check_derivatives(s);
  CHECK(cotangent_of(s, 0).parts == 100);
  // Tiles that overlap by a lane, and tiles that do not.
  const auto windows = [](int64_t step) {
    return subject(k::trace("windows", {param(in, {20, 10}), param(out, {4, 5})}, {4, 2}, [&](Refs r) {
      const In2 x(r[0]);
      const Out2 y(r[1]);
      const auto i = k::program_id(0), j = k::program_id(1);
      const auto v = x(k::ds(i * 5, 5), k::ds(j * step, 6)).load();
      k::when(j == 0, [&] { y(i, k::all) = k::sum(v * v, 1); });
    }));
  };
  check_derivatives(windows(6));
  check_derivatives(windows(5));
  CHECK(cotangent_of(windows(6), 0).parts == 0);
  CHECK(cotangent_of(windows(5), 0).parts == 8);
}
