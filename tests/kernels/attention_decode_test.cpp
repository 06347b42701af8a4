// Attention of one query against float64: in the interpreter, on the CPU, and thread by thread as it is rendered for a
// GPU; by one program a head, by iterations that share one, by splits, and with the newest position appended.
#include "kernels/attention/decode.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "kernels/attention_case.h"
#include "target/cuda/codegen/render.h"
#include "target/cuda/host_kernels.h"

using namespace weft;
using namespace weft::test;
using kernels::AttentionArray;
using kernels::Decode;

namespace {

struct DecodeForm {
  AttentionCase::Form form;
  kernels::DecodeBlocks blocks = {};
  int64_t splits = 0, split_keys = 0;
};

std::string text_of(const DecodeForm& d) {
  return fmt::format("{} {}/{} heads, {} keys of {}, {}; tiles of {}, {} iterations, {} splits",
                     dtype_name(d.form.dtype), d.form.heads, d.form.shared, d.form.keys, d.form.width,
                     d.form.value_width, d.blocks.rows, d.blocks.sharers, d.splits);
}

AttentionCase::Form form(Dtype t, int64_t heads, int64_t shared, int64_t keys, int64_t width, int64_t value_width) {
  return {.dtype = t,
          .heads = heads,
          .shared = shared,
          .queries = 1,
          .keys = keys,
          .width = width,
          .value_width = value_width,
          .mask = int32};
}

std::vector<DecodeForm> forms() {
  return {{form(float32, 2, 1, 37, 16, 16), {8, 1}},     {form(bfloat16, 4, 2, 50, 24, 40), {16, 1}},
          {form(float32, 2, 2, 75, 12, 8), {4, 8}},      {form(float16, 2, 1, 130, 32, 16), {4, 32}},
          {form(float32, 2, 1, 75, 16, 20), {8}, 3, 32}, {form(bfloat16, 4, 4, 40, 8, 8), {8}, 5, 8},
          {form(float32, 1, 1, 1, 1, 1), {1, 1}},        {form(float32, 1, 1, 9, 3, 5), {2, 2}}};
}

/// A case with its kernels. `keys_seen`: what the mask says. Buffers of its own begin as NaN.
class DecodeCase {
 public:
  DecodeCase(const DecodeForm& f, int64_t keys_seen, bool appends = false) : c(f.form) {
    d.a = c.a, d.blocks = f.blocks, d.splits = f.splits, d.split_keys = f.split_keys;
    AttentionCase::put(c.buffer(c.a.mask), 0, static_cast<double>(keys_seen));
    if (d.splits > 0) add_parts();
    if (appends) append(keys_seen);
  }

  /// The kernels, of all buffers.
  std::vector<k::Program> programs() {
    std::vector<k::Param> params;
    for (const AttentionBuffer& b : c.buffers) params.push_back({k::Use::in_out, b.dtype, {b.elements()}});
    const auto body = [&](std::span<const k::AnyRef> memory) {
      if (fresh_k) d.append = [&, memory](const std::vector<k::Index>& batch) { return newest(memory, batch); };
      kernels::decode(d, memory, k::Index(c.f.keys));
    };
    std::vector<k::Program> out{k::trace("decode", params, kernels::decode_grid(d), body)};
    if (d.splits > 0)
      out.push_back(k::trace("join", params, kernels::decode_join_grid(d),
                             [&](std::span<const k::AnyRef> memory) { kernels::decode_join(d, memory); }));
    return out;
  }

  RandomCase random_case(const k::Program& program) const {
    std::vector<int64_t> elements;
    for (const AttentionBuffer& b : c.buffers) elements.push_back(b.elements());
    RandomCase out = make_case(program.data().kernel, elements, {}, program.programs());
    for (size_t p = 0; p < elements.size(); ++p)
      std::memcpy(out.buffers[p].data(), c.buffers[p].data.data(), out.buffers[p].size());
    return out;
  }
  void take(const RandomCase& from) {
    for (size_t p = 0; p < from.buffers.size(); ++p)
      std::memcpy(c.buffers[p].data.data(), from.buffers[p].data(), from.buffers[p].size());
  }

  /// Compares with float64: results, and that memory holds what was appended, and is else as it was.
  void check() {
    if (fresh_k) {
      CHECK(c.buffer(c.a.k).data == c.buffer(wanted_k).data);
      CHECK(c.buffer(c.a.v).data == c.buffer(wanted_v).data);
      c.buffer(c.a.k).data = c.buffer(fresh_k).data, c.buffer(c.a.v).data = c.buffer(fresh_v).data;  // all keys
    }
    const double bound = c.f.dtype == bfloat16 ? 1.5e-2 : c.f.dtype == float16 ? 2e-3 : 2e-5;
    c.each([&](const std::vector<int64_t>& at) {
      const AttentionResults r = reference(c, at);
      for (size_t i = 0; i < r.o.size(); ++i)
        CHECK(std::abs(c.get(c.a.o, at, 0, static_cast<int64_t>(i)) - r.o[i]) <= bound);
      const double lse = c.get(c.a.lse, at, 0);
      CHECK((lse == r.lse[0] || std::abs(lse - r.lse[0]) <= std::min(bound, 2e-3)));
    });
  }

  AttentionCase c;
  Decode d;

 private:
  AttentionArray add(AttentionArray x, Dtype t, int64_t elements) {
    x.buffer = static_cast<int>(c.buffers.size()), x.dtype = t;
    c.buffers.push_back({t, std::vector<char>(static_cast<size_t>(elements) * t.size(), '\xff')});
    return x;
  }
  AttentionArray copy(AttentionArray x) {
    const AttentionBuffer from = c.buffer(x);
    x.buffer = static_cast<int>(c.buffers.size());
    c.buffers.push_back(from);
    return x;
  }
  void add_parts() {
    const int64_t n = d.splits, w = d.a.value_width, heads = c.f.heads / c.f.shared;
    AttentionArray o, lse;
    o.batch = {heads * c.f.shared * n * w, c.f.shared * n * w, n * w}, o.row = w, o.column = 1;
    lse.batch = {heads * c.f.shared * n, c.f.shared * n, n}, lse.row = 1;
    d.part_o = add(o, float32, c.f.heads * n * w), d.part_lse = add(lse, float32, c.f.heads * n);
  }
  /// Moves the newest key and value out of memory.
  void append(int64_t keys_seen) {
    fresh_k = copy(c.a.k), fresh_v = copy(c.a.v), wanted_k = copy(c.a.k), wanted_v = copy(c.a.v);
    position_ = std::clamp<int64_t>(keys_seen - 1, 0, c.f.keys - 1);
    const bool negative = keys_seen<1, stored = keys_seen> - c.f.keys && keys_seen <= c.f.keys;
    const int64_t to = negative ? keys_seen - 1 + c.f.keys : keys_seen - 1;
    c.each([&](const std::vector<int64_t>& at) {
      if (stored)
        move_row(c.a.k, fresh_k, wanted_k, at, to, c.a.width),
            move_row(c.a.v, fresh_v, wanted_v, at, to, c.a.value_width);
    });
    d.a.q = {};
    q_ = c.a.q;
  }
  void move_row(const AttentionArray& memory, const AttentionArray& fresh, const AttentionArray& wanted,
                const std::vector<int64_t>& at, int64_t to, int64_t width) {
    for (int64_t j = 0; j < width; ++j) {
      const auto place = [&](const AttentionArray& x, int64_t row) {
        int64_t i = x.offset + row * x.row + j * x.column;
        for (size_t axis = 0; axis < at.size(); ++axis) i += at[axis] * x.batch[axis];
        return i;
      };
      AttentionCase::put(c.buffer(wanted), place(wanted, to), c.get(fresh, at, position_, j));
      AttentionCase::put(c.buffer(memory), place(memory, to), NAN);
    }
  }
  kernels::DecodeRows newest(std::span<const k::AnyRef> memory, const std::vector<k::Index>& batch) const {
    const auto row = [&](const AttentionArray& x, int64_t position, int64_t width) {
      k::AnyRef r = memory[static_cast<size_t>(x.buffer)];
      r.offset = x.offset + position * x.row;
      r.dims = c.a.batch, r.strides = x.batch;
      r.dims.push_back(width), r.strides.push_back(x.column);
      std::vector<k::Span> spans;
      for (const k::Index& i : batch) spans.push_back({.start = i.any(), .squeezed = true});
      spans.push_back({.size = kernels::decode_columns(width)});
      return k::Tile<float, 1>(k::cast(k::load(r, spans), float32));
    };
    return {row(q_, 0, c.a.width), row(fresh_k, position_, c.a.width), row(fresh_v, position_, c.a.value_width)};
  }

  AttentionArray q_, fresh_k, fresh_v, wanted_k, wanted_v;
  int64_t position_ = 0;
};

/// Numbers of keys that are seen: some, all, more than there are, none.
std::vector<int64_t> counts(int64_t keys) { return {1, keys * 2 / 3 + 1, keys, keys + 1, 0, -2}; }

}  // namespace

TEST_CASE("attention of one query gives what float64 gives: the interpreter, and the same bits on the CPU") {
  for (const DecodeForm& f : forms())
    for (const bool appends : {false, true})
      for (const int64_t seen : counts(f.form.keys)) {
        if (appends && f.splits > 0) continue;
        CAPTURE(text_of(f));
        CAPTURE(appends);
        CAPTURE(seen);
        DecodeCase decoded(f, seen, appends);
        for (const k::Program& program : decoded.programs()) {
          const RandomCase given = decoded.random_case(program), made = interpreted(given);
          if (seen == f.form.keys) CHECK(disagreement(given, made, *cpu_target("native")) == "");
          decoded.take(made);
        }
        decoded.check();
      }
}

TEST_CASE("the kernels of attention of one query by themselves give the same") {
  for (const DecodeForm& f : forms()) {
    CAPTURE(text_of(f));
    DecodeCase decoded(f, f.form.keys);
    for (const kernels::AttentionKernel& kernel : kernels::attention_decode(decoded.d)) {
      std::vector<void*> arrays;
      for (const int b : kernel.buffers) arrays.push_back(decoded.c.buffers[static_cast<size_t>(b)].data.data());
      kernel.program.interpret(arrays);
    }
    decoded.check();
  }
}

TEST_CASE(
    "attention of one query is rendered for GPUs, thread by thread: iterations are blocks of a cluster, or warps") {
  if (!can_run_kernels()) return;
  constexpr target::cuda::Features hopper{.clusters = true};
  const std::vector<DecodeForm> all{{form(float32, 2, 1, 37, 16, 16), {8, 1}},
                                    {form(bfloat16, 4, 2, 75, 64, 64), {8, 8}},
                                    {form(float32, 2, 1, 130, 32, 32), {4, 32}},
                                    {form(float32, 2, 1, 75, 16, 16), {8}, 3, 32}};
  std::vector<DecodeCase> cases;
  std::vector<RandomCase> rendered;
  std::string sources;
  for (const DecodeForm& f : all)
    for (const bool appends : {false, true}) {
      if (appends && f.splits > 0) continue;
      DecodeCase& decoded = cases.emplace_back(f, f.form.keys / 2, appends);
      for (const k::Program& program : decoded.programs())
        for (const bool any_size : {false, true}) {  // as the compiler has it, and as a user's kernel
          RandomCase& r = rendered.emplace_back(decoded.random_case(program));
          r.kernel.any_size = any_size;
          sources += target::cuda::render(kernel::expand(r.kernel), "k", {}, hopper).source;
        }
    }
  CHECK(sources.find("__cluster_dims__(8, 1, 1)") != std::string::npos);
  CHECK(sources.find("const i64 rank = cluster_rank() * 4 + (t >> 5);") != std::string::npos);
  const HostKernels host(rendered, {}, hopper);
  for (const bool any_size : {false, true}) {
    size_t number = any_size ? 1 : 0;
    for (const DecodeCase& given : cases) {
      CAPTURE(any_size);
      CAPTURE(given.c.f.keys);
      DecodeCase decoded = given;
      for (size_t k = decoded.d.splits > 0 ? 2 : 1; k > 0; --k, number += 2) {
        RandomCase& r = rendered[number];
        for (size_t p = 0; p < r.buffers.size(); ++p)
          std::memcpy(r.buffers[p].data(), decoded.c.buffers[p].data.data(), r.buffers[p].size());
        host.run(number, r);
        decoded.take(r);
      }
      decoded.check();
    }
  }
}

TEST_CASE("the keys of a head are divided by the device's clusters and the number of heads") {
  kernels::Attention a;
  a.queries = 1, a.keys = 1024, a.width = a.value_width = 64, a.batch = {2, 2};
  using kernels::DecodeBlocks;
  CHECK(kernels::decode_blocks(a, 1) == DecodeBlocks{16, 1});
  CHECK(kernels::decode_blocks(a, 8) == DecodeBlocks{8, 32});  // warps
  a.batch = {64, 2};
  CHECK(kernels::decode_blocks(a, 8) == DecodeBlocks{32, 8});  // blocks
  a.keys = 100;
  CHECK(kernels::decode_blocks(a, 8) == DecodeBlocks{16, 1});  // too few keys to share
  a.keys = 5;
  CHECK(kernels::decode_blocks(a, 1) == DecodeBlocks{8, 1});
}

TEST_CASE("attention that is not of one query, or not as this kernel has it, is refused") {
  const auto refused = [](const std::string& words, const std::function<void(Decode&)>& change) {
    Decode d = DecodeCase({form(float32, 2, 1, 40, 16, 16), {8, 1}}, 40).d;
    change(d);
    CAPTURE(words);
    CHECK_THROWS_WITH_AS(kernels::attention_decode(d), doctest::Contains(words.c_str()), std::invalid_argument);
  };
  refused("takes one query, keys and columns, not q [3, 16]", [](Decode& d) { d.a.queries = 3; });
  refused("attention_forward has windows", [](Decode& d) { d.a.before = 4; });
  refused("an integer, not float32", [](Decode& d) { d.a.mask.dtype = float32; });
  refused("give the mask, and no splits", [](Decode& d) {
    d.a.mask = {};
    d.append = [](const std::vector<k::Index>&) { return kernels::DecodeRows{}; };
  });
  refused("2 splits of 8 keys", [](Decode& d) { d.splits = 2, d.split_keys = 8; });
  refused("tiles of 0 rows", [](Decode& d) { d.blocks.rows = 0; });
  const Decode whole = DecodeCase({form(float32, 2, 1, 40, 16, 16), {8}, 2, 20}, 40).d;
  CHECK(kernels::attention_decode(whole).size() == 2);
}
