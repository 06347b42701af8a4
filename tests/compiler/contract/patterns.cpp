#include "compiler/contract/patterns.h"

#include <utility>

#include "graph/regions/composites.h"
#include "transforms/closure.h"
#include "weft/control.h"
#include "weft/fast.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

namespace weft::compiler::testing {

namespace {

using Arrays = std::vector<array>;
using Types = std::vector<graph::Type>;

/// Returns the gradients of f by all its arguments but the last, which is the cotangent of its result.
ArrayFunction backward(const std::function<array(const Arrays&)>& f) {
  return [f](const Arrays& in) {
    const Arrays primals(in.begin(), in.end() - 1);
    return vjp([&](const Arrays& p) { return Arrays{f(p)}; }, primals, {in.back()}).second;
  };
}
ArrayFunction forward(const std::function<array(const Arrays&)>& f) {
  return [f](const Arrays& in) { return Arrays{f(in)}; };
}

array softmax_of(const Arrays& in) { return softmax(in[0], -1); }
array layer_norm_of(const Arrays& in) { return fast::layer_norm(in[0], in[1], in[2], 1e-5f); }
array rms_norm_of(const Arrays& in) { return fast::rms_norm(in[0], in[1], 1e-5f); }

/// Images [batch, height, width, channels] normalised over `axes`, as the layers do.
array standardised(const array& x, std::vector<int64_t> axes) {
  return transforms::arrays_of(graph::standardise(x.value(), std::move(axes), {}, {}, 1e-5))[0];
}
array batch_norm_of(const Arrays& in) { return standardised(in[0], {0, 1, 2}) * in[1] + in[2]; }
array group_norm_of(const Arrays& in) {
  const Shape shape = in[0].shape();
  const array parts = reshape(in[0], {shape[0], shape[1], shape[2], 8, shape[3] / 8});
  return reshape(standardised(parts, {1, 2, 4}), shape) * in[1] + in[2];
}

Arrays loss_and_gradient(const Arrays& in) {
  const auto loss = [&](const Arrays& logits) { return mean(fast::cross_entropy(logits[0], in[1])); };
  auto [value, slopes] = value_and_grad(loss, std::vector<int>{0})({in[0]});
  return {value, slopes[0]};
}

/// A key, x and a cotangent: the result of dropout, and the gradient by x.
Arrays dropout_of(const Arrays& in) {
  const auto dropped = [&](const Arrays& x) {
    const array kept = random::bernoulli(array(0.8f), x[0].shape(), in[0]);
    return Arrays{where(kept, x[0] * array(1.25, x[0].dtype()), array(0.0, x[0].dtype()))};
  };
  const auto [results, slopes] = vjp(dropped, {in[1]}, {in[2]});
  return {results[0], slopes[0]};
}

array rotated(const Arrays& in) { return fast::rope(in[0], in[0].shape(-1), false, 10000.0f, 1.0f, 0); }
array max_pooled(const Arrays& in) { return nn::MaxPool2d()(in[0]); }
array swiglu(const Arrays& in) { return nn::silu(matmul(in[0], transpose(in[1]))) * matmul(in[0], transpose(in[2])); }
array linear(const Arrays& in) { return matmul(in[0], transpose(in[1])) + in[2]; }

/// Gradients, and for each the parameter and two states, which are updated.
Arrays adamw(const Arrays& in) {
  Arrays out;
  for (size_t k = 0; k < in.size(); k += 4) {
    const auto number = [&](double v) { return array(v, float32); };
    const array g = astype(in[k], in[k + 1].dtype()), m = in[k + 2] * number(0.9) + g * number(0.1),
                v = in[k + 3] * number(0.99) + square(g) * number(0.01);
    out.push_back(in[k + 1] * number(0.999) - m * number(1e-3) / (sqrt(v) + number(1e-8)));
    out.push_back(m), out.push_back(v);
  }
  return out;
}

array attention_of(const Arrays& in) {
  return fast::scaled_dot_product_attention(in[0], in[1], in[2], 0.125f, "causal");
}
array convolved(const Arrays& in) { return conv_general(in[0], in[1], {2, 2}, {1, 1}); }
/// The gradient of a strided convolution by its first or second argument; the last one is the cotangent.
ArrayFunction convolution_gradient(size_t argument) {
  return [argument](const Arrays& in) {
    return Arrays{vjp([&](const Arrays& p) { return Arrays{convolved(p)}; }, {in[0], in[1]}, {in[2]}).second[argument]};
  };
}

/// Inputs [time, batch, width], the weights of both products and a bias: the hidden states of all steps.
array lstm(const Arrays& in) {
  const int width = static_cast<int>(in[2].shape(0).bound());
  const Shape state{in[0].shape(1), width};
  const ScanFunction cell = [&](const Arrays& carry, const Arrays& x) {
    const array gates = matmul(x[0], in[1]) + matmul(carry[0], in[2]) + in[3];
    const auto part = [&](int k) { return slice(gates, {0, k * width}, {gates.shape(0), (k + 1) * width}); };
    const array c = sigmoid(part(0)) * carry[1] + sigmoid(part(1)) * tanh(part(2)), h = sigmoid(part(3)) * tanh(c);
    return std::pair(Arrays{h, c}, Arrays{h});
  };
  return scan(cell, {zeros(state, in[0].dtype()), zeros(state, in[0].dtype())}, {in[0]}).second[0];
}

/// A list that grows by patterns of one dtype.
class List {
 public:
  explicit List(Dtype t) : t_(t) {}
  graph::Type type(Shape shape) const { return {std::move(shape), t_}; }
  Types types(const std::vector<Shape>& shapes) const {
    Types out;
    for (const Shape& s : shapes) out.push_back(type(s));
    return out;
  }
  Pattern& add(std::string name, ArrayFunction f, Types counted, Types computed, int launches = 1) {
    return all.emplace_back(Pattern{std::move(name), std::move(f), std::move(counted), std::move(computed), launches});
  }
  void of(std::string name, ArrayFunction f, const std::vector<Shape>& counted, const std::vector<Shape>& computed,
          int launches = 1) {
    add(std::move(name), std::move(f), types(counted), types(computed), launches);
  }

  std::vector<Pattern> all;

 private:
  Dtype t_;
};

void add_norms(List& list) {
  list.of("softmax", forward(softmax_of), {{4096, 1024}}, {{5, 37}});
  list.of("softmax backward", backward(softmax_of), {{4096, 1024}, {4096, 1024}}, {{5, 37}, {5, 37}});
  list.of("layer norm", forward(layer_norm_of), {{4096, 1024}, {1024}, {1024}}, {{5, 37}, {37}, {37}});
  list.of("layer norm backward", backward(layer_norm_of), {{4096, 1024}, {1024}, {1024}, {4096, 1024}},
          {{5, 37}, {37}, {37}, {5, 37}});
  list.of("rms norm", forward(rms_norm_of), {{4096, 1024}, {1024}}, {{5, 37}, {37}});
  list.of("rms norm backward", backward(rms_norm_of), {{4096, 1024}, {1024}, {4096, 1024}}, {{5, 37}, {37}, {5, 37}});
  const Shape images{64, 16, 16, 128}, few{2, 3, 3, 16};
  list.of("group norm", forward(group_norm_of), {images, {128}, {128}}, {few, {16}, {16}});
  list.of("group norm backward", backward(group_norm_of), {images, {128}, {128}, images}, {few, {16}, {16}, few});
  list.of("batch norm", forward(batch_norm_of), {images, {128}, {128}}, {few, {16}, {16}}, 2);
  list.of("batch norm backward", backward(batch_norm_of), {images, {128}, {128}, images}, {few, {16}, {16}, few}, 3);
}

void add_reductions(List& list) {
  list.of("logsumexp of short rows", forward([](const Arrays& in) { return logsumexp(in[0], -1); }), {{4096, 1024}},
          {{5, 37}});
  list.of("logsumexp of long rows", forward([](const Arrays& in) { return logsumexp(in[0], -1); }), {{8, 1 << 20}},
          {{2, 700}});
  list.of("argmax of short rows", forward([](const Arrays& in) { return argmax(in[0], -1); }), {{4096, 1024}},
          {{5, 37}});
  list.of("argmax of long rows", forward([](const Arrays& in) { return argmax(in[0], -1); }), {{8, 1 << 20}},
          {{2, 700}});
  list.of("cumsum", forward([](const Arrays& in) { return cumsum(in[0], 1); }), {{4096, 8192}}, {{5, 37}});
  list.of("std of columns", forward([](const Arrays& in) { return std(in[0], 0); }), {{4096, 1024}}, {{37, 5}});
  list.of("variance of all", forward([](const Arrays& in) { return var(in[0]); }), {{4096, 1024}}, {{37, 5}});
  list.of("variances of a transposed array", forward([](const Arrays& in) { return var(transpose(in[0]), 1); }),
          {{4096, 1024}}, {{37, 5}});
  list.of("softmax of a transposed array", forward([](const Arrays& in) { return softmax(transpose(in[0]), 1); }),
          {{4096, 1024}}, {{37, 5}});
  list.of("softmax of columns", forward([](const Arrays& in) { return softmax(in[0], 0); }), {{4096, 1024}}, {{37, 5}});
  list.of("sums of columns", forward([](const Arrays& in) { return sum(in[0], 0); }), {{4096, 1024}}, {{37, 5}});
}

void add_movement(List& list) {
  const graph::Type ids{{8192}, int32}, few{{6}, int32}, key{{2}, uint32};
  list.add("cross-entropy with its gradient", loss_and_gradient, {list.type({1024, 32000}), {{1024}, int32}},
           {list.type({5, 37}), {{5}, int32}});
  list.of("rotary", forward(rotated), {{8, 12, 1024, 64}}, {{2, 3, 5, 8}});
  list.add("dropout and its gradient", dropout_of, {key, list.type({4096, 1024}), list.type({4096, 1024})},
           {key, list.type({5, 37}), list.type({5, 37})});
  list.add("gather and scale", forward([](const Arrays& in) { return take(in[0], in[1], 0) * in[2]; }),
           {list.type({50257, 768}), ids, list.type({768})}, {list.type({9, 37}), few, list.type({37})})
      .sparse = {0};
  list.add("gather of a computed table", forward([](const Arrays& in) { return take(exp(in[0]) * in[1], in[2], 0); }),
           {list.type({50257, 768}), list.type({768}), ids}, {list.type({9, 37}), list.type({37}), few})
      .sparse = {0};
  list.add("counts of numbers", forward([](const Arrays& in) {
             return scatter_add(in[0], in[1], ones({in[1].shape(0), 1}, in[0].dtype()), 0);
           }),
           {list.type({1000}), {{1 << 20}, int32}}, {list.type({9}), few}, 2);
  list.add("scatter of rows", forward([](const Arrays& in) {
             return scatter_add(in[0], in[1], reshape(in[2], {in[2].shape(0), 1, in[2].shape(1)}), 0);
           }),
           {list.type({50257, 768}), ids, list.type({8192, 768})}, {list.type({9, 37}), few, list.type({6, 37})}, 2);
  list.of("transpose and add", forward([](const Arrays& in) { return transpose(in[0]) + in[1]; }),
          {{4096, 1024}, {1024, 4096}}, {{37, 5}, {5, 37}});
  list.of("max pool and its gradient",
          [](const Arrays& in) {
            auto [results, slopes] = vjp([](const Arrays& p) { return Arrays{max_pooled(p)}; }, {in[0]}, {in[1]});
            return Arrays{results[0], slopes[0]};
          },
          {{64, 32, 32, 64}, {64, 16, 16, 64}}, {{2, 4, 6, 3}, {2, 2, 3, 3}});
}

void add_products(List& list) {
  const Shape x{8192, 768}, w{3072, 768}, y{8192, 3072}, few_x{5, 12}, few_w{9, 12}, few_y{5, 9};
  list.of("matmul and bias", forward(linear), {x, w, {3072}}, {few_x, few_w, {9}});
  list.of("matmul, bias and gelu", forward([](const Arrays& in) { return nn::gelu(linear(in)); }), {x, w, {3072}},
          {few_x, few_w, {9}});
  list.of("matmul, bias and residual", forward([](const Arrays& in) { return in[3] + linear(in); }), {x, w, {3072}, y},
          {few_x, few_w, {9}, few_y});
  list.of("SwiGLU", forward(swiglu), {x, w, w}, {few_x, few_w, few_w}, 2);
  const Shape heads{8, 12, 1024, 64}, few{2, 2, 9, 8};
  list.of("attention", forward(attention_of), {heads, heads, heads}, {few, few, few});
  list.of("attention backward", backward(attention_of), {heads, heads, heads, heads}, {few, few, few, few}, 2);
  const Shape image{64, 32, 32, 64}, kernel{128, 3, 3, 64}, result{64, 16, 16, 128}, small{2, 6, 6, 8},
      taps{4, 3, 3, 8}, pooled{2, 3, 3, 4};
  list.of("strided convolution", forward(convolved), {image, kernel}, {small, taps});
  list.of("its gradient by the input", convolution_gradient(0), {image, kernel, result}, {small, taps, pooled});
  list.of("its gradient by the weight", convolution_gradient(1), {image, kernel, result}, {small, taps, pooled});
  list.of("bilinear interpolation", forward([](const Arrays& in) {
            return nn::Upsample({.scale = {2}, .mode = nn::UpsampleOptions::Mode::linear})(in[0]);
          }),
          {{64, 64, 64, 64}}, {{2, 5, 3, 4}});
  list.of("LSTM", forward(lstm), {{128, 64, 512}, {512, 2048}, {512, 2048}, {2048}},
          {{4, 3, 5}, {5, 16}, {4, 16}, {16}}, 2);
  list.of("LSTM backward", backward(lstm), {{128, 64, 512}, {512, 2048}, {512, 2048}, {2048}, {128, 64, 512}},
          {{4, 3, 5}, {5, 16}, {4, 16}, {16}, {4, 3, 4}}, 6);
}

/// Gradients in the dtype; parameters and states in float32, but where everything is float64.
void add_adamw(List& list) {
  const auto of = [&](const std::vector<Shape>& shapes) {
    Types out;
    for (const Shape& s : shapes) {
      const Dtype master = list.type({}).dtype == float64 ? float64 : float32;
      out.push_back(list.type(s));
      out.insert(out.end(), 3, {s, master});
    }
    return out;
  };
  Pattern& p = list.add("AdamW over eight arrays", adamw,
                        of({{768, 768}, {3072, 768}, {768, 3072}, {768}, {3072}, {768}, {2304, 768}, {2304}}),
                        of({{5, 7}, {7}}));
  for (int k = 0; k < 8; ++k)
    for (int state = 0; state < 3; ++state) p.updates.push_back({3 * k + state, 4 * k + 1 + state});
}

}  // namespace

std::vector<Pattern> patterns(Dtype t) {
  List list(t);
  add_norms(list);
  add_reductions(list);
  add_movement(list);
  add_products(list);
  add_adamw(list);
  return std::move(list.all);
}

}  // namespace weft::compiler::testing
