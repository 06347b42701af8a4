// Attention's kernels against float64, in the interpreter, and thread by thread as they are rendered for a GPU.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernel/expand/expand.h"
#include "kernel/interpret.h"
#include "kernel/legalize/legalize.h"
#include "kernels/attention_case.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/host_kernels.h"

using namespace weft;
using namespace weft::test;
using kernels::AttentionKernel;
using kernels::AttentionLimits;

namespace {

using Run = std::function<void(const AttentionKernel&, std::vector<AttentionBuffer>&)>;

void interpret(const AttentionKernel& kernel, std::vector<AttentionBuffer>& buffers) {
  std::vector<void*> arrays;
  for (const int b : kernel.buffers) arrays.push_back(buffers[static_cast<size_t>(b)].data.data());
  kernel.program.interpret(arrays);
}

/// Largest difference to the reference, beside the largest number of it (of one key all slopes are 0).
class Distance {
 public:
  void add(double got, double wanted) {
    most_ = std::max(most_, std::abs(wanted));
    const double off = got == wanted ? 0 : std::abs(got - wanted);
    if (std::isnan(off) || off > off_) off_ = off;
  }
  double value() const { return off_ / std::max(most_, 0.1); }

 private:
  double most_ = 0, off_ = 0;
};

std::vector<AttentionKernel> all_kernels(const kernels::Attention& a, const AttentionLimits& limits) {
  std::vector<AttentionKernel> out{kernels::attention_forward(a, kernels::forward_blocks(a, limits))};
  for (AttentionKernel& k : kernels::attention_backward(a, limits)) out.push_back(std::move(k));
  return out;
}

void check_results(AttentionCase& c, const ReferenceScore& score = {}) {
  const kernels::Attention& a = c.a;
  Distance o, lse, dq, dk, dv;
  const bool summed = c.f.sum_shared;
  std::vector<double> sum_k, sum_v;
  c.each([&](const std::vector<int64_t>& at) {
    AttentionResults r = reference(c, at, score);
    const auto compare = [&](Distance& to, const kernels::AttentionArray& x, const std::vector<double>& wanted,
                             int64_t columns) {
      for (size_t i = 0; i < wanted.size(); ++i) {
        const auto n = static_cast<int64_t>(i);
        to.add(c.get(x, at, n / columns, n % columns), wanted[i]);
      }
    };
    compare(o, a.o, r.o, a.value_width), compare(lse, a.lse, r.lse, 1), compare(dq, a.dq, r.dq, a.width);
    if (summed && at[2] > 0) {
      for (size_t i = 0; i < r.dk.size(); ++i) r.dk[i] += sum_k[i];
      for (size_t i = 0; i < r.dv.size(); ++i) r.dv[i] += sum_v[i];
    }
    sum_k = r.dk, sum_v = r.dv;
    if (summed && at[2] + 1 < c.f.shared) return;
    compare(dk, a.dk, r.dk, a.width), compare(dv, a.dv, r.dv, a.value_width);
  });
  const double bound = c.f.dtype == bfloat16 ? 1.5e-2 : c.f.dtype == float16 || c.f.tf32 ? 2e-3 : 2e-5;
  CHECK(o.value() < bound);
  CHECK(lse.value() < std::min(bound, 2e-3));
  CHECK(dq.value() < bound);
  CHECK(dk.value() < bound);
  CHECK(dv.value() < bound);
}

std::string text_of(const AttentionCase::Form& f) {
  return fmt::format("{} [{},{}/{}] {}x{} of {}, {}{}", dtype_name(f.dtype), f.batch, f.heads, f.shared, f.queries,
                     f.keys, f.width, f.value_width, f.causal ? " causal" : "");
}

constexpr AttentionLimits hopper_limits{.shared_bytes = 227 << 10, .warpgroups = true};
constexpr AttentionLimits ampere_limits{.shared_bytes = 99 << 10, .warpgroups = false};
constexpr AttentionLimits cpu_limits{.cores = 1}, many_cores{.cores = 1000};

std::vector<AttentionCase::Form> forms() {
  return {
      {.queries = 33, .keys = 33, .width = 8, .value_width = 8},
      {.queries = 70, .keys = 70, .width = 12, .value_width = 20, .causal = true},
      {.heads = 4, .shared = 2, .queries = 37, .keys = 75, .causal = true},
      {.heads = 4, .shared = 2, .queries = 40, .keys = 40, .causal = true, .sum_shared = true},
      {.queries = 50, .keys = 20, .causal = true},  // queries that see no key
      {.queries = 90, .keys = 90, .causal = true, .before = 10},
      {.queries = 45, .keys = 60, .mask = bool_},
      {.queries = 45, .keys = 45, .causal = true, .mask = float32, .mask_by_head = true},
      {.queries = 45, .keys = 60, .mask = int32},
      {.dtype = bfloat16, .queries = 150, .keys = 150, .width = 64, .value_width = 64, .causal = true},
      {.dtype = bfloat16, .heads = 1, .queries = 30, .keys = 140, .width = 40, .value_width = 24},
      {.dtype = float16, .heads = 1, .queries = 100, .keys = 100, .width = 32, .value_width = 32, .mask = float16},
      {.heads = 1, .queries = 100, .keys = 130, .width = 32, .value_width = 32, .tf32 = true},
      {.batch = 2, .heads = 4, .shared = 2, .queries = 37, .keys = 75, .causal = true, .dropout = 0.3},
      {.dtype = bfloat16, .queries = 150, .keys = 150, .width = 64, .value_width = 64, .causal = true, .dropout = 0.2},
      {.dtype = float16, .batch = 2, .queries = 40, .keys = 40, .dropout = 0.5, .keys_by_batch = true}};
}

/// What is rewritten for vector registers, too: few queries.
std::vector<AttentionCase::Form> cpu_forms() {
  return {{.heads = 1, .queries = 32, .keys = 32, .width = 1, .value_width = 1, .causal = true},
          {.queries = 20, .keys = 70, .width = 12, .value_width = 20, .causal = true},
          {.heads = 2, .shared = 2, .queries = 66, .keys = 66, .causal = true, .sum_shared = true},
          {.heads = 1, .queries = 24, .keys = 30, .mask = bool_},
          {.heads = 2, .queries = 40, .keys = 40, .causal = true, .dropout = 0.2},
          {.dtype = bfloat16, .heads = 1, .queries = 40, .keys = 70, .causal = true}};
}

/// What is run thread by thread: few programs. The first are copied by TMA on Hopper.
std::vector<AttentionCase::Form> rendered_forms() {
  return {{.dtype = bfloat16, .heads = 1, .queries = 256, .keys = 256, .width = 64, .value_width = 64, .causal = true},
          {.dtype = bfloat16, .heads = 1, .queries = 128, .keys = 256, .width = 128, .value_width = 128},
          // Blocks of the GPU take several programs in turns, of different lengths.
          {.dtype = bfloat16, .heads = 3, .queries = 256, .keys = 256, .width = 64, .value_width = 64, .causal = true},
          {.dtype = bfloat16, .heads = 1, .queries = 70, .keys = 400, .width = 64, .value_width = 64, .causal = true},
          {.dtype = float16,
           .heads = 2,
           .shared = 2,
           .queries = 100,
           .keys = 150,
           .width = 40,
           .value_width = 24,
           .causal = true,
           .sum_shared = true},
          {.dtype = bfloat16, .heads = 1, .queries = 70, .keys = 70, .width = 32, .value_width = 32, .mask = bool_},
          {.heads = 1, .queries = 40, .keys = 50, .width = 24, .value_width = 16},
          {.heads = 1, .queries = 70, .keys = 70, .width = 32, .value_width = 32, .causal = true, .tf32 = true}};
}

/// Runs kernel `number` on the buffers of a case.
void run_on_host(const HostKernels& host, size_t number, RandomCase& on, const AttentionKernel& kernel,
                 AttentionCase& c) {
  for (size_t p = 0; p < kernel.buffers.size(); ++p)
    std::memcpy(on.buffers[p].data(), c.buffers[static_cast<size_t>(kernel.buffers[p])].data.data(),
                on.buffers[p].size());
  host.run(number, on);
  for (size_t p = 0; p < kernel.buffers.size(); ++p)
    std::memcpy(c.buffers[static_cast<size_t>(kernel.buffers[p])].data.data(), on.buffers[p].data(),
                on.buffers[p].size());
}

}  // namespace

TEST_CASE("attention's kernels give what float64 gives, in the interpreter") {
  for (const AttentionLimits& limits : {hopper_limits, ampere_limits, cpu_limits, many_cores})
    for (const AttentionCase::Form& form : forms()) {
      CAPTURE(text_of(form));
      CAPTURE(limits.cores);
      AttentionCase c(form);
      c.a.widened = limits.cores > 0;
      for (const AttentionKernel& kernel : all_kernels(c.a, limits)) interpret(kernel, c.buffers);
      check_results(c);
    }
}

TEST_CASE("attention's kernels give the same bits as they are rewritten for vector registers") {
  for (const int64_t cores : {1, 1000})
    for (const kernel::VectorRegisters registers : {kernel::VectorRegisters{32, 16}, {64, 32}})
      for (const AttentionCase::Form& form : cpu_forms()) {
        CAPTURE(text_of(form));
        CAPTURE(cores);
        CAPTURE(registers.bytes);
        AttentionCase wanted(form), got(form);
        wanted.a.widened = true;
        const auto run = [](const AttentionKernel& k, const kernel::Kernel& form_of_it, AttentionCase& on) {
          std::vector<kernel::HostBuffer> buffers;
          for (const int b : k.buffers) {
            AttentionBuffer& buffer = on.buffers[static_cast<size_t>(b)];
            buffers.push_back({buffer.data.data(), buffer.elements()});
          }
          kernel::interpret(form_of_it, buffers, {}, k.program.programs());
        };
        for (const AttentionKernel& k : all_kernels(wanted.a, {.cores = cores})) {
          const kernel::Kernel expanded = kernel::expand(k.program.data().kernel);
          run(k, expanded, wanted);
          run(k, kernel::legalize(expanded, registers), got);
        }
        for (const auto& x : {wanted.a.o, wanted.a.lse, wanted.a.dq, wanted.a.dk, wanted.a.dv}) {
          CAPTURE(x.buffer);
          CHECK(wanted.buffer(x).data == got.buffer(x).data);
        }
      }
}

TEST_CASE("a CPU computes all cotangents of attention in one kernel where each core has a batch index") {
  const auto kernels_of = [](AttentionCase::Form form, int64_t cores) {
    form.queries = form.keys = 70;
    const AttentionCase c(form);
    return kernels::attention_backward(c.a, {.cores = cores}).size();
  };
  CHECK(kernels_of({.batch = 2, .heads = 4}, 8) == 2);  // the sums of rows, and all cotangents
  CHECK(kernels_of({.batch = 2, .heads = 4}, 9) == 3);
  CHECK(kernels_of({.batch = 2, .heads = 4, .shared = 2, .sum_shared = true}, 4) == 2);
  CHECK(kernels_of({.batch = 2, .heads = 4, .shared = 2, .sum_shared = true}, 5) == 3);
  CHECK(kernels_of({.dtype = bfloat16, .batch = 2, .heads = 4}, 8) == 2);
  AttentionCase c({.queries = 70, .keys = 70});
  c.a.dv = {};
  CHECK_THROWS_WITH_AS(kernels::attention_together(c.a, {64, 64}), doctest::Contains("dq, dk and dv"),
                       std::invalid_argument);
}

TEST_CASE("attention's kernels give what float64 gives as they are rendered for GPUs, thread by thread") {
  if (!can_run_kernels()) return;
  constexpr target::cuda::Features hopper{.warpgroups = true, .clusters = true};
  for (const bool warpgroups : {true, false}) {
    std::vector<AttentionCase> cases;
    std::vector<RandomCase> rendered;
    const AttentionLimits& limits = warpgroups ? hopper_limits : ampere_limits;
    for (const AttentionCase::Form& form : rendered_forms()) {
      cases.emplace_back(form);
      for (const AttentionKernel& k : all_kernels(cases.back().a, limits)) {
        std::vector<int64_t> elements;
        for (const int b : k.buffers) elements.push_back(cases.back().buffers[static_cast<size_t>(b)].elements());
        rendered.push_back(make_case(k.program.data().kernel, elements, {}, k.program.programs()));
      }
    }
    const HostKernels host(rendered, {}, warpgroups ? hopper : target::cuda::Features{});
    size_t number = 0;
    for (AttentionCase& c : cases) {
      CAPTURE(text_of(c.f));
      CAPTURE(warpgroups);
      for (const AttentionKernel& k : all_kernels(c.a, limits))
        run_on_host(host, number, rendered[number], k, c), ++number;
      check_results(c);
    }
  }
}

namespace {

/// Returns the CUDA C++ of each kernel of a form, for warpgroups.
std::vector<std::string> sources_of(const AttentionCase::Form& form) {
  constexpr target::cuda::Features hopper{.warpgroups = true, .clusters = true};
  std::vector<std::string> out;
  for (const AttentionKernel& k : all_kernels(AttentionCase(form).a, hopper_limits))
    out.push_back(target::cuda::render(kernel::expand(k.program.data().kernel), "k", {}, hopper).source);
  return out;
}

}  // namespace

TEST_CASE("attention by warpgroups is copied by TMA alone") {
  const std::vector<std::string> sources = sources_of({.dtype = bfloat16,
                                                       .batch = 2,
                                                       .heads = 8,
                                                       .queries = 512,
                                                       .keys = 512,
                                                       .width = 64,
                                                       .value_width = 64,
                                                       .causal = true});
  REQUIRE(sources.size() == 4);
  const auto has = [&](size_t kernel, const char* text) { return sources[kernel].find(text) != std::string::npos; };
  for (const size_t kernel : {0, 2, 3}) {
    CAPTURE(kernel);
    CHECK(has(kernel, "copied by TMA, by a warpgroup of its own"));
    CHECK_FALSE(has(kernel, " copy_async("));
  }
  // The first block of keys and the last one of values, which stand outside of the loops, take stages of their ring.
  CHECK(has(0, "barrier_wait(barriers + (0 + slot) * 8, phase);"));
  CHECK(has(0, "EACH (int k = 0; k < 2; ++k) barrier_arrive("));
  // Short programs that have an SM each take turns; those of the forward kernel share an SM.
  CHECK_FALSE(has(0, "kept_phase"));
  CHECK(has(0, "__launch_bounds__(160, 3)"));
  CHECK(has(2, "kept_phase ^= 1u;"));
  CHECK(has(3, "kept_phase ^= 1u;"));
  // Entries of rows come with the tiles of queries; where the last loop has fewer of them, programs load them.
  CHECK(has(3, " copy_bulk("));
  const std::string ends =
      sources_of({.dtype = bfloat16, .heads = 1, .queries = 200, .keys = 200, .width = 64, .value_width = 64})[3];
  CHECK(ends.find("copied by TMA, by a warpgroup of its own") != std::string::npos);
  CHECK(ends.find(" copy_bulk(") == std::string::npos);
}

TEST_CASE("programs of attention take turns only where they are short, and share an SM only where they fit") {
  const auto blocks = [](int64_t length, int64_t width, Dtype mask) {
    const AttentionCase c({.dtype = bfloat16,
                           .heads = 1,
                           .queries = length,
                           .keys = length,
                           .width = width,
                           .value_width = width,
                           .causal = true,
                           .mask = mask});
    return kernels::forward_blocks(c.a, hopper_limits);
  };
  using Blocks = kernels::AttentionBlocks;
  CHECK(blocks(1024, 64, complex64) == Blocks{64, 64, false, true});
  CHECK(blocks(2048, 64, complex64) == Blocks{64, 128, false, true});
  CHECK(blocks(4096, 64, complex64) == Blocks{64, 128, false, true, true});
  CHECK(blocks(1024, 128, complex64) == Blocks{128, 128, false, true, true, true});
  CHECK(blocks(4096, 128, complex64) == Blocks{128, 128, false, true, true});
  CHECK(blocks(1024, 64, bool_) == Blocks{128, 128, false, true, true, true});
}

namespace {

/// A form with dynamic lengths, and the lengths for which it is run: those of the form are the bounds.
struct DynamicForm {
  AttentionCase::Form form;
  bool both = true;  // queries and keys have one length
  std::vector<std::pair<int64_t, int64_t>> lengths;
};

std::vector<DynamicForm> dynamic_forms() {
  return {
      {{.queries = 70, .keys = 70, .width = 12, .value_width = 20, .causal = true}, true, {{1, 1}, {33, 33}, {70, 70}}},
      {{.heads = 4, .shared = 2, .queries = 40, .keys = 150, .sum_shared = true},
       false,
       {{1, 20}, {40, 150}, {7, 129}, {33, 16}}},
      {{.queries = 45, .keys = 60, .mask = bool_}, false, {{45, 60}, {20, 3}}},
      {{.queries = 45, .keys = 45, .causal = true, .mask = float32, .mask_by_head = true}, true, {{45, 45}, {31, 31}}},
      {{.queries = 90, .keys = 90, .causal = true, .before = 10}, true, {{90, 90}, {64, 64}, {13, 13}}},
      {{.dtype = bfloat16, .queries = 150, .keys = 150, .width = 64, .value_width = 64, .causal = true},
       true,
       {{150, 150}, {128, 128}, {65, 65}}}};
}

/// Returns the attention of a case with dynamic lengths.
kernels::Attention dynamic(const AttentionCase& c, bool both) {
  kernels::Attention out = c.a;
  out.queries = symbol("rows", c.f.queries);
  out.keys = both ? out.queries : Dim(symbol("keys", c.f.keys));
  return out;
}

/// Returns the values of a kernel's symbols.
std::vector<int64_t> extents_of(const AttentionKernel& kernel, const std::pair<int64_t, int64_t>& lengths) {
  std::vector<int64_t> out;
  for (const Symbol* s : kernel.program.symbols()) out.push_back(s->name == "rows" ? lengths.first : lengths.second);
  return out;
}

}  // namespace

TEST_CASE("attention's kernels of dynamic lengths serve every length") {
  for (const AttentionLimits& limits : {hopper_limits, cpu_limits, many_cores})
    for (const DynamicForm& d : dynamic_forms()) {
      CAPTURE(text_of(d.form));
      CAPTURE(limits.cores);
      AttentionCase first(d.form);
      first.a.widened = limits.cores > 0;
      const std::vector<AttentionKernel> all = all_kernels(dynamic(first, d.both), limits);
      for (const auto& lengths : d.lengths) {
        CAPTURE(lengths.first);
        CAPTURE(lengths.second);
        AttentionCase c(d.form), rewritten(d.form);
        for (const AttentionKernel& k : all) {
          const std::vector<int64_t> extents = extents_of(k, lengths);
          std::vector<void*> arrays;
          for (const int b : k.buffers) arrays.push_back(c.buffers[static_cast<size_t>(b)].data.data());
          k.program.interpret(arrays, extents);
          if (limits.cores == 0) continue;
          std::vector<kernel::HostBuffer> buffers;
          for (const int b : k.buffers) {
            AttentionBuffer& buffer = rewritten.buffers[static_cast<size_t>(b)];
            buffers.push_back({buffer.data.data(), buffer.elements()});
          }
          kernel::interpret(kernel::legalize(kernel::expand(k.program.data().kernel), {64, 32}), buffers, extents,
                            k.program.programs(extents));
        }
        c.a.queries = rewritten.a.queries = lengths.first, c.a.keys = rewritten.a.keys = lengths.second;
        check_results(c);
        if (limits.cores > 0) check_results(rewritten);
      }
    }
}

TEST_CASE("attention's kernels of dynamic lengths are rendered for GPUs, thread by thread") {
  if (!can_run_kernels()) return;
  constexpr target::cuda::Features hopper{.warpgroups = true, .clusters = true};
  const AttentionCase::Form form{
      .dtype = bfloat16, .heads = 1, .queries = 256, .keys = 256, .width = 64, .value_width = 64, .causal = true};
  const std::vector<std::pair<int64_t, int64_t>> lengths{{256, 256}, {131, 131}, {20, 20}};
  const std::vector<AttentionKernel> all = all_kernels(dynamic(AttentionCase(form), true), hopper_limits);
  std::vector<RandomCase> rendered;
  AttentionCase sized(form);
  for (const auto& length : lengths)
    for (const AttentionKernel& k : all) {
      std::vector<int64_t> elements;
      for (const int b : k.buffers) elements.push_back(sized.buffers[static_cast<size_t>(b)].elements());
      const std::vector<int64_t> extents = extents_of(k, length);
      rendered.push_back(make_case(k.program.data().kernel, elements, extents, k.program.programs(extents)));
    }
  const HostKernels host(rendered, {}, hopper);
  size_t number = 0;
  for (const auto& length : lengths) {
    CAPTURE(length.first);
    AttentionCase c(form);
    for (const AttentionKernel& k : all) run_on_host(host, number, rendered[number], k, c), ++number;
    c.a.queries = c.a.keys = length.first;
    check_results(c);
  }
  // It is multiplied by warpgroups and copied by TMA where it is with a number as its length.
  const auto head = [&](const AttentionKernel& k) {
    const std::string source = target::cuda::render(kernel::expand(k.program.data().kernel), "k", {}, hopper).source;
    return std::pair{source.find("wgmma of bfloat16 by ") != std::string::npos,
                     source.find("copied by TMA") != std::string::npos};
  };
  const std::vector<AttentionKernel> fixed = all_kernels(AttentionCase(form).a, hopper_limits);
  for (size_t k = 0; k < all.size(); ++k) {
    CAPTURE(all[k].program.name());
    const auto dynamic_head = head(all[k]), fixed_head = head(fixed[k]);
    CHECK(dynamic_head.first >= fixed_head.first);
    CHECK(dynamic_head.second >= fixed_head.second);
  }
  CHECK(head(all[0]).first);
}

TEST_CASE("scores are capped, and lowered by distance, in attention's kernels") {
  const AttentionCase::Form form{.batch = 2, .heads = 4, .shared = 2, .queries = 50, .keys = 50, .causal = true};
  AttentionCase capped(form, kernels::soft_cap(1.5));
  for (const AttentionKernel& kernel : all_kernels(capped.a, hopper_limits)) interpret(kernel, capped.buffers);
  check_results(capped, [](double s, const auto&, int64_t, int64_t) {
    const double t = std::tanh(s / 1.5);
    return std::pair{1.5 * t, 1 - t * t};
  });
  AttentionCase sloped(form, kernels::alibi(1, 2));
  for (const AttentionKernel& kernel : all_kernels(sloped.a, hopper_limits)) interpret(kernel, sloped.buffers);
  check_results(sloped, [](double s, const auto& at, int64_t query, int64_t key) {
    const double slope = std::exp2(-8.0 * static_cast<double>(at[1] + 1) / 2);
    return std::pair{s - slope * static_cast<double>(std::abs(query - key)), 1.0};
  });
}
