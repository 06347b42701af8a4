// Activations as layers: a table of names and functions.
#include "weft/nn/activations.h"

#include "nn/support.h"
#include "weft/nn/init.h"

namespace weft::nn {

namespace {

struct Named {
  const char* name;
  array (*apply)(const array&);
};

// In the order of Activation.
constexpr Named activations[] = {
    {"Sigmoid", sigmoid},
    {"Mish", mish},
    {"ReLU", relu},
    {"ReLU2", relu2},
    {"ReLU6", relu6},
    {"Softmax", [](const array& x) { return nn::softmax(x, -1); }},
    {"Softplus", softplus},
    {"Softsign", softsign},
    {"SiLU", silu},
    {"LogSoftmax", [](const array& x) { return nn::log_softmax(x, -1); }},
    {"LogSigmoid", log_sigmoid},
    {"Tanh", tanh},
    {"Hardswish", hardswish},
    {"SELU", selu},
    {"HardTanh", [](const array& x) { return hard_tanh(x); }},
    {"Softmin", [](const array& x) { return nn::softmin(x, -1); }},
};
static_assert(std::size(activations) == static_cast<size_t>(Activation::softmin) + 1);

struct NamedScaled {
  const char* name;
  array (*apply)(const array&, float);
  float otherwise;
};

// In the order of ScaledActivation.
constexpr NamedScaled scaled_activations[] = {
    {"LeakyReLU", leaky_relu, 0.01f},  {"ELU", elu, 1},   {"CELU", celu, 1}, {"Softshrink", softshrink, 0.5f},
    {"HardShrink", hard_shrink, 0.5f}, {"Step", step, 0},
};
static_assert(std::size(scaled_activations) == static_cast<size_t>(ScaledActivation::step) + 1);

const Named& row(Activation kind) { return activations[static_cast<size_t>(kind)]; }
const NamedScaled& row(ScaledActivation kind) { return scaled_activations[static_cast<size_t>(kind)]; }

}  // namespace

array ActivationLayer::operator()(const array& x) const { return row(kind_).apply(x); }
std::string ActivationLayer::describe() const { return row(kind_).name; }

array ScaledActivationLayer::operator()(const array& x) const { return row(kind_).apply(x, value_); }
std::string ScaledActivationLayer::describe() const {
  return std::string(row(kind_).name) + "(" + digits(value_) + ")";
}
float ScaledActivationLayer::default_value(ScaledActivation kind) { return row(kind).otherwise; }

GELU::GELU(Scope scope, std::string approximation) : Layer(std::move(scope)), approximation_(std::move(approximation)) {
  for (const char* known : {"none", "precise", "tanh", "fast"})
    if (approximation_ == known) return;
  throw_invalid("GELU", "the approximation is none, precise, tanh or fast; got \"" + approximation_ + "\"");
}

array GELU::operator()(const array& x) const {
  if (approximation_ == "none") return gelu(x);
  return approximation_ == "fast" ? gelu_fast_approx(x) : gelu_approx(x);
}

std::string GELU::describe() const { return approximation_ == "none" ? "GELU" : "GELU(" + approximation_ + ")"; }

PReLU::PReLU(Scope scope, int64_t num_parameters, float start)
    : Layer(std::move(scope)), weight(*this, "weight", init::constant(sizes("PReLU", {num_parameters}), start)) {}

array PReLU::operator()(const array& x) const {
  const Dim& count = weight.value().shape()[0];
  if (count == 1) {
    if (!issubdtype(x.dtype(), floating))
      throw_invalid("PReLU", "the input must be floating; it is " + std::string(dtype_name(x.dtype())));
  } else {
    check_float("PReLU", x, count);
  }
  return prelu(x, weight);
}

std::string PReLU::describe() const { return "PReLU(" + number(weight.value().shape()[0]) + ")"; }

}  // namespace weft::nn
