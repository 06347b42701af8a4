// The process's counters.
#include "runtime/trace.h"

namespace weft::runtime {

Counters& counters() {
  static Counters instance;
  return instance;
}

}  // namespace weft::runtime
