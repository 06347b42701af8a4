// The attention of flash_attention.h and its derivative against arrays.
#include <string>
#include <vector>

#include "check.h"
#include "flash_attention.h"

using namespace weft;

int main() {
  const int64_t length = 100, d = 24;
  for (const bool causal : {false, true}) {
    const ArrayFunction attention = flash::flash_attention({.causal = causal});
    const array q = check::normal({length, d}, 1), keys = check::normal({length, d}, 2),
                values = check::normal({length, d}, 3), weights = check::normal({length, d}, 4);
    const auto reference = [&](const std::vector<array>& in) {
      return std::vector{flash::attention_by_arrays(in, causal)};
    };
    const std::string name = causal ? "causal" : "not causal";
    check::near(name, attention({q, keys, values})[0], reference({q, keys, values})[0], 1e-5);
    const auto loss = [&](const auto& f) {
      return [&](const std::vector<array>& in) { return std::vector<array>{sum(f(in)[0] * weights)}; };
    };
    const auto got = vjp(loss(attention), {q, keys, values}, {array(1.0f)}).second,
               wanted = vjp(loss(reference), {q, keys, values}, {array(1.0f)}).second;
    for (size_t i = 0; i < 3; ++i)
      check::near(name + (i == 0 ? ": queries" : i == 1 ? ": keys" : ": values"), got[i], wanted[i], 1e-4);
  }
}
