// The attention of flash_attention.h, and that of 16-bit floats of tutorial_attention.h, and their derivatives against
// arrays.
#include <string>
#include <vector>

#include "check.h"
#include "flash_attention.h"
#include "tutorial_attention.h"

using namespace weft;

/// Compares attention and the derivatives of a weighted sum of its results with those by arrays.
void compare(const std::string& name, const ArrayFunction& attention, bool causal, const Shape& shape, Dtype dtype,
             double tolerance) {
  std::vector<array> in;
  for (uint64_t seed = 1; seed < 4; ++seed) in.push_back(astype(check::normal(shape, seed), dtype));
  const array weights = check::normal(shape, 4);
  const ArrayFunction reference = [&](const std::vector<array>& v) {
    std::vector<array> wide;
    for (const array& x : v) wide.push_back(astype(x, float32));
    return std::vector{flash::attention_by_arrays(wide, causal)};
  };
  check::near(name, attention(in)[0], reference(in)[0], tolerance);
  const auto loss = [&](const ArrayFunction& f) {
    return [&](const std::vector<array>& v) { return std::vector<array>{sum(astype(f(v)[0], float32) * weights)}; };
  };
  const auto got = vjp(loss(attention), in, {array(1.0f)}).second,
             wanted = vjp(loss(reference), in, {array(1.0f)}).second;
  for (size_t i = 0; i < 3; ++i)
    check::near(name + (i == 0 ? ": queries" : i == 1 ? ": keys" : ": values"), got[i], wanted[i], 10 * tolerance);
}

int main() {
  for (const bool causal : {false, true}) {
    const std::string name = causal ? "causal" : "not causal";
    compare(name, flash::flash_attention({.causal = causal}), causal, {100, 24}, float32, 1e-5);
    const tutorials::AttentionTile wide{64, 32, causal}, high{32, 64, causal};
    compare(name + ", 16 bits", tutorials::attention_of<k::f16>({wide, wide, high}), causal, {2, 200, 32}, float16,
            2e-3);
  }
}
