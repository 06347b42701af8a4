// Collective operations of a group of one process, on which they are the identity.
#include "weft/distributed.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "weft/ops.h"

namespace weft::distributed {

namespace {

constexpr std::array<std::string_view, 5> backends = {"any", "ring", "mpi", "nccl", "jaccl"};

/// Returns the group, the program's where none is given.
Group of(const std::optional<Group>& group) { return group ? *group : init(); }

[[noreturn]] void refuse(const char* op, int rank, const Group& group) {
  throw_invalid(op, "process " + std::to_string(rank) + " is no other process of a group of " +
                        std::to_string(group.size()) + ": a process alone has none to exchange arrays with");
}

/// Returns the array on the stream.
array same(const array& x, const std::optional<Group>& group, const StreamOrDevice& s) {
  (void)of(group), (void)to_stream(s);
  return x;
}

}  // namespace

Group Group::split(int, int) const { throw_failure("split", "a group of one process cannot be divided further"); }

bool is_available(const std::string& backend) {
  if (std::ranges::find(backends, backend) == backends.end())
    throw_invalid("is_available", "there is no backend \"" + backend + "\"; any, ring, mpi, nccl or jaccl");
  return false;
}

Group init(bool strict, const std::string& backend) {
  if (!is_available(backend) && strict)
    throw_failure("init", "no connection between processes is available by the backend \"" + backend +
                              "\"; without strict the group is this process alone");
  return {0, 1};
}

array all_sum(const array& x, const std::optional<Group>& group, StreamOrDevice s) { return same(x, group, s); }
array all_max(const array& x, const std::optional<Group>& group, StreamOrDevice s) { return same(x, group, s); }
array all_min(const array& x, const std::optional<Group>& group, StreamOrDevice s) { return same(x, group, s); }
array all_gather(const array& x, const std::optional<Group>& group, StreamOrDevice s) { return same(x, group, s); }
array sum_scatter(const array& x, const std::optional<Group>& group, StreamOrDevice s) { return same(x, group, s); }
array send(const array&, int dst, const std::optional<Group>& group, StreamOrDevice) { refuse("send", dst, of(group)); }
array recv(const Shape&, Dtype, int src, const std::optional<Group>& group, StreamOrDevice) {
  refuse("recv", src, of(group));
}
array recv_like(const array&, int src, const std::optional<Group>& group, StreamOrDevice) {
  refuse("recv_like", src, of(group));
}

}  // namespace weft::distributed
