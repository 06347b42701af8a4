#include "kernel/derive/footprint.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "kernel/op_info.h"

namespace weft::kernel {
namespace {

using Dims = std::vector<int64_t>;

Affine plus(const Affine& a, const Affine& b, int64_t sign) {
  Affine out = a;
  out.constant += sign * b.constant;
  for (const auto& [atom, by] : b.atoms)
    if ((out.atoms[atom] += sign * by) == 0) out.atoms.erase(atom);
  for (size_t k = 0; k < out.lanes.size() && k < b.lanes.size(); ++k) out.lanes[k] += sign * b.lanes[k];
  return out;
}

Affine times(Affine a, int64_t by) {
  if (by == 0) a.atoms.clear();
  a.constant *= by;
  for (auto& [atom, factor] : a.atoms) factor *= by;
  for (int64_t& stride : a.lanes) stride *= by;
  return a;
}

bool is_constant(const Affine& a) {
  return a.atoms.empty() && std::all_of(a.lanes.begin(), a.lanes.end(), [](int64_t s) { return s == 0; });
}

/// Returns the single digit that a number is, or null.
const Atom* digit_of(const Affine& a) {
  if (a.constant != 0 || a.atoms.size() != 1 || a.atoms.begin()->second != 1 || a.atoms.begin()->first.loop)
    return nullptr;
  return &a.atoms.begin()->first;
}

/// Returns floor(a / n), or a mod n, of a digit.
std::optional<Affine> part_of_digit(const Affine& a, int64_t n, bool remainder) {
  const Atom* digit = digit_of(a);
  if (!digit || n < 1) return {};
  if (remainder && digit->extent <= n) return a;
  if (digit->extent % n != 0) return {};
  Atom part = *digit;
  if (remainder) part.extent = n;
  else part.behind *= n, part.extent /= n;
  return part.extent == 1 ? Affine{} : Affine{0, {{part, 1}}, {}};
}

/// Numbers along one axis: |coefficient| and how many values each takes, the smallest first.
struct AxisSteps {
  std::vector<std::tuple<int64_t, int64_t, bool>> list;  // coefficient, extent, whether it must be told apart
  void add(int64_t by, int64_t extent, bool apart) {
    if (extent > 1 && by != 0) list.emplace_back(std::abs(by), extent, apart);
  }
  /// Returns whether the sum tells the numbers apart that must be; `slack`: what else may be added.
  bool apart(int64_t slack) {
    std::sort(list.begin(), list.end());
    int64_t reach = slack;
    for (const auto& [by, extent, wanted] : list)
      if (!wanted) reach += by * (extent - 1);
    for (const auto& [by, extent, wanted] : list) {
      if (!wanted) continue;
      if (by <= reach) return false;
      reach += by * (extent - 1);
    }
    return true;
  }
  /// Returns whether the sum takes every value from 0 to n - 1.
  bool covers(int64_t n) {
    std::sort(list.begin(), list.end());
    int64_t reach = 1;
    for (const auto& [by, extent, wanted] : list) {
      if (by > reach) return false;
      reach += by * (extent - 1);
    }
    return reach >= n;
  }
};

}  // namespace

Footprints::Footprints(const Kernel& kernel, int64_t programs, bool exact, std::vector<int64_t> bounds)
    : kernel_(kernel), programs_(programs), exact_(exact), bounds_(std::move(bounds)), known_(kernel.types.size()),
      affine_(kernel.types.size()) {
  std::vector<const Inst*> loops;
  block(kernel.body, loops, false);
}

void Footprints::block(const Block& b, std::vector<const Inst*>& loops, bool conditional) {
  for (const Inst& inst : b.insts) {
    learn(inst);
    if (inst.ref >= 0 && info(inst.op).access != kernel::Access::none && inst.op != Op::prefetch)
      accesses_[inst.ref].push_back({&inst, loops, conditional});
    if (inst.op == Op::loop) enter(inst);
    if (inst.op == Op::loop || inst.op == Op::while_loop) loops.push_back(&inst);
    const bool maybe = conditional || inst.op == Op::when || inst.op == Op::branch || inst.op == Op::while_loop;
    if (inst.op != Op::reduce && inst.op != Op::scan)
      for (const Block& inner : inst.blocks) block(inner, loops, maybe);
    if (inst.op == Op::loop || inst.op == Op::while_loop) loops.pop_back();
  }
}

/// Records what is known of an instruction's integer.
void Footprints::learn(const Inst& inst) {
  if (inst.results.size() != 1 || !is_integer(inst.type.dtype)) return;
  const auto at = static_cast<size_t>(inst.results[0]);
  affine_[at] = affine(inst);
  if (inst.type.rank() > 0) return;
  k::Known& known = known_[at];
  if (inst.op == Op::constant) known = {inst.number.i, inst.number.i, std::max<int64_t>(1, std::abs(inst.number.i))};
  if (inst.op == Op::symbol && !bounds_.empty()) known = {1, bounds_[static_cast<size_t>(inst.ref)], 1};
  if (inst.op == Op::program_id) known = {0, std::max<int64_t>(programs_ - 1, 0), 1};
  if (inst.op == Op::scalar && inst.args.size() == 2 && inst.type.dtype == int64)
    known = k::known_of(inst.scalar_op, known_[static_cast<size_t>(inst.args[0])],
                        known_[static_cast<size_t>(inst.args[1])]);
  if (inst.op == Op::cast && inst.type.dtype == int64 && is_integer(type(inst.args[0]).dtype))
    known = known_[static_cast<size_t>(inst.args[0])];
}

std::optional<int64_t> Footprints::iterations(const Inst& loop) const {
  const k::Known lo = known(loop.args[0]), hi = known(loop.args[1]), step = known(loop.args[2]);
  if (lo.low == INT64_MIN || hi.high == INT64_MAX || step.low < 1) return {};
  int64_t reach = 0;
  if (__builtin_sub_overflow(hi.high, lo.low, &reach)) return {};
  return reach <= 0 ? 0 : (reach - 1) / step.low + 1;
}

/// Records the induction variable of a loop.
void Footprints::enter(const Inst& loop) {
  const auto i = static_cast<size_t>(loop.blocks[0].arguments[0]);
  const k::Known lo = known(loop.args[0]), hi = known(loop.args[1]), step = known(loop.args[2]);
  if (hi.high != INT64_MAX) known_[i] = {lo.low, std::max(lo.low, hi.high - 1), 1};
  const std::optional<int64_t> most = iterations(loop);
  const std::optional<Affine>& from = affine_[static_cast<size_t>(loop.args[0])];
  if (!most || !from || step.low != step.high) return;
  const bool exact = lo.low == lo.high && hi.low == hi.high;
  const Atom atom{&loop, 1, std::max<int64_t>(*most, 1), exact};
  loops_[&loop] = atom;
  affine_[i] = atom.extent == 1 ? *from : plus(*from, {0, {{atom, step.low}}, {}}, 1);
}

std::optional<Affine> Footprints::scalar(const Inst& inst) const {
  if (inst.args.size() != 2 || inst.type.dtype != int64) return {};  // narrower numbers may wrap
  const std::optional<Affine>&a = affine_[static_cast<size_t>(inst.args[0])],
        &b = affine_[static_cast<size_t>(inst.args[1])];
  if (!a || !b) return {};
  switch (inst.scalar_op) {
    case ScalarOp::add: return plus(*a, *b, 1);
    case ScalarOp::sub: return plus(*a, *b, -1);
    case ScalarOp::mul:
      if (is_constant(*b)) return times(*a, b->constant);
      return is_constant(*a) ? std::optional(times(*b, a->constant)) : std::nullopt;
    case ScalarOp::floordiv:
    case ScalarOp::mod:
      return is_constant(*b) && inst.type.rank() == 0 ? part_of_digit(*a, b->constant, inst.scalar_op == ScalarOp::mod)
                                                      : std::nullopt;
    default: return {};
  }
}

std::optional<Affine> Footprints::affine(const Inst& inst) const {
  const auto rank = static_cast<size_t>(inst.type.rank());
  const auto from = [&] { return affine_[static_cast<size_t>(inst.args[0])]; };
  switch (inst.op) {
    case Op::constant: return Affine{inst.number.i, {}, Dims(rank, 0)};
    case Op::program_id: return programs_ > 1 ? Affine{0, {{Atom{nullptr, 1, programs_, exact_}, 1}}, {}} : Affine{};
    case Op::arange: return Affine{0, {}, {1}};
    case Op::cast: return inst.type.dtype == int64 && is_integer(type(inst.args[0]).dtype) ? from() : std::nullopt;
    case Op::scalar: return scalar(inst);
    case Op::broadcast: {
      std::optional<Affine> out = from();
      if (!out) return {};
      const Dims& dims = type(inst.args[0]).dims;
      Dims lanes(rank, 0);
      for (size_t k = 1; k <= dims.size(); ++k)
        if (dims[dims.size() - k] > 1) lanes[rank - k] = out->lanes[dims.size() - k];
      out->lanes = lanes;
      return out;
    }
    case Op::reshape: {
      // Axes of extent 1 come and go.
      std::optional<Affine> out = from();
      if (!out) return {};
      const Dims& dims = type(inst.args[0]).dims;
      Dims lanes;
      size_t next = 0;
      for (const int64_t extent : inst.type.dims) {
        while (next < dims.size() && dims[next] == 1) ++next;
        if (extent == 1) lanes.push_back(0);
        else if (next < dims.size() && dims[next] == extent) lanes.push_back(out->lanes[next++]);
        else return {};
      }
      out->lanes = lanes;
      return out;
    }
    default: return {};
  }
}

const Dims& Footprints::dims_of(const Inst& access) const {
  const bool writes = info(access.op).access != kernel::Access::reads;
  return writes ? type(access.args[0]).dims : access.type.dims;
}

/// Returns the address of an access's elements.
std::optional<Affine> Footprints::index_of(const Inst& access) const {
  if (access.op == Op::load || access.op == Op::store) {
    std::optional<Affine> out = affine_[static_cast<size_t>(access.args[access.op == Op::load ? 0 : 1])];
    if (out) out->lanes = access.strides;
    return out;
  }
  if (access.op == Op::gather) return affine_[static_cast<size_t>(access.args[0])];
  if (access.op == Op::scatter) return affine_[static_cast<size_t>(access.args[1])];
  return {};
}

bool Footprints::distinct_lanes(const Inst& access) const {
  const bool slices = access.op == Op::load || access.op == Op::store;
  const Dims& dims = dims_of(access);
  if (std::all_of(dims.begin(), dims.end(), [](int64_t n) { return n == 1; })) return true;
  const std::optional<Affine> at = slices ? Affine{0, {}, access.strides} : index_of(access);
  if (!at) return false;
  AxisSteps steps;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (at->lanes[k] == 0 && dims[k] > 1 && !slices) return false;
    steps.add(at->lanes[k], dims[k], true);
  }
  return steps.apart(0);
}

/// Returns the coordinates along each axis of the array, from the addresses; nothing where they are not known to stay
/// within the axes.
std::optional<std::vector<Footprints::Coordinate>> Footprints::coordinates(const Access& access,
                                                                           const Dims& dims) const {
  const std::optional<Affine> at = index_of(*access.inst);
  if (!at) return {};
  const Dims& lanes = dims_of(*access.inst);
  std::vector<Coordinate> out(dims.size());
  Affine rest = *at;
  for (size_t k = 0; k < dims.size(); ++k) {
    int64_t stride = 1;
    for (size_t j = k + 1; j < dims.size(); ++j) stride *= std::max<int64_t>(dims[j], 1);
    Affine& position = out[k].position;
    const auto share = [&](int64_t& from) {
      const int64_t many = from / stride;
      from -= many * stride;
      return many;
    };
    position.constant = share(rest.constant);
    for (auto& [atom, by] : rest.atoms)
      if (const int64_t many = share(by); many != 0) position.atoms[atom] = many;
    for (int64_t& by : rest.lanes) position.lanes.push_back(share(by));
  }
  const bool slices = access.inst->op == Op::load || access.inst->op == Op::store;
  const size_t first_limit = access.inst->op == Op::load ? 1 : 2;
  for (size_t k = 0; k < dims.size(); ++k) {
    int64_t low = out[k].position.constant, high = low;
    const auto span = [&](int64_t by, int64_t extent) { (by < 0 ? low : high) += by * (extent - 1); };
    for (const auto& [atom, by] : out[k].position.atoms) span(by, atom.extent);
    for (size_t j = 0; j < lanes.size(); ++j) {
      const int64_t by = out[k].position.lanes[j];
      span(by, lanes[j]);
      if (by != 1 || !slices) continue;
      // The limit of this axis ends with the array: limit = extent - where the tile begins.
      const Value limit = access.inst->args[first_limit + j];
      if (limit == no_value || !affine_[static_cast<size_t>(limit)]) continue;
      Affine begin = out[k].position;
      begin.lanes.clear();
      const Affine end = plus(*affine_[static_cast<size_t>(limit)], begin, 1);
      out[k].limited = out[k].limited || (end.atoms.empty() && end.constant == dims[k]);
    }
    if (k > 0 && (low < 0 || (high >= dims[k] && !out[k].limited))) return {};
  }
  return out;
}

/// Returns whether the coordinates tell programs apart, whatever loops and lanes do.
bool Footprints::digits_apart(const std::vector<const Access*>& accesses,
                              const std::vector<std::vector<Coordinate>>& at) const {
  std::vector<Atom> digits;
  for (size_t axis = 0; axis < at[0].size(); ++axis) {
    AxisSteps steps;
    int64_t low = INT64_MAX, high = INT64_MIN;
    const auto only_digits = [&](const Coordinate& c) {
      std::map<Atom, int64_t> out = c.position.atoms;
      std::erase_if(out, [](const auto& entry) { return entry.first.loop != nullptr; });
      return out;
    };
    const std::map<Atom, int64_t> wanted = only_digits(at[0][axis]);
    for (size_t n = 0; n < at.size(); ++n) {
      const Affine& position = at[n][axis].position;
      const Dims& lanes = dims_of(*accesses[n]->inst);
      if (only_digits(at[n][axis]) != wanted) return false;
      int64_t from = position.constant, to = position.constant;
      const auto span = [&](int64_t by, int64_t extent) { (by < 0 ? from : to) += by * (extent - 1); };
      for (const auto& [atom, by] : position.atoms)
        if (atom.loop) span(by, atom.extent);
      for (size_t j = 0; j < position.lanes.size(); ++j) span(position.lanes[j], lanes[j]);
      low = std::min(low, from), high = std::max(high, to);
    }
    for (const auto& [atom, by] : wanted) {
      steps.add(by, atom.extent, true);
      digits.push_back(atom);
    }
    if (!wanted.empty() && !steps.apart(high - low)) return false;
  }
  // The digits make up the whole number of the program.
  std::sort(digits.begin(), digits.end());
  digits.erase(std::unique(digits.begin(), digits.end(), [](const Atom& a, const Atom& b) { return !(a < b); }),
               digits.end());
  int64_t behind = 1;
  for (const Atom& digit : digits) {
    if (digit.behind != behind) return false;
    behind *= digit.extent;
  }
  return behind == programs_;
}

bool Footprints::touched_once(const Access& access, const std::vector<Coordinate>& at) const {
  std::map<Atom, bool> told;
  const Dims& dims = dims_of(*access.inst);
  for (const Coordinate& c : at) {
    AxisSteps steps;
    for (const auto& [atom, by] : c.position.atoms) {
      steps.add(by, atom.extent, true);
      told[atom] = true;
    }
    for (size_t j = 0; j < dims.size(); ++j) steps.add(c.position.lanes[j], dims[j], true);
    if (!steps.apart(0)) return false;
  }
  return distinct_lanes(*access.inst) && std::all_of(access.loops.begin(), access.loops.end(), [&](const Inst* loop) {
           const auto atom = loops_.find(loop);
           return atom != loops_.end() && (atom->second.extent == 1 || told.contains(atom->second));
         });
}

bool Footprints::touches_all(const Access& access, const std::vector<Coordinate>& at, const Dims& dims) const {
  if (access.conditional || access.inst->op == Op::gather || access.inst->op == Op::scatter) return false;
  const Dims& lanes = dims_of(*access.inst);
  const size_t first_limit = access.inst->op == Op::load ? 1 : 2;
  std::map<Atom, int> uses;
  size_t limited = 0, limits = 0;
  for (size_t j = 0; j < lanes.size(); ++j) limits += access.inst->args[first_limit + j] != no_value ? 1 : 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    AxisSteps steps;
    for (const auto& [atom, by] : at[k].position.atoms) {
      if (by < 0 || !atom.exact || ++uses[atom] > 1) return false;
      steps.add(by, atom.extent, true);
    }
    for (size_t j = 0; j < lanes.size(); ++j) {
      if (at[k].position.lanes[j] < 0) return false;
      steps.add(at[k].position.lanes[j], lanes[j], true);
    }
    limited += at[k].limited ? 1 : 0;
    if (at[k].position.constant != 0 || !steps.covers(dims[k])) return false;
  }
  // A loop that an address does not mention runs at least once.
  return limits == limited && std::all_of(access.loops.begin(), access.loops.end(), [&](const Inst* loop) {
           const auto atom = loops_.find(loop);
           return atom != loops_.end() && atom->second.exact;
         });
}

Footprint Footprints::of(Ref ref, const Dims& dims, Which which) const {
  const Footprint f = along(ref, dims, which);
  if (f.apart || dims.size() < 2) return f;
  // Kernels may count through all elements of an array.
  int64_t elements = 1;
  for (const int64_t d : dims) elements *= d;
  return along(ref, {elements}, which);
}

std::vector<const Footprints::Access*> Footprints::accesses_of(Ref ref, Which which) const {
  std::vector<const Access*> out;
  if (const auto found = accesses_.find(ref); found != accesses_.end())
    for (const Access& a : found->second) {
      const bool reads = info(a.inst->op).access == kernel::Access::reads;
      if (which == Which::both || reads == (which == Which::loads)) out.push_back(&a);
    }
  return out;
}

/// Returns whether an access touches, at each value of the digit, elements of its block of the axis alone.
bool Footprints::stays_in_block(const Access& access, const std::vector<Coordinate>& at,
                                const Division& division) const {
  const auto overlaps = [&](const Atom& a) {
    return !a.loop && a.behind < division.digit.behind * division.digit.extent &&
           division.digit.behind < a.behind * a.extent;
  };
  for (size_t axis = 0; axis < at.size(); ++axis)
    for (const auto& [atom, by] : at[axis].position.atoms)
      if (overlaps(atom) && !(axis == division.axis && atom == division.digit && by == division.block)) return false;
  const Affine& position = at[division.axis].position;
  if (!position.atoms.contains(division.digit)) return false;
  int64_t low = position.constant, high = low;
  const auto span = [&](int64_t by, int64_t extent) { (by < 0 ? low : high) += by * (extent - 1); };
  for (const auto& [atom, by] : position.atoms)
    if (!(atom == division.digit)) span(by, atom.extent);
  const Dims& lanes = dims_of(*access.inst);
  for (size_t j = 0; j < lanes.size(); ++j) span(position.lanes[j], lanes[j]);
  return low >= 0 && high < division.block;
}

std::vector<Footprints::Division> Footprints::divisions(Ref ref, const Dims& dims, Which which) const {
  const std::vector<const Access*> accesses = accesses_of(ref, which);
  std::vector<std::vector<Coordinate>> at;
  for (const Access* a : accesses) {
    std::optional<std::vector<Coordinate>> c = coordinates(*a, dims);
    if (!c) return {};
    at.push_back(std::move(*c));
  }
  std::vector<Division> out;
  for (size_t axis = 0; !at.empty() && axis < dims.size(); ++axis)
    for (const auto& [atom, by] : at[0][axis].position.atoms) {
      const Division d{atom, axis, by};
      bool divides = !atom.loop && by > 0;
      for (size_t n = 0; divides && n < at.size(); ++n) divides = stays_in_block(*accesses[n], at[n], d);
      if (divides) out.push_back(d);
    }
  return out;
}

Footprint Footprints::along(Ref ref, const Dims& dims, Which which) const {
  const std::vector<const Access*> accesses = accesses_of(ref, which);
  if (accesses.empty()) return {true, true, false};
  std::vector<std::vector<Coordinate>> at;
  for (const Access* a : accesses) {
    std::optional<std::vector<Coordinate>> c = coordinates(*a, dims);
    if (!c) return {programs_ == 1};
    at.push_back(std::move(*c));
  }
  Footprint out;
  out.apart = programs_ == 1 || (!dims.empty() && digits_apart(accesses, at));
  out.once = out.apart && accesses.size() == 1 && touched_once(*accesses[0], at[0]);
  out.all = out.once && touches_all(*accesses[0], at[0], dims);
  return out;
}

}  // namespace weft::kernel
