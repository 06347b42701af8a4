// Matrix products through cuBLASLt: which it takes and in which terms (a reference of cuBLASLt's own definition runs on
// the host), and on a device the numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "target/cuda/cuda_support.h"
#include "target/cuda/libraries/cublaslt.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using namespace weft::test;
using kernel::Activation;
using kernel::DotDesc;
using kernel::OperandSum;
using kernel::PreActivation;

namespace {

DotDesc plain(int64_t m, int64_t n, int64_t k, Dtype in = float32, Dtype out = float32) {
  DotDesc d;
  d.a = d.b = in, d.c = out;
  d.m = m, d.n = n, d.k = k;
  d.a_m = k, d.a_k = 1, d.b_k = n, d.b_n = 1, d.c_m = n, d.c_n = 1;
  return d;
}

DotDesc batched(DotDesc d, std::vector<int64_t> extents, std::vector<int64_t> a, std::vector<int64_t> b,
                std::vector<int64_t> c) {
  d.batch = std::move(extents), d.a_batch = std::move(a), d.b_batch = std::move(b), d.c_batch = std::move(c);
  return d;
}

template <class Edit>
DotDesc edited(DotDesc d, Edit edit) {
  edit(d);
  return d;
}

/// Every index of the batch, with where it begins in A, B and C.
void each_batch(const DotDesc& d, const std::function<void(int64_t, int64_t, int64_t)>& visit, size_t axis = 0,
                int64_t a = 0, int64_t b = 0, int64_t c = 0) {
  if (axis == d.batch.size()) return visit(a, b, c);
  for (int64_t i = 0; i < d.batch[axis]; ++i)
    each_batch(d, visit, axis + 1, a + i * d.a_batch[axis], b + i * d.b_batch[axis], c + i * d.c_batch[axis]);
}

struct Sizes {
  size_t a = 0, b = 0, c = 0;
};
Sizes sizes(const DotDesc& d) {
  Sizes s;
  each_batch(d, [&](int64_t a, int64_t b, int64_t c) {
    s.a = std::max(s.a, static_cast<size_t>(a + (d.m - 1) * d.a_m + (d.k - 1) * d.a_k + 1));
    s.b = std::max(s.b, static_cast<size_t>(b + (d.k - 1) * d.b_k + (d.n - 1) * d.b_n + 1));
    s.c = std::max(s.c, static_cast<size_t>(c + (d.m - 1) * d.c_m + (d.n - 1) * d.c_n + 1));
  });
  return s;
}

double activated(Activation activation, double x) {
  if (activation == Activation::relu) return std::max(x, 0.0);
  if (activation == Activation::gelu_tanh)
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  return x;
}

double gelu_derivative(double x) {
  const double root = std::sqrt(2 / std::acos(-1.0)), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

struct Data {
  std::vector<double> a, b, bias, residual, c, argument, scales;
  double scale() const { return std::accumulate(scales.begin(), scales.end(), 1.0, std::multiplies<>()); }
};

/// What stands at a position of C, and of the pre-activation, for a product with its bias.
void finish(const DotDesc& d, Data& x, size_t at, double sum) {
  if (d.pre_activation == PreActivation::derivative) {
    x.c[at] = sum * gelu_derivative(x.argument[at]);
    return;
  }
  if (d.pre_activation == PreActivation::stored) x.argument[at] = sum;
  x.c[at] = activated(d.activation, sum) + (d.residual ? x.residual[at] : 0);
}

/// What the descriptor says, in float64.
void direct(const DotDesc& d, Data& x) {
  each_batch(d, [&](int64_t a, int64_t b, int64_t c) {
    for (int64_t i = 0; i < d.m; ++i)
      for (int64_t j = 0; j < d.n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < d.k; ++l)
          sum +=
              x.a[static_cast<size_t>(a + i * d.a_m + l * d.a_k)] * x.b[static_cast<size_t>(b + l * d.b_k + j * d.b_n)];
        const auto at = static_cast<size_t>(c + i * d.c_m + j * d.c_n);
        sum *= x.scale();
        if (d.bias) sum += x.bias[static_cast<size_t>(j)];
        finish(d, x, at, sum);
      }
  });
}

/// What cuBLASLt computes for a form, by its documentation: column-major matrices, a bias along D's rows, the gradients
/// of biases along k.
void as_cublaslt(const DotDesc& d, const cuda::LtForm& f, Data& x) {
  const std::vector<double>&a = f.swapped ? x.b : x.a, &b = f.swapped ? x.a : x.b;
  const int64_t m = f.d.rows, n = f.d.columns, k = f.a.transposed ? f.a.rows : f.a.columns;
  REQUIRE((f.a.transposed ? f.a.columns : f.a.rows) == m);
  REQUIRE((f.b.transposed ? f.b.columns : f.b.rows) == k);
  REQUIRE((f.b.transposed ? f.b.rows : f.b.columns) == n);
  const auto element = [](const cuda::LtMatrix& t, int64_t row, int64_t column) {
    return t.transposed ? column + row * t.leading : row + column * t.leading;
  };
  for (const cuda::LtForm::Offset& call : f.calls)
    for (int64_t batch = 0; batch < f.batch; ++batch) {
      const int64_t at_a = call.a + batch * f.a.batch_stride, at_b = call.b + batch * f.b.batch_stride,
                    at_d = call.c + batch * f.d.batch_stride;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const auto at = static_cast<size_t>(at_d + i + j * f.d.leading);
          double sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum +=
                a[static_cast<size_t>(at_a + element(f.a, i, l))] * b[static_cast<size_t>(at_b + element(f.b, l, j))];
          sum = sum * x.scale() + (d.residual ? x.residual[at] : 0);
          if (f.epilogue & cuda::lt::epilogue_bias) sum += x.bias[static_cast<size_t>(i)];
          if (const uint32_t kind = f.epilogue & ~uint32_t{cuda::lt::epilogue_bias};
              kind == cuda::lt::epilogue_gelu_aux || kind == cuda::lt::epilogue_dgelu) {
            if (kind == cuda::lt::epilogue_gelu_aux)
              x.argument[at] = sum, x.c[at] = activated(Activation::gelu_tanh, sum);
            else x.c[at] = sum * gelu_derivative(x.argument[at]);
            continue;
          }
          const Activation follows = f.epilogue & cuda::lt::epilogue_relu   ? Activation::relu
                                     : f.epilogue & cuda::lt::epilogue_gelu ? Activation::gelu_tanh
                                                                            : Activation::none;
          x.c[at] = activated(follows, sum);
        }
    }
}

Data data_for(const DotDesc& d) {
  const Sizes s = sizes(d);
  Data x{numbers(s.a, 1), numbers(s.b, 2), {}, {}, std::vector<double>(s.c, -7), {}, {}};
  for (auto* v : {&x.a, &x.b})
    for (double& e : *v) e = d.a == int8 ? std::round(e * 20) : e;
  x.a = rounded(x.a, d.a), x.b = rounded(x.b, d.b);
  if (d.bias) x.bias = rounded(numbers(static_cast<size_t>(d.n), 3), d.c);
  if (d.residual) x.residual = rounded(numbers(s.c, 4), d.c);
  for (int64_t k = 0; k < d.scales; ++k) x.scales.push_back(k == 0 ? 0.375 : 16);
  if (d.pre_activation != PreActivation::none) x.argument = rounded(numbers(s.c, 5), d.c);
  return x;
}

/// Products with every layout, epilogue and batch that the rule speaks of.
std::vector<DotDesc> taken(Dtype in, Dtype out) {
  const DotDesc base = plain(40, 48, 64, in, out);
  std::vector<DotDesc> list = {
      base,
      edited(base, [](DotDesc& d) { d.a_m = 1, d.a_k = 40; }),                         // Aᵀ
      edited(base, [](DotDesc& d) { d.b_k = 1, d.b_n = 64; }),                         // Bᵀ
      edited(base, [](DotDesc& d) { d.a_m = 1, d.a_k = 40, d.b_k = 1, d.b_n = 64; }),  // both
      edited(base, [](DotDesc& d) { d.c_m = 1, d.c_n = 40; }),                         // column-major C
      edited(base, [](DotDesc& d) { d.a_m = 80, d.b_k = 96, d.c_m = 56; }),            // rows with gaps
      edited(base, [](DotDesc& d) { d.bias = true; }),
      edited(base, [](DotDesc& d) { d.activation = Activation::relu; }),
      edited(base, [](DotDesc& d) { d.activation = Activation::gelu_tanh; }),
      edited(base, [](DotDesc& d) { d.bias = true, d.activation = Activation::relu; }),
      edited(base, [](DotDesc& d) { d.bias = true, d.activation = Activation::gelu_tanh; }),
      edited(base, [](DotDesc& d) { d.residual = true; }),
      edited(base, [](DotDesc& d) { d.bias = d.residual = true; }),
      edited(plain(1, 1024, 64, in, out), [](DotDesc& d) { d.bias = true; }),  // a row times a matrix
      plain(1024, 1, 64, in, out),                                             // a matrix times a column
      batched(base, {3}, {40 * 64}, {64 * 48}, {40 * 48}),
      batched(base, {3}, {40 * 64}, {0}, {40 * 48}),  // B shared: rows of one product
      batched(base, {3}, {0}, {64 * 48}, {40 * 48}),  // A shared
      edited(batched(base, {3}, {40 * 64}, {64 * 48}, {40 * 48}), [](DotDesc& d) { d.bias = true; }),
      // Heads inside of packed rows, [B, T, 3, H, D] as [B, H, T, D]: two batch axes that do not merge.
      batched(edited(plain(40, 40, 16, in, out), [](DotDesc& d) { d.a_m = d.b_n = 3 * 4 * 16, d.a_k = d.b_k = 1; }),
              {2, 4}, {40 * 192, 16}, {40 * 192, 16}, {4 * 1600, 1600}),
  };
  const auto with_pre_activation = [&](PreActivation argument, bool bias, bool transposed) {
    list.push_back(edited(base, [&](DotDesc& d) {
      d.activation = Activation::gelu_tanh, d.pre_activation = argument, d.bias = bias;
      if (transposed) d.b_k = 1, d.b_n = 64;
    }));
  };
  if (out.size() == 2) {
    for (const bool bias : {false, true}) with_pre_activation(PreActivation::stored, bias, true);
    for (const bool transposed : {false, true}) with_pre_activation(PreActivation::derivative, false, transposed);
  }
  if (in == float32)  // gelu's approximation is too coarse for it
    std::erase_if(list, [](const DotDesc& d) { return d.activation == Activation::gelu_tanh; });
  return list;
}

/// Products of 8-bit floats with what may follow them.
std::vector<DotDesc> eights() {
  std::vector<DotDesc> list;
  const auto add = [&](Dtype a, Dtype b, Dtype c, int64_t scales, bool bias, bool residual) {
    DotDesc d = edited(plain(96, 64, 128, a, c), [](DotDesc& e) { e.b_k = 1, e.b_n = e.k; });
    d.b = b, d.scales = scales, d.bias = bias, d.residual = residual;
    list.push_back(d);
  };
  for (const int64_t scales : {0, 1, 2}) add(float8_e4m3, float8_e4m3, bfloat16, scales, false, false);
  add(float8_e5m2, float8_e4m3, bfloat16, 2, false, false);
  add(float8_e4m3, float8_e5m2, float32, 2, false, false);
  add(float8_e4m3, float8_e4m3, bfloat16, 2, true, false);
  add(float8_e4m3, float8_e4m3, bfloat16, 2, false, true);
  add(float8_e4m3, float8_e4m3, bfloat16, 2, true, true);
  add(float8_e5m2, float8_e4m3, float32, 2, false, true);
  return list;
}

}  // namespace

TEST_CASE("cublaslt: gelu after a product in float32 is taken where the product is rounded to TF32") {
  const DotDesc d = edited(plain(40, 48, 64), [](DotDesc& x) { x.activation = Activation::gelu_tanh; });
  CHECK(!cuda::cublaslt_form(d).has_value());
  CHECK(cuda::cublaslt_form(d, true).has_value());
}

TEST_CASE("cublaslt: the form of a product means what the descriptor says") {
  std::vector<DotDesc> all = taken(float32, float32);
  for (const DotDesc& d : taken(bfloat16, bfloat16))
    if (d.pre_activation != PreActivation::none) all.push_back(d);
  for (const DotDesc& d : eights()) all.push_back(d);
  for (const DotDesc& d : all) {
    CAPTURE(d.to_string());
    const auto form = cuda::cublaslt_form(d);
    REQUIRE(form.has_value());
    CHECK(form->d.transposed == false);
    for (const cuda::LtMatrix* m : {&form->a, &form->b, &form->d}) CHECK(m->leading >= m->rows);
    Data want = data_for(d), got = want;
    direct(d, want);
    as_cublaslt(d, *form, got);
    CHECK(worst_error(got.c, want.c) < 1e-12);
    CHECK(worst_error(got.argument, want.argument) < 1e-12);
  }
}

TEST_CASE("cublaslt: rows that share a matrix are one product, heads are few") {
  const DotDesc rows = batched(plain(40, 48, 64), {3}, {40 * 64}, {0}, {40 * 48});
  const auto form = cuda::cublaslt_form(rows);
  REQUIRE(form.has_value());
  CHECK(form->batch == 1);
  CHECK(form->calls.size() == 1);
  CHECK(form->d.columns == 120);
  const auto heads = cuda::cublaslt_form(taken(float32, float32).back());
  REQUIRE(heads.has_value());
  CHECK(heads->batch == 4);
  CHECK(heads->calls.size() == 2);
}

TEST_CASE("cublaslt: what it does not take is left alone") {
  const DotDesc base = plain(40, 48, 64);
  const auto refused = [](const DotDesc& d) { return !cuda::cublaslt_form(d).has_value(); };
  CHECK(!refused(base));
  CHECK(refused(plain(8, 8, 8)));                                            // too small
  CHECK(refused(edited(base, [](DotDesc& d) { d.a_m = 128, d.a_k = 2; })));  // no contiguous axis
  CHECK(refused(edited(base, [](DotDesc& d) { d.a_m = 1, d.a_k = 1; })));    // a window: rows overlap
  CHECK(refused(edited(base, [](DotDesc& d) { d.c_m = 96, d.c_n = 2; })));
  CHECK(
      refused(edited(base, [](DotDesc& d) { d.bias = true, d.c_m = 1, d.c_n = 40; })));  // a bias along the wrong axis
  CHECK(refused(edited(base, [](DotDesc& d) { d.residual = true, d.activation = Activation::relu; })));
  for (Activation a : {Activation::gelu, Activation::sigmoid, Activation::tanh})
    CHECK(refused(edited(base, [a](DotDesc& d) { d.activation = a; })));
  for (const PreActivation argument : {PreActivation::stored, PreActivation::derivative}) {
    const auto gelu = [argument](DotDesc& d) { d.activation = Activation::gelu_tanh, d.pre_activation = argument; };
    const DotDesc half = edited(plain(40, 48, 64, bfloat16, bfloat16), gelu);
    CHECK(!refused(half));
    CHECK(refused(edited(base, gelu)));  // float32
    CHECK(refused(edited(half, [](DotDesc& d) { d.activation = Activation::relu; })));
    CHECK(refused(edited(half, [](DotDesc& d) { d.residual = true; })));
    CHECK(refused(edited(half, [](DotDesc& d) { d.c_m = 52; })));  // rows of the argument at 8 bytes
  }
  for (const OperandSum sum : {OperandSum::a, OperandSum::b, OperandSum::c})
    CHECK(refused(edited(base, [&](DotDesc& d) { d.sum = sum; })));
  CHECK(refused(batched(base, {3}, {40 * 64}, {64 * 48}, {0})));  // results on top of each other
  CHECK(refused(batched(base, {7, 64}, {64 * 40 * 64 * 2, 40 * 64}, {64 * 64 * 48 * 2, 64 * 48},
                        {40 * 48, 7 * 40 * 48})) == false);
  CHECK(refused(batched(base, {40, 64}, {64 * 40 * 64 * 2, 40 * 64}, {64 * 64 * 48 * 2, 64 * 48},
                        {40 * 48, 40 * 40 * 48})));  // 40 calls
  CHECK(refused(plain(40, 48, 64, bfloat16, float16)));
  CHECK(refused(plain(40, 48, 64, int32, int32)));
  const DotDesc eight = eights()[2];
  CHECK(!refused(eight));
  CHECK(refused(edited(eight, [](DotDesc& d) { d.b_k = d.n, d.b_n = 1; })));  // not along k
  CHECK(refused(edited(eight, [](DotDesc& d) { d.a_m = 1, d.a_k = d.m; })));
  CHECK(refused(edited(eight, [](DotDesc& d) { d.n = 56, d.c_m = 56; })));  // no multiple of 16
  CHECK(refused(edited(eight, [](DotDesc& d) { d.a = d.b = float8_e5m2; })));
  CHECK(refused(edited(eight, [](DotDesc& d) { d.c = float32, d.bias = true; })));
  CHECK(refused(edited(eight, [](DotDesc& d) { d.activation = Activation::relu; })));
  CHECK(refused(edited(plain(48, 48, 64, bfloat16, bfloat16), [](DotDesc& d) { d.scales = 2; })));
}

TEST_CASE("cublaslt: TF32 only where it is asked for") {
  CHECK(cuda::cublaslt_form(plain(40, 48, 64))->compute == cuda::lt::compute_32f);
  CHECK(cuda::cublaslt_form(plain(40, 48, 64), true)->compute == cuda::lt::compute_32f_fast_tf32);
  CHECK(cuda::cublaslt_form(plain(40, 48, 64, bfloat16, float32), true)->compute == cuda::lt::compute_32f);
  CHECK(cuda::cublaslt_form(plain(40, 48, 64, float64, float64), true)->compute == cuda::lt::compute_64f);
}

namespace {

/// Runs a descriptor on the device and compares. False where cuBLASLt declines.
bool run_on_device(const DotDesc& d, double tolerance, const cuda::CublasltOptions& options = {}, size_t offset = 0) {
  cuda::Context& context = test::context();
  CAPTURE(d.to_string());
  const auto call = cuda::cublaslt(d, context, options);
  if (!call) return false;
  Data x = data_for(d);
  const std::vector<double> before = rounded(x.c, d.c);
  const DeviceArray a(context, x.a, d.a, offset), b(context, x.b, d.b, offset), bias(context, x.bias, d.c, offset),
      residual(context, x.residual, d.c, offset), c(context, x.c, d.c, offset),
      argument(context, x.argument, d.c, offset);
  std::vector<std::unique_ptr<DeviceArray>> scales;
  for (const double s : x.scales)
    scales.push_back(std::make_unique<DeviceArray>(context, std::vector<double>{s}, float32));
  std::vector<void*> operands = {a.address(), b.address()};
  if (d.bias) operands.push_back(bias.address());
  if (d.residual) operands.push_back(residual.address());
  if (d.pre_activation != PreActivation::none) operands.push_back(argument.address());
  for (const auto& s : scales) operands.push_back(s->address());
  operands.push_back(c.address());
  x.c = before;
  direct(d, x);
  call->run(operands);
  const std::vector<double> first = c.values();
  CHECK(worst_error(first, x.c) < tolerance);
  CHECK(worst_error(argument.values(), x.argument) < tolerance);
  call->run(operands);  // after the search
  CHECK(c.values() == first);
  CHECK(call->name().find("cublaslt") == 0);
  return true;
}

/// Tensor cores add products of 8-bit floats to a sum of 14 bits: what lies below is cut off, of each product and at
/// every step, until cuBLASLt adds what 128 of them made up to a float32. Up to 1.2 of 2^-10 of the products'
/// magnitudes were seen to be lost on an H200, where all products are positive and the loss always goes the same way,
/// at any depth.
bool run_in_eight_bits(const DotDesc& d, bool positive = false) {
  cuda::Context& context = test::context();
  CAPTURE(d.to_string());
  CAPTURE(positive);
  const auto call = cuda::cublaslt(d, context);
  if (!call) return false;
  Data x = data_for(d);
  const auto magnitudes = [](std::vector<double> v) {
    for (double& e : v) e = std::fabs(e);
    return v;
  };
  if (positive) x.a = magnitudes(x.a), x.b = magnitudes(x.b);
  const DeviceArray a(context, x.a, d.a), b(context, x.b, d.b), bias(context, x.bias, d.c),
      residual(context, x.residual, d.c), c(context, x.c, d.c);
  std::vector<std::unique_ptr<DeviceArray>> scales;
  std::vector<void*> operands = {a.address(), b.address()};
  if (d.bias) operands.push_back(bias.address());
  if (d.residual) operands.push_back(residual.address());
  for (const double s : x.scales)
    operands.push_back(
        scales.emplace_back(std::make_unique<DeviceArray>(context, std::vector<double>{s}, float32))->address());
  operands.push_back(c.address());
  Data products = x;
  direct(d, x);
  products.a = magnitudes(x.a), products.b = magnitudes(x.b);
  DotDesc plain_sums = d;
  plain_sums.bias = plain_sums.residual = false;
  direct(plain_sums, products);
  call->run(operands);
  const std::vector<double> first = c.values();
  double worst = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    const double rounding = d.c == float32 ? 0x1p-22 : 0x1p-8,
                 allowed = 0x1p-9 * std::fabs(products.c[i]) +
                           rounding * (std::fabs(x.c[i]) + (d.residual ? std::fabs(x.residual[i]) : 0));
    const double beside = std::fabs(first[i] - x.c[i]) / allowed;
    worst = test::larger(worst, beside);
  }
  CHECK(worst <= 1);
  call->run(operands);  // after the search
  CHECK(c.values() == first);
  return true;
}

}  // namespace

TEST_CASE("cublaslt on the device: layouts, batches and epilogues in every dtype") {
  if (!on_device()) return;
  struct Types {
    Dtype in, out;
    double tolerance;
  };
  for (const Types& t : {Types{float32, float32, 2e-5},
                         {bfloat16, bfloat16, 8e-3},
                         {bfloat16, float32, 2e-5},
                         {float16, float16, 1e-3},
                         {float16, float32, 2e-5},
                         {float64, float64, 1e-12}}) {
    CAPTURE(dtype_name(t.in));
    CAPTURE(dtype_name(t.out));
    int declined = 0;
    for (const DotDesc& d : taken(t.in, t.out)) {
      if (run_on_device(d, t.tolerance)) continue;
      ++declined;
      MESSAGE("declined: " << d.to_string());
      // Without an epilogue there is always an algorithm; float64 and results wider than operands may lack some
      // epilogues.
      CHECK((d.bias || d.activation != Activation::none || d.residual || d.pre_activation != PreActivation::none));
    }
    if (t.in == t.out && t.in != float64) CHECK(declined == 0);
  }
}

TEST_CASE("cublaslt on the device: larger products, searched and not, TF32, int8, 8-bit floats") {
  if (!on_device()) return;
  const DotDesc large = edited(plain(320, 384, 1024, bfloat16, bfloat16),
                               [](DotDesc& d) { d.bias = true, d.activation = Activation::gelu_tanh; });
  CHECK(run_on_device(large, 1.2e-2));
  CHECK(run_on_device(large, 1.2e-2, {false, false}));
  CHECK(run_on_device(plain(256, 256, 2048), 1e-4));
  CHECK(run_on_device(plain(256, 256, 512), 2e-2, {true, true}));
  // Operands that are aligned to their elements only.
  CHECK(run_on_device(plain(64, 96, 128, bfloat16, bfloat16), 8e-3, {}, 2));
  CHECK(run_on_device(plain(64, 96, 128), 2e-5, {}, 4));
  const auto transposed = [](DotDesc d) { return edited(d, [](DotDesc& e) { e.b_k = 1, e.b_n = e.k; }); };
  if (!run_on_device(transposed(plain(64, 64, 128, int8, int32)), 1e-12)) MESSAGE("int8 declined");
  const cuda::DeviceInfo& info = test::context().info();
  for (const DotDesc& d : eights()) {
    const bool ran = run_in_eight_bits(d);
    if (!ran) MESSAGE("declined: " << d.to_string());
    if (10 * info.major + info.minor >= 89) CHECK((ran || d.residual));
  }
  for (const int64_t k : {32, 128, 1024, 4096})
    for (const bool positive : {false, true}) {
      DotDesc d = transposed(plain(64, 64, k, float8_e4m3, float32));
      d.b = float8_e4m3, d.scales = 2;
      if (10 * info.major + info.minor >= 89) CHECK(run_in_eight_bits(d, positive));
    }
}

TEST_CASE("cublaslt on the device: a residual in place, and a capture") {
  if (!on_device()) return;
  cuda::Context& context = test::context();
  const DotDesc d = edited(plain(64, 96, 128), [](DotDesc& e) { e.residual = true; });
  const auto call = cuda::cublaslt(d, context);
  REQUIRE(call);
  Data x = data_for(d);
  direct(d, x);
  const DeviceArray a(context, x.a, float32), b(context, x.b, float32), c(context, x.residual, float32);
  call->run(std::vector<void*>{a.address(), b.address(), c.address(), c.address()});
  CHECK(worst_error(c.values(), x.c) < 2e-5);

  const DeviceArray residual(context, x.residual, float32),
      captured(context, std::vector<double>(x.c.size(), 0), float32);
  const cuda::Driver& driver = cuda::driver();
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle exec = nullptr;
  const auto fresh = cuda::cublaslt(edited(d, [](DotDesc& e) { e.m = 32; }), context);
  REQUIRE(fresh);
  cuda::check_result(driver.stream_begin_capture(context.stream(), cuda::CaptureMode::relaxed), "cuStreamBeginCapture");
  call->run(std::vector<void*>{a.address(), b.address(), residual.address(), captured.address()});
  fresh->run(std::vector<void*>{a.address(), b.address(), residual.address(),
                                captured.address()});  // its first run is within the capture
  cuda::check_result(driver.stream_end_capture(context.stream(), &graph), "cuStreamEndCapture");
  cuda::check_result(driver.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
  CHECK(worst_error(captured.values(), std::vector<double>(x.c.size(), 0)) == 0);
  for (int replay = 0; replay < 2; ++replay)
    cuda::check_result(driver.graph_launch(exec, context.stream()), "cuGraphLaunch");
  CHECK(worst_error(captured.values(), x.c) < 2e-5);
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
}
