#include "target/cuda/driver/candidates.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "runtime/cache_dir.h"

namespace weft::target::cuda {

namespace {

Digest key_of(const std::vector<Candidate>& candidates, const Digest& work) {
  Hasher hasher;
  hasher.digest(work).number(static_cast<int64_t>(candidates.size()));
  for (const Candidate& candidate : candidates) hasher.text(candidate.version);
  return hasher.finish();
}

}  // namespace

Digest device_digest(Context& context) {
  const DeviceInfo& info = context.info();
  return Hasher()
      .text(info.name)
      .number(info.major)
      .number(info.minor)
      .number(info.multiprocessors)
      .number(driver_version())
      .finish();
}

std::optional<Choice::Record> Choice::recorded() const { return runtime::cache_get(folder_, key_); }

void Choice::record(const Record& bytes) const {
  if (!bytes.empty()) runtime::cache_put(folder_, key_, bytes.data(), bytes.size());
}

size_t Choice::choose(LaunchTimer& timer, size_t count, const std::function<bool(size_t)>& launch,
                      const std::function<Record(size_t)>& record_of) {
  if (settled_ || !timer.may_measure()) return index_;
  settle(count == 1 ? 0 : fastest(timer, count, launch));
  record(record_of(index_));
  return index_;
}

Candidates::Candidates(std::unique_ptr<LaunchTimer> timer, std::vector<Candidate> candidates, Choose how,
                       const Digest& key)
    : timer_(std::move(timer)), candidates_(std::move(candidates)), measured_(how == Choose::by_measurement),
      choice_("measured", key_of(candidates_, key)) {
  weft::check(!candidates_.empty(), "candidates", "at least one");
  if (how == Choose::in_order || candidates_.size() == 1) choice_.settle(0);
  const std::optional<Choice::Record> record = choice_.settled() ? std::nullopt : choice_.recorded();
  if (record && record->size() == 1 && static_cast<size_t>(record->front()) < candidates_.size())
    choice_.settle(static_cast<size_t>(record->front()));
}

std::string Candidates::name() const {
  std::lock_guard lock(mutex_);
  return candidates_[choice_.index()].call->name();
}

/// Returns the candidates that operands which all of them take may go to.
std::span<const Candidate> Candidates::contenders() const {
  std::lock_guard lock(mutex_);
  if (!measured_ || !choice_.settled()) return candidates_;
  return std::span(candidates_).subspan(choice_.index(), 1);
}

void Candidates::begin() const {
  for (const Candidate& c : contenders()) c.call->begin();
}

bool Candidates::ready() const {
  const std::span<const Candidate> all = contenders();
  return std::all_of(all.begin(), all.end(), [](const Candidate& c) { return c.call->ready(); });
}

bool Candidates::recordable() const {
  return std::all_of(candidates_.begin(), candidates_.end(), [](const Candidate& c) { return c.call->recordable(); });
}

bool Candidates::takes(const Candidate& candidate, std::span<void* const> operands) const {
  return std::all_of(operands.begin(), operands.end(), [&](const void* operand) {
    return reinterpret_cast<uintptr_t>(operand) % static_cast<uintptr_t>(candidate.alignment) == 0;
  });
}

void Candidates::run(std::span<void* const> operands) const {
  std::lock_guard lock(mutex_);
  const auto takes_all = [&](const Candidate& candidate) { return takes(candidate, operands); };
  size_t index = choice_.index();
  if (std::all_of(candidates_.begin(), candidates_.end(), takes_all)) {
    const auto launch = [&](size_t i) { return candidates_[i].call->run(operands), true; };
    const auto record_of = [](size_t i) { return Choice::Record{static_cast<char>(i)}; };
    index = choice_.choose(*timer_, candidates_.size(), launch, record_of);
  } else if (!takes_all(candidates_[index])) {
    const auto other = std::find_if(candidates_.begin(), candidates_.end(), takes_all);
    weft::check(other != candidates_.end(), "candidates", "no candidate takes operands as they are aligned");
    index = static_cast<size_t>(other - candidates_.begin());
  }
  candidates_[index].call->run(operands);
}

}  // namespace weft::target::cuda
