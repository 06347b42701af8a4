#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/nn/module.h"

/// Where an element stands in its sequence: rotations, waves, and penalties for distance. MLX's names, arguments and
/// defaults.
namespace weft::nn {

struct RopeOptions {
  bool traditional = false;  ///< pairs of neighbours; else element i with element i + dims / 2
  float base = 10000;
  float scale = 1;  ///< of the positions
};

/// Rotary encoding (Su et al. 2021) of x [batch, …, time, width]: the first `dims` elements of each row are rotated in
/// pairs by angles that grow with the place, position · base^(-2i / dims); the others pass. fast::rope as a module.
class WEFT_API RoPE : public Module {
 public:
  explicit RoPE(int dims, RopeOptions options = {}) : dims_(dims), options_(options) {}
  RoPE(Module& parent, std::string name, int dims, RopeOptions options = {})
      : Module(parent, std::move(name)), dims_(dims), options_(options) {}
  /// The first element of x stands at place `offset`.
  array operator()(const array& x, int offset = 0) const;
  array operator()(const array& x, const array& offset) const;  ///< an integer, or one for each element of the batch
  std::string describe() const override;

 private:
  int dims_;
  RopeOptions options_;
};

struct SinusoidalOptions {
  float min_freq = 0.0001f;
  float max_freq = 1;
  std::optional<float> scale = std::nullopt;  ///< √(2 / dims) where it is not given
  bool cos_first = false;
  bool full_turns = false;  ///< frequencies are turns: they are multiplied by 2π
};

/// Places of any shape and dtype → [..., dims]: sines, then cosines, of the place times dims / 2 frequencies that fall
/// geometrically from max_freq to min_freq (Vaswani et al. 2017). Throws std::invalid_argument where dims is not
/// positive and even.
class WEFT_API SinusoidalPositionalEncoding : public Layer {
 public:
  explicit SinusoidalPositionalEncoding(int dims, SinusoidalOptions options = {})
      : SinusoidalPositionalEncoding(Place{}, dims, options) {}
  SinusoidalPositionalEncoding(Module& parent, std::string name, int dims, SinusoidalOptions options = {})
      : SinusoidalPositionalEncoding(Place{&parent, std::move(name)}, dims, options) {}
  SinusoidalPositionalEncoding(Place place, int dims, SinusoidalOptions options);
  array operator()(const array& x) const override;
  std::string describe() const override;

 private:
  int dims_;
  SinusoidalOptions options_;
  array frequencies_;
};

/// Attention with linear biases (Press et al. 2022): scores fall with the distance, in each head at a rate of its own.
class WEFT_API ALiBi : public Module {
 public:
  using Module::Module;
  /// scores [batch, heads, queries, keys] less slope · |distance|, and `mask` added where there is one. The first query
  /// stands at key `offset`.
  array operator()(const array& attention_scores, int offset = 0,
                   const std::optional<array>& mask = std::nullopt) const;

  /// -slope · |distance| as [1, heads, q_sequence_length - offset, k_sequence_length], for queries from `offset` on.
  static array create_alibi_matrix(int q_sequence_length, int k_sequence_length, int num_heads, int offset = 0,
                                   Dtype dtype = float32);
  /// One slope a head: a geometric sequence from 2^(-8 / heads), and for other numbers of heads than powers of two
  /// those of the next two powers.
  static std::vector<double> alibi_get_slopes(int num_heads);
  static array create_alibi_slope(int num_heads, Dtype dtype = float32);  ///< [heads, 1, 1]
};

}  // namespace weft::nn
