#include "target/cuda/codegen/layout.h"

#include <fmt/format.h>

namespace weft::target::cuda {

int Layout::registers() const {
  if (held == Held::fragments) return static_cast<int>(row_fragments() * column_fragments() * 4);
  if (held == Held::rows) return static_cast<int>(row_fragments() * 2);
  if (held == Held::columns) return static_cast<int>(column_fragments() * 2);
  if (held == Held::chunks) return static_cast<int>(size * each / threads);
  if (held == Held::lanes) return vec;
  if (held == Held::row_parts) return static_cast<int>(row_fragments() * 2 * parts_of_row());
  if (held == Held::line_parts) return static_cast<int>(std::max<int64_t>(size / 8, 1) * 2);
  if (repeated()) return 1;
  const int64_t per_iteration = static_cast<int64_t>(threads) * vec;
  return static_cast<int>((size + per_iteration - 1) / per_iteration) * vec;
}

std::string Layout::first_row(const std::string& i) const {
  const int64_t of_warp = interleaved ? 16 : rows / row_warps, step = interleaved ? int64_t{16} * row_warps : 16;
  std::string out;
  if (row_warps > 1)
    out = column_warps > 1 ? fmt::format("(t >> 5) / {} * {}", column_warps, of_warp)
                           : fmt::format("(t >> 5) * {}", of_warp);
  if (row_fragments() > 1) out += fmt::format("{}{} * {}", out.empty() ? "" : " + ", i, step);
  return out.empty() ? "0" : out;
}

std::string Layout::first_column() const {
  if (column_warps == 1) return "0";
  return row_warps > 1 ? fmt::format("(t >> 5) % {} * {}", column_warps, columns / column_warps)
                       : fmt::format("(t >> 5) * {}", columns / column_warps);
}

std::string Layout::row(const std::string& r, char join) const {
  const bool line = held == Held::rows || held == Held::row_parts;
  const int64_t registers = line ? 2 : column_fragments() * 4;  // of 16 rows
  const std::string of = held == Held::row_parts ? fmt::format("({} / {})", r, parts_of_row()) : r;
  return fmt::format("((t >> 2 & 7) + {} {} ({} >> {} & 1) * 8)", first_row(fmt::format("{} / {}", of, registers)),
                     join, of, line ? 0 : 1);
}

std::string Layout::column(const std::string& r, char join) const {
  if (held == Held::row_parts) {
    const int64_t own = parts_of_row();
    const std::string part = own == 1 ? "0" : fmt::format("{} % {}", r, own);
    return each >= 8 ? fmt::format("({})", part) : fmt::format("({} * {} + (t & 3) * 2 / {})", part, 8 / each, each);
  }
  std::string own = fmt::format("({} & 1)", r);
  if (held == Held::columns) own = fmt::format("{} / 2 * 8 + {}", r, own);
  else if (column_fragments() > 1) own = fmt::format("{} / 4 % {} * 8 + {}", r, column_fragments(), own);
  return join == '|' && column_warps == 1 ? fmt::format("((t & 3) * 2 | ({}))", own)
                                          : fmt::format("((t & 3) * 2 + {} + {})", first_column(), own);
}

std::string Layout::owner(const std::string& r) const {
  if (held == Held::rows)
    return column_warps > 1 ? fmt::format("t % {} == 0 && (t & 3) == 0", 32 * column_warps) : "(t & 3) == 0";
  if (held == Held::columns)
    return row_warps > 1 ? fmt::format("t < {} && (t & 28) == 0", 32 * column_warps) : "(t & 28) == 0";
  if (held == Held::chunks) return fmt::format("({} * {} + t) % {} == 0", r, threads, each);
  if (held == Held::lanes) return fmt::format("t * {} + {} < {}", vec, r, size);
  if (held == Held::row_parts) return fmt::format("(t & 3) * 2 % {} == 0", each);
  if (held == Held::line_parts) return fmt::format("t * 2 + ({} & 1) < {}", r, std::min<int64_t>(size, 8));
  if (repeated()) return fmt::format("t < {}", size);
  return ragged() ? fmt::format("{} < {}", element(r), size) : "";
}

std::string Layout::position(const std::string& r) const {
  return held == Held::rows ? row(r, '|') : held == Held::columns ? column(r, '|') : element(r);
}

std::string Layout::element(const std::string& r) const {
  if (held == Held::fragments) return fmt::format("({} * {} + {})", row(r), columns, column(r));
  if (held == Held::rows) return row(r);
  if (held == Held::columns) return column(r);
  if (held == Held::chunks) return fmt::format("(({} * {} + t) / {})", r, threads, each);
  if (held == Held::lanes) return fmt::format("((t * {} + {}) % {})", vec, r, size);
  if (held == Held::row_parts) return fmt::format("({} * {} + {})", row(r), columns / each, column(r));
  if (held == Held::line_parts)
    return size >= 8 ? fmt::format("({0} / 2 * 8 + (t & 3) * 2 + ({0} & 1))", r)
                     : fmt::format("(((t & 3) * 2 + {}) % {})", r, size);
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

Layout fragments_of(int64_t rows, int64_t columns, int row_warps, int column_warps, bool interleaved) {
  Layout out{rows * columns, 32 * row_warps * column_warps, 1};
  out.held = Held::fragments;
  out.rows = rows, out.columns = columns, out.row_warps = row_warps, out.column_warps = column_warps;
  out.interleaved = interleaved;
  return out;
}

Layout rows_of(const Layout& fragments) {
  Layout out = fragments;
  out.held = Held::rows, out.size = fragments.rows, out.columns = 0;
  return out;
}

Layout columns_of(const Layout& fragments) {
  Layout out = fragments;
  out.held = Held::columns, out.size = fragments.columns, out.rows = 0;
  return out;
}

std::optional<Layout> repeated_elements(const Layout& flat, int64_t size, int64_t times) {
  if (!flat.flat() || flat.register_tiles || flat.ragged() || flat.repeated()) return {};
  if (times < flat.vec && flat.vec % times == 0) return Layout{size, flat.threads, static_cast<int>(flat.vec / times)};
  if (times % flat.vec != 0) return {};
  Layout out{size, flat.threads, 1};
  out.held = Held::chunks, out.each = times / flat.vec;
  return out;
}

std::optional<Layout> repeated_tile(const Layout& flat, int64_t size) {
  const int64_t chunks = static_cast<int64_t>(flat.threads) * flat.vec;
  if (!flat.flat() || flat.register_tiles || flat.ragged() || flat.repeated() || chunks % size != 0) return {};
  Layout out{size, flat.threads, flat.vec};
  out.held = Held::lanes;
  return out;
}

std::optional<Layout> parts_of_rows(const Layout& fragments, int64_t size, int64_t times, int vec) {
  const bool fits = fragments.held == Held::fragments && fragments.column_warps == 1 && times > 1 &&
                    size * times == fragments.rows * fragments.columns && fragments.columns % times == 0 &&
                    (times % 8 == 0 || 8 % times == 0);
  if (!fits) return {};
  Layout out = fragments;
  out.held = Held::row_parts, out.size = size, out.each = times, out.vec = vec;
  while (out.vec > 1 && (times < 8 || out.parts_of_row() % out.vec != 0)) out.vec /= 2;
  return out;
}

std::optional<Layout> parts_of_lines(const Layout& fragments, int64_t size) {
  const bool fits = fragments.held == Held::fragments && fragments.column_warps == 1 && fragments.columns % size == 0 &&
                    (size % 8 == 0 || 8 % size == 0);
  if (!fits) return {};
  Layout out = fragments;
  out.held = Held::line_parts, out.size = size, out.rows = 0, out.columns = size;
  return out;
}

}  // namespace weft::target::cuda
