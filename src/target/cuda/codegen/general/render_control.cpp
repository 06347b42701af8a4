// Renders control flow by scalars, which all threads of a program follow alike, and what a kernel tells its user.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Block;
using kernel::Op;
using kernel::Type;

namespace {

constexpr int64_t most_printed = 16;  // elements of a tile
constexpr int64_t most_arguments_of_printf = 32;

/// Returns a user's text as it stands in a format of printf, in quotes.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '%') out += "%%";
    else if (c == '"' || c == '\\' || c == '?' || byte < 32) out += fmt::format("\\{:03o}", byte);
    else out += c;
  }
  return out;
}

/// Returns how printf shows a number, and the text of the number as it takes it.
std::string shown_by(Dtype t) { return t == float64 ? "%.15g" : is_float(t) ? "%g" : t == uint64 ? "%llu" : "%lld"; }
std::string shown(const std::string& v, Dtype t) {
  if (is_float(t)) return "(f64)" + conversion(v, t, is_low_float(t) ? float32 : t);
  return fmt::format("({}){}", t == uint64 ? "u64" : "i64", v);
}

}  // namespace

/// Renders instructions that only kernels have which are not basic.
void Renderer::general(const Inst& inst) {
  switch (inst.op) {
    case Op::slice: return slice_tile(inst);
    case Op::cat: return cat(inst);
    case Op::scan: return scan(inst);
    case Op::take: return take(inst);
    case Op::sort: return sort(inst);
    case Op::lanes: return lanes(inst);
    case Op::inline_code: return inline_code(inst);
    case Op::source: return source(inst);
    case Op::histogram: return histogram(inst);
    case Op::atomic:
    case Op::exchange_memory:
    case Op::compare_exchange: return update(inst);
    case Op::wait_until: return wait_until(inst);
    case Op::grid_barrier: return grid_barrier();
    case Op::cluster_barrier: return cluster_barrier();
    case Op::load_neighbour:
    case Op::store_neighbour: return reach(inst);
    case Op::copy_async:
    case Op::commit_copies:
    case Op::wait_copies:
    case Op::arrive:
    case Op::await: return asynchronous(inst);
    case Op::roles: return roles(inst);
    case Op::branch: return branch(inst);
    case Op::while_loop: return while_loop(inst);
    case Op::print: return print(inst);
    case Op::assert_: return assertion(inst);
    default: throw_internal("cuda render", "kernel " + kernel_.name + ": an instruction that has no text");
  }
}

void Renderer::branch(const Inst& inst) {
  for (const Value v : inst.results) declare(v);
  const Hazards before = hazards();
  for (const Block& body : inst.blocks) {
    add_hazards(before);
    loop_hazards(body);
    open(&body == inst.blocks.data() ? fmt::format("if ({})", at(inst.args[0])) : "else");
    block(body);
    const std::vector<Value>& yielded = body.insts.back().args;
    for (size_t k = 0; k < yielded.size(); ++k) assign(inst.results[k], at(yielded[k]));
    close();
  }
  for (const Block& body : inst.blocks) loop_hazards(body);
  add_hazards(before);
}

void Renderer::while_loop(const Inst& inst) {
  const Block &condition = inst.blocks[0], &body = inst.blocks[1];
  begin_carried(body.arguments, inst.args);
  for (size_t k = 0; k < inst.args.size(); ++k) name(condition.arguments[k], fresh(body.arguments[k]));
  const Hazards before = hazards();
  loop_hazards(condition), loop_hazards(body);
  open("for (;;)");
  block(condition);
  add(fmt::format("if (!({})) break;", at(condition.insts.back().args[0])));
  block(body);
  next_carried(body.arguments, body.insts.back().args);
  close();
  loop_hazards(condition), loop_hazards(body);
  add_hazards(before);
  for (size_t k = 0; k < inst.results.size(); ++k) name(inst.results[k], fresh(body.arguments[k]));
}

/// Renders what thread 0 prints: the kernel and the program, the text and the values, of tiles their first elements.
/// One printf takes 32 arguments at most; what is left goes to lines of its own, as other programs print between them.
void Renderer::print(const Inst& inst) {
  const std::string head = fmt::format("[kernel {}] program %lld:", escaped(kernel_.name));
  std::string format = fmt::format("{} {}", head, escaped(inst.text)), values;
  int64_t offset = 0, given = 1;
  std::vector<std::string> calls;
  const auto call = [&] {
    calls.push_back(fmt::format("if (t == 0) printf(\"{}\\n\", (i64)program{});", format, values));
    format = head, values.clear(), given = 1;
  };
  sync();
  for (const Value v : inst.args) {
    const Type& tile = type(v);
    const int64_t count = std::min(tile.size(), most_printed);
    const std::string space = exchange(tile.dtype, tile.size(), offset);
    put(v, space);
    offset += (tile.size() * static_cast<int64_t>(tile.dtype.size()) + 15) / 16 * 16;
    if (given + count > most_arguments_of_printf) call();
    given += count;
    format += tile.rank() > 0 ? " [" : " ";
    for (int64_t k = 0; k < count; ++k) {
      format += (k > 0 ? ", " : "") + shown_by(tile.dtype);
      values += ", " + shown(fmt::format("{}[{}]", space, k), tile.dtype);
    }
    if (tile.rank() > 0) format += tile.size() > count ? ", …]" : "]";
  }
  call();
  sync();
  for (const std::string& line : calls) add(line);
}

/// Renders an assertion: a thread whose element fails says so and stops the launch. Where warpgroups multiply, it only
/// stops it: because of a function call ptxas lets all products of a kernel wait for each other.
void Renderer::assertion(const Inst& inst) {
  const Layout s = layout_of(inst.args[0]);
  open(fmt::format("EACH (int r = 0; r < {}; ++r) if ({} && !({}))", s.registers(), owner(s), at(inst.args[0])));
  if (warpgroups_ == 0)
    add(fmt::format("printf(\"[kernel {}] {} (program %lld, element %d)\\n\", (i64)program, {});",
                    escaped(kernel_.name), escaped(inst.text), s.element("r")));
  add("__trap();");
  close();
}

}  // namespace weft::target::cuda
