// Convolutions and their gradients by cuDNN, on channels-last arrays without a change of layout.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "target/cuda/driver/workspace.h"
#include "target/cuda/libraries/cudnn.h"
#include "target/cuda/libraries/cudnn_regions.h"

namespace weft::target::cuda {
namespace {

using cudnn::Graph;
using cudnn::Sizes;
using cudnn::Tensor;

/// What a call computes of a convolution y of x and w: y, or the gradient of x from y's and w, or of w from x and y's.
enum class Role : uint8_t { forward, input, weights };

constexpr std::array<std::pair<std::string_view, Role>, 3> roles{
    {{"convolution", Role::forward}, {"convolution_input", Role::input}, {"convolution_weights", Role::weights}}};

std::optional<Role> role_of(std::string_view call) {
  for (const auto& [name, role] : roles)
    if (name == call) return role;
  return std::nullopt;
}

/// The convolution between x and y that a call describes.
struct ConvolutionProblem {
  Dtype dtype;
  int64_t batch, in, out, groups;  // channels
  Sizes x, y, kernel;              // extents along the axes of space
  cudnn::ConvolutionShape shape;
};

/// Returns part `k` of the call's integers (graph/regions/convolution.h): groups, then stride, low, high, dilation and
/// input dilation, one value an axis.
Sizes part_of(const kernel::CallDesc& desc, size_t k) {
  const size_t space = (desc.integers.size() - 1) / 5;
  const auto begin = desc.integers.begin() + static_cast<std::ptrdiff_t>(1 + k * space);
  return Sizes(begin, begin + static_cast<std::ptrdiff_t>(space));
}

bool all_one(const Sizes& v) {
  return std::all_of(v.begin(), v.end(), [](int64_t e) { return e == 1; });
}
bool none_negative(const Sizes& v) {
  return std::all_of(v.begin(), v.end(), [](int64_t e) { return e >= 0; });
}
Sizes between(const std::vector<int64_t>& v) { return Sizes(v.begin() + 1, v.end() - 1); }

/// Adds a leading axis of one element: cuDNN has no convolution over one axis of space.
void widen(ConvolutionProblem& p) {
  if (p.x.size() != 1) return;
  for (Sizes* v : {&p.x, &p.y, &p.kernel, &p.shape.stride, &p.shape.dilation}) v->insert(v->begin(), 1);
  for (Sizes* v : {&p.shape.low, &p.shape.high}) v->insert(v->begin(), 0);
}

std::optional<ConvolutionProblem> problem_of(const kernel::CallDesc& desc, Role role, std::string& why) {
  const Dtype t = desc.inputs[0].dtype;
  why = "only float32, bf16 and f16";
  if (!(t == float32 || t == bfloat16 || t == float16) || desc.inputs[1].dtype != t || desc.outputs[0].dtype != t)
    return std::nullopt;
  const auto &first = desc.inputs[0].extents, &second = desc.inputs[1].extents, &result = desc.outputs[0].extents;
  const auto &x = role == Role::input ? result : first, &w = role == Role::weights ? result : second,
             &y = role == Role::forward ? result
                  : role == Role::input ? first
                                        : second;
  ConvolutionProblem p{t,
                       x[0],
                       x.back(),
                       y.back(),
                       desc.integers[0],
                       between(x),
                       between(y),
                       between(w),
                       {part_of(desc, 0), part_of(desc, 3), part_of(desc, 1), part_of(desc, 2)}};
  why = "one to three axes of space, none empty";
  if (p.x.empty() || p.x.size() > 3) return std::nullopt;
  for (const auto* extents : {&first, &second, &result})
    if (std::any_of(extents->begin(), extents->end(), [](int64_t e) { return e < 1; })) return std::nullopt;
  why = "negative padding";
  if (!none_negative(p.shape.low) || !none_negative(p.shape.high)) return std::nullopt;
  why = "a dilated input";  // the input's gradient is one without
  if (!all_one(part_of(desc, 4))) return std::nullopt;
  widen(p);
  return p;
}

/// Returns an array [batch, space…, channels] as cuDNN's (batch, channels, space…).
Tensor data(Graph& g, cudnn::DataType type, int64_t batch, int64_t channels, const Sizes& space) {
  Sizes extents{batch, channels}, strides(space.size() + 2);
  extents.insert(extents.end(), space.begin(), space.end());
  int64_t stride = channels;
  for (size_t k = space.size(); k-- > 0; stride *= space[k]) strides[k + 2] = stride;
  strides[0] = stride, strides[1] = 1;
  return g.tensor(type, extents, strides);
}

/// Returns weights stored as [out, kernel…, in / groups] as cuDNN's (out, in / groups, kernel…).
Tensor weight(Graph& g, cudnn::DataType type, const ConvolutionProblem& p) {
  const int64_t in = p.in / p.groups;
  Sizes extents{p.out, in}, strides(p.kernel.size() + 2);
  extents.insert(extents.end(), p.kernel.begin(), p.kernel.end());
  int64_t stride = in;
  for (size_t k = p.kernel.size(); k-- > 0; stride *= p.kernel[k]) strides[k + 2] = stride;
  strides[0] = stride, strides[1] = 1;
  return g.tensor(type, extents, strides);
}

ConvolutionGraph graph_of(const ConvolutionProblem& p, Role role) {
  const cudnn::DataType type = p.dtype == float32    ? cudnn::type_float
                               : p.dtype == bfloat16 ? cudnn::type_bfloat16
                                                     : cudnn::type_half;
  ConvolutionGraph out;
  const Tensor x = data(out.graph, type, p.batch, p.in, p.x), y = data(out.graph, type, p.batch, p.out, p.y),
               w = weight(out.graph, type, p);
  switch (role) {
    case Role::forward:
      out.graph.convolution(cudnn::operation_convolution_forward, p.shape, x, w, y);
      out.operands = {x.uid, w.uid, y.uid};
      break;
    case Role::input:
      out.graph.convolution(cudnn::operation_convolution_backward_data, p.shape, x, w, y);
      out.operands = {y.uid, w.uid, x.uid};
      break;
    case Role::weights:
      out.graph.convolution(cudnn::operation_convolution_backward_filter, p.shape, x, w, y);
      out.operands = {x.uid, y.uid, w.uid};
      break;
  }
  return out;
}

class ConvolutionCall final : public LibraryCall {
 public:
  ConvolutionCall(const kernel::CallDesc& desc, ConvolutionGraph built, Context& context, const CudnnOptions& options)
      : what_(desc.to_string()), operands_(std::move(built.operands)) {
    cudnn::PlanOptions plan_options;
    if (options.search) plan_options.search = cudnn::PlanOptions::Search::engines;
    plan_options.most_workspace = size_t{1} << 30;
    plan_options.without = {cudnn::note_reduced_precision_reduction};
    if (options.deterministic) plan_options.without.push_back(cudnn::note_nondeterministic);
    if (desc.inputs[0].dtype == float32 && !options.tf32)
      plan_options.without.insert(plan_options.without.end(),
                                  {cudnn::note_tensor_core, cudnn::note_down_convert_inputs});
    plan_ = built.graph.plan(context, plan_options, what_, desc.digest());
    workspace_ = shared_workspace(context, std::max<size_t>(plan_->workspace_bytes(), 256));
  }

  std::string name() const override { return "cudnn " + what_.substr(0, what_.find('(')) + " " + plan_->name(); }

  void run(std::span<void* const> operands) const override {
    weft::check(operands.size() == operands_.size(), "cudnn", "number of operands");
    std::vector<cudnn::Plan::Operand> all;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (reinterpret_cast<uintptr_t>(operands[i]) % 16 != 0)
        throw_failure(
            "convolution",
            fmt::format("operand {} of {} does not lie at a multiple of 16 bytes, which cuDNN needs", i, what_));
      all.push_back({operands_[i], operands[i]});
    }
    plan_->run(all, reinterpret_cast<void*>(workspace_->address()));
  }

 private:
  std::string what_;
  std::vector<int64_t> operands_;
  std::unique_ptr<cudnn::Plan> plan_;
  std::shared_ptr<const Workspace> workspace_;
};

}  // namespace

std::optional<ConvolutionGraph> convolution_graph(const kernel::CallDesc& desc, std::string& why) {
  const std::optional<Role> role = role_of(desc.name);
  why = "no convolution";
  if (!role) return std::nullopt;
  const std::optional<ConvolutionProblem> problem = problem_of(desc, *role, why);
  if (!problem) return std::nullopt;
  return graph_of(*problem, *role);
}

std::shared_ptr<const LibraryCall> cudnn_convolution(const kernel::CallDesc& desc, Context& context,
                                                     const CudnnOptions& options, std::string* why) {
  std::string reason;
  try {
    if (!cudnn::api()) throw cudnn::Declined{"there is no cuDNN 9"};
    if (auto graph = convolution_graph(desc, reason))
      return std::make_shared<ConvolutionCall>(desc, std::move(*graph), context, options);
  } catch (const cudnn::Declined& declined) {
    reason = declined.what;
  } catch (const std::runtime_error& failure) {  // no memory for the workspace
    reason = failure.what();
  }
  if (why) *why = reason;
  return nullptr;
}

}  // namespace weft::target::cuda
