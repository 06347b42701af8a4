#pragma once
#include <memory>
#include <optional>
#include <string>

#include "weft/array.h"

/// Collective operations on arrays of several processes. A process by itself is a group of one, on which they are the
/// identity: programs that are written for groups run alone.
///
/// Not built yet: connections between processes. No backend is available, and `init` gives the group of one.
namespace weft::distributed {

/// Processes that communicate. Copies are the same group.
class WEFT_API Group {
 public:
  /// Returns the number of this process, from 0 on.
  int rank() const { return rank_; }
  /// Returns the number of processes.
  int size() const { return size_; }
  /// Returns the group of those processes that give the same color, ordered by key (by rank where it is negative).
  /// Throws std::runtime_error for a group of one, which cannot be split.
  Group split(int color, int key = -1) const;

 private:
  friend WEFT_API Group init(bool strict, const std::string& backend);
  Group(int rank, int size) : rank_(rank), size_(size) {}
  int rank_, size_;
};

/// Returns whether a backend is available: "any" of them, "ring", "mpi", "nccl" or "jaccl". Throws
/// std::invalid_argument for another name.
WEFT_API bool is_available(const std::string& backend = "any");
/// Returns the group of all processes of the program. Where the backend is not available it is the group of one; with
/// `strict` std::runtime_error is thrown then.
WEFT_API Group init(bool strict = false, const std::string& backend = "any");

/// Returns the sum of the processes' arrays of one shape and dtype, in each process. Without a group: of init().
WEFT_API array all_sum(const array& x, const std::optional<Group>& group = std::nullopt, StreamOrDevice s = {});
/// Returns the largest elements of the processes' arrays.
WEFT_API array all_max(const array& x, const std::optional<Group>& group = std::nullopt, StreamOrDevice s = {});
/// Returns the smallest elements of the processes' arrays.
WEFT_API array all_min(const array& x, const std::optional<Group>& group = std::nullopt, StreamOrDevice s = {});
/// Returns the processes' arrays, joined along the first axis in the order of their ranks.
WEFT_API array all_gather(const array& x, const std::optional<Group>& group = std::nullopt, StreamOrDevice s = {});
/// Returns this process' part of the sum of the arrays, of which the first axis is divided among the processes.
WEFT_API array sum_scatter(const array& x, const std::optional<Group>& group = std::nullopt, StreamOrDevice s = {});
/// Sends an array to the process `dst` when it is evaluated; returns it. Throws std::invalid_argument in a group of one
/// and for a rank that does not exist.
WEFT_API array send(const array& x, int dst, const std::optional<Group>& group = std::nullopt, StreamOrDevice s = {});
/// Returns an array of this shape and dtype that the process `src` sends. Throws as send.
WEFT_API array recv(const Shape& shape, Dtype dtype, int src, const std::optional<Group>& group = std::nullopt,
                    StreamOrDevice s = {});
/// Returns an array of x's shape and dtype that the process `src` sends. Throws as send.
WEFT_API array recv_like(const array& x, int src, const std::optional<Group>& group = std::nullopt,
                         StreamOrDevice s = {});

}  // namespace weft::distributed
