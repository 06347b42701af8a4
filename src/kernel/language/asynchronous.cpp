// Barriers, groups of copies and roles of the kernel language. Copies are in memory.cpp.
#include <utility>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel/erased_async.h"

namespace weft::k {

using kernel::Type;
using kernel::Value;

namespace {

void check_outside(Trace& t, std::string_view what, Line at) {
  if (t.in_nested_block())
    t.refuse(at, fmt::format("{}: it is made in a loop, a condition or a role: declare it before", what));
}

Value whole(Trace& t, std::string_view what, const Any& v, Line at) {
  const Value n = t.value(v, at);
  if (!(t.builder.type(n) == Type{int64, {}}))
    t.refuse(at, fmt::format("{}: {} is given, no int64 scalar: cast it to int64", what, text(t.builder.type(n))));
  return n;
}

/// Returns the index of a barrier.
Value index_of(Trace& t, std::string_view what, const AnyBarriers& barriers, const Any& index, Line at) {
  if (barriers.trace != t.serial)
    t.refuse(at, fmt::format("{}: a barrier of another kernel is used: make one in this kernel", what));
  const Value v = whole(t, what, index, at);
  const Known known = t.known(v);
  if (known.high < 0 || known.low >= barriers.count)
    t.refuse(at, fmt::format("{}: there is no barrier {}: there are {}, from 0 on", what, known.low, barriers.count));
  return v;
}

}  // namespace

AnyBarriers barriers(int64_t count, int64_t arrivals, Line at) {
  Trace& t = Trace::current("barriers", at);
  check_outside(t, "barriers", at);
  constexpr int64_t most = 4096, most_arrivals = 1024;
  if (count < 1 || count > most || arrivals < 1 || arrivals > most_arrivals)
    t.refuse(at, fmt::format("barriers: {} of {} arrivals: give 1 to {} of 1 to {} arrivals", count, arrivals, most,
                             most_arrivals));
  return {t.at(at).barriers(count, arrivals), t.serial, count};
}

void arrive(const AnyBarriers& barriers, const Any& index, Line at) {
  Trace& t = Trace::current("arrive", at);
  const Value where = index_of(t, "arrive", barriers, index, at);
  t.at(at).arrive(barriers.buffer, where);
}

void wait(const AnyBarriers& barriers, const Any& index, const Any& phase, Line at) {
  Trace& t = Trace::current("wait", at);
  const Value where = index_of(t, "wait", barriers, index, at), which = whole(t, "wait", phase, at);
  t.at(at).await(barriers.buffer, where, which);
}

void commit_copies(Line at) {
  Trace& t = Trace::current("commit_copies", at);
  t.at(at).commit_copies();
}

void wait_copies(int64_t left, Line at) {
  Trace& t = Trace::current("wait_copies", at);
  constexpr int64_t most = 63;
  if (left < 0 || left > most)
    t.refuse(at, fmt::format("wait_copies: {} groups may be left: give 0 to {}", left, most));
  t.at(at).wait_copies(left);
}

void roles(std::span<const Role> list, Line at) {
  Trace& t = Trace::current("roles", at);
  constexpr size_t most_roles = 15;
  constexpr int64_t most_warps = 32;
  if (t.in_role()) t.refuse(at, "roles: a role has no roles of its own: give all of them together");
  if (list.empty() || list.size() > most_roles)
    t.refuse(at, fmt::format("roles: there are {}: give 1 to {}", list.size(), most_roles));
  int64_t warps = 0;
  for (size_t k = 0; k < list.size(); ++k) {
    const Role& role = list[k];
    if (role.warps < 1 || role.warps > most_warps || (warps += role.warps) > most_warps)
      t.refuse(at, fmt::format("roles: role {} has {} warps: give 1 or more, and {} at most to all together", k,
                               role.warps, most_warps));
    if (role.registers != 0 && (role.registers < 24 || role.registers > 256 || role.registers % 8 != 0))
      t.refuse(at, fmt::format("roles: role {} has {} registers a thread: give a multiple of 8 from 24 to 256, or 0", k,
                               role.registers));
    if (!role.body) t.refuse(at, fmt::format("roles: role {} has no body: give it one", k));
  }
  const std::vector<size_t> slots = t.living();
  const std::vector<Value> before = t.variables(slots);
  std::vector<kernel::Builder::Role> all;
  for (const Role& role : list)
    all.push_back({role.warps, role.registers, [&] {
                     t.in_role(role.body);
                     if (t.variables(slots) != before)
                       t.refuse(at, "roles: a role assigns a variable from outside: store what it computes in memory");
                   }});
  t.at(at).roles(all);
}

}  // namespace weft::k
