#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/nn/module.h"

/// Positional encodings: rotations, waves, and penalties for distance, with MLX's names, arguments and defaults.
namespace weft::nn {

/// Options of RoPE.
struct RopeOptions {
  bool traditional = false;  ///< pairs of neighbours; else element i with element i + dims / 2
  float base = 10000;        ///< of the frequencies
  float scale = 1;           ///< of the positions
};

/// Computes the rotary encoding (Su et al. 2021) of x [batch, …, time, width]: the first `dims` elements of each row
/// are rotated in pairs by the angles position · scale · base^(-2i / dims); the others stay. fast::rope as a module.
class WEFT_API RoPE : public Module {
 public:
  explicit RoPE(int dims, RopeOptions options = {}) : dims_(dims), options_(options) {}
  RoPE(Module& parent, std::string name, int dims, RopeOptions options = {})
      : Module(parent, std::move(name)), dims_(dims), options_(options) {}
  /// Returns the encoding of x, whose first element has position `offset`: an integer, or an array that holds one, or
  /// one for each element of the batch.
  array operator()(const array& x, int offset = 0) const;
  array operator()(const array& x, const array& offset) const;
  std::string describe() const override;

 private:
  int dims_;
  RopeOptions options_;
};

/// Options of SinusoidalPositionalEncoding.
struct SinusoidalOptions {
  float min_freq = 0.0001f;                   ///< lowest frequency
  float max_freq = 1;                         ///< highest frequency
  std::optional<float> scale = std::nullopt;  ///< √(2 / dims) where it is not given
  bool cos_first = false;                     ///< cosines, then sines
  bool full_turns = false;                    ///< frequencies are per period: they are multiplied by 2π
};

/// Computes sines, then cosines, of positions times dims / 2 frequencies that fall geometrically from max_freq to
/// min_freq (Vaswani et al. 2017): positions of any shape and dtype become [..., dims]. Throws std::invalid_argument
/// where dims is not positive and even.
class WEFT_API SinusoidalPositionalEncoding : public Layer {
 public:
  explicit SinusoidalPositionalEncoding(int dims, SinusoidalOptions options = {})
      : SinusoidalPositionalEncoding(Scope{}, dims, options) {}
  SinusoidalPositionalEncoding(Module& parent, std::string name, int dims, SinusoidalOptions options = {})
      : SinusoidalPositionalEncoding(Scope{&parent, std::move(name)}, dims, options) {}
  SinusoidalPositionalEncoding(Scope scope, int dims, SinusoidalOptions options);
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
  /// Returns scores [batch, heads, queries, keys] minus slope · |distance|, plus `mask` where there is one. The first
  /// query has the position of key `offset`.
  array operator()(const array& attention_scores, int offset = 0,
                   const std::optional<array>& mask = std::nullopt) const;

  /// Returns -slope · |distance| as [1, heads, q_sequence_length - offset, k_sequence_length], for queries from
  /// `offset` on.
  static array create_alibi_matrix(int q_sequence_length, int k_sequence_length, int num_heads, int offset = 0,
                                   Dtype dtype = float32);
  /// Returns one slope for each head: a geometric sequence from 2^(-8 / heads), and for other numbers of heads than
  /// powers of two every second slope of the next power after those of the last one.
  static std::vector<double> alibi_get_slopes(int num_heads);
  /// Returns the slopes as [heads, 1, 1].
  static array create_alibi_slope(int num_heads, Dtype dtype = float32);
};

}  // namespace weft::nn
