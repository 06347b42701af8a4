#pragma once
// What tests of the tuner begin with.
#include "compiler/tune/tune.h"

namespace weft::compiler::testing {

/// Forgets what was measured, and has time for everything, however busy the machine.
struct FreshTuner {
  FreshTuner() : budget(set_tuning_budget(1e9)) { reset_tuning(); }
  ~FreshTuner() {
    reset_tuning();
    set_tuning_budget(budget);
  }
  double budget;
};

}  // namespace weft::compiler::testing
