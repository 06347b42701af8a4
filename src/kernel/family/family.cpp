#include "kernel/family/family.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "kernel/family/numbers.h"

namespace weft::kernel {

namespace {

constexpr size_t most_uses = 1024, most_taken = 48, most_families = 8192;

/// Returns the digest of what all kernels of a family have in common: each number is an argument of its own.
Digest family_of(const Kernel& kernel, size_t numbers) {
  std::vector<int> all(numbers);
  std::iota(all.begin(), all.end(), 0);
  return digest(with_arguments(kernel, all));
}

/// Returns the values of the arguments, or nothing where these numbers do not fit them.
std::optional<std::vector<int64_t>> values_of(const std::vector<int>& arguments, const std::vector<int64_t>& first,
                                              const std::vector<int64_t>& numbers) {
  std::vector<std::optional<int64_t>> values;
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (arguments[k] < 0) {
      if (numbers[k] != first[k]) return std::nullopt;
      continue;
    }
    const auto at = static_cast<size_t>(arguments[k]);
    if (at >= values.size()) values.resize(at + 1);
    if (values[at] && *values[at] != numbers[k]) return std::nullopt;
    values[at] = numbers[k];
  }
  std::vector<int64_t> out;
  for (const std::optional<int64_t>& v : values) out.push_back(*v);
  return out;
}

/// Returns the fewest arguments whose values these numbers can be as well. Numbers that were equal in all kernels
/// share one.
std::vector<int> refined(const std::vector<int>& arguments, const std::vector<int64_t>& first,
                         const std::vector<int64_t>& numbers) {
  std::map<std::tuple<int, int64_t, int64_t>, int> made;
  std::vector<int> out(numbers.size(), -1);
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (arguments[k] < 0 && numbers[k] == first[k]) continue;
    const std::tuple key(arguments[k], arguments[k] < 0 ? first[k] : 0, numbers[k]);
    out[k] = made.try_emplace(key, static_cast<int>(made.size())).first->second;
  }
  return out;
}

}  // namespace

General Families::general(const Kernel& kernel) {
  if (!takes_numbers(kernel)) return {kernel, {}};
  const std::vector<int64_t> own = numbers(kernel);
  if (own.empty() || own.size() > most_uses) return {kernel, {}};
  const Digest digest = family_of(kernel, own.size());
  const std::lock_guard lock(mutex_);
  if (families_.size() >= most_families) families_.clear();
  const auto [found, fresh] = families_.try_emplace(digest);
  Family& family = found->second;
  if (fresh) family = {own, std::vector<int>(own.size(), -1), {}};
  if (own == family.first) return {kernel, {}};
  std::optional<std::vector<int64_t>> values = values_of(family.arguments, family.first, own);
  if (!values) {
    std::vector<int> arguments = refined(family.arguments, family.first, own);
    values = values_of(arguments, family.first, own);
    if (values->size() > most_taken) return {kernel, {}};
    family.arguments = std::move(arguments);
    family.kernel = with_arguments(kernel, family.arguments);
  }
  return {family.kernel, std::move(*values)};
}

}  // namespace weft::kernel
