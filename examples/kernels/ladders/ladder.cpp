#include "examples/kernels/ladders/ladder.h"

namespace ladders {

namespace {

constexpr Entry entries[] = {
    {"vec_add", "the sum of two vectors", vec_add},
    {"reduction", "the sum of all elements", reduction},
    {"transpose", "the transpose of a matrix", transpose},
    {"softmax", "softmax along rows", softmax},
    {"matmul", "the product of two matrices, float32", matmul},
    {"batched_matmul", "products of many small matrices", batched_matmul},
    {"attention", "causal attention of several heads", attention},
    {"layer_norm", "layer norm along rows", layer_norm},
    {"layer_norm_gradient", "the gradients of its weight and bias", layer_norm_gradient},
    {"histogram", "how often each of 256 values occurs", histogram},
    {"dropout", "dropout by Philox", dropout},
    {"activation", "a polynomial activation and its derivative", activation},
    {"scan", "the sums up to each element", scan},
    {"sort", "float32 in ascending order", sort},
};

}  // namespace

std::span<const Entry> all() { return entries; }

Rung loop(std::vector<Shape> shapes, std::function<void(std::span<const float* const>, std::span<float* const>)> f) {
  const auto run = [shapes = std::move(shapes), f = std::move(f)](const Arrays& in) {
    Arrays kept = in;
    std::vector<const float*> from;
    for (array& a : kept) from.push_back(a.data<float>());
    std::vector<std::vector<float>> made;
    std::vector<float*> to;
    for (const Shape& s : shapes) {
      size_t elements = 1;
      for (const auto d : s) elements *= static_cast<size_t>(d);
      made.emplace_back(elements);
    }
    for (auto& m : made) to.push_back(m.data());
    f(from, to);
    Arrays out;
    for (size_t i = 0; i < made.size(); ++i) out.emplace_back(made[i].data(), shapes[i]);
    return out;
  };
  return {"a loop in C++", run, {}, {}, true, {}};
}

}  // namespace ladders
