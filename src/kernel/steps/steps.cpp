// weft/schedule/steps.h: the kinds of steps, and the functions that append them.
#include "weft/schedule/steps.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "kernel/steps/kinds.h"

namespace weft::schedule {

namespace {

constexpr size_t any_number = 64;  // of axes
constexpr int64_t most_extent = int64_t{1} << 40;

constexpr auto rows = std::to_array<KindRow>({
    {Kind::split, "split", "anM", 0, 0, 2},
    {Kind::fuse, "fuse", "Am", 0, any_number, 1},
    {Kind::reorder, "reorder", "A", 2, any_number},
    {Kind::tile, "tile", "AnnM", 2, 2, 4},
    {Kind::bind, "bind", "aw", 0, 0, 0, "program cluster warp serial lane"},
    {Kind::vectorize, "vectorize", "a"},
    {Kind::unroll, "unroll", "a"},
    {Kind::pad, "pad", "an"},
    {Kind::guard, "guard", ""},
    {Kind::any_length, "any_length", ""},
    {Kind::compute_root, "compute_root", ""},
    {Kind::inlined, "inline", ""},
    {Kind::name, "name", "a"},
    {Kind::compute_at, "compute_at", "a"},
    {Kind::split_reduce, "split_reduce", "an", 0, 0, 0, {}, 2},
    {Kind::online_softmax, "online_softmax", "w", 0, 0, 0, "on off"},
    {Kind::tensorize, "tensorize", "w", 0, 0, 0, "mma wgmma fma generated library"},
    {Kind::stage, "stage", "awn", 0, 0, 0, "shared swizzled row_major"},
    {Kind::pipeline, "pipeline", "an"},
    {Kind::specialize, "specialize", "w", 0, 0, 0, "on off"},
    {Kind::persistent, "persistent", "w", 0, 0, 0, "on off"},
    {Kind::ping_pong, "ping_pong", "w", 0, 0, 0, "on off"},
    {Kind::raster, "raster", "n"},
    {Kind::warps, "warps", "n"},
    {Kind::registers, "registers", "n"},
});

constexpr bool in_order() {
  for (size_t k = 0; k < rows.size(); ++k)
    if (rows[k].kind != static_cast<Kind>(k)) return false;
  return true;
}
static_assert(in_order());

const char* on_or_off(bool on) { return on ? "on" : "off"; }

bool knows(std::string_view words, std::string_view word) {
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

size_t count_of(std::string_view form, char letter) {
  return static_cast<size_t>(std::count(form.begin(), form.end(), letter));
}

Step checked(Step step) {
  if (const std::string fault = fault_of(step); !fault.empty()) throw_invalid("schedule", fault);
  return step;
}

}  // namespace

const KindRow& row_of(Kind kind) { return rows[static_cast<size_t>(kind)]; }

const KindRow* find_kind(std::string_view name) {
  const auto found = std::ranges::find(rows, name, &KindRow::name);
  return found == rows.end() ? nullptr : &*found;
}

std::span<const KindRow> kinds() { return rows; }

bool is_name(std::string_view name) {
  const auto part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) && std::ranges::all_of(name, part);
}

std::string fault_of(const Step& step) {
  if (static_cast<size_t>(step.kind) >= rows.size()) return "a step has no kind of the list";
  const KindRow& row = row_of(step.kind);
  const auto wants = [&](const std::string& what) { return fmt::format("{} {}", row.name, what); };
  const size_t single = count_of(row.form, 'a'), several = count_of(row.form, 'A');
  const size_t least = single + row.least_axes * several, most = single + row.most_axes * several;
  if (step.axes.size() < least || step.axes.size() > most)
    return wants(
        fmt::format("takes {}{} names of axes, got {}", least, least == most ? "" : " or more", step.axes.size()));
  if (step.numbers.size() != count_of(row.form, 'n'))
    return wants(fmt::format("takes {} numbers, got {}", count_of(row.form, 'n'), step.numbers.size()));
  for (const int64_t n : step.numbers)
    if (n < row.least || n > most_extent) return wants(fmt::format("takes numbers from {} on, got {}", row.least, n));
  if (step.makes.size() != row.makes) return wants(fmt::format("makes {} axes, got {}", row.makes, step.makes.size()));
  if (row.words.empty() ? !step.word.empty() : !knows(row.words, step.word))
    return wants(row.words.empty() ? "takes no word"
                                   : fmt::format("knows no '{}': give one of {}", step.word, row.words));
  std::set<std::string> seen;
  for (const auto* list : {&step.axes, &step.makes})
    for (const std::string& name : *list) {
      if (!is_name(name)) return wants(fmt::format("takes names of letters, digits and '_', got '{}'", name));
      if (!seen.insert(name).second) return wants(fmt::format("names {} twice", name));
    }
  return "";
}

Steps::Steps(std::vector<Step> list) : list_(std::move(list)) {
  for (const Step& step : list_) checked(step);
}

Steps Steps::then(const Steps& more) const {
  Steps out = *this;
  out.list_.insert(out.list_.end(), more.list_.begin(), more.list_.end());
  return out;
}

namespace {
Steps with(const Steps& steps, Step step) { return steps.then(Steps({std::move(step)})); }
}  // namespace

Steps Steps::split(const std::string& axis, int64_t factor, const std::vector<std::string>& outer_inner) const {
  return with(*this, {Kind::split, {axis}, {factor}, {}, outer_inner});
}
Steps Steps::fuse(const std::vector<std::string>& axes, const std::string& fused) const {
  return with(*this, {Kind::fuse, axes, {}, {}, {fused}});
}
Steps Steps::reorder(const std::vector<std::string>& axes) const { return with(*this, {Kind::reorder, axes}); }
Steps Steps::tile(const std::string& x, const std::string& y, int64_t of_x, int64_t of_y,
                  const std::vector<std::string>& parts) const {
  return with(*this, {Kind::tile, {x, y}, {of_x, of_y}, {}, parts});
}
Steps Steps::bind(const std::string& axis, const std::string& level) const {
  return with(*this, {Kind::bind, {axis}, {}, level});
}
Steps Steps::vectorize(const std::string& axis) const { return with(*this, {Kind::vectorize, {axis}}); }
Steps Steps::unroll(const std::string& axis) const { return with(*this, {Kind::unroll, {axis}}); }
Steps Steps::pad(const std::string& axis, int64_t extent) const { return with(*this, {Kind::pad, {axis}, {extent}}); }
Steps Steps::guard() const { return with(*this, {Kind::guard}); }
Steps Steps::any_length() const { return with(*this, {Kind::any_length}); }
Steps Steps::compute_root() const { return with(*this, {Kind::compute_root}); }
Steps Steps::inlined() const { return with(*this, {Kind::inlined}); }
Steps Steps::name(const std::string& value) const { return with(*this, {Kind::name, {value}}); }
Steps Steps::compute_at(const std::string& value) const { return with(*this, {Kind::compute_at, {value}}); }
Steps Steps::split_reduce(const std::string& axis, int64_t parts) const {
  return with(*this, {Kind::split_reduce, {axis}, {parts}});
}
Steps Steps::online_softmax(bool on) const { return with(*this, {Kind::online_softmax, {}, {}, on_or_off(on)}); }
Steps Steps::tensorize(const std::string& instruction) const {
  return with(*this, {Kind::tensorize, {}, {}, instruction});
}
Steps Steps::stage(const std::string& operand, const std::string& layout, int64_t depth) const {
  return with(*this, {Kind::stage, {operand}, {depth}, layout});
}
Steps Steps::pipeline(const std::string& axis, int64_t depth) const {
  return with(*this, {Kind::pipeline, {axis}, {depth}});
}
Steps Steps::specialize(bool on) const { return with(*this, {Kind::specialize, {}, {}, on_or_off(on)}); }
Steps Steps::persistent(bool on) const { return with(*this, {Kind::persistent, {}, {}, on_or_off(on)}); }
Steps Steps::ping_pong(bool on) const { return with(*this, {Kind::ping_pong, {}, {}, on_or_off(on)}); }
Steps Steps::raster(int64_t rows_of_band) const { return with(*this, {Kind::raster, {}, {rows_of_band}}); }
Steps Steps::warps(int64_t count) const { return with(*this, {Kind::warps, {}, {count}}); }
Steps Steps::registers(int64_t most) const { return with(*this, {Kind::registers, {}, {most}}); }

size_t hash(const Steps& steps) { return static_cast<size_t>(Hasher().text(to_string(steps)).finish().lo); }

}  // namespace weft::schedule
