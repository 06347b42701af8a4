#include "target/cuda/libraries/cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/error.h"
#include "runtime/trace.h"
#include "target/cuda/driver/candidates.h"
#include "target/cuda/driver/library.h"

namespace weft::target::cuda::cudnn {
namespace {

std::string words(int status) {
  char more[512] = "";
  api()->last_error(more, sizeof more);
  const char* text = api()->error_string(status);
  return fmt::format("{} (status {}){}{}", text ? text : "unknown status", status, more[0] ? ": " : "", more);
}

void must(int status, const char* what) {
  if (status != 0) throw Declined{fmt::format("{}: {}", what, words(status))};
}

/// The properties of an engine that are known before a plan is made.
struct Notes {
  int64_t engine = -1;
  std::vector<int> numerical, behavior;
  bool any_of(const std::vector<NumericalNote>& notes) const {
    return std::any_of(notes.begin(), notes.end(),
                       [this](NumericalNote n) { return std::count(numerical.begin(), numerical.end(), n) > 0; });
  }
  bool compiles() const { return std::count(behavior.begin(), behavior.end(), note_runtime_compilation) > 0; }
};

Notes notes_of(Backend config) {
  Descriptor engine(engine_descriptor);
  Backend raw = engine.get();
  int64_t count = 0;
  must(api()->get_attribute(config, enginecfg_engine, of_backend_descriptor, 1, &count, &raw),
       "the engine of a configuration");
  const auto list = [&](Attribute name, AttributeType type, int64_t most) {
    std::vector<int> found(static_cast<size_t>(most));
    must(api()->get_attribute(raw, name, type, most, &count, found.data()), "an engine's properties");
    found.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, most)));
    return found;
  };
  int64_t index = -1;
  must(api()->get_attribute(raw, engine_global_index, of_int64, 1, &count, &index), "an engine's number");
  return {index, list(engine_numerical_note, of_numerical_note, note_count),
          list(engine_behavior_note, of_behavior_note, behavior_count)};
}

/// Returns engine configurations in the order of a heuristic.
std::vector<std::unique_ptr<Descriptor>> configurations(const Descriptor& graph, HeurMode mode) {
  Descriptor heuristic(engineheur_descriptor);
  heuristic.set(engineheur_operation_graph, graph);
  heuristic.set(engineheur_mode, of_heur_mode, static_cast<int>(mode));
  heuristic.finalize("a heuristic");
  int64_t count = 0;
  must(api()->get_attribute(heuristic.get(), engineheur_results, of_backend_descriptor, 0, &count, nullptr),
       "the number of engines");
  std::vector<std::unique_ptr<Descriptor>> out;
  std::vector<Backend> raw;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(std::make_unique<Descriptor>(enginecfg_descriptor));
    raw.push_back(out.back()->get());
  }
  if (count > 0)
    must(api()->get_attribute(heuristic.get(), engineheur_results, of_backend_descriptor, count, &count, raw.data()),
         "the list of engines");
  out.resize(static_cast<size_t>(std::min<int64_t>(count, static_cast<int64_t>(out.size()))));
  return out;
}

}  // namespace

const Api* api() {
  static const Api* instance = [] {
    const Api* functions = bind_all<Api>(cudnn_library());
    return functions && functions->version() >= 90000 ? functions : nullptr;
  }();
  return instance;
}

SharedHandle& handle(Context& context) {
  if (!api()) throw Declined{"there is no cuDNN 9"};
  constexpr size_t count = 4;  // plans that can be made at the same time
  struct Handles {
    std::array<SharedHandle, count> all;
    size_t next = 0;
  };
  static std::mutex mutex;
  static auto* contexts = new std::map<int, Handles>;  // never destroyed: the driver may have ended by then
  SharedHandle* shared = nullptr;
  {
    std::lock_guard lock(mutex);
    Handles& handles = (*contexts)[context.ordinal()];
    shared = &handles.all[handles.next++ % count];
  }
  std::lock_guard lock(shared->mutex);
  if (!shared->handle) {
    const runtime::Span span("compiler", "cuDNN starts");
    context.make_current();
    Handle made = nullptr;
    if (const int status = api()->create(&made); status == 0 && api()->set_stream(made, context.stream()) == 0)
      shared->handle = made;
  }
  if (!shared->handle) throw Declined{"cuDNN does not start"};
  return *shared;
}

// --- descriptors ---

Descriptor::Descriptor(DescriptorType type) {
  if (const int status = api()->create_descriptor(type, &backend_); status != 0)
    throw Declined{fmt::format("a descriptor of type {}: {}", static_cast<int>(type), words(status))};
}

Descriptor::~Descriptor() {
  if (backend_) api()->destroy_descriptor(backend_);
}

void Descriptor::set_all(Attribute name, AttributeType type, int64_t count, const void* values) {
  if (const int status = api()->set_attribute(backend_, name, type, count, values); status != 0)
    throw Declined{fmt::format("attribute {}: {}", static_cast<int>(name), words(status))};
}

void Descriptor::finalize(const char* what) { must(api()->finalize(backend_), what); }

// --- graphs ---

Tensor Graph::make(DataType type, const Sizes& extents, const Sizes& strides, bool is_virtual, bool by_value) {
  Tensor t{next_uid_++, std::make_shared<Descriptor>(tensor_descriptor)};
  Descriptor& d = *t.descriptor;
  d.set(tensor_data_type, of_data_type, static_cast<int>(type));
  d.set(tensor_dimensions, extents);
  d.set(tensor_strides, strides);
  d.set(tensor_unique_id, of_int64, t.uid);
  d.set(tensor_byte_alignment, of_int64, int64_t{16});
  if (is_virtual) d.set(tensor_is_virtual, of_boolean, true);
  if (by_value) d.set(tensor_is_by_value, of_boolean, true);
  d.finalize("a tensor");
  kept_.push_back(t.descriptor);
  return t;
}

Tensor Graph::scalar(float value) {
  const Tensor t = make(type_float, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
  scalars_.push_back({t.uid, value, 0, true});
  return t;
}

Tensor Graph::scalar(int32_t value) {
  const Tensor t = make(type_int32, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
  scalars_.push_back({t.uid, 0, value, false});
  return t;
}

void Graph::add(DescriptorType type, const std::vector<std::pair<Attribute, const Descriptor*>>& parts,
                std::shared_ptr<Descriptor> description) {
  auto operation = std::make_shared<Descriptor>(type);
  for (const auto& [name, part] : parts) operation->set(name, *part);
  // Scaling operations carry their factors; cuDNN reads none for the others.
  const auto factor = [&](Attribute name, float value) { operation->set(name, of_float, value); };
  if (type == operation_pointwise) factor(pointwise_alpha1, 1), factor(pointwise_alpha2, 1);
  if (type == operation_convolution_forward) factor(convolution_forward_alpha, 1), factor(convolution_forward_beta, 0);
  if (type == operation_convolution_backward_data)
    factor(convolution_bwd_data_alpha, 1), factor(convolution_bwd_data_beta, 0);
  if (type == operation_convolution_backward_filter)
    factor(convolution_bwd_filter_alpha, 1), factor(convolution_bwd_filter_beta, 0);
  operation->finalize("an operation");
  if (description) kept_.push_back(std::move(description));
  operations_.push_back(std::move(operation));
}

void Graph::matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
  auto d = std::make_shared<Descriptor>(matmul_descriptor);
  d->set(matmul_comp_type, of_data_type, static_cast<int>(type_float));
  d->finalize("a matmul");
  add(operation_matmul,
      {{matmul_adesc, a.descriptor.get()},
       {matmul_bdesc, b.descriptor.get()},
       {matmul_cdesc, c.descriptor.get()},
       {matmul_desc, d.get()}},
      d);
}

void Graph::pointwise(PointwiseMode mode, const Tensor& y, const Tensor& x, const Tensor* b, const Tensor* t,
                      DataType compute, int64_t axis) {
  auto d = std::make_shared<Descriptor>(pointwise_descriptor);
  d->set(pointwise_mode, of_pointwise_mode, static_cast<int>(mode));
  d->set(pointwise_math_prec, of_data_type, static_cast<int>(compute));
  if (axis >= 0) d->set(pointwise_axis, of_int64, axis);
  d->finalize("a pointwise operation");
  std::vector<std::pair<Attribute, const Descriptor*>> parts = {
      {pointwise_pw_descriptor, d.get()}, {pointwise_xdesc, x.descriptor.get()}, {pointwise_ydesc, y.descriptor.get()}};
  if (b) parts.push_back({pointwise_bdesc, b->descriptor.get()});
  if (t) parts.push_back({pointwise_tdesc, t->descriptor.get()});
  add(operation_pointwise, parts, d);
}

void Graph::reduce(Reduction how, const Tensor& x, const Tensor& y) {
  auto d = std::make_shared<Descriptor>(reduction_descriptor);
  d->set(reduction_comp_type, of_data_type, static_cast<int>(type_float));
  d->set(reduction_operator, of_reduction_operator, static_cast<int>(how));
  d->finalize("a reduction");
  add(operation_reduction,
      {{reduction_desc, d.get()}, {reduction_xdesc, x.descriptor.get()}, {reduction_ydesc, y.descriptor.get()}}, d);
}

void Graph::reshape(const Tensor& x, const Tensor& y) {
  add(operation_reshape, {{reshape_xdesc, x.descriptor.get()}, {reshape_ydesc, y.descriptor.get()}}, nullptr);
}

void Graph::convolution(DescriptorType which, const ConvolutionShape& shape, const Tensor& x, const Tensor& w,
                        const Tensor& y) {
  auto d = std::make_shared<Descriptor>(convolution_descriptor);
  d->set(convolution_comp_type, of_data_type, static_cast<int>(type_float));
  d->set(convolution_conv_mode, of_convolution_mode, static_cast<int>(shape.mode));
  d->set(convolution_spatial_dims, of_int64, static_cast<int64_t>(shape.stride.size()));
  d->set(convolution_pre_paddings, shape.low);
  d->set(convolution_post_paddings, shape.high);
  d->set(convolution_dilations, shape.dilation);
  d->set(convolution_filter_strides, shape.stride);
  d->finalize("a convolution");
  const Descriptor *dx = x.descriptor.get(), *dw = w.descriptor.get(), *dy = y.descriptor.get();
  if (which == operation_convolution_forward)
    add(which,
        {{convolution_forward_x, dx},
         {convolution_forward_w, dw},
         {convolution_forward_y, dy},
         {convolution_forward_conv_desc, d.get()}},
        d);
  else if (which == operation_convolution_backward_data)
    add(which,
        {{convolution_bwd_data_dx, dx},
         {convolution_bwd_data_w, dw},
         {convolution_bwd_data_dy, dy},
         {convolution_bwd_data_conv_desc, d.get()}},
        d);
  else
    add(which,
        {{convolution_bwd_filter_x, dx},
         {convolution_bwd_filter_dw, dw},
         {convolution_bwd_filter_dy, dy},
         {convolution_bwd_filter_conv_desc, d.get()}},
        d);
}

std::vector<Backend> Graph::operations() const {
  std::vector<Backend> all;
  for (const auto& operation : operations_) all.push_back(operation->get());
  return all;
}

// --- plans ---

struct Candidate {
  std::unique_ptr<Descriptor> config, plan;
  int64_t workspace = 0;
  size_t rank = 0;  // position in the heuristic's list
};

int64_t workspace_of(const Descriptor& plan) {
  int64_t bytes = 0, count = 0;
  must(api()->get_attribute(plan.get(), execution_plan_workspace_size, of_int64, 1, &count, &bytes),
       "a plan's workspace");
  return bytes;
}

/// The head of a plan's record in the cache folder: the engine's position in the heuristic's list and the length of
/// that list. cuDNN's own text of the plan follows, with the compiled code (which took a second to make).
struct Kept {
  uint64_t rank, listed;
};

/// Returns the record of a plan; empty if cuDNN has no text of it.
Choice::Record record_of(const Candidate& candidate, size_t listed) {
  int64_t count = 0;
  if (api()->get_attribute(candidate.plan->get(), execution_plan_json_representation, of_char, 0, &count, nullptr) !=
          0 ||
      count <= 0)
    return {};
  Choice::Record bytes(sizeof(Kept) + static_cast<size_t>(count));
  const Kept head{candidate.rank, listed};
  std::memcpy(bytes.data(), &head, sizeof head);
  if (api()->get_attribute(candidate.plan->get(), execution_plan_json_representation, of_char, count, &count,
                           bytes.data() + sizeof head) != 0)
    return {};
  return bytes;
}

struct Plan::State {
  Context& context;
  std::string what;
  Choice choice;
  EventTimer timer;
  SharedHandle& handle;
  std::vector<std::shared_ptr<Descriptor>> kept;
  std::unique_ptr<Descriptor> graph;
  std::vector<Graph::Scalar> scalars;
  std::vector<Candidate> candidates;
  size_t listed = 0;
  mutable std::mutex mutex;

  int execute(const Candidate& candidate, std::span<const Operand> operands, void* workspace);
  Candidate planned(std::unique_ptr<Descriptor> config, size_t rank, const PlanOptions& options) const;
  void collect(const PlanOptions& options, std::string& why);
  bool read_kept();
};

Plan::Plan() = default;
Plan::~Plan() = default;

int Plan::State::execute(const Candidate& candidate, std::span<const Operand> operands, void* workspace) {
  std::vector<int64_t> uids;
  std::vector<void*> addresses;
  for (const Operand& operand : operands) uids.push_back(operand.uid), addresses.push_back(operand.address);
  for (Graph::Scalar& s : scalars)
    uids.push_back(s.uid),
        addresses.push_back(s.is_real ? static_cast<void*>(&s.real) : static_cast<void*>(&s.integer));
  Descriptor pack(variant_pack_descriptor);
  pack.set(variant_pack_unique_ids, uids);
  pack.set_all(variant_pack_data_pointers, of_void_ptr, static_cast<int64_t>(addresses.size()), addresses.data());
  pack.set(variant_pack_workspace, of_void_ptr, workspace);
  pack.finalize("the addresses of a run");
  std::lock_guard lock(handle.mutex);
  return api()->execute(handle.handle, candidate.plan->get(), pack.get());
}

void Plan::run(std::span<const Operand> operands, void* workspace) {
  State& s = *state_;
  std::lock_guard lock(s.mutex);
  s.context.make_current();
  try {
    const size_t chosen = s.choice.choose(
        s.timer, s.candidates.size(), [&](size_t i) { return s.execute(s.candidates[i], operands, workspace) == 0; },
        [&](size_t i) { return record_of(s.candidates[i], s.listed); });
    const int status = s.execute(s.candidates[chosen], operands, workspace);
    if (status != 0) throw_failure("cuda", fmt::format("cudnnBackendExecute failed on {}: {}", s.what, words(status)));
  } catch (const Declined& declined) {
    throw_failure("cuda", fmt::format("cuDNN failed on {}: {}", s.what, declined.what));
  }
}

size_t Plan::workspace_bytes() const {
  int64_t most = 0;
  for (const Candidate& candidate : state_->candidates) most = std::max(most, candidate.workspace);
  return static_cast<size_t>(most);
}

std::string Plan::name() const {
  std::lock_guard lock(state_->mutex);
  return fmt::format("engine {} of {}", state_->candidates[state_->choice.index()].rank + 1, state_->listed);
}

/// Returns a plan. Throws Declined if cuDNN refuses it, or it needs too much memory.
Candidate Plan::State::planned(std::unique_ptr<Descriptor> config, size_t rank, const PlanOptions& options) const {
  Candidate c{std::move(config), std::make_unique<Descriptor>(execution_plan_descriptor), 0, rank};
  c.plan->set(execution_plan_handle, of_handle, handle.handle);
  c.plan->set(execution_plan_engine_config, *c.config);
  c.plan->finalize("a plan");
  c.workspace = workspace_of(*c.plan);
  if (static_cast<size_t>(c.workspace) > options.most_workspace)
    throw Declined{fmt::format("a plan wants {} bytes of workspace", c.workspace)};
  return c;
}

/// Makes the plans to be measured, or that of the first engine that works. `why` gets the last failure.
void Plan::State::collect(const PlanOptions& options, std::string& why) {
  struct Found {
    std::unique_ptr<Descriptor> config;
    size_t rank;
    int64_t engine;
  };
  const bool engines = options.search == PlanOptions::Search::engines,
             forms = options.search == PlanOptions::Search::forms;
  listed = 0;
  for (const HeurMode mode : {heur_a, heur_fallback}) {
    const auto unless_declined = [&why](auto&& attempt) {
      try {
        attempt();
      } catch (const Declined& declined) {
        why = declined.what;
      }
    };
    std::vector<std::unique_ptr<Descriptor>> configs;
    unless_declined([&] { configs = configurations(*graph, mode); });
    std::vector<Found> found;
    for (auto& config : configs) {
      const size_t rank = listed++;
      unless_declined([&] {
        const Notes notes = notes_of(config->get());
        if (!notes.any_of(options.without) && !(engines && notes.compiles()))
          found.push_back({std::move(config), rank, notes.engine});
      });
    }
    for (size_t k = 0; k < found.size() && candidates.size() < (engines ? 6 : 1); ++k) {
      if (!found[k].config) continue;
      const auto other = std::find_if(found.begin() + static_cast<std::ptrdiff_t>(k) + 1, found.end(),
                                      [&](const Found& f) { return forms && f.engine == found[k].engine; });
      unless_declined([&] { candidates.push_back(planned(std::move(found[k].config), found[k].rank, options)); });
      if (other != found.end())
        unless_declined([&] { candidates.push_back(planned(std::move(other->config), other->rank, options)); });
    }
    if (!candidates.empty()) return;
  }
}

/// Reads the plan that an earlier process recorded, with its compiled code. Returns false without a record, or if cuDNN
/// no longer accepts it.
bool Plan::State::read_kept() {
  const std::optional<Choice::Record> bytes = choice.recorded();
  Kept head{};
  if (!bytes || bytes->size() <= sizeof head) return false;
  std::memcpy(&head, bytes->data(), sizeof head);
  try {
    Candidate c{nullptr, std::make_unique<Descriptor>(execution_plan_descriptor), 0, static_cast<size_t>(head.rank)};
    c.plan->set_all(execution_plan_json_representation, of_char, static_cast<int64_t>(bytes->size() - sizeof head),
                    bytes->data() + sizeof head);
    c.plan->set(execution_plan_handle, of_handle, handle.handle);
    c.plan->finalize("a plan from the cache folder");
    c.workspace = workspace_of(*c.plan);
    candidates.push_back(std::move(c));
  } catch (const Declined&) {
    return false;
  }
  choice.settle(0);
  listed = static_cast<size_t>(head.listed);
  return true;
}

std::unique_ptr<Plan> Graph::plan(Context& context, const PlanOptions& options, const std::string& what,
                                  const Digest& key) {
  const runtime::Span span("compiler", "cuDNN plan");
  SharedHandle& library = handle(context);
  std::lock_guard lock(library.mutex);
  context.make_current();
  Hasher hasher;
  constexpr int numbering =
      1;  // a recorded plan knows tensors by index: increase this when graphs are built in another order
  hasher.number(numbering)
      .digest(device_digest(context))
      .number(api()->version())
      .digest(key)
      .number(options.most_workspace)
      .number(static_cast<int>(options.search))
      .number(context.ordinal());
  for (NumericalNote note : options.without) hasher.number(static_cast<int>(note));
  std::unique_ptr<Plan> plan(new Plan);
  plan->state_.reset(new Plan::State{
      context, what, Choice("cudnn", hasher.finish()), {context, what}, library, {}, nullptr, scalars_, {}, 0, {}});
  Plan::State& s = *plan->state_;
  s.kept = kept_;
  s.kept.insert(s.kept.end(), operations_.begin(), operations_.end());
  s.graph = std::make_unique<Descriptor>(operationgraph_descriptor);
  const std::vector<Backend> raw = operations();
  s.graph->set_all(operationgraph_ops, of_backend_descriptor, static_cast<int64_t>(raw.size()), raw.data());
  s.graph->set(operationgraph_handle, of_handle, library.handle);
  s.graph->finalize("a graph of operations");

  if (s.read_kept()) return plan;
  std::string why = "no engine takes it";
  s.collect(options, why);
  if (s.candidates.empty() &&
      options.search == PlanOptions::Search::engines) {  // only engines that compile at run time
    PlanOptions any = options;
    any.search = PlanOptions::Search::none;
    s.collect(any, why);
  }
  if (s.candidates.empty()) throw Declined{why};
  if (s.candidates.size() == 1) {
    s.choice.settle(0);
    s.choice.record(record_of(s.candidates[0], s.listed));
  }
  return plan;
}

}  // namespace weft::target::cuda::cudnn
