// Kernels of the explicit level from which one arrival, wait, group or guard is taken away: the checks of tracing or
// the interpreter find it.
#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "kernel/language/asynchronous_kernels.h"
#include "kernel/language/check_waits.h"
#include "kernel/language/run.h"

namespace {

namespace ir = weft::kernel;
using ir::Op;

/// Something of a kernel that can be taken away: an instruction, the limit of an access, the condition of a block.
struct Site {
  std::string name;
  std::function<void(ir::Kernel&, ir::Block&, size_t)> remove;  // from instruction `size_t` of the block
};

void erase(ir::Kernel&, ir::Block& b, size_t at) { b.insts.erase(b.insts.begin() + static_cast<std::ptrdiff_t>(at)); }

/// Returns what can be taken away at an instruction.
std::vector<Site> sites_of(const ir::Inst& inst) {
  std::vector<Site> out;
  const auto limits = [&](size_t first, size_t last) {
    for (size_t k = first; k < last; ++k)
      if (inst.args[k] != ir::no_value)
        out.push_back({std::string(ir::op_name(inst.op)) + " limit",
                       [k](ir::Kernel&, ir::Block& b, size_t at) { b.insts[at].args[k] = ir::no_value; }});
  };
  switch (inst.op) {
    case Op::arrive:
    case Op::await:
    case Op::wait_copies:
    case Op::commit_copies: out.push_back({std::string(ir::op_name(inst.op)), erase}); break;
    case Op::load:
    case Op::store: limits(ir::first_limit(inst.op), inst.args.size()); break;
    case Op::copy_async: limits(2, 2 + static_cast<size_t>(inst.type.rank())); break;
    case Op::branch:
      if (inst.blocks[1].insts.size() > 1) break;  // a choice, not a guard
      out.push_back({"condition", [](ir::Kernel& kernel, ir::Block& b, size_t at) {
                       ir::Inst always{.op = Op::constant, .type = {weft::bool_, {}}};
                       always.number = weft::Number::of_int(1);
                       always.results = {static_cast<ir::Value>(kernel.types.size())};
                       kernel.types.push_back(always.type);
                       b.insts[at].args[0] = always.results[0];
                       b.insts.insert(b.insts.begin() + static_cast<std::ptrdiff_t>(at), always);
                     }});
      break;
    default: break;
  }
  return out;
}

/// Calls visit(block, instruction) for each instruction of a block, at any depth.
void each_inst(ir::Block& b, const std::function<void(ir::Block&, size_t)>& visit) {
  for (size_t k = 0; k < b.insts.size(); ++k) {
    for (ir::Block& inner : b.insts[k].blocks) each_inst(inner, visit);
    visit(b, k);
  }
}

/// Returns each kernel that lacks one thing, and what.
std::vector<std::pair<std::string, ir::Kernel>> mutants(const ir::Kernel& kernel) {
  std::vector<std::pair<std::string, ir::Kernel>> out;
  size_t count = 0;
  ir::Kernel counted = kernel;
  each_inst(counted.body, [&](ir::Block& b, size_t at) { count += sites_of(b.insts[at]).size(); });
  for (size_t wanted = 0; wanted < count; ++wanted) {
    ir::Kernel mutant = kernel;
    ir::Block* block = nullptr;
    size_t place = 0, next = 0;
    Site site;
    each_inst(mutant.body, [&](ir::Block& b, size_t at) {
      for (Site& s : sites_of(b.insts[at]))
        if (next++ == wanted) site = std::move(s), block = &b, place = at;
    });
    const ir::SourceLine line = kernel.lines[static_cast<size_t>(block->insts[place].line)];
    site.remove(mutant, *block, place);
    out.emplace_back(kernel.name + ": " + site.name + " of line " + std::to_string(line.line), std::move(mutant));
  }
  return out;
}

bool finds(const ir::Kernel& kernel, const weft::k::Program& program) {
  if (ir::wrong_waits(kernel)) return true;
  std::vector<test_kernels::Bytes> arrays = test_kernels::random_arrays(program, 3);
  std::vector<ir::HostBuffer> buffers;
  for (auto& a : arrays) buffers.push_back({a.data.data(), a.elements});
  const ir::Ref written[] = {static_cast<ir::Ref>(arrays.size() - 1)};
  try {
    ir::interpret(kernel, buffers, {}, program.programs(), written);
  } catch (const std::exception&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("of arrivals, waits and guards that are taken away 95 in 100 are found, and others are known") {
  int all = 0, found = 0;
  std::vector<std::string> missed;
  for (const test_kernels::AsyncKernel& c : test_kernels::asynchronous_kernels())
    for (const auto& [name, mutant] : mutants(c.program.data().kernel)) {
      ++all;
      if (finds(mutant, c.program)) ++found;
      else missed.push_back(name.substr(0, name.find(" of line")));
    }
  CHECK(all > 50);
  CHECK(found * 100 >= all * 95);
  // A program alone releases a slot before it acquires it again: it never waits there.
  const std::vector<std::string> harmless(2, "sums_alone: await");
  CHECK(missed == harmless);
}
