// Models over tokens without attention: LSTM, GRU, dilated convolutions.
#include "tools/weft/bench/workloads/model.h"
#include "weft/ops.h"

namespace weft::tool {

namespace {

std::vector<array> next_tokens(const Sizes& s) {
  const Shape shape{s("batch"), s("time")};
  return {random_ids(s("vocab"), shape), random_ids(s("vocab"), shape)};
}

/// Embedding, recurrent layers, head.
template <class Cell>
struct RecurrentModel : nn::Module {
  explicit RecurrentModel(const Sizes& s)
      : embed(*this, "embed", s("vocab"), s("width")), cells(*this, "cells"),
        head(*this, "head", s("width"), s("vocab")) {
    for (int i = 0; i < s("layers"); ++i) cells.add(s("width"), s("width"));
  }
  std::vector<array> batch(const Sizes& s) const { return next_tokens(s); }
  array loss(const std::vector<array>& in) const {
    array x = embed(in[0]);
    for (size_t i = 0; i < cells.size(); ++i) x = cells[i](x);
    return mean_cross_entropy(head(x), in[1]);
  }
  nn::Embedding embed;
  nn::List<Cell> cells;
  nn::Linear head;
};

/// A dilated causal convolution of 3 taps with a gate, and a projection that is added to the input (van den Oord et al.
/// 2016).
struct GatedConvolution : nn::Module {
  GatedConvolution(nn::Module& parent, std::string name, int width, int step)
      : Module(parent, std::move(name)), dilation(step), conv(*this, "conv", width, 2 * width, 3, {.dilation = {step}}),
        out(*this, "out", width, width) {}
  array operator()(const array& x) const {
    const auto parts = split(conv(pad(x, {{0, 0}, {2 * dilation, 0}, {0, 0}})), 2, -1);
    return x + out(tanh(parts[0]) * sigmoid(parts[1]));
  }
  int dilation;
  nn::Conv1d conv;
  nn::Linear out;
};

struct ConvolutionalSequence : nn::Module {
  explicit ConvolutionalSequence(const Sizes& s)
      : embed(*this, "embed", s("vocab"), s("width")), layers(*this, "layers"),
        head(*this, "head", s("width"), s("vocab")) {
    for (int i = 0; i < s("layers"); ++i) layers.add(s("width"), 1 << i);
  }
  std::vector<array> batch(const Sizes& s) const { return next_tokens(s); }
  array loss(const std::vector<array>& in) const {
    array x = embed(in[0]);
    for (size_t i = 0; i < layers.size(); ++i) x = layers[i](x);
    return mean_cross_entropy(head(nn::relu(x)), in[1]);
  }
  nn::Embedding embed;
  nn::List<GatedConvolution> layers;
  nn::Linear head;
};

}  // namespace

void add_sequence_models(WorkloadMakers& makers) {
  makers["lstm"] = workload_of<RecurrentModel<nn::LSTM>>;
  makers["gru"] = workload_of<RecurrentModel<nn::GRU>>;
  makers["tcn"] = workload_of<ConvolutionalSequence>;
}

}  // namespace weft::tool
