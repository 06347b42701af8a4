#include "compiler/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <numeric>
#include <utility>

#include "compiler/region/matmul_work.h"

namespace weft::compiler {

namespace {

constexpr std::array<std::string_view, level_count> level_names{"grid",   "cluster", "warps",
                                                                "serial", "unroll",  "lanes"};
constexpr std::array<std::string_view, 5> class_names{"map", "row", "column", "product", "attention"};

constexpr std::array<std::pair<std::string_view, AxisDivision Schedule::*>, 5> divisions{{
    {"programs", &Schedule::programs},
    {"rows", &Schedule::rows},
    {"lanes", &Schedule::lanes},
    {"loop", &Schedule::loop},
    {"cut", &Schedule::cut},
}};

constexpr std::array<std::pair<std::string_view, int Staging::*>, 7> staging_words{{
    {"stages", &Staging::stages},
    {"raster", &Staging::raster},
    {"specialize", &Staging::specialize},
    {"persistent", &Staging::persistent},
    {"ping_pong", &Staging::ping_pong},
    {"warps", &Staging::warps},
    {"registers", &Staging::registers},
}};
constexpr std::array<std::string_view, 3> instructions{"wgmma", "mma", "fma"};

}  // namespace

int64_t AxisDivision::count(Level level) const {
  int64_t n = 1;
  for (size_t k = copies_apart() > 1 ? 1 : 0; k < parts.size(); ++k)
    if (parts[k].level == level) n *= parts[k].count;
  return n;
}

int64_t AxisDivision::copies_apart() const {
  return parts.size() > 1 && parts[0].level == Level::unroll ? parts[0].count : 1;
}

int64_t Schedule::tiles_of_step() const { return kind == RowClass::row ? lanes.count(Level::unroll) : 1; }

int64_t Schedule::block() const {
  return lanes.count(Level::serial) * lanes.count(Level::unroll) * lanes.count(Level::lanes);
}

bool Schedule::gemv() const {
  return kind == RowClass::row && !programs.parts.empty() && programs.parts.back().level == Level::unroll;
}

bool Schedule::operator==(const Schedule& other) const {
  return kind == other.kind && any_length == other.any_length && guarded_tiles == other.guarded_tiles &&
         staging == other.staging && std::all_of(divisions.begin(), divisions.end(), [&](const auto& d) {
           return this->*d.second == other.*d.second;
         });
}

namespace {

std::string to_string(const AxisDivision& division) {
  std::string text;
  for (const int axis : division.axes) text += fmt::format("{}{}", text.empty() ? "" : ".", axis);
  text += ":";
  for (const AxisPart& part : division.parts)
    text +=
        fmt::format("{}{}{}", text.back() == ':' ? "" : ",", level_names[static_cast<size_t>(part.level)], part.count);
  return text;
}

/// Takes `prefix` off the beginning of the text; returns whether it was there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<int64_t> take_number(std::string_view& text) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || n < 0) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return n;
}

std::optional<Level> take_level(std::string_view& text) {
  for (size_t k = 0; k < level_names.size(); ++k)
    if (take(text, level_names[k])) return static_cast<Level>(k);
  return {};
}

std::optional<AxisDivision> take_division(std::string_view& text) {
  AxisDivision division;
  while (!take(text, ":")) {
    if (!division.axes.empty() && !take(text, ".")) return {};
    const std::optional<int64_t> axis = take_number(text);
    if (!axis || *axis > 1000) return {};
    division.axes.push_back(static_cast<int>(*axis));
  }
  while (!text.empty() && text[0] != ';') {
    if (!division.parts.empty() && !take(text, ",")) return {};
    const std::optional<Level> level = take_level(text);
    const std::optional<int64_t> count = level ? take_number(text) : std::nullopt;
    if (!count) return {};
    division.parts.push_back({*level, *count});
  }
  return division;
}

}  // namespace

std::string to_string(const Schedule& schedule) {
  std::string text(class_names[static_cast<size_t>(schedule.kind)]);
  for (const auto& [name, division] : divisions)
    if (const AxisDivision& d = schedule.*division; !d.axes.empty() || !d.parts.empty())
      text += fmt::format(";{}={}", name, to_string(d));
  if (schedule.any_length) text += ";any_length";
  if (schedule.guarded_tiles) text += ";guarded_tiles";
  for (const auto& [word, member] : staging_words)
    if (schedule.staging.*member > 0) text += fmt::format(";{}={}", word, schedule.staging.*member);
  if (!schedule.staging.instruction.empty()) text += ";" + schedule.staging.instruction;
  return text;
}

std::optional<Schedule> parse_schedule(std::string_view text) {
  Schedule schedule;
  const auto kind =
      std::find_if(class_names.begin(), class_names.end(), [&](std::string_view name) { return take(text, name); });
  if (kind == class_names.end()) return {};
  schedule.kind = static_cast<RowClass>(kind - class_names.begin());
  for (const auto& [name, division] : divisions)
    if (take(text, fmt::format(";{}=", name))) {
      std::optional<AxisDivision> found = take_division(text);
      if (!found) return {};
      schedule.*division = std::move(*found);
    }
  schedule.any_length = take(text, ";any_length");
  schedule.guarded_tiles = take(text, ";guarded_tiles");
  for (const auto& [word, member] : staging_words)
    if (take(text, fmt::format(";{}=", word))) {
      const std::optional<int64_t> n = take_number(text);
      if (!n || *n < 1 || *n > 1024) return {};
      schedule.staging.*member = static_cast<int>(*n);
    }
  for (const std::string_view instruction : instructions)
    if (take(text, fmt::format(";{}", instruction))) schedule.staging.instruction = instruction;
  return text.empty() ? std::optional(schedule) : std::nullopt;
}

namespace {

/// Returns the extents of the axes that divisions name: of the domain, or of a tiled kernel.
std::vector<int64_t> extents_of(const Group& group) {
  std::vector<int64_t> out;
  if (group.kind == Group::Kind::dot)
    for (const Dim& d : group.dot.extents) out.push_back(d.bound());
  else if (group.kind == Group::Kind::attention) {
    out = group.attention.batch;
    for (const Dim& d : {group.attention.tq, group.attention.tk}) out.push_back(d.bound());
  } else {
    for (const DomainVariable& v : group.domain) out.push_back(v.extent.bound());
  }
  return out;
}

}  // namespace

bool set_extents(Schedule& schedule, const Group& group) {
  const std::vector<int64_t> extents = extents_of(group);
  for (const auto& [name, division] : divisions) {
    AxisDivision& d = schedule.*division;
    d.extent = 1;
    for (const int axis : d.axes) {
      if (static_cast<size_t>(axis) >= extents.size()) return false;
      d.extent *= extents[static_cast<size_t>(axis)];
    }
  }
  return true;
}

namespace {

/// Returns why the divisions do not say what each point of the domain is computed by.
std::string why_incomplete(const Schedule& s, const Group& group) {
  std::vector<int> axes;
  for (const auto& [name, division] : divisions) {
    const AxisDivision& d = s.*division;
    axes.insert(axes.end(), d.axes.begin(), d.axes.end());
    int64_t covered = 1;
    for (size_t k = 0; k < d.parts.size(); ++k) {
      const bool copies = k == 0 && d.parts[k].level == Level::unroll;
      if (d.parts[k].count < 1) return fmt::format("{} has a part without elements", name);
      if (k > 0 && !(d.parts[k - 1].level < d.parts[k].level) && !(k == 1 && d.parts[0].level == Level::unroll))
        return fmt::format("the levels of {} are not in order", name);
      if (!copies || d.parts.size() == 1) covered *= d.parts[k].count;
    }
    if (d.extent % d.copies_apart() != 0) return fmt::format("copies of {} have no equal shares", name);
    if (covered < d.share() && !s.any_length) return fmt::format("{} are not all computed", name);
  }
  std::sort(axes.begin(), axes.end());
  std::vector<int> all(extents_of(group).size());
  std::iota(all.begin(), all.end(), 0);
  return axes == all ? "" : "each axis belongs to one division";
}

/// Returns the levels that the parts of a division may have, behind copies apart.
std::vector<Level> levels_of(const Schedule& s, AxisDivision Schedule::*division) {
  if (division == &Schedule::programs) return {Level::grid, Level::unroll};
  if (division == &Schedule::cut) return {Level::unroll};
  if (division == &Schedule::loop)
    return s.kind == RowClass::map ? std::vector{Level::grid, Level::serial}
                                   : std::vector{Level::warps, Level::serial, Level::unroll};
  if (s.kind == RowClass::row) return {Level::cluster, Level::serial, Level::unroll, Level::lanes};
  if (s.kind == RowClass::map && !s.loop.axes.empty()) return {Level::grid, Level::unroll, Level::lanes};
  return {Level::grid, Level::serial, Level::lanes};
}

/// Returns why no form of a kernel has these levels.
std::string why_formless(const Schedule& s, const Group& group) {
  for (const auto& [name, division] : divisions) {
    const std::vector<Level> levels = levels_of(s, division);
    const AxisDivision& d = s.*division;
    for (size_t k = d.copies_apart() > 1 ? 1 : 0; k < d.parts.size(); ++k)
      if (std::find(levels.begin(), levels.end(), d.parts[k].level) == levels.end())
        return fmt::format("{} have no level {} here", name, level_names[static_cast<size_t>(d.parts[k].level)]);
  }
  for (size_t axis = 0; axis < group.domain.size(); ++axis) {
    const auto in = [&](const AxisDivision& d) {
      return std::find(d.axes.begin(), d.axes.end(), static_cast<int>(axis)) != d.axes.end();
    };
    const bool expected = s.kind == RowClass::row ? in(s.lanes) : s.kind == RowClass::column && in(s.loop);
    if (group.domain[axis].inner != expected) return "reduced axes are the lanes of a row and the loop of a column";
  }
  const bool fixed = s.sharers() > 1 || s.panels() || s.gemv() || !s.cut.axes.empty() || s.lanes.copies_apart() > 1 ||
                     s.programs.copies_apart() > 1 || (s.kind == RowClass::map && !s.loop.axes.empty());
  if (s.panels() && s.sharers() > 1) return "panels of columns are not shared";
  if (fixed && !all_static(group.domain)) return "only static extents are shared, copied or cut";
  if (s.any_length && (s.kind != RowClass::map || !s.programs.axes.empty() || fixed))
    return "only a flat map serves all lengths";
  if (group.has_columns() && (s.kind != RowClass::row || s.sharers() > 1 || s.tile() < s.lanes.extent))
    return "a row that is added to sums of columns is one tile";
  return "";
}

/// Returns what the machine lacks for the tiles.
std::string why_too_large(const Schedule& s, const target::Machine& machine) {
  constexpr int64_t widest_row = 8192, widest = 4096, most_gemv_rows = 8;  // elements of a block's registers
  const int64_t tile = s.tile(), live = s.kind == RowClass::row && machine.simt ? tile * s.tiles_of_step() : tile;
  if (!std::has_single_bit(static_cast<uint64_t>(tile))) return "tiles are powers of two";
  if (s.kind == RowClass::map && !s.loop.axes.empty() && s.lanes.share() % s.block() != 0)
    return "programs with a loop compute whole blocks";
  if (!std::has_single_bit(static_cast<uint64_t>(s.sharers()))) return "the parts of a reduction are a power of two";
  if (s.loop.count(Level::warps) > std::max<int64_t>(1, s.loop.extent)) return "a part of a reduction has no elements";
  if (s.lanes.count(Level::cluster) > machine.max_cluster) return "the machine has no such cluster";
  if (s.loop.count(Level::warps) > machine.max_cluster * 32) return "a cluster has no so many warps";
  if (s.gemv() && s.programs.count(Level::unroll) > most_gemv_rows) return "so many rows do not stay in registers";
  const int64_t most = machine.simt ? (s.kind == RowClass::row ? widest_row : widest)
                                    : (machine.vector_registers >= 32 ? 16 : 8) * machine.lanes(4);
  if (live > most) return "the tile does not stay in registers";
  return s.panels() && machine.simt ? "panels are of a CPU" : "";
}

bool is_tile_of(const AxisDivision& d, Level outer) {
  return d.parts.size() == 2 && d.parts[0].level == outer && d.parts[1].level == Level::lanes;
}

/// Returns why a machine does not launch a tiled kernel so.
std::string why_not_launched(const Staging& s, bool warpgroups) {
  constexpr int on = 1, off = 2, most_stages = 32, most_warps = 16, most_registers = 255;
  const auto warps = static_cast<unsigned>(s.warps);
  if (s.stages > most_stages) return "a loop has 32 stages at most";
  if (s.warps > most_warps || (s.warps > 0 && !std::has_single_bit(warps) && s.warps != 12))
    return "a program has a power of two of warps up to 16, or 12";
  if (warpgroups && s.warps % 4 != 0) return "warpgroups are four warps each";
  if (s.registers > most_registers) return "a thread has 255 registers at most";
  if ((s.specialize == on || s.persistent == on || s.ping_pong == on) && !warpgroups)
    return "copies by warps of their own, and programs in turns, are of products by warpgroups (wgmma)";
  if (s.ping_pong == on && (s.specialize == off || s.persistent == off))
    return "two programs multiply in turns where copies have warps of their own and blocks stay";
  return s.persistent == on && s.specialize == off ? "programs take turns where copies have warps of their own" : "";
}

/// Returns why the machine has no code for a product in these tiles.
std::string why_no_product(const Schedule& s, const Group& group, const target::Machine& machine) {
  if (group.kind != Group::Kind::dot) return "the group is no product";
  if (s.rows.axes.empty()) return s.lanes.axes.empty() && s.loop.axes.empty() ? "" : "the product is not tiled";
  if (!is_tile_of(s.rows, Level::grid) || !is_tile_of(s.lanes, Level::grid) || !is_tile_of(s.loop, Level::serial))
    return "a product has tiles of m and n on programs, and a loop of tiles of k";
  if (!takes_matmul_tiles(group.dot, machine)) return "the machine's products are not tiled so";
  kernels::GemmTile tile{s.rows.parts[1].count, s.lanes.parts[1].count, s.loop.parts[1].count, s.staging.stages,
                         s.staging.ping_pong == 1};
  const bool transposed = computes_transposed(group.dot, machine);
  if (transposed) std::swap(tile.rows, tile.columns);
  const kernels::GemmWork work = matmul_work(group.dot, machine, transposed);
  const bool warpgroups =
                 machine.arch == "sm_90a" && (work.operands.size() == 2 || work.along_depth) && tile.rows % 64 == 0,
             exact = work.exact;
  const std::string& wanted = s.staging.instruction;
  const std::string_view has = exact ? "fma" : warpgroups ? "wgmma" : "mma";
  if (!wanted.empty() && wanted != has) return fmt::format("its tiles are multiplied by {}, not by {}", has, wanted);
  if (std::string why = why_not_launched(s.staging, warpgroups && !exact); !why.empty()) return why;
  return kernels::why_no_tile(machine, work, tile);
}

std::string why_no_attention(const Schedule& s, const Group& group, const target::Machine& machine) {
  if (group.kind != Group::Kind::attention) return "the group is no attention";
  if (!is_tile_of(s.rows, Level::grid) || !is_tile_of(s.loop, Level::serial))
    return "attention has tiles of queries on programs, and a loop of tiles of keys";
  for (const AxisDivision* d : {&s.rows, &s.loop})
    if (const int64_t n = d->parts[1].count; n < 16 || n > 256 || !std::has_single_bit(static_cast<uint64_t>(n)))
      return "tiles of attention have 16, 32, 64, 128 or 256 rows";
  const bool warpgroups = machine.arch == "sm_90a" && group.attention.q.dtype.size() == 2;
  return why_not_launched(s.staging, warpgroups);
}

}  // namespace

std::string why_illegal(const Schedule& schedule, const Group& group, const target::Machine& machine) {
  if (schedule.kind == RowClass::product || schedule.kind == RowClass::attention) {
    const bool product = schedule.kind == RowClass::product, tiled = !schedule.rows.axes.empty();
    const std::string why = tiled ? why_incomplete(schedule, group) : "";
    return !why.empty() ? why
           : product    ? why_no_product(schedule, group, machine)
                        : why_no_attention(schedule, group, machine);
  }
  for (const std::string& reason :
       {why_incomplete(schedule, group), why_formless(schedule, group), why_too_large(schedule, machine)})
    if (!reason.empty()) return reason;
  return "";
}

std::vector<Schedule> neighbours(const Schedule& schedule) {
  std::vector<Schedule> found;
  for (const auto& [name, division] : divisions) {
    if (division == &Schedule::cut) continue;
    const std::vector<AxisPart>& parts = (schedule.*division).parts;
    const size_t first = (schedule.*division).copies_apart() > 1 ? 1 : 0;
    for (size_t to = first; to < parts.size(); ++to)
      for (size_t from = first; from < parts.size(); ++from) {
        if (from == to || parts[from].count == 1) continue;
        Schedule other = schedule;
        std::vector<AxisPart>& changed = (other.*division).parts;
        changed[to].count *= 2;
        changed[from].count = (changed[from].count + 1) / 2;
        found.push_back(std::move(other));
      }
  }
  return found;
}

}  // namespace weft::compiler
