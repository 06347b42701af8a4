// Linear, Bilinear, Embedding, Dropout. Each computes in the dtype of its input; its parameters keep theirs.
#include "weft/nn/layers.h"

#include "nn/support.h"
#include "weft/fast.h"
#include "weft/nn/init.h"
#include "weft/random.h"

namespace weft::nn {

Shape sizes(const char* op, std::initializer_list<int64_t> values) {
  Shape shape;
  for (const int64_t v : values) {
    if (v <= 0) throw_invalid(op, "sizes must be positive; got " + std::to_string(v));
    shape.push_back(v);
  }
  return shape;
}

void check_float(const char* op, const array& x, const Dim& width) {
  if (!issubdtype(x.dtype(), floating))
    throw_invalid(op, "the input must be floating; it is " + std::string(dtype_name(x.dtype())));
  if (x.ndim() == 0 || x.shape(-1) != width)
    throw_invalid(op, "the input's last axis must be " + number(width) + "; its shape is " + to_string(x.shape()));
}

array linear_matmul(const array& x, const array& weight) { return matmul(x, transpose(astype(weight, x.dtype()))); }

std::string digits(float value) {
  std::string text = std::to_string(value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

Linear::Linear(Scope scope, int64_t in, int64_t out, bool with_bias)
    : Layer(std::move(scope)),
      weight(*this, "weight", init::uniform(sizes("Linear", {out, in}), -bound_of(in), bound_of(in))) {
  if (with_bias) bias.emplace(*this, "bias", init::uniform({out}, -bound_of(in), bound_of(in)));
}

namespace {

/// Returns whether the sizes suit tensor cores, which read 8-bit floats 16 at a time along an axis of each of the three
/// matrix products. A symbolic length does not, because it may have any value.
bool fits_float8(const array& x, const array& weight) {
  int64_t rows = 1;
  for (size_t k = 0; k + 1 < x.ndim(); ++k) {
    if (!x.shape()[k].is_static()) return false;
    rows *= x.shape()[k].bound();
  }
  const auto fits = [](int64_t n) { return n > 0 && n % 16 == 0; };
  return x.dtype() != float64 && fits(rows) && fits(weight.shape(0).bound()) && fits(weight.shape(1).bound());
}

}  // namespace

array Linear::operator()(const array& x) const {
  check_float("Linear", x, quantized ? Dim(quantized->width()) : weight.value().shape(1));
  array y = quantized                          ? quantized->times(x)
            : float8 && fits_float8(x, weight) ? fast::float8_linear(x, weight)
                                               : linear_matmul(x, weight);
  return bias ? y + astype(*bias, x.dtype()) : y;
}

std::string Linear::describe() const {
  const Shape& s = weight.value().shape();
  return "Linear(" + number(quantized ? Dim(quantized->width()) : s[1]) + ", " + number(s[0]) +
         (bias ? "" : ", bias=false") + (quantized ? quantized->describe() : "") + ")";
}

void Linear::check_quantization(const Quantization& how) const {
  if (quantized) throw_invalid("Linear.quantize", "the layer is quantised");
  if (how.input && how.mode != "nvfp4" && how.mode != "mxfp8")
    throw_invalid("Linear.quantize", "inputs are quantised in modes nvfp4 and mxfp8, not in " + how.mode);
  weft::quantize(weight, how.group_size, how.bits, how.mode);
}

void Linear::quantize(const Quantization& how) {
  check_quantization(how);
  quantized.emplace(*this, weight, how);
}

void use_float8(Module& module, bool on) {
  for (auto& [name, part] : module.named_modules())
    if (auto* linear = dynamic_cast<Linear*>(part)) linear->float8 = on;
}

Bilinear::Bilinear(Scope scope, int64_t in1, int64_t in2, int64_t out, bool with_bias)
    : Module(std::move(scope)),
      weight(*this, "weight", init::uniform(sizes("Bilinear", {out, in2, in1}), -bound_of(in1), bound_of(in1))) {
  if (with_bias) bias.emplace(*this, "bias", init::uniform({out}, -bound_of(in1), bound_of(in1)));
}

// Multiplies x1 by all rows of all matrices at once, then x2 by the result.
array Bilinear::operator()(const array& x1, const array& x2) const {
  const Shape& s = weight.value().shape();
  check_float("Bilinear", x1, s[2]);
  check_float("Bilinear", x2, s[1]);
  Shape rows = x1.shape(), other = x2.shape();
  rows.pop_back();
  other.pop_back();
  if (rows != other)
    throw_invalid("Bilinear", "the inputs' leading axes must be the same; their shapes are " + to_string(x1.shape()) +
                                  " and " + to_string(x2.shape()));
  const array w = astype(weight, x1.dtype());
  Shape apart = rows;
  apart.push_back(s[0]);
  apart.push_back(s[1]);
  const array left = reshape(linear_matmul(x1, reshape(w, {-1, s[2]})), apart);  // [..., out, in2]
  const array y = sum(left * expand_dims(astype(x2, x1.dtype()), -2), -1);
  return bias ? y + astype(*bias, x1.dtype()) : y;
}

std::string Bilinear::describe() const {
  const Shape& s = weight.value().shape();
  return "Bilinear(" + number(s[2]) + ", " + number(s[1]) + ", " + number(s[0]) + (bias ? ")" : ", bias=false)");
}

Embedding::Embedding(Scope scope, int64_t count, int64_t width)
    : Module(std::move(scope)),
      weight(*this, "weight", init::normal(sizes("Embedding", {count, width}), 0, bound_of(width))) {}

array Embedding::operator()(const array& ids) const {
  if (!issubdtype(ids.dtype(), integer))
    throw_invalid("Embedding", "ids must be integers; they are " + std::string(dtype_name(ids.dtype())));
  return quantized ? quantized->rows(ids) : take(weight, ids, 0);
}

void Embedding::check_quantization(const Quantization& how) const {
  if (quantized) throw_invalid("Embedding.quantize", "the layer is quantised");
  if (how.input) throw_invalid("Embedding.quantize", "ids are no numbers to be quantised: leave `input` false");
  weft::quantize(weight, how.group_size, how.bits, how.mode);
}

void Embedding::quantize(const Quantization& how) {
  check_quantization(how);
  quantized.emplace(*this, weight, how);
}

array Embedding::as_linear(const array& x) const {
  check_float("Embedding.as_linear", x, quantized ? Dim(quantized->width()) : weight.value().shape(1));
  return quantized ? quantized->times(x) : linear_matmul(x, weight);
}

std::string Embedding::describe() const {
  const Shape& s = weight.value().shape();
  return "Embedding(" + number(s[0]) + ", " + number(quantized ? Dim(quantized->width()) : s[1]) +
         (quantized ? quantized->describe() : "") + ")";
}

namespace {

float probability(const char* op, float p) {
  if (!(p >= 0 && p < 1))
    throw_invalid(op, "the probability must be at least 0 and less than 1; it is " + std::to_string(p));
  return p;
}

array dropped(const array& x, const array& kept, float p) {
  return where(kept, x * array(1 / (1 - p), x.dtype()), array(0, x.dtype()));
}

}  // namespace

Dropout::Dropout(Scope scope, float rate) : Layer(std::move(scope)), p(probability("Dropout", rate)) {}

array Dropout::operator()(const array& x) const {
  if (!training() || p == 0) return x;
  return dropped(x, random::bernoulli(array(1 - p), x.shape()), p);
}

std::string Dropout::describe() const { return "Dropout(" + digits(p) + ")"; }

Dropout2d::Dropout2d(Scope scope, float rate, int space)
    : Layer(std::move(scope)), p(probability("Dropout2d", rate)), space_(space) {}

array Dropout2d::operator()(const array& x) const {
  const size_t rank = static_cast<size_t>(space_) + 1;
  if (x.ndim() != rank && x.ndim() != rank + 1)
    throw_invalid("Dropout" + std::to_string(space_) + "d",
                  "the input must be [batch, " + std::to_string(space_) +
                      " axes of space, channels], with or without batch; its shape is " + to_string(x.shape()));
  if (!training() || p == 0) return x;
  Shape channels = x.shape();
  for (size_t k = 0; k < static_cast<size_t>(space_); ++k) channels[channels.size() - 2 - k] = 1;
  return dropped(x, random::bernoulli(array(1 - p), channels), p);
}

std::string Dropout2d::describe() const { return "Dropout" + std::to_string(space_) + "d(" + digits(p) + ")"; }

array Sequential::operator()(const array& x) const {
  array y = x;
  for (const auto& layer : layers_) y = (*layer)(y);
  return y;
}

bool Sequential::can_hold(const std::string&, const Module& part) const { return dynamic_cast<const Layer*>(&part); }

void Sequential::hold(const std::string& name, std::unique_ptr<Module> part) {
  detail::put(layers_.at(std::stoul(name)), std::move(part));
}

}  // namespace weft::nn
