// The text of a kernel, for people, golden tests and files. Values are numbered in program order; the first value of a
// symbol has its number.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "kernel/rules.h"
#include "kernel/text/fields.h"
#include "kernel/text/text.h"

namespace weft::kernel {
namespace {

using std::string;

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel), names_(kernel.types.size()) { number(kernel.body); }

  string kernel(const Launch* launch) {
    auto out = std::back_inserter(text_);
    fmt::format_to(out, "kernel @{}(", quoted_name(kernel_.name));
    for (size_t k = 0; k < kernel_.params.size(); ++k) text_ += (k ? ", " : "") + param(k, launch);
    for (size_t k = 0; k < kernel_.symbols.size(); ++k) text_ += (k ? ", " : "; ") + symbol(k, launch);
    text_ += ')';
    if (launch && launch->count) fmt::format_to(out, " grid {} most {}", launch->count.to_string(), launch->programs);
    else if (launch) fmt::format_to(out, " grid {}", launch->programs);
    if (kernel_.any_size) text_ += " any_size";
    if (kernel_.ordered) text_ += " ordered";
    if (kernel_.cluster > 0) fmt::format_to(out, " clusters {}", kernel_.cluster);
    for (const auto& [word, member] : launch_words)
      if (kernel_.launch.*member > 0) fmt::format_to(out, " {} {}", word, kernel_.launch.*member);
    text_ += " {\n";
    unmade_locals();
    block(kernel_.body, 1);
    text_ += "}\n";
    return std::move(text_);
  }

  string line(const Inst& inst) const {
    string s = head(inst);
    if (inst.op == Op::alloc) return s + allocation(inst);
    if (inst.op == Op::loop) return s + loop(inst);
    for (const FieldText& field : field_texts())
      if (field.form == FieldForm::front && written(inst, field)) s += space(field.write(inst));
    if (inst.op == Op::constant) s += ' ' + number_text(inst.number, inst.type.dtype);
    s += arguments(inst);
    s += block_arguments(inst);
    const bool typed = !inst.results.empty() && !has_known_types(inst.op);
    return typed || has_own_type(inst.op) ? s + " : " + types(inst) : s;
  }

 private:
  static string space(const string& s) { return s.empty() ? s : ' ' + s; }

  void number(const Block& b) {
    for (Value v : b.arguments) name(v);
    for (const Inst& inst : b.insts) {
      for (Value v : inst.results)
        if (inst.op == Op::symbol && fresh_symbol(inst.ref)) name(v, fmt::format("s{}", inst.ref));
        else name(v);
      for (const Block& inner : inst.blocks) number(inner);
    }
  }
  bool fresh_symbol(Ref symbol) {
    const auto k = static_cast<size_t>(symbol);
    if (symbol < 0 || k >= kernel_.symbols.size()) return false;
    if (seen_symbols_.size() <= k) seen_symbols_.resize(k + 1);
    const bool fresh = !seen_symbols_[k];
    seen_symbols_[k] = true;
    return fresh;
  }
  void name(Value v, string text = {}) {
    if (v < 0 || static_cast<size_t>(v) >= names_.size() || !names_[static_cast<size_t>(v)].empty()) return;
    names_[static_cast<size_t>(v)] = text.empty() ? fmt::format("%{}", next_++) : std::move(text);
  }

  string value(Value v) const {
    if (v == no_value) return "_";
    if (v < 0 || static_cast<size_t>(v) >= names_.size() || names_[static_cast<size_t>(v)].empty())
      return fmt::format("%?{}", v);
    return names_[static_cast<size_t>(v)];
  }
  string values(const std::vector<Value>& all, size_t first, size_t count = SIZE_MAX,
                const char* separator = " ") const {
    string s;
    for (size_t k = first; k < all.size() && k - first < count; ++k) s += (s.empty() ? "" : separator) + value(all[k]);
    return s;
  }
  string ref(Ref r) const {
    const size_t params = kernel_.params.size();
    return r >= 0 && static_cast<size_t>(r) >= params ? fmt::format("l{}", static_cast<size_t>(r) - params)
                                                      : fmt::format("p{}", r);
  }

  string param(size_t k, const Launch* launch) const {
    const Param& p = kernel_.params[k];
    string s = fmt::format("p{}", k);
    if (launch && !p.name.empty() && p.name != s) s += ' ' + quoted_name(p.name);
    const bool read = launch && launch->arrays[k].read;
    s += fmt::format(": {}{}{}", p.written ? (read ? "inout " : "out ") : "", p.constant ? "constant " : "",
                     short_name(p.dtype));
    if (!launch) return s;
    const Launch::Array& array = launch->arrays[k];
    std::vector<string> extents;
    for (size_t axis = 0; axis < array.dims.size(); ++axis) {
      const int32_t number = axis < array.symbols.size() ? array.symbols[axis] : -1;
      extents.push_back(number < 0 ? fmt::format("{}", array.dims[axis]) : fmt::format("s{}", number));
    }
    return s + fmt::format("[{}]", fmt::join(extents, ","));
  }

  /// "s0", of a launch with the name and the bound: "s0 n bound(64)".
  string symbol(size_t k, const Launch* launch) const {
    if (!launch) return fmt::format("s{}", k);
    return fmt::format("s{} {} bound({})", k, quoted_name(launch->symbols[k].name), launch->symbols[k].bound);
  }

  /// Local buffers without an instruction that makes them.
  void unmade_locals() {
    std::vector<bool> made(kernel_.locals.size());
    for (const Inst& inst : kernel_.body.insts)
      if (inst.op == Op::alloc && is_local(kernel_, inst.ref))
        made[static_cast<size_t>(inst.ref) - kernel_.params.size()] = true;
    for (size_t k = 0; k < made.size(); ++k)
      if (!made[k]) text_ += "  local" + local(k) + '\n';
  }
  string local(size_t k) const {
    const Local& l = kernel_.locals[k];
    string s = fmt::format(" l{}: {}[{}]", k, short_name(l.dtype), l.elements);
    if (l.share > 0) s += fmt::format(" share({})", l.share);
    if (l.arrivals > 0) s += fmt::format(" barriers({})", l.arrivals);
    return l.swizzle > 0 ? s + fmt::format(" swizzle({})", l.swizzle) : s;
  }
  string allocation(const Inst& inst) const {
    if (!is_local(kernel_, inst.ref)) return fmt::format(" {}: ?[{}]", ref(inst.ref), inst.number.i);
    return local(static_cast<size_t>(inst.ref) - kernel_.params.size());
  }

  static bool written(const Inst& inst, const FieldText& field) {
    const bool scalar = inst.op == Op::scalar && field.field == scalar_op_field;  // it is the kind's word
    return (info(inst.op).fields & field.field) && !scalar &&
           !(has_number_of_dtype(inst.op) && field.field == number_field);
  }

  /// The arguments, and the fields as clauses and flags: "p0[%2] %6 stride(1) limit(%3) streaming".
  string arguments(const Inst& inst) const {
    const int address = address_of(inst.op);
    const auto before = static_cast<size_t>(std::max(address, 0));
    string s, behind;
    if (address >= 0) {
      s = fmt::format(" {}[{}]", ref(inst.ref), values(inst.args, before, 1)) + space(values(inst.args, 0, before));
      bool any = false;
      for (size_t k = before + 1; k < inst.args.size(); ++k) any = any || inst.args[k] != no_value;
      if (any) behind = fmt::format(" {}({})", behind_address(inst.op), values(inst.args, before + 1, SIZE_MAX, ", "));
    } else if (inst.op == Op::when) {
      s = ' ' + values(inst.args, 0, 1);
      if (inst.args.size() > 1) behind = " else(" + values(inst.args, 1, SIZE_MAX, ", ") + ")";
    } else {
      s = space(values(inst.args, 0));
    }
    string flags;
    for (const FieldText& field : field_texts()) {
      if (field.form == FieldForm::front || !written(inst, field)) continue;
      if (address >= 0 && field.field == ref_field) continue;
      const string text = field.write(inst);
      if (text.empty()) continue;
      if (field.form == FieldForm::flag) flags += ' ' + text;
      else s += fmt::format(" {}({})", clause_name(inst.op, field), text);
    }
    if (has_number_of_dtype(inst.op) && inst.op != Op::constant)
      behind += fmt::format(" other({})", number_text(inst.number, inst.type.dtype));
    return s + behind + flags;
  }

  string head(const Inst& inst) const {
    const string op(inst.op == Op::scalar && inst.scalar_op < ScalarOp::count_ ? info(inst.scalar_op).name
                                                                               : op_name(inst.op));
    return inst.results.empty() ? op : values(inst.results, 0, SIZE_MAX, ", ") + " = " + op;
  }

  /// "by(%3: f32, %4: f32)" for each block, where one of them takes values.
  string block_arguments(const Inst& inst) const {
    string s;
    bool any = false;
    for (const Block& b : inst.blocks) {
      string list;
      for (Value v : b.arguments)
        list += fmt::format(
            "{}{}: {}", list.empty() ? "" : ", ", value(v),
            static_cast<size_t>(v) < kernel_.types.size() ? to_string(kernel_.types[static_cast<size_t>(v)]) : "?");
      s += " by(" + list + ")";
      any = any || !b.arguments.empty();
    }
    return any ? s : "";
  }

  string types(const Inst& inst) const {
    string s = to_string(inst.type);
    for (size_t k = 1; k < inst.results.size(); ++k)
      if (const auto v = static_cast<size_t>(inst.results[k]); v < kernel_.types.size())
        s += ", " + to_string(kernel_.types[v]);
    return s;
  }

  // "%7 = loop %5 = %1 to %2 step %3 stages 2 carry(%6 = %4)"
  string loop(const Inst& inst) const {
    if (inst.blocks.empty() || inst.blocks[0].arguments.empty() || inst.args.size() < 3)
      return " " + values(inst.args, 0);
    const auto& arguments = inst.blocks[0].arguments;
    string s = fmt::format("{} {} = {} to {} step {}", inst.parallel ? " parallel" : "", value(arguments[0]),
                           value(inst.args[0]), value(inst.args[1]), value(inst.args[2]));
    if (inst.axis > 0) s += fmt::format(" stages {}", inst.axis);
    for (size_t k = 3; k < inst.args.size() && k - 2 < arguments.size(); ++k)
      s += fmt::format("{}{} = {}", k == 3 ? " carry(" : ", ", value(arguments[k - 2]), value(inst.args[k]));
    return inst.args.size() > 3 ? s + ")" : s;
  }

  void block(const Block& b, int depth) {
    const string indent(static_cast<size_t>(depth) * 2, ' ');
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::yield && inst.args.empty()) continue;
      text_ += indent + line(inst);
      if (inst.blocks.empty()) {
        text_ += '\n';
        continue;
      }
      text_ += " {\n";
      for (size_t k = 0; k < inst.blocks.size(); ++k) {
        if (k > 0)
          text_ += indent + (inst.op == Op::branch ? "} else {\n" : inst.op == Op::roles ? "} and {\n" : "} then {\n");
        block(inst.blocks[k], depth + 1);
      }
      text_ += indent + "}\n";
    }
  }

  const Kernel& kernel_;
  std::vector<string> names_;
  std::vector<bool> seen_symbols_;
  int next_ = 0;
  string text_;
};

}  // namespace

int64_t Type::size() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

std::string_view op_name(Op op) { return op <= Op::yield ? info(op).name : "?"; }

string to_string(const Type& type) {
  return type.dims.empty() ? string(short_name(type.dtype))
                           : fmt::format("{}[{}]", short_name(type.dtype), fmt::join(type.dims, ","));
}

string print_inst(const Kernel& kernel, const Inst& inst) { return Printer(kernel).line(inst); }

string print(const Kernel& kernel) { return Printer(kernel).kernel(nullptr); }

string print(const Kernel& kernel, const Launch& launch) {
  check(launch.arrays.size() == kernel.params.size(), "print", "a launch has an array for each parameter");
  check(launch.symbols.size() == kernel.symbols.size(), "print", "a launch has a name for each symbol");
  return Printer(kernel).kernel(&launch);
}

}  // namespace weft::kernel
