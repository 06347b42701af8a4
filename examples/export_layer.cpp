// Writes a function to a file, which import_function reads in another process and `weft explain` takes apart: a layer
// norm, then a linear layer with gelu. docs/architecture.md follows it through the compiler.
//
// usage: example_export_layer [FILE]
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include <weft/weft.h>

using weft::Args;
using weft::array;

namespace {

/// gelu(layer_norm(x) · wᵀ + b): x [rows, width], weight and bias of the norm [width], w [out, width], b [out].
Args layer(const Args& in) {
  const array &x = in[0], &norm_weight = in[1], &norm_bias = in[2], &w = in[3], &b = in[4];
  const array normed = weft::fast::layer_norm(x, norm_weight, norm_bias, 1e-5f);
  return {weft::nn::gelu_approx(weft::addmm(b, normed, weft::transpose(w)))};
}

}  // namespace

int main(int count, char** words) {
  const int rows = 8, width = 32, out = 64;
  const Args arguments{weft::random::normal({rows, width}), weft::ones({width}), weft::zeros({width}),
                       weft::random::normal({out, width}), weft::zeros({out})};
  const std::string path = count > 1 ? words[1] : (std::filesystem::temp_directory_path() / "layer.weft").string();
  weft::export_function(path, layer, arguments);
  const array again = weft::import_function(path)(arguments)[0];
  const bool same = weft::array_equal(again, layer(arguments)[0]).item<bool>();
  if (count == 1) std::filesystem::remove(path);
  std::cout << "the imported function computes " << (same ? "the same" : "something else") << "\n";
  return same ? 0 : 1;
}
