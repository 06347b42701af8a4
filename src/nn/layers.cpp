// Linear, Embedding, LayerNorm, Dropout. Each computes in the dtype of what comes in; its parameters stay what they are.
#include <cmath>

#include "base/error.h"
#include "weft/fast.h"
#include "weft/nn.h"
#include "weft/random.h"

namespace weft::nn {

namespace {

Shape sizes(const char* op, std::initializer_list<int64_t> values) {
  Shape shape;
  for (const int64_t v : values) {
    if (v <= 0) throw_invalid(op, "sizes must be positive; got " + std::to_string(v));
    shape.push_back(v);
  }
  return shape;
}

void check_float(const char* op, const array& x, const Dim& width) {
  if (!issubdtype(x.dtype(), floating)) throw_invalid(op, "the input must be floating; it is " + std::string(dtype_name(x.dtype())));
  if (x.ndim() == 0 || x.shape(-1) != width)
    throw_invalid(op, "the input's last axis must be " + std::to_string(width.bound()) + "; its shape is " + to_string(x.shape()));
}

array product(const array& x, const array& weight) { return matmul(x, transpose(astype(weight, x.dtype()))); }

float bound_of(int64_t in) { return 1 / std::sqrt(static_cast<float>(in)); }

const char* yes_or_no(bool b) { return b ? "true" : "false"; }

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias)
    : weight(*this, "weight", init::uniform(sizes("Linear", {out, in}), -bound_of(in), bound_of(in))) {
  if (with_bias) bias.emplace(*this, "bias", init::uniform({out}, -bound_of(in), bound_of(in)));
}

Linear::Linear(Module& parent, std::string name, int64_t in, int64_t out, bool with_bias)
    : Module(parent, std::move(name)), weight(*this, "weight", init::uniform(sizes("Linear", {out, in}), -bound_of(in), bound_of(in))) {
  if (with_bias) bias.emplace(*this, "bias", init::uniform({out}, -bound_of(in), bound_of(in)));
}

array Linear::operator()(const array& x) const {
  check_float("Linear", x, weight.value().shape(1));
  array y = product(x, weight);
  return bias ? y + astype(*bias, x.dtype()) : y;
}

std::string Linear::describe() const {
  const Shape& s = weight.value().shape();
  return "Linear(" + std::to_string(s[1].bound()) + ", " + std::to_string(s[0].bound()) + (bias ? ")" : ", bias=false)");
}

Embedding::Embedding(int64_t count, int64_t width) : weight(*this, "weight", init::normal(sizes("Embedding", {count, width}))) {}

Embedding::Embedding(Module& parent, std::string name, int64_t count, int64_t width)
    : Module(parent, std::move(name)), weight(*this, "weight", init::normal(sizes("Embedding", {count, width}))) {}

array Embedding::operator()(const array& ids) const {
  if (!issubdtype(ids.dtype(), integer)) throw_invalid("Embedding", "ids must be integers; they are " + std::string(dtype_name(ids.dtype())));
  return take(weight, ids, 0);
}

array Embedding::as_linear(const array& x) const {
  check_float("Embedding.as_linear", x, weight.value().shape(1));
  return product(x, weight);
}

std::string Embedding::describe() const {
  const Shape& s = weight.value().shape();
  return "Embedding(" + std::to_string(s[0].bound()) + ", " + std::to_string(s[1].bound()) + ")";
}

LayerNorm::LayerNorm(int64_t width, bool with_bias, float epsilon)
    : weight(*this, "weight", init::constant(sizes("LayerNorm", {width}), 1)), eps(epsilon) {
  if (with_bias) bias.emplace(*this, "bias", init::constant({width}, 0));
}

LayerNorm::LayerNorm(Module& parent, std::string name, int64_t width, bool with_bias, float epsilon)
    : Module(parent, std::move(name)), weight(*this, "weight", init::constant(sizes("LayerNorm", {width}), 1)), eps(epsilon) {
  if (with_bias) bias.emplace(*this, "bias", init::constant({width}, 0));
}

array LayerNorm::operator()(const array& x) const {
  check_float("LayerNorm", x, weight.value().shape(0));
  std::optional<array> shift;
  if (bias) shift = astype(*bias, x.dtype());
  return fast::layer_norm(x, astype(weight, x.dtype()), shift, eps);
}

std::string LayerNorm::describe() const {
  return "LayerNorm(" + std::to_string(weight.value().shape(0).bound()) + ", bias=" + yes_or_no(bias.has_value()) + ")";
}

namespace {

float probability(float p) {
  if (!(p >= 0 && p < 1)) throw_invalid("Dropout", "the probability must be at least 0 and less than 1; it is " + std::to_string(p));
  return p;
}

}  // namespace

Dropout::Dropout(float rate) : p(probability(rate)) {}
Dropout::Dropout(Module& parent, std::string name, float rate) : Module(parent, std::move(name)), p(probability(rate)) {}

array Dropout::operator()(const array& x) const {
  if (!training() || p == 0) return x;
  const array kept = random::bernoulli(array(1 - p), x.shape());
  return where(kept, x * array(1 / (1 - p), x.dtype()), array(0, x.dtype()));
}

std::string Dropout::describe() const {
  std::string digits = std::to_string(p);
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return "Dropout(" + digits + ")";
}

}  // namespace weft::nn
