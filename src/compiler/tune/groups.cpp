#include "compiler/tune/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "base/error.h"
#include "compiler/region/dot_plan.h"
#include "compiler/schedule/work.h"
#include "compiler/tune/steps.h"
#include "compiler/tune/tune.h"
#include "compiler/tune/user_kernels.h"

namespace weft::compiler {

namespace {

using graph::Op;

constexpr double bytes_per_second = 2e10, flops_per_second = 2e11;  // rough rates of a CPU
// Elements that are measured of a map of any length: more than a core's caches hold.
constexpr int64_t most_length = 1 << 21;
// Estimated with these rates: shorter groups cannot be measured well, and save little.
constexpr double least_seconds = 8e-6;

/// Groups with equal code. The largest of them is measured.
struct Family {
  std::vector<GroupId> groups;
  int largest = -1;
  double seconds = 0;  // estimated, of the largest
  Digest code;
};

class GroupTuner {
 public:
  GroupTuner(const LowerContext& cx, const Grouping& grouping, const Policy& policy)
      : cx_(cx), grouping_(grouping), policy_(policy) {}
  TunedGroups run(const std::vector<GroupId>& order);
  std::vector<TuneItem> search(const std::vector<GroupId>& order, size_t most);

 private:
  const Group& group(GroupId g) const { return grouping_.groups[g]; }
  void find_families(const std::vector<GroupId>& order);
  Digest key(const Family& family);
  TuneItem item(const Family& family);
  void add_row_candidates(TuneItem& item, const Group& group);
  void add_dot_candidates(TuneItem& item, const Group& group);
  void add_buffers(TuneItem& item, const Group& group);
  void limit_indices(TuneItem& item, const Group& group);
  void limit(TuneItem& item, NodeId node, int64_t range);
  void shorten(TuneItem& item, const Group& group);
  TuneBuffer buffer(NodeId node) const;
  NodeId owner(NodeId node) const { return cx_.buffer_owner[node]; }
  BufferView view() const { return {cx_.ir, cx_.grouping, cx_.buffer_owner, cx_.has_buffer}; }
  bool fits(const Family& family, const Variant& variant);
  void choose(const Family& family, const Variant& variant) {
    for (const GroupId g : family.groups) result_.variants[g] = variant;
  }

  const LowerContext& cx_;
  const Grouping& grouping_;
  const Policy& policy_;
  size_t most_ = 0;  // schedules of a search; 0: the rules' choice and its neighbours
  std::vector<Family> families_;
  TunedGroups result_;
};

/// Sorts the groups that have variants into families of equal code, longest first, and drops those that are too short
/// to measure.
void GroupTuner::find_families(const std::vector<GroupId>& order) {
  std::unordered_map<Digest, size_t> known;
  for (const GroupId g : order) {
    const Group& it = group(g);
    const bool empty = std::all_of(it.roots.begin(), it.roots.end(),
                                   [&](const Root& r) { return volume(cx_.ir[r.node].type.shape) == 0; });
    const bool settled = !result_.variants.empty() && !result_.variants[g].by_rules();  // by steps
    if (empty || settled || (it.kind != Group::Kind::rows && it.kind != Group::Kind::dot)) continue;
    const GroupWork work = work_of(view(), it);
    const double seconds = std::max(work.launch.bytes / bytes_per_second, work.launch.flops / flops_per_second);
    Digest code;
    if (it.kind == Group::Kind::rows) {
      code = result_.memo.rows(cx_, it)->digest;
    } else {
      const std::shared_ptr<const target::LibraryCall>& call = it.dot.library;
      if (!call) continue;
      code = Hasher().digest(it.dot.asked->digest()).text(call->name()).finish();
    }
    const auto [at, fresh] = known.try_emplace(code, families_.size());
    if (fresh) families_.push_back({{}, g, 0, code});
    Family& family = families_[at->second];
    family.groups.push_back(g);
    if (seconds > family.seconds) family.largest = g, family.seconds = seconds;
  }
  std::erase_if(families_, [](const Family& f) { return f.seconds < least_seconds; });
  // Matmuls come last: their code takes long to compile, and the library is seldom slower.
  std::stable_sort(families_.begin(), families_.end(), [&](const Family& a, const Family& b) {
    const bool rows_a = group(a.largest).kind == Group::Kind::rows, rows_b = group(b.largest).kind == Group::Kind::rows;
    return rows_a != rows_b ? rows_a : a.seconds > b.seconds;
  });
}

/// Returns the key of a family: the rules' code, extents and target, which the times depend on besides the number
/// of threads.
Digest GroupTuner::key(const Family& family) {
  const Group& it = group(family.largest);
  Hasher h;
  h.text("group")
      .digest(family.code)
      .text(cx_.target.fingerprint())
      .number(policy_.libraries)
      .number(policy_.numerics.tf32)
      .number(policy_.numerics.deterministic);
  for (const DomainVariable& v : it.domain) h.number(v.extent.bound());
  for (const Root& root : it.roots) h.number(volume(cx_.ir[root.node].type.shape));
  for (const NodeId node : it.reads) h.number(volume(cx_.ir[node].type.shape));
  return h.finish();
}

void GroupTuner::add_row_candidates(TuneItem& item, const Group& it) {
  std::vector<Variant> variants{{}};
  for (Schedule& schedule : most_ > 0 ? reachable_schedules(cx_.ir, grouping_, it, cx_.target, most_)
                                      : schedules_of(cx_.ir, grouping_, it, cx_.target))
    variants.push_back({std::move(schedule)});
  std::vector<Digest> seen;
  for (const Variant& variant : variants) {
    const std::optional<Lowering> lowering = result_.memo.rows(cx_, it, variant.schedule);
    if (!lowering || std::find(seen.begin(), seen.end(), lowering->digest) != seen.end()) continue;
    seen.push_back(lowering->digest);
    TuneCandidate c{variant, lowering->code, lowering->params, nullptr, {}, true};
    if (!item.candidates.empty()) c.same_bits = c.code->reduction_order == item.candidates[0].code->reduction_order;
    item.candidates.push_back(std::move(c));
  }
}

void GroupTuner::add_dot_candidates(TuneItem& item, const Group& it) {
  TuneCandidate call{{}, nullptr, {}, it.dot.library, {}, true};
  for (const auto& [node, offset] : library_operands(cx_.ir, it.dot, it.roots[0].node))
    call.operands.emplace_back(owner(node), offset);
  // Generated code has no sums over rows of the result, and no tensor cores for two kinds of 8-bit floats.
  if (it.dot.desc.sum == kernel::OperandSum::c || (is_float8(it.dot.desc.a) && it.dot.desc.a != it.dot.desc.b)) {
    item.candidates = {call};
    return;
  }
  Variant generated{Schedule{}};
  generated.schedule->kind = RowClass::product;
  const Lowering own = result_.memo.dot(cx_, it, generated.schedule);
  item.candidates = {call, {generated, own.code, own.params, nullptr, {}, false}};
}

/// Describes the memory that a node's strides reach.
TuneBuffer GroupTuner::buffer(NodeId node) const {
  const graph::Type& type = cx_.ir[node].type;
  const Strides& strides = grouping_.strides[node];
  int64_t lowest = 0, highest = 0;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    const int64_t reach = (type.shape[axis].bound() - 1) * strides[axis];
    (reach < 0 ? lowest : highest) += reach;
  }
  TuneBuffer b;
  b.dtype = type.dtype;
  b.offset = -lowest * type.dtype.size();
  b.bytes = b.used = (highest - lowest + 1) * type.dtype.size();
  return b;
}

/// Adds the buffers of all candidates, with whether a run writes or updates them.
void GroupTuner::add_buffers(TuneItem& item, const Group& it) {
  std::vector<NodeId> reads = it.reads;
  if (it.kind == Group::Kind::dot)
    for (const NodeId id : it.dot.reads()) reads.push_back(id);
  for (const TuneCandidate& c : item.candidates) {
    for (const NodeId node : c.params) item.buffers.try_emplace(node, buffer(node));
    for (const auto& [node, offset] : c.operands) item.buffers.try_emplace(node, buffer(node));
  }
  for (const Root& root : it.roots)
    if (const auto at = item.buffers.find(owner(root.node)); at != item.buffers.end()) at->second.written = true;
  for (const NodeId node : reads)
    if (const auto at = item.buffers.find(owner(node)); at != item.buffers.end())
      at->second.updated = at->second.written;
}

/// Limits the random contents of gather indices to the axes that they index.
void GroupTuner::limit_indices(TuneItem& item, const Group& it) {
  std::vector<NodeId> pending;
  NodeFlags seen(static_cast<size_t>(cx_.ir.size()));
  for (const Root& root : it.roots) pending.push_back(root.node);
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    if (seen[node] || is_leaf(cx_.ir, node)) continue;
    seen[node] = true;
    const IrNode& n = cx_.ir[node];
    const bool own = std::any_of(it.roots.begin(), it.roots.end(), [&](const Root& r) { return r.node == node; });
    if (cx_.grouping.is_root[node] && !own) continue;
    if (n.op == Op::gather)
      for (size_t k = 0; k < n.attrs->axes.size(); ++k)
        limit(item, n.inputs[k + 1], cx_.ir[n.inputs[0]].type.shape[static_cast<size_t>(n.attrs->axes[k])].bound());
    pending.insert(pending.end(), n.inputs.begin(), n.inputs.end());
  }
}

/// Limits the integers in the buffers that `node` is computed from to [0, range).
void GroupTuner::limit(TuneItem& item, NodeId node, int64_t range) {
  if (const auto at = item.buffers.find(owner(node)); at != item.buffers.end()) {
    int64_t& known = at->second.range;
    known = known == 0 ? range : std::min(known, range);
    return;
  }
  for (const NodeId input : cx_.ir[node].inputs) limit(item, input, range);
}

/// Measures only the first elements of a long map, which are representative.
void GroupTuner::shorten(TuneItem& item, const Group& it) {
  int64_t length = 1;
  for (const DomainVariable& v : it.domain) length *= v.extent.bound();
  const auto flat = [](const TuneCandidate& c) { return c.code && c.code->block > 0; };
  const bool forward =
      std::all_of(item.buffers.begin(), item.buffers.end(), [](const auto& b) { return b.second.offset == 0; });
  if (!flat(item.candidates[0]) || !forward || length <= most_length) return;
  std::erase_if(item.candidates, [&](const TuneCandidate& c) { return !flat(c); });
  item.length = most_length;
  const double part = static_cast<double>(most_length) / static_cast<double>(length);
  item.seconds *= part;
  for (auto& [node, b] : item.buffers) {
    const int64_t elements = b.bytes / b.dtype.size();
    if (elements == length) b.used = most_length * b.dtype.size();
  }
}

TuneItem GroupTuner::item(const Family& family) {
  const Group& it = group(family.largest);
  TuneItem item;
  item.key = key(family);
  if (it.kind == Group::Kind::rows) add_row_candidates(item, it);
  else add_dot_candidates(item, it);
  item.name = it.kind == Group::Kind::rows ? item.candidates[0].code->kernel.name : it.dot.to_string();
  add_buffers(item, it);
  limit_indices(item, it);
  item.seconds = family.seconds;
  shorten(item, it);
  return item;
}

/// Returns whether the family's groups can have a variant, which may come from a file that somebody edited.
bool GroupTuner::fits(const Family& family, const Variant& variant) {
  const Group& it = group(family.largest);
  if (it.kind == Group::Kind::rows) return result_.memo.rows(cx_, it, variant.schedule).has_value();
  if (!variant.schedule) return true;
  Schedule complete = *variant.schedule;
  return complete.kind == RowClass::product && set_extents(complete, it) &&
         why_illegal(complete, it, cx_.target.machine()).empty();
}

/// Looks up the choice of each family, and measures those without one if the policy allows it.
TunedGroups GroupTuner::run(const std::vector<GroupId>& order) {
  result_.variants.assign(grouping_.groups.size(), {});
  const bool replays = policy_.choices && !policy_.choices->empty();
  for (const GroupSteps& scheduled : scheduled_groups(cx_.ir, grouping_)) {
    result_.variants[scheduled.group] =
        variant_by_steps(cx_, group(scheduled.group), scheduled.steps, policy_.numerics);
    result_.text += fmt::format("group {}: by steps {}\n", scheduled.group, to_string(scheduled.steps));
  }
  if (policy_.tuning == Tuning::off && !replays) return std::move(result_);
  find_families(order);
  std::vector<TuneItem> items;
  std::vector<const Family*> measured;
  const bool measures = policy_.tuning == Tuning::on || policy_.tuning == Tuning::force;
  for (const Family& family : families_) {
    if (const std::optional<Variant> known = recorded_choice(key(family), policy_); known && fits(family, *known)) {
      choose(family, *known);
      result_.text += work_of(view(), group(family.largest)).what + ": recorded -> " + to_string(*known) + "\n";
    } else if (measures) {
      TuneItem candidate = item(family);
      if (candidate.candidates.size() < 2) continue;
      items.push_back(std::move(candidate));
      measured.push_back(&family);
    }
  }
  if (items.empty()) return std::move(result_);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<TuneResult> results = measure(items, cx_.target);
  result_.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (size_t k = 0; k < results.size(); ++k) {
    choose(*measured[k], results[k].variant);
    result_.text += results[k].note + "\n";
  }
  return std::move(result_);
}

std::vector<TuneItem> GroupTuner::search(const std::vector<GroupId>& order, size_t most) {
  most_ = most;
  find_families(order);
  std::vector<TuneItem> items;
  for (const Family& family : families_)
    if (group(family.largest).kind == Group::Kind::rows) items.push_back(item(family));
  return items;
}

}  // namespace

std::vector<TuneItem> search_items(const LowerContext& cx, const Grouping& grouping, const std::vector<GroupId>& order,
                                   const Policy& policy, size_t most) {
  return GroupTuner(cx, grouping, policy).search(order, most);
}

TunedGroups tune_groups(const LowerContext& cx, const Grouping& grouping, const std::vector<GroupId>& order,
                        const Policy& policy) {
  TunedGroups tuned = GroupTuner(cx, grouping, policy).run(order);
  tuned.kernels.assign(grouping.groups.size(), nullptr);
  for (const GroupId g : order) {
    const std::shared_ptr<const graph::KernelProgram>& kernel = grouping.groups[g].call.kernel;
    if (!kernel || !kernel->tuning) continue;
    ChosenKernel chosen = choose_configuration(*kernel, cx.target, policy);
    tuned.variants[g].config = std::move(chosen.word);
    tuned.kernels[g] = std::move(chosen.program);
    tuned.text += chosen.note + "\n";
    tuned.ms += chosen.ms;
  }
  return tuned;
}

std::string print(const TunedGroups& tuned) {
  std::string text;
  int chosen = 0;
  for (GroupId g = 0; g < tuned.variants.count(); ++g)
    if (const Variant& variant = tuned.variants[g]; !variant.by_rules()) {
      text += fmt::format("group {} {}\n", g, to_string(variant));
      ++chosen;
    }
  return text + tuned.text + fmt::format("{} of {} groups by choice\n", chosen, tuned.variants.size());
}

void verify(const Grouping& grouping, const TunedGroups& tuned) {
  const auto require = [](bool ok, const char* rule, GroupId g) {
    if (!ok) throw_internal("verify", fmt::format("{}: group {}", rule, g));
  };
  require(tuned.variants.size() == grouping.groups.size(), "each group has a variant",
          static_cast<GroupId>(grouping.groups.count()));
  for (GroupId g = 0; g < grouping.groups.count(); ++g) {
    const Group::Kind kind = grouping.groups[g].kind;
    const Variant& variant = tuned.variants[g];
    require(variant.config.empty() == !tuned.kernels[g], "a kernel is there for each configuration", g);
    require(variant.config.empty() || kind == Group::Kind::call, "only a user's kernel has configurations", g);
    const auto of = [&](RowClass form) { return variant.schedule && variant.schedule->kind == form; };
    require(!of(RowClass::product) || kind == Group::Kind::dot, "only a matmul has code in place of a library's", g);
    require(!of(RowClass::attention) || kind == Group::Kind::attention, "only attention has blocks of queries", g);
    require(!variant.schedule || of(RowClass::product) || of(RowClass::attention) || kind == Group::Kind::rows,
            "only a group of rows has schedules to choose from", g);
  }
}

}  // namespace weft::compiler
