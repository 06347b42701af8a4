#include "examples/kernels/ladders/ladder.h"

#include <memory>

namespace ladders {

namespace {

constexpr Entry entries[] = {
    {"vec_add", "the sum of two vectors", vec_add},
    {"reduction", "the sum of all elements", reduction},
    {"transpose", "the transpose of a matrix", transpose},
    {"softmax", "softmax along rows", softmax},
    {"matmul", "the product of two matrices, float32", matmul},
    {"matmul_tensor", "the product of two matrices, bfloat16", matmul_tensor},
    {"batched_matmul", "products of many small matrices", batched_matmul},
    {"attention", "causal attention of several heads", attention},
    {"attention_tensor", "the same in bfloat16, not causal", attention_tensor},
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

namespace {

/// The memory of a loop's results, used again as soon as no array lies in it: new memory costs more than many loops.
struct Results {
  std::vector<Shape> shapes;
  std::vector<std::shared_ptr<std::vector<float>>> memory;

  explicit Results(std::vector<Shape> of) : shapes(std::move(of)), memory(shapes.size()) {}
  float* fresh(size_t i) {
    if (!memory[i] || memory[i].use_count() > 1)
      memory[i] = std::make_shared<std::vector<float>>(static_cast<size_t>(weft::num_elements(shapes[i])));
    return memory[i]->data();
  }
  array made(size_t i) const {
    return array(memory[i]->data(), shapes[i], weft::float32, [kept = memory[i]](void*) {});
  }
};

}  // namespace

Rung loop(std::vector<Shape> shapes, std::function<void(std::span<const float* const>, std::span<float* const>)> f) {
  const auto results = std::make_shared<Results>(std::move(shapes));
  const auto run = [results, f = std::move(f)](const Arrays& in) {
    Arrays kept = in, out;
    std::vector<const float*> from;
    std::vector<float*> to;
    for (array& a : kept) from.push_back(a.data<float>());
    for (size_t i = 0; i < results->shapes.size(); ++i) to.push_back(results->fresh(i));
    f(from, to);
    for (size_t i = 0; i < results->shapes.size(); ++i) out.push_back(results->made(i));
    return out;
  };
  return {"a loop in C++", run, {}, {}, true, {}};
}

}  // namespace ladders
