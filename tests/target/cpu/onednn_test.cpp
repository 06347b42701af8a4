// oneDNN's products against a float64 reference: shapes from 1, strides, transposes, batches and broadcasts,
// bias, residual (also in place), both dtypes; what the rule leaves to generated code; runs from several
// threads and inside the team.
#include "target/cpu/libraries/onednn.h"
#include "target/cpu/cpu.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "runtime/threads.h"

using namespace weft;
using kernel::DotDesc;
using target::onednn_dot;

namespace {

std::mt19937 random_bits(7);
int64_t pick(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(random_bits() % static_cast<uint64_t>(hi - lo + 1));
}

/// Elements of either dtype, seen as doubles.
struct Tensor {
  Dtype dtype;
  std::vector<float> f;
  std::vector<bfloat16_t> h;
  Tensor(Dtype t, int64_t n) : dtype(t) {
    if (t == bfloat16) h.resize(static_cast<size_t>(n));
    else f.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) set(i, static_cast<double>(pick(-64, 64)) / 64.0);
  }
  double at(int64_t i) const {
    return dtype == bfloat16 ? static_cast<double>(static_cast<float>(h.at(static_cast<size_t>(i))))
                             : static_cast<double>(f.at(static_cast<size_t>(i)));
  }
  void set(int64_t i, double v) {
    if (dtype == bfloat16) h.at(static_cast<size_t>(i)) = bfloat16_t(static_cast<float>(v));
    else f.at(static_cast<size_t>(i)) = static_cast<float>(v);
  }
  void* data() { return dtype == bfloat16 ? static_cast<void*>(h.data()) : static_cast<void*>(f.data()); }
};

int64_t span(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides, int64_t rows, int64_t rs,
             int64_t columns, int64_t cs) {
  int64_t last = (rows - 1) * rs + (columns - 1) * cs;
  for (size_t i = 0; i < extents.size(); ++i) last += (extents[i] - 1) * strides[i];
  return last + 1;
}
int64_t batch_of(const DotDesc& d) {
  int64_t n = 1;
  for (int64_t e : d.batch) n *= e;
  return n;
}
int64_t offset(const DotDesc& d, int64_t index, const std::vector<int64_t>& strides) {
  int64_t at = 0;
  for (size_t i = d.batch.size(); i-- > 0; index /= d.batch[i]) at += index % d.batch[i] * strides[i];
  return at;
}

double activated(kernel::Activation activation, double x) {
  switch (activation) {
    case kernel::Activation::relu: return std::max(x, 0.0);
    case kernel::Activation::gelu: return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case kernel::Activation::gelu_tanh:
      return x * 0.5 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case kernel::Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case kernel::Activation::tanh: return std::tanh(x);
    default: return x;
  }
}

struct Problem {
  DotDesc d;
  Tensor a, b, bias, residual, c;
  explicit Problem(const DotDesc& desc)
      : d(desc), a(d.a, span(d.batch, d.a_batch, d.m, d.a_m, d.k, d.a_k)),
        b(d.b, span(d.batch, d.b_batch, d.k, d.b_k, d.n, d.b_n)), bias(d.c, d.n),
        residual(d.c, span(d.batch, d.c_batch, d.m, d.c_m, d.n, d.c_n)), c(residual) {
    for (int64_t i = 0; i < static_cast<int64_t>(std::max(c.f.size(), c.h.size())); ++i) c.set(i, 777);
  }

  std::vector<void*> operands(bool in_place) {
    std::vector<void*> out{a.data(), b.data()};
    if (d.bias) out.push_back(bias.data());
    if (d.residual) out.push_back(in_place ? c.data() : residual.data());
    out.push_back(c.data());
    return out;
  }

  /// The largest error in units of what rounding explains; elements between those of C must be untouched.
  double error() const {
    double worst = 0;
    std::vector<char> written(std::max(c.f.size(), c.h.size()), 0);
    for (int64_t i = 0; i < batch_of(d); ++i) {
      const int64_t ao = offset(d, i, d.a_batch), bo = offset(d, i, d.b_batch), co = offset(d, i, d.c_batch);
      for (int64_t m = 0; m < d.m; ++m) {
        for (int64_t n = 0; n < d.n; ++n) {
          double sum = d.bias ? bias.at(n) : 0, size = 1;
          const int64_t at = co + m * d.c_m + n * d.c_n;
          for (int64_t k = 0; k < d.k; ++k) {
            const double term = a.at(ao + m * d.a_m + k * d.a_k) * b.at(bo + k * d.b_k + n * d.b_n);
            sum += term, size += std::abs(term);
          }
          sum = activated(d.activation, sum) + (d.residual ? residual.at(at) : 0);
          const double allowed = (d.activation == kernel::Activation::none ? 4e-7 : 4e-6) * size *
                                     std::sqrt(static_cast<double>(d.k) + 4) +
                                 (d.c == bfloat16 ? 0.02 * (std::abs(sum) + 0.5) : 0);
          const double gap = std::abs(c.at(at) - sum) / allowed;
          worst = std::isfinite(gap) ? std::max(worst, gap) : 1e30;
          written[static_cast<size_t>(at)] = 1;
        }
      }
    }
    for (size_t i = 0; i < written.size(); ++i) {
      if (!written[i] && c.at(static_cast<int64_t>(i)) != static_cast<double>(static_cast<float>(bfloat16_t(777.0f))) &&
          c.at(static_cast<int64_t>(i)) != 777)
        worst = 1e30;
    }
    return worst;
  }
};

enum class Layout { rows, columns };
void matrix(int64_t rows, int64_t columns, Layout layout, int64_t pad, int64_t& rs, int64_t& cs) {
  if (layout == Layout::rows) cs = 1, rs = columns + pad;
  else rs = 1, cs = rows + pad;
}

DotDesc plain(int64_t m, int64_t n, int64_t k) {
  DotDesc d;
  d.m = m, d.n = n, d.k = k, d.a_m = k, d.a_k = 1, d.b_k = n, d.b_n = 1, d.c_m = n, d.c_n = 1;
  return d;
}

bool check_runs(const DotDesc& d, bool in_place, bool required = true) {
  const auto call = onednn_dot(d);
  INFO(d.to_string(), " a ", d.a_m, ",", d.a_k, " b ", d.b_k, ",", d.b_n, " c ", d.c_m, ",", d.c_n, " batch axes ",
       d.batch.size(), " in place ", in_place);
  if (!call) {
    CHECK(!required);
    return false;
  }
  Problem p(d);
  if (in_place) p.c = p.residual;
  call->run(p.operands(in_place));
  INFO(call->name());
  if (in_place) {  // the gaps between rows keep what was there: put the mark of the check in
    for (int64_t i = 0; i < static_cast<int64_t>(std::max(p.c.f.size(), p.c.h.size())); ++i) {
      bool inside = false;
      for (int64_t b = 0; b < batch_of(d) && !inside; ++b) {
        const int64_t rest = i - offset(d, b, d.c_batch);
        for (int64_t m = 0; m < d.m && !inside; ++m) {
          const int64_t column = rest - m * d.c_m;
          inside = column >= 0 && column % d.c_n == 0 && column / d.c_n < d.n;
        }
      }
      if (!inside) {
        CHECK(p.c.at(i) == p.residual.at(i));
        p.c.set(i, 777);
      }
    }
  }
  CHECK(p.error() <= 1.0);
  return true;
}

bool built_in() {
  if (!target::onednn_version().empty()) return true;
  MESSAGE("built without oneDNN");
  return false;
}

/// Whether oneDNN takes products of this dtype at all, on this processor: the plainest one is asked for.
bool takes(Dtype t) {
  DotDesc d = plain(64, 64, 64);
  d.a = d.b = d.c = t;
  return onednn_dot(d) != nullptr;
}

}  // namespace

TEST_CASE("onednn: which dtypes it takes depends on the instructions that it has") {
  if (!built_in()) return;
  CHECK(takes(float32));
  if (target::onednn_isa().vector_bits == 512) CHECK(takes(bfloat16));
  CHECK_FALSE(takes(float64));
}

TEST_CASE("onednn: random products in all layouts") {
  if (!built_in()) return;
  const int rounds = 200;
  const bool takes_low = takes(bfloat16);
  int asked = 0, taken = 0;
  for (int round = 0; round < rounds; ++round) {
    DotDesc d;
    const auto extent = [] { return pick(0, 5) == 0 ? int64_t{1} : pick(2, 70); };
    d.m = extent(), d.n = extent(), d.k = extent();
    const bool low = round % 3 == 1, mixed = low && pick(0, 1);
    d.a = d.b = low ? bfloat16 : float32;
    d.c = low && !mixed ? bfloat16 : float32;
    const auto layout = [] { return pick(0, 1) ? Layout::rows : Layout::columns; };
    const auto pad = [] { return pick(0, 2) ? 0 : pick(1, 9); };
    matrix(d.m, d.k, layout(), pad(), d.a_m, d.a_k);
    matrix(d.k, d.n, layout(), pad(), d.b_k, d.b_n);
    matrix(d.m, d.n, pick(0, 3) ? Layout::rows : Layout::columns, pad(), d.c_m, d.c_n);
    const int64_t axes = pick(0, 2);
    int64_t as = std::max(d.m * d.a_m, d.k * d.a_k), bs = std::max(d.k * d.b_k, d.n * d.b_n),
            cs = std::max(d.m * d.c_m, d.n * d.c_n);
    for (int64_t i = 0; i < axes; ++i) {
      const int64_t e = pick(1, 4);
      d.batch.insert(d.batch.begin(), e);
      const bool share_a = pick(0, 4) == 0, share_b = pick(0, 3) == 0;
      d.a_batch.insert(d.a_batch.begin(), share_a ? 0 : as);
      d.b_batch.insert(d.b_batch.begin(), share_b ? 0 : bs);
      d.c_batch.insert(d.c_batch.begin(), cs);
      as *= share_a ? 1 : e, bs *= share_b ? 1 : e, cs *= e;
    }
    d.bias = pick(0, 1);
    d.residual = pick(0, 2) == 0;
    if (pick(0, 2) == 0) d.activation = static_cast<kernel::Activation>(pick(1, 5));
    double work = static_cast<double>(d.m * d.n * d.k * batch_of(d));
    // Make small ones large enough through one more batch axis, so that extents of 1 are tested as well.
    if (work < target::onednn_min_work) {
      const auto more = static_cast<int64_t>(target::onednn_min_work / work) + 1;
      d.batch.insert(d.batch.begin(), more);
      d.a_batch.insert(d.a_batch.begin(), as);
      d.b_batch.insert(d.b_batch.begin(), bs);
      d.c_batch.insert(d.c_batch.begin(), cs);
    }
    const bool ran = check_runs(d, d.residual && pick(0, 1), false);
    if (low && !takes_low) CHECK_FALSE(ran);
    else ++asked, taken += ran;
  }
  MESSAGE("oneDNN took ", taken, " of ", asked);
  CHECK(taken >= asked / 2);  // the rest: padded batches with a broadcast operand, and the like
}

TEST_CASE("onednn: the CPU target gives it bfloat16 products only where the processor has tiles for them") {
  if (!built_in()) return;
  DotDesc d = plain(64, 64, 64);
  CHECK(target::cpu().library(d) != nullptr);
  d.a = d.b = d.c = bfloat16;
  CHECK((target::cpu().library(d) != nullptr) ==
        (target::cpu_isa().tiles && takes(bfloat16)));  // oneDNN may be bound more tightly than this process
  CHECK(target::CpuTarget({"generic", true}).library(d) == nullptr);
}

TEST_CASE("onednn: the CPU target leaves products that are limited by reading a matrix to generated code") {
  if (!built_in()) return;
  for (const int64_t rows : {1, 4}) {
    CHECK(target::cpu().library(plain(rows, 512, 512)) == nullptr);
    CHECK(target::cpu().library(plain(512, rows, 512)) == nullptr);
  }
  CHECK(target::cpu().library(plain(8, 512, 512)) != nullptr);
  CHECK(onednn_dot(plain(4, 512, 512)) != nullptr);
}

TEST_CASE("onednn: the products of a GPT are all taken, in every dtype of which it takes any") {
  if (!built_in()) return;
  const int64_t B = 3, T = 20, H = 2, D = 16, W = H * D;
  for (Dtype t : {float32, bfloat16}) {
    if (!takes(t)) continue;
    const auto base = [&](int64_t m, int64_t n, int64_t k) {
      DotDesc d = plain(m, n, k);
      d.a = d.b = d.c = t;
      return d;
    };
    DotDesc scores = base(T, T, D);  // q, k: slices of [B,T,3W]
    scores.batch = {B, H};
    scores.a_batch = scores.b_batch = {T * 3 * W, D};
    scores.a_m = 3 * W, scores.b_k = 1, scores.b_n = 3 * W;
    scores.c_batch = {H * T * T, T * T};
    check_runs(scores, false);
    DotDesc context = base(T, D, T);  // into [B,T,H,D]
    context.batch = {B, H};
    context.a_batch = {H * T * T, T * T};
    context.b_batch = {T * 3 * W, D};
    context.b_k = 3 * W;
    context.c_batch = {T * W, D};
    context.c_m = W;
    context.residual = true;
    check_runs(context, false);
    check_runs(context, true);
    DotDesc forward = base(60, 65, 128);  // x[B,T,K]·W[N,K]^T + bias + residual, batch axis in rows
    forward.batch = {3};
    forward.m = 20;
    forward.a_batch = {20 * 128}, forward.b_batch = {0}, forward.c_batch = {20 * 65};
    forward.b_k = 1, forward.b_n = 128;
    forward.bias = forward.residual = true;
    check_runs(forward, false);
    check_runs(forward, true);
    DotDesc weights = base(128, 65, 60);  // x^T·dy
    weights.a_m = 1, weights.a_k = 128;
    check_runs(weights, false);
    DotDesc decode = base(1, 300, 128);
    decode.b_k = 1, decode.b_n = 128;
    decode.bias = true;
    check_runs(decode, false);
  }
}

TEST_CASE("onednn: colliding rows go through a reorder") {
  if (!built_in()) return;
  DotDesc d = plain(49, 300, 64);
  d.b_k = 3072;
  d.bias = d.residual = true;
  const auto call = onednn_dot(d);
  REQUIRE(call != nullptr);
  CHECK(call->name().find("packed") != std::string::npos);
  check_runs(d, false);
  check_runs(d, true);
  d.b_k = 2048;
  CHECK(onednn_dot(d)->name().find("packed") == std::string::npos);
}

TEST_CASE("onednn: C by columns is the transposed product") {
  if (!built_in()) return;
  DotDesc d = plain(40, 50, 30);
  d.c_m = 1, d.c_n = 40;
  check_runs(d, false);
  d.residual = true;
  check_runs(d, false);
  check_runs(d, true);
  d.bias = true;
  CHECK(onednn_dot(d) == nullptr);
}

TEST_CASE("onednn: what the rule leaves to generated code") {
  if (!built_in()) return;
  CHECK(onednn_dot(plain(64, 64, 64)) != nullptr);
  CHECK(onednn_dot(plain(8, 8, 8)) == nullptr);  // too little work
  CHECK(onednn_dot(plain(0, 64, 64)) == nullptr);
  DotDesc d = plain(64, 64, 64);
  d.a = bfloat16;
  CHECK(onednn_dot(d) == nullptr);  // mixed operands
  d = plain(64, 64, 64);
  d.a = d.b = d.c = float64;
  CHECK(onednn_dot(d) == nullptr);
  d = plain(64, 64, 64);
  d.c = bfloat16;
  CHECK(onednn_dot(d) == nullptr);
  d = plain(64, 64, 64);
  d.a_k = 2, d.a_m = 128;
  CHECK(onednn_dot(d) == nullptr);  // no contiguous axis
  d = plain(64, 64, 64);
  d.a_m = 1;
  CHECK(onednn_dot(d) == nullptr);  // overlapping rows
  d = plain(64, 64, 64);
  d.a_m = 0;
  CHECK(onednn_dot(d) == nullptr);
}

TEST_CASE("onednn: one call from several threads, inside the team, and with another size of the team") {
  if (!built_in()) return;
  DotDesc d = plain(96, 80, 70);
  d.bias = true;
  const auto call = onednn_dot(d);
  REQUIRE(call != nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  std::vector<Problem> problems;
  for (int t = 0; t < 4; ++t) problems.emplace_back(d);
  for (auto& p : problems) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) call->run(p.operands(false));
      if (p.error() > 1) ++wrong;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);

  const int before = runtime::num_threads();
  for (int n : {1, 2, 3}) {
    runtime::set_num_threads(n);
    std::vector<Problem> inside;
    for (int t = 0; t < 4; ++t) inside.emplace_back(d);
    runtime::parallel_for(4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) call->run(inside[static_cast<size_t>(i)].operands(false));
    });
    for (const Problem& p : inside) CHECK(p.error() <= 1);
    Problem outside(d);
    call->run(outside.operands(false));
    CHECK(outside.error() <= 1);
  }
  runtime::set_num_threads(before);
}
