// Further single operations: what other layers, losses, decoders and image pipelines do with arrays.
#include <cmath>

#include "tools/weft/bench/workloads/operation_inputs.h"
#include "weft/einsum.h"
#include "weft/fast.h"
#include "weft/fft.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::tool {

namespace {

int length(const array& x, int axis) { return static_cast<int>(static_cast<int64_t>(x.shape(axis))); }

array drawn_heads(const Sizes& s, int heads, int time) { return drawn(s, {s("batch"), heads, time, s("width")}); }

/// Returns the maker of an operation whose results are the derivatives of `f` by its inputs but the last, which is the
/// cotangent of its result.
OperationMaker derivatives_of(const std::function<Arrays(const Sizes&)>& inputs,
                              const std::function<array(const Arrays&)>& f) {
  return [inputs, f](const Sizes& s) {
    return compiled_operation(inputs(s), [f](const Arrays& in) {
      const Arrays primals(in.begin(), in.end() - 1);
      return vjp([&](const Arrays& p) { return Arrays{f(p)}; }, primals, {in.back()}).second;
    });
  };
}

Arrays two_matrices(const Sizes& s) { return {drawn_matrix(s), drawn_matrix(s)}; }

// Norms over images, with the statistics of the batch.

array batch_norm(const array& x, const array& weight, const array& bias) {
  const array wide = astype(x, float32);
  const array scale = rsqrt(var(wide, std::vector<int>{0, 1, 2}) + array(1e-5f)) * weight;
  return astype((wide - mean(wide, std::vector<int>{0, 1, 2})) * scale + bias, x.dtype());
}

Arrays batch_norm_inputs(const Sizes& s) {
  return {drawn_images(s), random::normal({s("channels")}), random::normal({s("channels")}), drawn_images(s)};
}

array norm_of_sum(const Arrays& in) { return fast::layer_norm(in[0] + in[1], in[2], in[3], 1e-5f); }

Operation add_rms_norm(const Sizes& s) {
  return compiled_operation({drawn_matrix(s), drawn_matrix(s), drawn(s, {s("cols")})}, [](const Arrays& in) {
    const array x = in[0] + in[1];
    return Arrays{x, fast::rms_norm(x, in[2], 1e-5f)};
  });
}

// Attention in other forms than square and causal.

array attend(const array& q, const array& k, const array& v, const std::string& mode,
             const std::optional<array>& mask = std::nullopt) {
  const float scale = 1 / std::sqrt(static_cast<float>(length(q, 3)));
  return fast::scaled_dot_product_attention(q, k, v, scale, mode, mask);
}

Arrays attention_inputs(const Sizes& s) {
  return {drawn_heads(s, s("heads"), s("time")), drawn_heads(s, s("heads"), s("time")),
          drawn_heads(s, s("heads"), s("time"))};
}

Arrays grouped_inputs(const Sizes& s) {
  return {drawn_heads(s, s("heads"), s("time")), drawn_heads(s, s("kv_heads"), s("time")),
          drawn_heads(s, s("kv_heads"), s("time"))};
}

Arrays decode_inputs(const Sizes& s) {
  return {drawn_heads(s, s("heads"), 1), drawn_heads(s, s("kv_heads"), s("time")),
          drawn_heads(s, s("kv_heads"), s("time"))};
}

template <class... More>
Arrays appended(Arrays arrays, More... more) {
  (arrays.push_back(more), ...);
  return arrays;
}

array masked_softmax(const Arrays& in) {
  const int time = length(in[0], 3);
  const array at = arange(time, int32);
  const array seen = expand_dims(at, 1) >= expand_dims(at, 0);
  return softmax(where(seen, in[0] * array(0.125f, in[0].dtype()), array(-1e9f, in[0].dtype())), -1);
}

std::unordered_map<std::string, OperationMaker> norms_and_attention() {
  const auto attention_with_slope = [](const Sizes& s) {
    return appended(attention_inputs(s), drawn_heads(s, s("heads"), s("time")));
  };
  const auto attention_with_bias = [](const Sizes& s) {
    return appended(attention_inputs(s), drawn(s, {1, s("heads"), s("time"), s("time")}));
  };
  const auto norm_inputs = [](const Sizes& s) {
    return appended(two_matrices(s), drawn(s, {s("cols")}), drawn(s, {s("cols")}));
  };
  return {
      {"layer_norm", of(
                         [](const Sizes& s) {
                           return Arrays{drawn_matrix(s), drawn(s, {s("cols")}), drawn(s, {s("cols")})};
                         },
                         [](const Arrays& in) { return fast::layer_norm(in[0], in[1], in[2], 1e-5f); })},
      {"residual_layer_norm_backward",
       derivatives_of([norm_inputs](const Sizes& s) { return appended(norm_inputs(s), drawn_matrix(s)); },
                      norm_of_sum)},
      {"add_rms_norm", add_rms_norm},
      {"batch_norm_relu",
       of(batch_norm_inputs, [](const Arrays& in) { return nn::relu(batch_norm(in[0], in[1], in[2])); })},
      {"batch_norm_backward",
       derivatives_of(batch_norm_inputs, [](const Arrays& in) { return batch_norm(in[0], in[1], in[2]); })},
      {"masked_softmax", of(
                             [](const Sizes& s) {
                               return Arrays{drawn(s, {s("batch"), s("heads"), s("time"), s("time")})};
                             },
                             masked_softmax)},
      {"attention_backward",
       derivatives_of(attention_with_slope, [](const Arrays& in) { return attend(in[0], in[1], in[2], "causal"); })},
      {"attention_bias",
       of(attention_with_bias, [](const Arrays& in) { return attend(in[0], in[1], in[2], "array", in[3]); })},
      {"attention_grouped", of(grouped_inputs, [](const Arrays& in) { return attend(in[0], in[1], in[2], "causal"); })},
      {"attention_decode", of(decode_inputs, [](const Arrays& in) { return attend(in[0], in[1], in[2], ""); })},
  };
}

// Convolutions, pools and interpolation of images [batch, height, width, channels].

OperationMaker convolution(int kernel, std::pair<int, int> stride, bool depthwise) {
  return of(
      [=](const Sizes& s) {
        return Arrays{drawn_images(s), drawn(s, {s("channels"), kernel, kernel, depthwise ? 1 : s("channels")}, 0.03f)};
      },
      [=](const Arrays& in) {
        const int groups = depthwise ? length(in[0], 3) : 1;
        return conv2d(in[0], in[1], stride, {kernel / 2, kernel / 2}, {1, 1}, groups);
      });
}

Arrays strided_inputs(const Sizes& s) {
  const int channels = s("channels"), half = s("image") / 2;
  return {drawn_images(s), drawn(s, {channels, 3, 3, channels}, 0.03f), drawn(s, {s("batch"), half, half, channels})};
}

Arrays sequence_inputs(const Sizes& s) {
  const int channels = s("channels");
  return {drawn(s, {s("batch"), s("time"), channels}), drawn(s, {channels, 5, channels}, 0.03f)};
}

Arrays transposed_inputs(const Sizes& s) {
  const int channels = s("channels");
  return {drawn_images(s), drawn(s, {channels, 4, 4, channels}, 0.03f)};
}

/// Five points of a grid: a step of the heat equation with reflected edges.
array laplacian(const array& x) {
  const int rows = length(x, 0), cols = length(x, 1);
  const array wide = pad(x, 1, array(0), "edge");
  const auto shifted = [&](int i, int j) { return slice(wide, {i, j}, {i + rows, j + cols}); };
  return x + array(0.1f) * (shifted(0, 1) + shifted(2, 1) + shifted(1, 0) + shifted(1, 2) - array(4.0f) * x);
}

std::unordered_map<std::string, OperationMaker> image_pipelines() {
  const auto images = [](const Sizes& s) { return Arrays{drawn_images(s)}; };
  const auto upsampled = [](nn::UpsampleOptions::Mode mode) {
    return [mode](const Arrays& in) { return nn::Upsample({.scale = {2}, .mode = mode})(in[0]); };
  };
  return {
      {"conv1x1", convolution(1, {1, 1}, false)},
      {"conv_depthwise", convolution(3, {1, 1}, true)},
      {"conv_strided_backward", derivatives_of(strided_inputs,
                                               [](const Arrays& in) {
                                                 return conv2d(in[0], in[1], {2, 2}, {1, 1});
                                               })},
      {"conv1d", of(sequence_inputs, [](const Arrays& in) { return conv1d(in[0], in[1], 1, 2); })},
      {"conv_transpose", of(transposed_inputs,
                            [](const Arrays& in) {
                              return conv_transpose2d(in[0], in[1], {2, 2}, {1, 1});
                            })},
      {"avg_pool", of(images,
                      [](const Arrays& in) {
                        return nn::avg_pool(in[0], {3, 3}, {2, 2}, {1, 1});
                      })},
      {"upsample_nearest", of(images, upsampled(nn::UpsampleOptions::Mode::nearest))},
      {"upsample_linear", of(images, upsampled(nn::UpsampleOptions::Mode::linear))},
      {"global_pool", of(images,
                         [](const Arrays& in) {
                           return mean(in[0], std::vector<int>{1, 2});
                         })},
      {"laplacian", of_rows(laplacian)},
  };
}

// Products of other shapes than square.

std::unordered_map<std::string, OperationMaker> products() {
  const auto tall = [](const Sizes& s) { return Arrays{drawn_matrix(s), drawn(s, {s("rows"), s("n")})}; };
  const auto thin = [](const Sizes& s) {
    return Arrays{drawn(s, {s("rows"), s("n")}), drawn(s, {s("n"), s("n")}, 1 / std::sqrt(s.number("n")))};
  };
  const auto with_bias = [](const Sizes& s) {
    const int n = s("n");
    const float scale = 1 / std::sqrt(s.number("n"));
    return Arrays{drawn(s, {s("rows"), n}), drawn(s, {n, n}, scale), drawn(s, {n}), drawn(s, {s("rows"), n})};
  };
  const auto stacks = [](const Sizes& s) {
    const Shape shape{s("batch"), s("time"), s("heads"), s("width")};
    return Arrays{drawn(s, shape), drawn(s, shape)};
  };
  return {
      {"matmul_tall", of(tall, [](const Arrays& in) { return matmul(transpose(in[0]), in[1]); })},
      {"matmul_thin", of(thin, [](const Arrays& in) { return matmul(in[0], in[1]); })},
      {"linear_gelu_backward",
       derivatives_of(with_bias, [](const Arrays& in) { return nn::gelu(matmul(in[0], in[1]) + in[2]); })},
      {"einsum_scores", of(stacks,
                           [](const Arrays& in) {
                             return einsum("bihd,bjhd->bhij", {in[0], in[1]});
                           })},
      {"bilinear", of(
                       [](const Sizes& s) {
                         return Arrays{drawn_matrix(s), drawn_matrix(s),
                                       drawn(s, {s("cols"), s("cols")}, 1 / std::sqrt(s.number("cols")))};
                       },
                       [](const Arrays& in) { return sum(matmul(in[0], in[2]) * in[1], -1); })},
  };
}

// Reductions, scans, sorts and what they are used for.

Operation smoothed_cross_entropy(const Sizes& s) {
  const auto loss = [](const Arrays& in) {
    nn::losses::CrossEntropyOptions options;
    options.label_smoothing = 0.1f;
    options.reduction = nn::losses::Reduction::mean;
    return nn::losses::cross_entropy(astype(in[0], float32), in[1], options);
  };
  return compiled_operation({drawn_matrix(s), drawn_indices(s("cols"), s("rows"))}, [loss](const Arrays& in) {
    auto [value, slope] = value_and_grad(loss, std::vector<int>{0})(in);
    return Arrays{value, slope[0]};
  });
}

Operation clip_norm(const Sizes& s) {
  Arrays gradients;
  for (int i = 0; i < s("tensors"); ++i) gradients.push_back(drawn_matrix(s));
  return compiled_operation(gradients, [](const Arrays& in) { return optim::clip_grad_norm(in, 1.0f).first; });
}

/// Rows of int8 with a scale each.
Operation quantize_rows(const Sizes& s) {
  return compiled_operation({drawn_matrix(s)}, [](const Arrays& in) {
    const array x = astype(in[0], float32);
    const array scale = max(abs(x), -1, true) / array(127.0f);
    return Arrays{astype(round(x / scale), int8), scale};
  });
}

/// A softmax of the 2 best of each row: the gates of a mixture of experts.
array gates(const array& x) { return softmax(topk(x, 2, -1), -1); }

/// Sums of exp(-(x - y)²) over all y for each x: no matrix of pairs is kept.
array gaussian_sums(const Arrays& in) { return sum(exp(-square(expand_dims(in[0], 1) - expand_dims(in[1], 0))), 1); }

std::unordered_map<std::string, OperationMaker> reductions() {
  const auto two_vectors = [](const Sizes& s) { return Arrays{drawn(s, {s("rows")}), drawn(s, {s("cols")})}; };
  const auto picked = [](const Sizes& s) {
    return Arrays{drawn_matrix(s), random::randint(array(0), array(s("cols")), {s("rows"), s("count")}, int32)};
  };
  const auto bags = [](const Sizes& s) {
    return Arrays{drawn_matrix(s), random::randint(array(0), array(s("rows")), {s("count"), s("bag")}, int32)};
  };
  return {
      {"cross_entropy_smoothed", smoothed_cross_entropy},
      {"clip_grad_norm", clip_norm},
      {"quantize_rows", quantize_rows},
      {"gates", of_rows(gates)},
      {"gaussian_sums", of(two_vectors, gaussian_sums)},
      {"mean_squared_error", of(two_matrices, [](const Arrays& in) { return mean(square(in[0] - in[1])); })},
      {"log_softmax_columns", of_rows([](const array& x) { return nn::log_softmax(x, 0); })},
      {"cumsum_columns", of_rows([](const array& x) { return cumsum(x, 0); })},
      {"cummax", of_rows([](const array& x) { return cummax(x, 1); })},
      {"cumprod", of_rows([](const array& x) { return cumprod(x, 1); })},
      {"sort_rows", of_rows([](const array& x) { return sort(x, -1); })},
      {"take_along_axis", of(picked, [](const Arrays& in) { return take_along_axis(in[0], in[1], 1); })},
      {"embedding_bag", of(bags, [](const Arrays& in) { return sum(take(in[0], in[1], 0), 1); })},
      {"histogram",
       [](const Sizes& s) {
         return compiled_operation({drawn_indices(s("bins"), s("count"))}, [bins = s("bins")](const Arrays& in) {
           return Arrays{scatter_add(zeros({bins}), in[0], ones({length(in[0], 0), 1}), 0)};
         });
       }},
  };
}

// Maps and movements.

/// [batch, time, 3 · heads · width] with a bias to queries, keys and values [3, batch, heads, time, width].
array split_heads(const Arrays& in, int heads) {
  const array y = in[0] + in[1];
  const int batch = length(y, 0), time = length(y, 1);
  return contiguous(transpose(reshape(y, {batch, time, 3, heads, -1}), {2, 0, 3, 1, 4}));
}

std::unordered_map<std::string, OperationMaker> maps() {
  return {
      {"mish", of_rows([](const array& x) { return nn::mish(x); })},
      {"glu", of_rows([](const array& x) { return nn::glu(x, -1); })},
      {"concatenate", of(two_matrices,
                         [](const Arrays& in) {
                           return concatenate({in[0], in[1] * array(2.0f, in[1].dtype()), in[0]}, 1);
                         })},
      {"split_heads",
       [](const Sizes& s) {
         const int width = 3 * s("heads") * s("width");
         return compiled_operation({drawn(s, {s("batch"), s("time"), width}), drawn(s, {width})},
                                   [heads = s("heads")](const Arrays& in) { return Arrays{split_heads(in, heads)}; });
       }},
      {"rfft_power", of_rows([](const array& x) { return square(abs(fft::rfft(x))); })},
      {"flip_roll", of_rows([](const array& x) {
         return roll(slice(x, {0, length(x, 1) - 1}, {length(x, 0), -length(x, 1) - 1}, {1, -1}), 7, 0);
       })},
  };
}

}  // namespace

std::unordered_map<std::string, OperationMaker> further_operations() {
  auto all = norms_and_attention();
  all.merge(image_pipelines());
  all.merge(products());
  all.merge(reductions());
  all.merge(maps());
  return all;
}

}  // namespace weft::tool
