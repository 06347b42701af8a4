#pragma once
// The table of the fields of an instruction as text: how each is written and read.
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernel/op_info.h"
#include "kernel/text/lexer.h"

namespace weft::kernel {

/// How a field stands in the text: as a clause "axis(1)"; as a flag "reverse"; or as a word behind the kind, "reduce
/// sum".
enum class FieldForm : uint8_t { clause, flag, front };

struct FieldText {
  Field field;
  std::string_view name;
  /// Returns what stands in the parentheses, the flag or the word; "" where the field has its default and is left out.
  std::string (*write)(const Inst& inst);
  /// Reads what stands in the parentheses, or the word; of a flag nothing.
  void (*read)(Lexer& in, Inst& inst);
  FieldForm form = FieldForm::clause;
};
std::span<const FieldText> field_texts();

/// The words of how a kernel is launched, behind its head: "any_size warps 8 stages 3".
inline constexpr std::pair<std::string_view, int LaunchOptions::*> launch_words[] = {
    {"warps", &LaunchOptions::warps},           {"stages", &LaunchOptions::stages},
    {"cluster", &LaunchOptions::cluster},       {"registers", &LaunchOptions::registers},
    {"specialize", &LaunchOptions::specialize}, {"persistent", &LaunchOptions::persistent},
    {"ping_pong", &LaunchOptions::ping_pong},   {"instruction", &LaunchOptions::instruction},
    {"iterations", &LaunchOptions::iterations}};

/// Returns the word of a field in an instruction of this kind: where a stride is a step, "step" and not "stride".
std::string_view clause_name(Op op, const FieldText& field);
/// Returns the field that a word names in an instruction of this kind, or null.
const FieldText* field_named(Op op, std::string_view word);

/// Returns the position of the address among the arguments, or -1 where the kind has none. It is written "p0[%1]".
int address_of(Op op);
/// Returns the word of the clause in which the arguments behind the address stand: "limit" or "mask".
std::string_view behind_address(Op op);

/// Returns whether the types of the results are not written: int64 of a program's number and of symbols, else those of
/// the carried values.
inline bool has_known_types(Op op) {
  return op == Op::program_id || op == Op::symbol || op == Op::loop || op == Op::when;
}
/// Returns whether the number is written by its dtype: of a constant, and of what a load gives outside of its array.
inline bool has_number_of_dtype(Op op) {
  return op == Op::constant || op == Op::load || op == Op::gather || op == Op::copy_async;
}
/// Returns whether an instruction without results has the type of a tile.
inline bool has_own_type(Op op) { return op == Op::copy_async; }

/// Returns "f32", "bf16".
std::string_view short_name(Dtype t);
/// Reads "f32[4,64]" or "i64".
Type read_type(Lexer& in);
Dtype read_dtype(Lexer& in);
/// Returns a number as it is written in a tile of a dtype; `read_number` reads it to the same bits.
std::string number_text(const Number& n, Dtype t);
Number read_number(Lexer& in, Dtype t);

}  // namespace weft::kernel
