#include "target/cuda/codegen/layout.h"

#include <fmt/format.h>

namespace weft::target::cuda {

int Layout::registers() const {
  if (repeated()) return 1;
  const int64_t per_iteration = static_cast<int64_t>(threads) * vec;
  return static_cast<int>((size + per_iteration - 1) / per_iteration) * vec;
}

std::string Layout::element(const std::string& r) const {
  if (register_tiles) return "(" + r + ")";
  if (repeated())
    return size == 1                  ? "0"
           : (size & (size - 1)) == 0 ? fmt::format("(t & {})", size - 1)
                                      : fmt::format("(t % {})", size);
  if (registers() == 1) return "t";
  if (vec == 1) return fmt::format("({} * {} + t)", r, threads);
  if (registers() == vec) return fmt::format("(t * {} + {})", vec, r);
  return fmt::format("(({0} / {1} * {2} + t) * {1} + {0} % {1})", r, vec, threads);
}

std::string Layout::inside(const std::string& r) const {
  return ragged() ? fmt::format("imin<int>({}, {})", element(r), size - 1) : element(r);
}

Layout make_layout(int64_t size, int threads, int vec) {
  while (vec > 1 && size % (static_cast<int64_t>(threads) * vec) != 0) vec /= 2;
  return {size, threads, vec};
}

}  // namespace weft::target::cuda
