// The text of a kernel, for people and golden tests. Values are numbered in program order; symbols are written by their
// own number.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "kernel/op_info.h"
#include "kernel/rules.h"

namespace weft::kernel {
namespace {

using std::string;

const char* short_name(Dtype t) {
  constexpr std::array names{"bool", "u8",  "u16",  "u32", "u64", "i8",  "i16",    "i32",
                             "i64",  "f16", "bf16", "f32", "f64", "c64", "f8e4m3", "f8e5m2"};
  static_assert(names.size() == static_cast<size_t>(Dtype::Val::float8_e5m2) + 1);
  return names[static_cast<size_t>(t.val())];
}

string number_text(Number n, Dtype t) {
  if (n.integral) return t == uint64 ? fmt::format("{}", static_cast<uint64_t>(n.i)) : fmt::format("{}", n.i);
  const float narrow = static_cast<float>(n.f);
  if (t != float64 && static_cast<double>(narrow) == n.f) return fmt::format("{}", narrow);
  return fmt::format("{}", n.f);
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel), names_(kernel.types.size()) { number(kernel.body); }

  string kernel() {
    auto out = std::back_inserter(text_);
    fmt::format_to(out, "kernel @{}(", kernel_.name);
    for (size_t k = 0; k < kernel_.params.size(); ++k)
      fmt::format_to(out, "{}p{}: {}{}", k ? ", " : "", k, kernel_.params[k].written ? "out " : "",
                     short_name(kernel_.params[k].dtype));
    for (size_t k = 0; k < kernel_.symbols.size(); ++k) fmt::format_to(out, "{}s{}", k ? ", " : "; ", k);
    text_ += ") {\n";
    block(kernel_.body, 1);
    text_ += "}\n";
    return std::move(text_);
  }

  string line(const Inst& inst) const {
    string s = head(inst);
    switch (inst.op) {
      case Op::constant: s += ' ' + number_text(inst.number, inst.type.dtype); break;
      case Op::symbol: s += fmt::format(" s{}", inst.ref); break;
      case Op::reduce:
      case Op::scan:
        s += fmt::format("{} {} axis({}){}", inst.blocks.empty() ? fmt::format(" {}", kernel::name(inst.reducer)) : "",
                         values(inst.args, 0), inst.axis, inst.reverse ? " reverse" : "");
        if (!inst.blocks.empty()) s += " by(" + values(inst.blocks[0].arguments, 0, SIZE_MAX, ", ") + ")";
        break;
      case Op::permute: s += fmt::format(" {} axes({})", values(inst.args, 0), fmt::join(inst.axes, ", ")); break;
      case Op::slice:
        s += fmt::format(" {} from({}) step({})", values(inst.args, 0), fmt::join(inst.axes, ", "),
                         fmt::join(inst.strides, ", "));
        break;
      case Op::cat:
      case Op::take:
      case Op::sort:
        s += fmt::format(" {} axis({}){}", values(inst.args, 0), inst.axis, inst.reverse ? " reverse" : "");
        break;
      case Op::dot:
        s += ' ' + values(inst.args, 0);
        if (inst.precision != DotPrecision::exact) s += inst.precision == DotPrecision::tf32 ? " tf32" : " tf32x3";
        break;
      case Op::print:
      case Op::assert_: s += fmt::format(" {} \"{}\"", values(inst.args, 0), inst.text); break;
      case Op::shift: s += fmt::format(" {} by({})", values(inst.args, 0), inst.axis); break;
      case Op::exchange: s += fmt::format(" {} xor({})", values(inst.args, 0), inst.axis); break;
      case Op::extract: s += fmt::format(" {} lane({})", values(inst.args, 0), inst.axis); break;
      case Op::load: s += memory(inst, 0) + slice(inst) + other(inst); break;
      case Op::store:
        s += memory(inst, 1) + ' ' + values(inst.args, 0, 1) + slice(inst) + (inst.streaming ? " streaming" : "");
        break;
      case Op::gather: s += memory(inst, 0) + mask(inst, 1) + other(inst); break;
      case Op::atomic:
        s += ' ' + string(info(inst.scalar_op).name) + memory(inst, 1) + ' ' + values(inst.args, 0, 1) + mask(inst, 2);
        break;
      case Op::compare_exchange: s += memory(inst, 2) + ' ' + values(inst.args, 0, 2) + mask(inst, 3); break;
      case Op::scatter:
      case Op::exchange_memory:
      case Op::atomic_add: s += memory(inst, 1) + ' ' + values(inst.args, 0, 1) + mask(inst, 2); break;
      case Op::matmul: s += matmul(inst); break;
      case Op::prefetch: s += memory(inst, 0) + fmt::format(" {}", inst.number.i); break;
      case Op::alloc:
        s += fmt::format(" {}: {}[{}]", ref(inst.ref),
                         is_local(kernel_, inst.ref) ? short_name(ref_dtype(kernel_, inst.ref)) : "?", inst.number.i);
        if (is_local(kernel_, inst.ref) &&
            kernel_.locals[static_cast<size_t>(inst.ref) - kernel_.params.size()].share > 0)
          s += fmt::format(" share({})", kernel_.locals[static_cast<size_t>(inst.ref) - kernel_.params.size()].share);
        break;
      case Op::loop: s += loop(inst); break;
      case Op::while_loop:
        s += ' ' + values(inst.args, 0);
        for (const Block& b : inst.blocks) s += " (" + values(b.arguments, 0, SIZE_MAX, ", ") + ")";
        break;
      case Op::when:
        s += ' ' + values(inst.args, 0, 1);
        if (inst.args.size() > 1) s += " else(" + values(inst.args, 1, SIZE_MAX, ", ") + ")";
        break;
      default:
        if (!inst.args.empty()) s += ' ' + values(inst.args, 0);
    }
    const bool typed = !inst.results.empty() && inst.op != Op::program_id && inst.op != Op::symbol &&
                       inst.op != Op::loop && inst.op != Op::when && inst.op != Op::branch && inst.op != Op::while_loop;
    return typed ? s + " : " + to_string(inst.type) : s;
  }

 private:
  void number(const Block& b) {
    for (Value v : b.arguments) name(v);
    for (const Inst& inst : b.insts) {
      for (Value v : inst.results)
        if (inst.op == Op::symbol) name(v, fmt::format("s{}", inst.ref));
        else name(v);
      for (const Block& inner : inst.blocks) number(inner);
    }
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
  string memory(const Inst& inst, size_t address) const {
    return fmt::format(" {}[{}]", ref(inst.ref), values(inst.args, address, 1));
  }
  string mask(const Inst& inst, size_t at) const {
    return inst.args.size() > at && inst.args[at] != no_value ? fmt::format(" mask({})", value(inst.args[at])) : "";
  }
  string other(const Inst& inst) const { return fmt::format(" other({})", number_text(inst.number, inst.type.dtype)); }
  string slice(const Inst& inst) const {
    const size_t limits = first_limit(inst.op);
    string s;
    if (!inst.strides.empty()) s += fmt::format(" stride({})", fmt::join(inst.strides, ", "));
    for (size_t k = limits; k < inst.args.size(); ++k)
      if (inst.args[k] != no_value) return s + " limit(" + values(inst.args, limits, SIZE_MAX, ", ") + ")";
    return s;
  }

  // "matmul l0 p0[%1] p1[%2] stride(64, 1, 64, 1, 72) limit(%3, %4) depth(%5) : f32[64,64] in 32x3, 64x64". A computed
  // side: "from(%1; %7 = p0[%6] stride(64, 1), %9 = p2[%8] stride(1, 0) jump(0, 32 by 64))".
  string matmul(const Inst& inst) const {
    if (inst.args.size() != 5 + inst.sources.size()) return " " + values(inst.args, 0);
    const MatmulSchedule& how = inst.schedule;
    return fmt::format(" {} {} {} stride({}) limit({}, {}) depth({}) : {} in {}x{}, {}x{}", ref(inst.ref),
                       side(inst, false), side(inst, true), fmt::join(inst.strides, ", "), value(inst.args[2]),
                       value(inst.args[3]), value(inst.args[4]), to_string(inst.type), how.depth, how.stages, how.rows,
                       how.columns);
  }

  string side(const Inst& inst, bool right) const {
    const Value first = inst.args[right ? 1 : 0];
    const Block* const body = computed_side(inst, right);
    if (!body) return fmt::format("{}[{}]", ref(right ? inst.right : inst.left), value(first));
    string s = fmt::format("from({};", value(first));
    size_t n = 0;
    const auto jump = [](const Jump& j) { return j.period > 0 ? fmt::format("{} by {}", j.period, j.by) : "0"; };
    for (size_t k = 0; k < inst.sources.size(); ++k) {
      const MatmulSource& x = inst.sources[k];
      if (x.right != right) continue;
      s += fmt::format("{} {} = {}[{}] stride({}, {})", n > 0 ? "," : "",
                       n < body->arguments.size() ? value(body->arguments[n]) : "?", ref(x.ref),
                       value(inst.args[5 + k]), x.stride, x.depth_stride);
      if (x.jump.period > 0 || x.depth_jump.period > 0)
        s += fmt::format(" jump({}, {})", jump(x.jump), jump(x.depth_jump));
      ++n;
    }
    return s + ")";
  }

  string head(const Inst& inst) const {
    const string op(inst.op == Op::scalar && inst.scalar_op < ScalarOp::count_ ? info(inst.scalar_op).name
                                                                               : op_name(inst.op));
    return inst.results.empty() ? op : values(inst.results, 0, SIZE_MAX, ", ") + " = " + op;
  }

  // "%7 = loop %5 = %1 to %2 step %3 carry(%6 = %4)"
  string loop(const Inst& inst) const {
    if (inst.blocks.empty() || inst.blocks[0].arguments.empty() || inst.args.size() < 3)
      return " " + values(inst.args, 0);
    const auto& arguments = inst.blocks[0].arguments;
    string s = fmt::format("{} {} = {} to {} step {}", inst.parallel ? " parallel" : "", value(arguments[0]),
                           value(inst.args[0]), value(inst.args[1]), value(inst.args[2]));
    for (size_t k = 3; k < inst.args.size() && k - 2 < arguments.size(); ++k)
      s += fmt::format("{}{} = {}", k == 3 ? " carry(" : ", ", value(arguments[k - 2]), value(inst.args[k]));
    return inst.args.size() > 3 ? s + ")" : s;
  }

  void block(const Block& b, int depth) {
    const string indent(static_cast<size_t>(depth) * 2, ' ');
    for (const Inst& inst : b.insts) {
      if (inst.op == Op::symbol || (inst.op == Op::yield && inst.args.empty())) continue;
      text_ += indent + line(inst);
      if (inst.blocks.empty()) {
        text_ += '\n';
        continue;
      }
      text_ += " {\n";
      for (size_t k = 0; k < inst.blocks.size(); ++k) {
        if (k > 0) text_ += indent + (inst.op == Op::branch ? "} else {\n" : "} then {\n");
        block(inst.blocks[k], depth + 1);
      }
      text_ += indent + "}\n";
    }
  }

  const Kernel& kernel_;
  std::vector<string> names_;
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
  return type.dims.empty() ? short_name(type.dtype)
                           : fmt::format("{}[{}]", short_name(type.dtype), fmt::join(type.dims, ","));
}

string print_inst(const Kernel& kernel, const Inst& inst) { return Printer(kernel).line(inst); }

string print(const Kernel& kernel) { return Printer(kernel).kernel(); }

}  // namespace weft::kernel
