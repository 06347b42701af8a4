#pragma once
// Kernels from which one arrival, wait, barrier or guard is taken away, and what finds it: the checks of tracing, the
// interpreter, or other results.
#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/language/check_waits.h"
#include "kernel/language/run.h"
#include "kernel/op_info.h"

namespace test_kernels {

namespace ir = weft::kernel;

/// Something of a kernel that can be taken away: an instruction, the limit of an access, the condition of a block.
struct Site {
  std::string name;
  std::function<void(ir::Kernel&, ir::Block&, size_t)> remove;  // from instruction `size_t` of the block
  /// Adds instructions that compute whether a guard leaves out nothing; null of what is no guard.
  std::function<ir::Value(ir::Kernel&, std::vector<ir::Inst>&)> idle = {};
};

/// Gives an instruction its result.
inline ir::Value define(ir::Kernel& kernel, std::vector<ir::Inst>& to, ir::Inst inst) {
  inst.results = {static_cast<ir::Value>(kernel.types.size())};
  kernel.types.push_back(inst.type);
  to.push_back(std::move(inst));
  return to.back().results[0];
}
inline ir::Inst constant(weft::Dtype t, int64_t number) {
  ir::Inst out{.op = ir::Op::constant, .type = {t, {}}};
  out.number = weft::Number::of_int(number);
  return out;
}

inline void erase(ir::Kernel&, ir::Block& b, size_t at) {
  b.insts.erase(b.insts.begin() + static_cast<std::ptrdiff_t>(at));
}

/// Makes what an instruction reads first, a condition, hold always.
inline void drop_condition(ir::Kernel& kernel, ir::Block& b, size_t at) {
  std::vector<ir::Inst> always;
  b.insts[at].args[0] = define(kernel, always, constant(weft::bool_, 1));
  b.insts.insert(b.insts.begin() + static_cast<std::ptrdiff_t>(at), always[0]);
}
/// Lets a wait find its element at once.
inline void drop_wait(ir::Kernel& kernel, ir::Block& b, size_t at) {
  ir::Block& holds = b.insts[at].blocks[0];
  drop_condition(kernel, holds, holds.insts.size() - 1);  // which it yields
}

/// Returns a limit of an access, whose tile has `extent` elements along that axis.
inline Site limit_site(const std::string& name, size_t argument, int64_t extent, ir::Value limit) {
  return {name + " limit", [=](ir::Kernel&, ir::Block& b, size_t at) { b.insts[at].args[argument] = ir::no_value; },
          [=](ir::Kernel& kernel, std::vector<ir::Inst>& to) {
            const ir::Value all = define(kernel, to, constant(weft::int64, extent));
            ir::Inst holds{.op = ir::Op::scalar, .type = {weft::bool_, {}}, .args = {all, limit}};
            holds.scalar_op = ir::ScalarOp::le;
            return define(kernel, to, holds);
          }};
}
inline Site condition_site(ir::Value condition) {
  return {"condition", drop_condition, [=](ir::Kernel&, std::vector<ir::Inst>&) { return condition; }};
}

/// Returns what can be taken away at an instruction.
inline std::vector<Site> sites_of(const ir::Kernel& kernel, const ir::Inst& inst) {
  using ir::Op;
  std::vector<Site> out;
  const std::string name(ir::op_name(inst.op));
  const auto limits = [&](size_t first, const std::vector<int64_t>& dims) {
    for (size_t k = 0; k < dims.size(); ++k)
      if (inst.args[first + k] != ir::no_value)
        out.push_back(limit_site(name, first + k, dims[k], inst.args[first + k]));
  };
  if (ir::is_barrier_of_programs(inst.op)) out.push_back({name, erase});
  switch (inst.op) {
    case Op::arrive:
    case Op::await:
    case Op::wait_copies:
    case Op::commit_copies: out.push_back({name, erase}); break;
    case Op::load: limits(ir::first_limit(inst.op), inst.type.dims); break;
    case Op::store: limits(ir::first_limit(inst.op), kernel.types[static_cast<size_t>(inst.args[0])].dims); break;
    case Op::copy_async: limits(2, inst.type.dims); break;
    case Op::wait_until: out.push_back({name, drop_wait}); break;
    case Op::when: out.push_back(condition_site(inst.args[0])); break;
    case Op::branch:
      if (inst.blocks[1].insts.size() == 1) out.push_back(condition_site(inst.args[0]));  // a guard, not a choice
      break;
    default: break;
  }
  return out;
}

/// Calls visit(block, instruction) for each instruction of a block, at any depth.
inline void each_inst(ir::Block& b, const std::function<void(ir::Block&, size_t)>& visit) {
  for (size_t k = 0; k < b.insts.size(); ++k) {
    for (ir::Block& inner : b.insts[k].blocks) each_inst(inner, visit);
    visit(b, k);
  }
}

/// A kernel that lacks one thing, which, and of a guard the kernel that asserts that it leaves out nothing.
struct Mutant {
  std::string what;
  ir::Kernel kernel;
  std::optional<ir::Kernel> idle = {};
};

/// Returns each kernel that lacks one thing.
inline std::vector<Mutant> mutants(const ir::Kernel& kernel) {
  std::vector<Mutant> out;
  size_t count = 0;
  ir::Kernel counted = kernel;
  each_inst(counted.body, [&](ir::Block& b, size_t at) { count += sites_of(kernel, b.insts[at]).size(); });
  const auto changed = [&](size_t wanted, const std::function<void(ir::Kernel&, ir::Block&, size_t, Site&)>& change) {
    ir::Kernel mutant = kernel;
    ir::Block* block = nullptr;
    size_t place = 0, next = 0;
    Site site;
    each_inst(mutant.body, [&](ir::Block& b, size_t at) {
      for (Site& s : sites_of(kernel, b.insts[at]))
        if (next++ == wanted) site = std::move(s), block = &b, place = at;
    });
    change(mutant, *block, place, site);
    return mutant;
  };
  for (size_t wanted = 0; wanted < count; ++wanted) {
    Mutant m;
    bool guards = false;
    m.kernel = changed(wanted, [&](ir::Kernel& mutant, ir::Block& b, size_t at, Site& site) {
      m.what = kernel.name + ": " + site.name, guards = site.idle != nullptr;
      site.remove(mutant, b, at);
    });
    if (guards)
      m.idle = changed(wanted, [&](ir::Kernel& mutant, ir::Block& b, size_t at, Site& site) {
        std::vector<ir::Inst> made;
        const ir::Value holds = site.idle(mutant, made);
        made.push_back({.op = ir::Op::assert_, .args = {holds}});
        b.insts.insert(b.insts.begin() + static_cast<std::ptrdiff_t>(at), made.begin(), made.end());
      });
    out.push_back(std::move(m));
  }
  return out;
}

/// Runs a kernel in the interpreter; returns the arrays, or nothing where it, or the checks of tracing, find a mistake.
inline std::optional<std::vector<Bytes>> outcome(const ir::Kernel& kernel, const weft::k::Program& program,
                                                 std::vector<Bytes> arrays) {
  if (ir::wrong_waits(kernel)) return {};
  std::vector<ir::HostBuffer> buffers;
  for (Bytes& a : arrays) buffers.push_back({a.data.data(), a.elements});
  std::vector<ir::Ref> written;
  for (size_t k = 0; k < arrays.size(); ++k)
    if (program.params()[k].use == weft::k::Use::out) written.push_back(static_cast<ir::Ref>(k));
  try {
    ir::interpret(kernel, buffers, {}, program.programs(), written);
  } catch (const std::exception&) {
    return {};
  }
  return arrays;
}

/// What became of the mutants of some kernels: found by a fault; by other results, which tests compare; or guards that
/// leave out nothing in any run, whose loss nobody can find.
struct Mutations {
  int all = 0, faults = 0, values = 0, idle = 0;
  std::vector<std::string> missed = {};

  /// Adds the mutants of a program, run on these arrays. The program itself must run.
  void add(const weft::k::Program& program, const std::vector<Bytes>& arrays) {
    const ir::Kernel& kernel = program.data().kernel;
    const std::optional<std::vector<Bytes>> wanted = outcome(kernel, program, arrays);
    CAPTURE(kernel.name);
    REQUIRE(wanted);
    for (const Mutant& m : mutants(kernel)) {
      const std::optional<std::vector<Bytes>> got = outcome(m.kernel, program, arrays);
      const bool same = got && std::equal(got->begin(), got->end(), wanted->begin(),
                                          [](const Bytes& a, const Bytes& b) { return a.data == b.data; });
      ++all;
      if (!got) ++faults;
      else if (!same) ++values;
      else if (m.idle && outcome(*m.idle, program, arrays)) ++idle;
      else missed.push_back(m.what);
    }
  }
};

}  // namespace test_kernels
