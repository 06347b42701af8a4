// The Programs of the process: which target they are built for, the table of them by digest, and who is told of them.
#include <atomic>
#include <list>
#include <mutex>
#include <unordered_map>

#include "compiler/cpu_target.h"
#include "compiler/ir/complex.h"
#include "compiler/ir/ir.h"
#include "compiler/program/build.h"
#include "graph/complex/complex.h"
#include "runtime/device.h"
#include "runtime/executor.h"

namespace weft::compiler {

namespace {

/// Programs by digest, the least recently used forgotten first.
class Table {
 public:
  std::shared_ptr<const Program> find(const Digest& key) {
    std::lock_guard lock(mutex_);
    auto it = entries_.find(key);
    if (it == entries_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, it->second.second);
    return it->second.first;
  }
  void insert(const Digest& key, std::shared_ptr<const Program> program, bool replace = false) {
    constexpr size_t limit = 4096;
    std::lock_guard lock(mutex_);
    if (const auto known = entries_.find(key); known != entries_.end()) {
      if (replace) known->second.first = std::move(program);
      return;
    }
    recent_.push_front(key);
    entries_[key] = {std::move(program), recent_.begin()};
    if (entries_.size() <= limit) return;
    entries_.erase(recent_.back());
    recent_.pop_back();
  }

 private:
  std::mutex mutex_;
  std::list<Digest> recent_;
  std::unordered_map<Digest, std::pair<std::shared_ptr<const Program>, std::list<Digest>::iterator>> entries_;
};

Table& table() {
  static auto& all = *new Table;  // outlives every static array
  return all;
}

/// Programs by number, while anyone holds them.
class Living {
 public:
  void insert(const std::shared_ptr<const Program>& program) {
    std::lock_guard lock(mutex_);
    if (programs_.size() >= 2 * living_) {  // as many may be gone
      std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
      living_ = std::max(programs_.size(), least);
    }
    programs_[program->number()] = program;
  }
  std::shared_ptr<const Program> find(int64_t number) {
    std::lock_guard lock(mutex_);
    const auto it = programs_.find(number);
    return it == programs_.end() ? nullptr : it->second.lock();
  }

 private:
  static constexpr size_t least = 64;
  std::mutex mutex_;
  size_t living_ = least;  // at the last look
  std::unordered_map<int64_t, std::weak_ptr<const Program>> programs_;
};

Living& living() {
  static auto& all = *new Living;  // outlives every static array
  return all;
}

std::atomic<target::Target*> chosen_target = nullptr, cpu_target = nullptr;
thread_local BuildRecord* innermost_record = nullptr;

}  // namespace

target::Target& target_of(int device) {
  if (device >= 0) return target::gpu(device);
  target::Target* instead = cpu_target;
  return instead ? *instead : target::cpu();
}

void set_cpu_target(target::Target& target) { cpu_target = &target; }

target::Target& default_target() {
  target::Target* chosen = chosen_target;
  return chosen ? *chosen : target_of(runtime::executor_device(graph::StreamScope::current()));
}

void set_default_target(target::Target& target) { chosen_target = &target; }

BuildRecord::BuildRecord(bool texts) : texts_(texts), outer_(innermost_record) { innermost_record = this; }
BuildRecord::~BuildRecord() { innermost_record = outer_; }
void BuildRecord::add(const std::shared_ptr<const Program>& program) {
  for (BuildRecord* record = innermost_record; record; record = record->outer_) record->programs_.push_back(program);
}

std::vector<graph::Storage> Program::run(std::span<const graph::Storage> inputs,
                                         std::span<const int64_t> symbols) const {
  std::vector<const graph::Storage*> addresses;
  addresses.reserve(inputs.size());
  for (const graph::Storage& input : inputs) addresses.push_back(&input);
  std::vector<Output> outputs = execute(addresses, symbols);
  std::vector<graph::Storage> storages;
  storages.reserve(outputs.size());
  for (Output& out : outputs) {
    if (out.input >= 0) storages.push_back(inputs[static_cast<size_t>(out.input)]);
    else storages.push_back(std::move(out.storage));
  }
  return storages;
}

std::shared_ptr<const Program> build(const Source& source, target::Target& target, const Policy& policy) {
  bool texts = false;
  for (const BuildRecord* record = innermost_record; record; record = record->outer_) texts = texts || record->texts_;
  const bool complex = graph::has_complex(source.graph);
  std::shared_ptr<const Program> program =
      compile_source(complex ? split_complex(source) : source, target, policy, texts);
  if (complex) program = complex_program(source.graph, std::move(program));
  living().insert(program);
  BuildRecord::add(program);
  return program;
}

std::shared_ptr<const Program> find_program(int64_t number) { return living().find(number); }

Digest program_key(const Digest& source, target::Target& target, const Digest& policy) {
  return Hasher().digest(source).digest(target.digest()).digest(policy).number(target::libraries_enabled()).finish();
}

std::shared_ptr<const Program> lookup(const Digest& key) {
  std::shared_ptr<const Program> program = table().find(key);
  if (program) BuildRecord::add(program);
  return program;
}

std::shared_ptr<const Program> lookup_or_build(const Source& source, target::Target& target, const Policy& policy) {
  const Digest key = program_key(digest(source), target, policy.digest());
  if (auto program = lookup(key)) return program;
  auto program = build(source, target, policy);
  table().insert(key, program);
  return program;
}

std::shared_ptr<const Program> rebuild(const Source& source, target::Target& target, const Policy& policy) {
  Policy own = policy;
  own.share_code = false;
  auto program = build(source, target, own);
  table().insert(program_key(digest(source), target, policy.digest()), program, true);
  return program;
}

}  // namespace weft::compiler
