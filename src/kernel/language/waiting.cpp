// Programs of the kernel language that wait for each other.
#include <algorithm>

#include <fmt/format.h>

#include "kernel/language/trace.h"
#include "weft/kernel/erased_async.h"

namespace weft::k {

using kernel::Type;
using kernel::Value;

namespace {

/// Returns the address of an element.
Value element_address(Trace& t, const AnyRef& ref, std::span<const Any> position, Line at) {
  if (position.size() != ref.dims.size())
    t.refuse(at, fmt::format("wait_until: {} indices are given, and the array has {} axes: give one for each",
                             position.size(), ref.dims.size()));
  Value sum = origin_of(t, ref, at);
  for (size_t k = 0; k < position.size(); ++k) {
    const Value i = t.value(position[k], at);
    if (!(t.builder.type(i) == Type{int64, {}}))
      t.refuse(at,
               fmt::format("wait_until: an index is {}, no int64 scalar: cast it to int64", text(t.builder.type(i))));
    const Known known = t.known(i);
    if (known.high < 0 || known.low >= ref.dims[k])
      t.refuse(at, fmt::format("wait_until: an index along axis {} lies outside of its {} elements: stay within them",
                               k, ref.dims[k]));
    sum = t.add(sum, t.mul(i, t.index(ref.strides[k])));
  }
  return sum;
}

}  // namespace

Any wait_until(const AnyRef& ref, std::span<const Any> position, const std::function<Any(Any)>& holds, Ordering how,
               Line at) {
  Trace& t = Trace::current("wait_until", at);
  const auto param = static_cast<size_t>(ref.param);
  if (ref.trace != t.serial) t.refuse(at, "wait_until: an array of another kernel is used: take one of this kernel");
  if (param >= t.params.size())
    t.refuse(at, "wait_until: scratch belongs to one program, which nobody else changes: wait for an InOut array");
  if (t.params[param].use == Use::in)
    t.refuse(at, fmt::format("wait_until: array {} is an input, which nobody changes: declare it as InOut", param));
  if (ref.dtype.size() < 4)
    t.refuse(at, fmt::format("wait_until: an element of {} has fewer than 32 bits: use an array of int32 or wider",
                             dtype_name(ref.dtype)));
  if (!t.ordered())
    t.refuse(at,
             "wait_until: the programs of this grid begin in any order, and the one that is waited for may never run: "
             "give the grid an axis k::GridAxis(n, k::Order::ordered)");
  if (how.order == MemoryOrder::release || how.order == MemoryOrder::acq_rel)
    t.refuse(at, "wait_until: a read releases nothing: give the order acquire or relaxed");
  const Value index = element_address(t, ref, position, at);
  const kernel::AtomicOrder order{static_cast<kernel::MemoryOrder>(how.order),
                                  static_cast<kernel::MemoryScope>(how.scope)};
  const auto condition = [&](Value found) {
    Value yes = kernel::no_value;
    t.in_combine([&] { yes = t.value(holds(t.any(found)), at); });
    if (!(t.builder.type(yes) == Type{bool_, {}}))
      t.refuse(at, fmt::format("wait_until: the condition is {}, not a bool scalar: compare the element",
                               text(t.builder.type(yes))));
    return yes;
  };
  return t.any(t.at(at).wait_until(ref.param, index, condition, order));
}

namespace {

/// Throws where not all programs, or not all of a program, come.
void check_meeting(Trace& t, std::string_view what, Line at) {
  if (t.in_role())
    t.refuse(at, fmt::format("{}: a role comes alone, and all of a program waits: let it stand before or behind roles",
                             what));
  if (t.in_condition())
    t.refuse(at, fmt::format("{}: it stands in a condition or a while loop, to which not all programs may come: put it "
                             "behind",
                             what));
}

}  // namespace

void grid_barrier(Line at) {
  Trace& t = Trace::current("grid_barrier", at);
  check_meeting(t, "grid_barrier", at);
  if (t.cluster() > 0)
    t.refuse(at, "grid_barrier: the grid has clusters, which do not meet others: give it no axis of k::Order::cluster");
  t.at(at).grid_barrier();
}

int64_t cluster_size(Line at) {
  const Trace& t = Trace::current("cluster_size", at);
  if (t.cluster() < 1)
    t.refuse(at, "cluster_size: the grid has no clusters: give it a last axis k::GridAxis(n, k::Order::cluster)");
  return t.cluster();
}

Any cluster_rank(Line at) {
  cluster_size(at);
  return program(static_cast<int>(Trace::current("cluster_rank", at).grid.size()) - 1, at);
}

void cluster_barrier(Line at) {
  Trace& t = Trace::current("cluster_barrier", at);
  check_meeting(t, "cluster_barrier", at);
  if (t.cluster() < 1)
    t.refuse(at, "cluster_barrier: the grid has no clusters: give it a last axis k::GridAxis(n, k::Order::cluster)");
  t.at(at).cluster_barrier();
}

}  // namespace weft::k
