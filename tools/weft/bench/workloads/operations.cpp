#include "tools/weft/bench/workloads/operations.h"

#include <cmath>
#include <memory>

#include "tools/weft/bench/workloads/operation_inputs.h"
#include "weft/compile.h"
#include "weft/fast.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/random.h"

namespace weft::tool {

namespace {

/// Square matrices of n × n, whose products stay near 1.
std::function<Arrays(const Sizes&)> squares(int count) {
  return [count](const Sizes& s) {
    Arrays out;
    const float scale = 1 / std::sqrt(s.number("n"));
    for (int i = 0; i < count; ++i) out.push_back(drawn(s, {s("n"), s("n")}, scale));
    return out;
  };
}

/// Images and a weight of 3 × 3; the last is a bias.
Arrays convolution_inputs(const Sizes& s) {
  const int channels = s("channels");
  return {drawn_images(s), drawn(s, {channels, 3, 3, channels}, 0.03f), drawn(s, {channels})};
}

/// The derivatives of a norm of rows by x and its vectors: inputs are x, the vectors and the result's cotangent.
template <class Norm>
OperationMaker norm_backward(int vectors, Norm norm) {
  return [vectors, norm](const Sizes& s) {
    Arrays in{drawn_matrix(s)};
    for (int i = 0; i < vectors; ++i) in.push_back(drawn(s, {s("cols")}));
    in.push_back(drawn_matrix(s));
    return compiled_operation(in, [norm](const Arrays& all) {
      const Arrays primals(all.begin(), all.end() - 1);
      return vjp([&](const Arrays& p) { return Arrays{norm(p)}; }, primals, {all.back()}).second;
    });
  };
}

array rms_norm_of(const Arrays& in) { return fast::rms_norm(in[0], in[1], 1e-5f); }
array layer_norm_of(const Arrays& in) { return fast::layer_norm(in[0], in[1], in[2], 1e-5f); }

Operation group_norm_operation(const Sizes& s, bool backward) {
  const auto norm =
      std::make_shared<nn::GroupNorm>(s("groups"), s("channels"), nn::GroupNormOptions{.pytorch_compatible = true});
  norm->set_dtype(s.dtype());
  eval(norm->weight->value(), norm->bias->value());
  return compiled_operation({drawn_images(s), drawn_images(s)}, [norm, backward](const Arrays& in) {
    const array y = (*norm)(in[0]);
    if (!backward) return Arrays{y};
    return gradients(sum(y * in[1]), {in[0], norm->weight->value(), norm->bias->value()});
  });
}

Operation max_pool_operation(const Sizes& s) {
  const int half = s("image") / 2;
  return compiled_operation({drawn_images(s), drawn(s, {s("batch"), half, half, s("channels")})}, [](const Arrays& in) {
    const array y = nn::max_pool(in[0], {2, 2});
    return Arrays{y, gradients(sum(y * in[1]), {in[0]})[0]};
  });
}

Operation cross_entropy_operation(const Sizes& s) {
  const auto loss = [](const Arrays& in) { return mean(fast::cross_entropy(in[0], in[1])); };
  return compiled_operation({drawn_matrix(s), drawn_indices(s("cols"), s("rows"))}, [loss](const Arrays& in) {
    auto [value, slope] = value_and_grad(loss, std::vector<int>{0})(in);
    return Arrays{value, slope[0]};
  });
}

Operation dropout_operation(const Sizes& s) {
  const auto layer = std::make_shared<nn::Dropout>(0.1f);
  return compiled_operation({drawn_matrix(s)}, [layer](const Arrays& in) { return Arrays{(*layer)(in[0])}; });
}

array distances(const Arrays& in) {
  const array squares = expand_dims(sum(square(in[0]), 1), 1) + expand_dims(sum(square(in[1]), 1), 0);
  return sqrt(maximum(squares - array(2.0f) * matmul(in[0], transpose(in[1])), array(0.0f)));
}

/// One step of AdamW over many tensors.
Operation adamw_operation(const Sizes& s) {
  struct Owner {
    Arrays values, gradients;
    std::unique_ptr<optim::AdamW> optimizer;
  };
  const auto all = std::make_shared<Owner>();
  optim::Parameters parameters;
  const int count = s("tensors");
  all->values.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    all->values.push_back(drawn_matrix(s));
    all->gradients.push_back(drawn_matrix(s));
    parameters.emplace_back(std::to_string(i), &all->values.back());
  }
  eval(all->values);
  eval(all->gradients);
  all->optimizer = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.bias_correction = true});
  std::vector<array*> state = all->optimizer->state();
  for (array& value : all->values) state.push_back(&value);
  const ArrayFunction step = compile(
      [optimizer = all->optimizer.get()](const Arrays& in) {
        optimizer->update(in);
        return Arrays{};
      },
      {.state = state, .dynamic = {}});
  return {[all, step] { return step(all->gradients); }};
}

enum class Evaluation { at_the_end, each, each_async };

Operation eager_additions(const Sizes& s, Evaluation when) {
  const array start = zeros({s("n")}), one = ones({s("n")});
  eval(start, one);
  return {[start, one, when, count = s("count")] {
            array x = start;
            for (int i = 0; i < count; ++i) {
              x = x + one;
              if (when == Evaluation::each) eval(x);
              if (when == Evaluation::each_async) async_eval(x);
            }
            eval(x);
            return Arrays{x};
          },
          true};
}

/// Loss, gradients and SGD of a small MLP, each step traced anew.
Operation eager_mlp_operation(const Sizes& s) {
  struct Owner {
    nn::Sequential net;
    std::unique_ptr<optim::SGD> optimizer;
  };
  const auto all = std::make_shared<Owner>();
  for (int i = 0; i < s("layers"); ++i) {
    all->net.add<nn::Linear>(s("width"), s("width"));
    all->net.add<nn::ReLU>();
  }
  all->optimizer =
      std::make_unique<optim::SGD>(all->net.trainable_parameters(), optim::SgdOptions{.learning_rate = 0.01f});
  const array x = drawn(s, {s("batch"), s("width")}), y = drawn(s, {s("batch"), s("width")});
  eval(x, y);
  const auto loss = [net = &all->net](const Arrays& in) { return nn::losses::mse_loss((*net)(in[0]), in[1]); };
  const auto loss_and_gradients = nn::value_and_grad(all->net, loss);
  return {[all, x, y, loss_and_gradients] {
            const auto [value, slopes] = loss_and_gradients({x, y});
            all->optimizer->update(slopes);
            Arrays results{value};
            for (const auto& [name, handle] : all->net.trainable_parameters()) results.push_back(*handle);
            eval(results);
            return results;
          },
          true};
}

std::unordered_map<std::string, OperationMaker> row_operations() {
  const auto two_matrices = [](const Sizes& s) { return Arrays{drawn_matrix(s), drawn_matrix(s)}; };
  return {
      {"add_one", of_rows([](const array& x) { return x + array(1.0f, x.dtype()); })},
      {"rms_norm", of(
                       [](const Sizes& s) {
                         return Arrays{drawn_matrix(s), drawn(s, {s("cols")})};
                       },
                       rms_norm_of)},
      {"rms_norm_backward", norm_backward(1, rms_norm_of)},
      {"layer_norm_backward", norm_backward(2, layer_norm_of)},
      {"silu_mul", of(two_matrices, [](const Arrays& in) { return nn::silu(in[0]) * in[1]; })},
      {"softmax", of_rows([](const array& x) { return softmax(x, -1); })},
      {"gelu", of_rows([](const array& x) { return nn::gelu(x); })},
      {"logsumexp", of_rows([](const array& x) { return logsumexp(x, -1); })},
      {"argmax", of_rows([](const array& x) { return argmax(x, -1); })},
      {"max_columns", of_rows([](const array& x) { return max(x, 0); })},
      {"cumsum", of_rows([](const array& x) { return cumsum(x, 1); })},
      {"std_columns", of_rows([](const array& x) { return std(x, 0); })},
      {"var_all", of_rows([](const array& x) { return var(x); })},
      {"normalize_columns", of_rows([](const array& x) { return (x - mean(x, 0)) / std(x, 0); })},
      {"topk", of_rows([](const array& x) { return topk(x, 8, -1); })},
      {"pairwise_distance", of(two_matrices, distances)},
      {"cross_entropy", cross_entropy_operation},
      {"dropout", dropout_operation},
  };
}

std::unordered_map<std::string, OperationMaker> product_operations() {
  return {
      {"matmul_silu", of(squares(2), [](const Arrays& in) { return nn::silu(matmul(in[0], in[1])); })},
      {"matmul_relu", of(squares(2), [](const Arrays& in) { return nn::relu(matmul(in[0], in[1])); })},
      {"matmul_bias_residual", of(
                                   [](const Sizes& s) {
                                     Arrays in = squares(3)(s);
                                     in.push_back(drawn(s, {s("n")}));
                                     return in;
                                   },
                                   [](const Arrays& in) { return matmul(in[0], in[1]) + in[3] + in[2]; })},
      {"swiglu",
       of(squares(3), [](const Arrays& in) { return nn::silu(matmul(in[0], in[1])) * matmul(in[0], in[2]); })},
      {"matmul_batch", of(
                           [](const Sizes& s) {
                             const Shape shape{s("batch"), s("n"), s("n")};
                             return Arrays{drawn(s, shape), drawn(s, shape)};
                           },
                           [](const Arrays& in) { return matmul(in[0], in[1]); })},
      {"matmul_f32_activation", of(
                                    [](const Sizes& s) {
                                      return Arrays{random::normal({s("rows"), s("n")}, float32),
                                                    drawn(s, {s("n"), s("n")}, 1 / std::sqrt(s.number("n")))};
                                    },
                                    [](const Arrays& in) { return matmul(astype(in[0], in[1].dtype()), in[1]); })},
      {"matmul_int8_weight",
       of(
           [](const Sizes& s) {
             const array weight = random::randint(array(-127), array(128), {s("n"), s("n")}, int32);
             return Arrays{drawn(s, {s("rows"), s("n")}), astype(weight, int8),
                           drawn(s, {s("n")}, 1 / std::sqrt(s.number("n")) / 64)};
           },
           [](const Arrays& in) { return matmul(in[0], astype(in[1], in[0].dtype()) * in[2]); })},
      {"matvec", of(
                     [](const Sizes& s) {
                       return Arrays{drawn(s, {s("n"), s("n")}), drawn(s, {s("n")})};
                     },
                     [](const Arrays& in) { return matmul(in[0], in[1]); })},
      {"attention", of(
                        [](const Sizes& s) {
                          const Shape shape{s("batch"), s("heads"), s("time"), s("width")};
                          return Arrays{drawn(s, shape), drawn(s, shape), drawn(s, shape)};
                        },
                        [](const Arrays& in) {
                          const float scale = 1 / std::sqrt(static_cast<float>(static_cast<int64_t>(in[0].shape(3))));
                          return fast::scaled_dot_product_attention(in[0], in[1], in[2], scale, "causal");
                        })},
      {"rope", of(
                   [](const Sizes& s) {
                     return Arrays{drawn(s, {s("batch"), s("heads"), s("time"), s("width")})};
                   },
                   [](const Arrays& in) {
                     const auto width = static_cast<int>(static_cast<int64_t>(in[0].shape(3)));
                     return fast::rope(in[0], width, false, 10000.0f, 1, 0);
                   })},
  };
}

std::unordered_map<std::string, OperationMaker> image_operations() {
  return {
      {"conv", of(convolution_inputs,
                  [](const Arrays& in) {
                    return conv2d(in[0], in[1], {1, 1}, {1, 1});
                  })},
      {"conv_bias_relu", of(convolution_inputs,
                            [](const Arrays& in) {
                              return nn::relu(conv2d(in[0], in[1], {1, 1}, {1, 1}) + in[2]);
                            })},
      {"group_norm", [](const Sizes& s) { return group_norm_operation(s, false); }},
      {"group_norm_backward", [](const Sizes& s) { return group_norm_operation(s, true); }},
      {"max_pool", max_pool_operation},
      {"transpose", of([](const Sizes& s) { return Arrays{drawn_images(s)}; },
                       [](const Arrays& in) {
                         return contiguous(transpose(in[0], {0, 3, 1, 2}));
                       })},
      {"gather_rows", of(
                          [](const Sizes& s) {
                            return Arrays{drawn_matrix(s), drawn_indices(s("rows"), s("count"))};
                          },
                          [](const Arrays& in) { return take(in[0], in[1], 0); })},
      {"scatter_rows",
       of(
           [](const Sizes& s) {
             return Arrays{drawn_matrix(s), drawn_indices(s("rows"), s("count")), drawn(s, {s("count"), 1, s("cols")})};
           },
           [](const Arrays& in) { return scatter_add(in[0], in[1], in[2], 0); })},
  };
}

std::unordered_map<std::string, OperationMaker> host_operations() {
  return {
      {"adamw", adamw_operation},
      {"eager_adds", [](const Sizes& s) { return eager_additions(s, Evaluation::at_the_end); }},
      {"eager_eval", [](const Sizes& s) { return eager_additions(s, Evaluation::each); }},
      {"eager_async_eval", [](const Sizes& s) { return eager_additions(s, Evaluation::each_async); }},
      {"eager_mlp", eager_mlp_operation},
  };
}

}  // namespace

const std::unordered_map<std::string, OperationMaker>& operation_makers() {
  static const auto makers = [] {
    auto all = row_operations();
    all.merge(product_operations());
    all.merge(image_operations());
    all.merge(host_operations());
    all.merge(further_operations());
    return all;
  }();
  return makers;
}

}  // namespace weft::tool
