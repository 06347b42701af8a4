// Attention as a graph of cuDNN operations: two matmuls around a softmax, and five matmuls for the derivative. Engines
// match a fixed pattern, so the order of operations and the dtypes of intermediate tensors must not change. Scores have
// no memory.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "runtime/background.h"
#include "target/cuda/driver/workspace.h"
#include "target/cuda/libraries/cudnn.h"
#include "target/cuda/libraries/cudnn_regions.h"

namespace weft::target::cuda {
namespace {

using cudnn::Graph;
using cudnn::Sizes;
using cudnn::Tensor;
using kernel::AttentionDesc;

Sizes sizes(const AttentionDesc::Strides& s) { return {s.begin(), s.end()}; }
/// Returns the sizes with the last two axes exchanged.
Sizes transposed_sizes(Sizes s) {
  std::swap(s[2], s[3]);
  return s;
}

/// What both graphs share: the sizes, the constants, and the steps from the scores to the argument of exp.
class Builder {
 public:
  Builder(Graph& graph, const AttentionDesc& desc)
      : g(graph), d(desc), io(desc.dtype == bfloat16 ? cudnn::type_bfloat16 : cudnn::type_half) {}

  Tensor scores(cudnn::DataType type = cudnn::type_float) {
    return g.between(type, {d.batch, d.heads, d.queries, d.keys},
                     {d.heads * d.queries * d.keys, d.queries * d.keys, d.keys, 1});
  }
  Sizes row_sizes() const { return {d.batch, d.heads, d.queries, 1}; }
  Sizes row_strides() const { return {d.heads * d.queries, d.queries, 1, 1}; }
  Tensor rows() { return g.between(cudnn::type_float, row_sizes(), row_strides()); }
  Tensor rows_in_memory() { return g.tensor(cudnn::type_float, row_sizes(), row_strides()); }

  Tensor queries(const AttentionDesc::Strides& s, int64_t width) {
    return g.tensor(io, {d.batch, d.heads, d.queries, width}, sizes(s));
  }
  Tensor keys(const AttentionDesc::Strides& s, int64_t width) {
    return g.tensor(io, {d.batch, d.kv_heads, d.keys, width}, sizes(s));
  }
  Tensor keys_transposed(const AttentionDesc::Strides& s, int64_t width) {
    return g.tensor(io, {d.batch, d.kv_heads, width, d.keys}, transposed_sizes(sizes(s)));
  }

  Tensor scaled(const Tensor& s) {
    const Tensor out = scores(), factor = g.scalar(static_cast<float>(d.scale));
    g.pointwise(cudnn::pointwise_mul, out, s, &factor);
    return out;
  }

  /// -inf where the key comes after the query: select(row + keys - queries >= column).
  Tensor masked(const Tensor& s) {
    if (!d.causal) return s;
    Tensor row = scores(cudnn::type_int32);
    const Tensor column = scores(cudnn::type_int32), seen = scores(cudnn::type_boolean), out = scores();
    const Tensor hidden = g.scalar(-std::numeric_limits<float>::infinity());
    g.pointwise(cudnn::pointwise_gen_index, row, s, nullptr, nullptr, cudnn::type_float, 2);
    g.pointwise(cudnn::pointwise_gen_index, column, s, nullptr, nullptr, cudnn::type_float, 3);
    if (d.keys != d.queries) {
      const Tensor keys = g.scalar(static_cast<int32_t>(d.keys)), queries = g.scalar(static_cast<int32_t>(d.queries));
      const Tensor more = scores(cudnn::type_int32), moved = scores(cudnn::type_int32);
      g.pointwise(cudnn::pointwise_add, more, row, &keys, nullptr, cudnn::type_int32);
      g.pointwise(cudnn::pointwise_sub, moved, more, &queries, nullptr, cudnn::type_int32);
      row = moved;
    }
    g.pointwise(cudnn::pointwise_cmp_ge, seen, row, &column, nullptr, cudnn::type_boolean);
    g.pointwise(cudnn::pointwise_binary_select, out, s, &hidden, &seen);
    return out;
  }

  Graph& g;
  const AttentionDesc& d;
  cudnn::DataType io;
};

AttentionGraph forward_graph(const AttentionDesc& d) {
  AttentionGraph out;
  Graph& g = out.graph;
  Builder b(g, d);
  const Tensor q = b.queries(d.q, d.width), k = b.keys_transposed(d.k, d.width), v = b.keys(d.v, d.value_width);
  const Tensor o = b.queries(d.o, d.value_width), stats = b.rows_in_memory();
  const Tensor qk = b.scores();
  g.matmul(q, k, qk);
  const Tensor s = b.masked(b.scaled(qk));
  const Tensor most = b.rows(), less = b.scores(), e = b.scores(), total = b.rows(), logarithm = b.rows(),
               p = b.scores(b.io);
  g.reduce(cudnn::reduce_max, s, most);
  g.pointwise(cudnn::pointwise_sub, less, s, &most);
  g.pointwise(cudnn::pointwise_exp, e, less);
  g.reduce(cudnn::reduce_add, e, total);
  g.pointwise(cudnn::pointwise_log, logarithm, total);
  g.pointwise(cudnn::pointwise_add, stats, most, &logarithm);
  g.pointwise(cudnn::pointwise_div, p, e, &total);
  g.matmul(p, v, o);
  for (const Tensor* t : {&q, &k, &v, &o, &stats}) out.operands.push_back(t->uid);
  return out;
}

/// Adds dK or dV: Aᵀ·B over the queries of each head, summed over the heads that share a key head.
void matmul_over_queries(Builder& b, const Tensor& scores, const Tensor& other, const Tensor& result, int64_t width) {
  Graph& g = b.g;
  const AttentionDesc& d = b.d;
  const Tensor transposed_scores = g.between(b.io, {d.batch, d.heads, d.keys, d.queries},
                                             {d.heads * d.queries * d.keys, d.queries * d.keys, 1, d.keys});
  g.reshape(scores, transposed_scores);
  if (d.kv_heads == d.heads) return g.matmul(transposed_scores, other, result);
  const Tensor each =
      g.between(b.io, {d.batch, d.heads, d.keys, width}, {d.heads * d.keys * width, d.keys * width, width, 1});
  g.matmul(transposed_scores, other, each);
  g.reduce(cudnn::reduce_add, each, result);
}

AttentionGraph derivative_graph(const AttentionDesc& d, bool deterministic) {
  AttentionGraph out;
  Graph& g = out.graph;
  Builder b(g, d);
  const Tensor q = b.queries(d.q, d.width), k = b.keys_transposed(d.k, d.width),
               v = b.keys_transposed(d.v, d.value_width);
  const Tensor o = b.queries(d.o, d.value_width), stats = b.rows_in_memory(), cotangent = b.queries(d.g, d.value_width);
  const Tensor dq = b.queries(d.dq, d.width), dk = b.keys(d.dk, d.width), dv = b.keys(d.dv, d.value_width);

  // delta = Σ dO · O of each row, in extra memory.
  const Tensor weighted =
      g.between(cudnn::type_float, {d.batch, d.heads, d.queries, d.value_width},
                {d.heads * d.queries * d.value_width, d.queries * d.value_width, d.heads * d.value_width, 1});
  const Tensor sum = b.rows(), delta = b.rows_in_memory(), one = g.scalar(1.0f);
  g.pointwise(cudnn::pointwise_mul, weighted, cotangent, &o);
  g.reduce(cudnn::reduce_add, weighted, sum);
  g.pointwise(cudnn::pointwise_mul, delta, sum, &one);
  out.extras.push_back({delta.uid, static_cast<size_t>(d.batch * d.heads * d.queries) * sizeof(float)});

  // P = exp(S - L), dV = Pᵀ dO.
  const Tensor qk = b.scores(), less = b.scores(), p = b.scores();
  g.matmul(q, k, qk);
  g.pointwise(cudnn::pointwise_sub, less, b.scaled(qk), &stats);
  g.pointwise(cudnn::pointwise_exp, p, b.masked(less));
  matmul_over_queries(b, p, cotangent, dv, d.value_width);

  // dS = P (dO Vᵀ - delta), dK = scale dSᵀ Q.
  const Tensor dp = b.scores(), centred = b.scores(), unscaled = b.scores();
  g.matmul(cotangent, v, dp);
  g.pointwise(cudnn::pointwise_sub, centred, dp, &delta);
  g.pointwise(cudnn::pointwise_mul, unscaled, centred, &p);
  const Tensor ds = b.scaled(unscaled);
  matmul_over_queries(b, ds, q, dk, d.width);

  // dQ = scale dS K: at once, or through float32 sums to which blocks of keys add in any order.
  const Tensor k_again = g.between(b.io, {d.batch, d.kv_heads, d.keys, d.width}, sizes(d.k));
  g.reshape(k, k_again);
  if (deterministic) {
    g.matmul(ds, k_again, dq);
  } else {
    const Tensor sums = g.tensor(cudnn::type_float, {d.batch, d.heads, d.queries, d.width},
                                 {d.heads * d.queries * d.width, d.queries * d.width, d.width, 1});
    g.matmul(ds, k_again, sums);
    g.pointwise(cudnn::pointwise_identity, dq, sums);
    out.extras.push_back({sums.uid, static_cast<size_t>(d.batch * d.heads * d.queries * d.width) * sizeof(float)});
  }
  for (const Tensor* t : {&q, &k, &v, &o, &stats, &cotangent, &dq, &dk, &dv}) out.operands.push_back(t->uid);
  return out;
}

constexpr size_t alignment = 256;
size_t padded_bytes(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

class AttentionCall final : public CudnnAttention, public std::enable_shared_from_this<AttentionCall> {
 public:
  AttentionCall(const AttentionDesc& desc, Context& context, const CudnnOptions& options)
      : what_(desc.to_string()), desc_(desc), context_(context), options_(options) {
    if (desc.derivative && options.deterministic) slices_ = attention_slices(desc, options.most_probabilities);
    else slices_.each = desc;
  }

  void begin() const override {
    if (begun_.exchange(true)) return;
    runtime::begin_in_background([self = shared_from_this()] { self->ready(); });
  }

  bool ready() const override {
    std::call_once(once_, [this] {
      try {
        make();
        state_.store(State::made, std::memory_order_release);
      } catch (const cudnn::Declined& declined) {
        decline(declined.what);
      } catch (const std::runtime_error& failure) {  // no memory for the workspace
        decline(failure.what());
      }
    });
    return state_.load(std::memory_order_acquire) == State::made;
  }
  bool declined() const override { return state_.load(std::memory_order_acquire) == State::declined; }
  const std::string& why() const override { return why_; }

  std::string name() const override {
    return fmt::format("cudnn {} {}", what_.substr(0, what_.find(' ')), ready() ? plan_->name() : "refused");
  }

  void run(std::span<void* const> operands) const override {
    if (!ready()) throw_failure("attention", fmt::format("cuDNN does not take {}: {}", what_, why_));
    weft::check(operands.size() == operands_.size(), "cudnn", "number of operands");
    for (size_t i = 0; i < operands.size(); ++i)
      if (reinterpret_cast<uintptr_t>(operands[i]) % 16 != 0)
        throw_failure(
            "attention",
            fmt::format("operand {} of {} does not lie at a multiple of 16 bytes, which cuDNN needs", i, what_));
    for (int64_t batch = 0; batch < slices_.batches; ++batch)
      for (int64_t head = 0; head < slices_.heads; ++head)
        run_slice(operands, batch * slices_.each.batch, head * slices_.each.kv_heads);
  }

 private:
  enum class State : uint8_t { begun, made, declined };

  void decline(const std::string& why) const {
    why_ = why;
    state_.store(State::declined, std::memory_order_release);
  }

  void make() const {
    if (!cudnn::api()) throw cudnn::Declined{"there is no cuDNN 9"};
    AttentionGraph built = attention_graph(slices_.each, options_.deterministic);
    cudnn::PlanOptions plan_options;
    if (options_.deterministic) plan_options.without = {cudnn::note_nondeterministic};
    plan_options.most_workspace = size_t{16} << 30;
    if (options_.search && slices_.each.flops() >= options_.least_searched_flops)
      plan_options.search = cudnn::PlanOptions::Search::forms;
    plan_ = built.graph.plan(context_, plan_options, what_,
                             Hasher().digest(slices_.each.digest()).number(options_.deterministic).finish());
    operands_ = std::move(built.operands);
    size_t bytes = padded_bytes(plan_->workspace_bytes());
    for (const AttentionGraph::Extra& extra : built.extras) {
      extras_.push_back({extra.uid, bytes});
      bytes += padded_bytes(extra.bytes);
    }
    workspace_ = shared_workspace(context_, std::max(bytes, alignment));
  }

  void run_slice(std::span<void* const> operands, int64_t batch, int64_t kv_head) const {
    const int64_t head = kv_head * (desc_.heads / desc_.kv_heads);
    const auto by = [&](const AttentionDesc::Strides& s, int64_t h) {
      return (batch * s[0] + h * s[1]) * 2;
    };  // 16 bits each
    const AttentionDesc& d = desc_;
    // In the order of the operands. The logarithms of the sums are contiguous.
    const int64_t offsets[] = {by(d.q, head),
                               by(d.k, kv_head),
                               by(d.v, kv_head),
                               by(d.o, head),
                               (batch * d.heads + head) * d.queries * static_cast<int64_t>(sizeof(float)),
                               by(d.g, head),
                               by(d.dq, head),
                               by(d.dk, kv_head),
                               by(d.dv, kv_head)};
    std::vector<cudnn::Plan::Operand> all;
    for (size_t i = 0; i < operands.size(); ++i)
      all.push_back({operands_[i], static_cast<char*>(operands[i]) + offsets[i]});
    const DevicePtr base = workspace_->address();
    for (const Scratch& scratch : extras_) all.push_back({scratch.uid, reinterpret_cast<void*>(base + scratch.offset)});
    plan_->run(all, reinterpret_cast<void*>(base));
  }

  std::string what_;
  AttentionDesc desc_;
  AttentionSlices slices_;
  Context& context_;
  CudnnOptions options_;
  mutable std::atomic<bool> begun_ = false;
  mutable std::once_flag once_;  // guards the initialization of all that follows
  mutable std::atomic<State> state_ = State::begun;
  mutable std::string why_;
  mutable std::unique_ptr<cudnn::Plan> plan_;
  mutable std::vector<int64_t> operands_;
  struct Scratch {
    int64_t uid;
    size_t offset;  // in the workspace
  };
  mutable std::vector<Scratch> extras_;
  mutable std::shared_ptr<const Workspace> workspace_;
};

/// Returns the largest divisor of `n` that is at most `most`, and at least 1.
int64_t divisor_up_to(int64_t n, int64_t most) {
  int64_t k = std::clamp<int64_t>(most, 1, n);
  while (n % k != 0) --k;
  return k;
}

/// Returns why the rule in cudnn.h refuses the call, or "".
std::string refusal(const AttentionDesc& d, const Context& context) {
  if (d.dtype != bfloat16 && d.dtype != float16) return "only bf16 and f16";
  if (context.info().major < 8) return "only from compute capability 8.0 on";
  for (int64_t n : {d.batch, d.heads, d.kv_heads, d.queries, d.keys, d.width, d.value_width})
    if (n < 1 || n > std::numeric_limits<int32_t>::max()) return "an extent out of range";
  if (d.heads % d.kv_heads != 0) return "key heads that do not divide the heads";
  if (d.width % 8 != 0 || d.value_width % 8 != 0) return "a width that is no multiple of 8";
  if (d.causal && d.keys < d.queries) return "causal with fewer keys than queries";
  std::vector<const AttentionDesc::Strides*> all = {&d.q, &d.k, &d.v, &d.o};
  if (d.derivative) all.insert(all.end(), {&d.g, &d.dq, &d.dk, &d.dv});
  for (const AttentionDesc::Strides* s : all) {
    if ((*s)[3] != 1) return "columns that are not contiguous";
    for (size_t i = 0; i < 3; ++i)
      if ((*s)[i] % 8 != 0 || (*s)[i] < 0) return "a stride that is no multiple of 8";
  }
  return "";
}

}  // namespace

AttentionGraph attention_graph(const AttentionDesc& desc, bool deterministic) {
  return desc.derivative ? derivative_graph(desc, deterministic) : forward_graph(desc);
}

AttentionSlices attention_slices(const AttentionDesc& desc, size_t most_bytes) {
  AttentionSlices out{desc, 1, 1};
  const int64_t group = desc.heads / desc.kv_heads;  // heads that share a key head, whose gradients are summed
  const auto fitting = [&](int64_t heads) {
    return static_cast<int64_t>(static_cast<double>(most_bytes) /
                                (2.0 * static_cast<double>(heads * desc.queries * desc.keys)));
  };
  out.each.batch = divisor_up_to(desc.batch, fitting(desc.heads));
  out.batches = desc.batch / out.each.batch;
  if (out.each.batch > 1) return out;
  out.each.kv_heads = divisor_up_to(desc.kv_heads, fitting(group));
  out.each.heads = out.each.kv_heads * group;
  out.heads = desc.kv_heads / out.each.kv_heads;
  return out;
}

std::shared_ptr<const CudnnAttention> cudnn_attention_call(const AttentionDesc& desc, Context& context,
                                                           const CudnnOptions& options, std::string* why) {
  if (std::string reason = refusal(desc, context); !reason.empty()) {
    if (why) *why = std::move(reason);
    return nullptr;
  }
  return std::make_shared<AttentionCall>(desc, context, options);
}

std::shared_ptr<const LibraryCall> cudnn_attention(const AttentionDesc& desc, Context& context,
                                                   const CudnnOptions& options, std::string* why) {
  auto call = cudnn_attention_call(desc, context, options, why);
  if (!call || call->ready()) return call;
  if (why) *why = call->why();
  return nullptr;
}

}  // namespace weft::target::cuda
