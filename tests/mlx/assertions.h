#pragma once
// The cases of golden files of assertions, written in Weft: one function for each.
#include <string>
#include <vector>

#include "mlx/golden.h"
#include "weft/transforms.h"

namespace weft::test {

struct Assertion {
  std::string name;  // without the subject
  std::function<Arrays(const Arrays&)> call;
  Bound bound = {16, 1, false};  // a few roundings of numbers of magnitude 1
  bool compiles = true;  // a function of its inputs alone, whose result must not change under compile, in two calls
};

/// Holds the cases "subject/…" of a file to these functions: each case has a function, each function a case, and
/// results agree, eager and compiled.
void check_assertions(const std::string& subject, const std::vector<Assertion>& assertions,
                      const std::string& file = "assertions");

/// Gradients of Σ k·f(…)ₖ, k = 1, 2, 3 …, by every argument.
Arrays gradient(const std::function<array(const Arrays&)>& f, const Arrays& arguments);

}  // namespace weft::test
