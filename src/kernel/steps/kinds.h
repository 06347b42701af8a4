#pragma once
// What the steps of schedules take: a row for each kind. Text, builder and messages follow from it.
#include <optional>
#include <span>
#include <string_view>

#include "weft/schedule/steps.h"

namespace weft::schedule {

/// A kind of step. `form`: its arguments in order, a letter for each: an axis (a), axes in braces (A), a number (n), a
/// word (w), a new name (m), new names in braces (M).
struct KindRow {
  Kind kind;
  std::string_view name, form;
  size_t least_axes = 0, most_axes = 0;  // that it takes in braces
  size_t makes = 0;                      // names that it makes
  std::string_view words = {};           // that it knows, with a blank between them
  int64_t least = 1;                     // of its numbers
};
const KindRow& row_of(Kind kind);
/// Returns the row of a name; null where there is none.
const KindRow* find_kind(std::string_view name);
std::span<const KindRow> kinds();

/// Returns what is wrong with a step: a name, a count, a word, a number; empty where it is well-formed.
std::string fault_of(const Step& step);
/// Returns whether a name is an identifier: letters, digits and "_", no digit first.
bool is_name(std::string_view name);

}  // namespace weft::schedule
