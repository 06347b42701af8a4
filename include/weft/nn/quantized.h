#pragma once
#include <optional>
#include <string>

#include "weft/nn/module.h"

namespace weft::nn {

/// How a layer's matrix is quantised: the arguments of weft::quantize.
struct Quantization {
  std::optional<int> group_size = std::nullopt, bits = std::nullopt;  ///< none: the mode's usual ones
  std::string mode = "affine";  ///< of weft::quantize: "affine", "mxfp4", "mxfp8", "nvfp4"
  /// Whether linear layers quantise their input as well (weft::qqmm): modes "nvfp4" and "mxfp8".
  bool input = false;
};

/// What belongs to a layer's matrix of codes: its scales and biases, parameters "scales" and "biases" of the layer,
/// with MLX's names. Neither they nor the codes are learned.
class WEFT_API QuantizedWeight {
 public:
  /// Puts codes in the place of the numbers of `weight` [rows, width], a parameter of `layer`. Throws
  /// std::invalid_argument as weft::quantize does.
  QuantizedWeight(Module& layer, Parameter& weight, const Quantization& how);
  /// Returns x Wᵀ [..., rows] in x's dtype.
  array times(const array& x) const;
  /// Returns the rows [..., width] of ids [...], in the dtype that `weight` had.
  array rows(const array& ids) const;
  /// Returns the elements of a row.
  int64_t width() const;
  /// Returns what a layer's description says of it.
  std::string describe() const;

  Quantization how;                 ///< with sizes
  Parameter scales;                 ///< [rows, width / group_size]
  std::optional<Parameter> biases;  ///< the same, in mode "affine"

 private:
  QuantizedWeight(Module& layer, Parameter& weight, const Quantization& how, std::vector<array> made);
  const Parameter* codes_;
  Dtype dtype_;
};

}  // namespace weft::nn
