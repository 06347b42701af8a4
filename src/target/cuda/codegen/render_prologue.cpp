// Renders the computed sides of kernel::Op::matmul (prologues). A thread loads what the arrays give for its chunks of a
// K slice to registers, one slice before it makes the elements of that slice and stores them to shared memory, where
// the tensor cores find them as if they had been copied: loads of the slice after the next one are in flight while a
// slice is multiplied, and warpgroups' tensor cores multiply while the next slice is made.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "kernel/rules.h"
#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

using kernel::Inst;
using kernel::Jump;
using kernel::MatmulSource;
using kernel::no_value;

namespace {

bool varies(int64_t stride, const Jump& jump) { return stride != 0 || jump.period > 0; }
bool is_contiguous(int64_t stride, const Jump& jump) { return stride == 1 || (stride == 0 && jump.by == 1); }

/// Returns the text of what a jump adds at an index that is not negative; empty where there is none.
std::string jump_text(const Jump& jump, const std::string& index) {
  return jump.period > 0 ? fmt::format(" + (i64)((u32)({}) / {}u) * {}ll", index, jump.period, jump.by) : "";
}

/// Removes what nothing in the block reads. The block has no effects.
void sweep(kernel::Block& block) {
  std::set<kernel::Value> read;
  for (size_t k = block.insts.size(); k-- > 0;) {
    const Inst& i = block.insts[k];
    const bool last = k + 1 == block.insts.size();  // the yield
    if (last || std::any_of(i.results.begin(), i.results.end(), [&](kernel::Value v) { return read.contains(v); })) {
      const std::vector<kernel::Value> values = kernel::reads(i);
      read.insert(values.begin(), values.end());
    } else {
      block.insts.erase(block.insts.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }
}

/// Returns the block without the rounding that makes its result, if a 16-bit float is rounded from float32 there and
/// nothing else reads it: two elements are rounded by one instruction. Nothing otherwise.
std::optional<kernel::Block> before_rounding(const kernel::Kernel& kernel, const kernel::Block& body) {
  kernel::Block out = body;
  const kernel::Value made = out.insts.back().args[0];
  const auto is_made = [&](const Inst& i) { return i.op == kernel::Op::cast && i.results[0] == made; };
  const auto last = std::find_if(out.insts.begin(), out.insts.end(), is_made);
  if (last == out.insts.end() || (last->type.dtype != bfloat16 && last->type.dtype != float16) ||
      kernel.types[static_cast<size_t>(last->args[0])].dtype != float32)
    return {};
  out.insts.back().args[0] = last->args[0];
  sweep(out);
  if (std::any_of(out.insts.begin(), out.insts.end(), is_made)) return {};
  return out;
}

}  // namespace

/// Fills in a side that is computed. Its lines run along the axis on which the first array that has both axes is
/// contiguous.
void Renderer::computed_side(const Inst& inst, MatmulSide& s) {
  const bool right = s.name[0] == 'b';
  const auto both = std::find_if(inst.sources.begin(), inst.sources.end(), [&](const MatmulSource& x) {
    return x.right == right && varies(x.stride, x.jump) && varies(x.depth_stride, x.depth_jump);
  });
  s.transposed = both != inst.sources.end() && is_contiguous(both->stride, both->jump) &&
                 !is_contiguous(both->depth_stride, both->depth_jump);
  const bool begins_whole = !s.transposed || divisor(s.start) % s.per() == 0;
  s.whole_chunks =
      s.transposed ? s.limit == no_value || divisor(s.limit) % s.per() == 0 : divisor(inst.args[4]) % s.per() == 0;
  for (size_t k = 0; k < inst.sources.size(); ++k)
    if (inst.sources[k].right == right)
      s.sources.push_back(chunk_source(s, inst.sources[k], inst.args[5 + k], begins_whole));
}

/// Finds how a thread loads an array's elements for a chunk. `begins_whole`: the index of a chunk's first element is a
/// multiple of the elements of a chunk.
ChunkSource Renderer::chunk_source(const MatmulSide& s, const MatmulSource& array, Value offset, bool begins_whole) {
  ChunkSource c{&array, offset, s.per()};
  const int64_t per = s.per(), step = s.transposed ? array.stride : array.depth_stride,
                line_step = s.transposed ? array.depth_stride : array.stride;
  const Jump &jump = s.transposed ? array.jump : array.depth_jump,
             &line_jump = s.transposed ? array.depth_jump : array.jump;
  c.step = step;
  if (jump.period == 0 || (begins_whole && jump.period % per == 0)) {
    if (step == 0) c.count = 1;
  } else if (begins_whole && per % jump.period == 0 && step == 0) {
    c.count = per / jump.period, c.every = jump.period, c.step = jump.by;
  } else if (begins_whole && per % jump.period == 0 && step * jump.period + jump.by == 0) {
    c.count = jump.period;
  } else {
    c.regular = false;
  }
  const int64_t size = dtype_of(array.ref).size(), word = std::min<int64_t>(16, c.count * size), wide = word / size;
  const auto whole = [&](int64_t n) { return n % wide == 0; };
  const bool adjacent = c.regular && c.count > 1 && c.step == 1 && s.whole_chunks && begins_whole;
  const bool jumps_whole = whole(line_jump.by) && (c.every > 1 || jump.period < per || whole(jump.by));
  if (adjacent && word >= 4 && variant_.aligned && whole(divisor(offset)) && whole(line_step) && jumps_whole)
    c.word = word;
  return c;
}

/// Renders what comes before the loop: where a thread's chunks lie, and the registers that its loads fill.
void Renderer::prologue_source(const MatmulSide& s) {
  const std::string n = s.name;
  bool jumps = false;
  add(fmt::format("const int {0}_line = t / {1}, {0}_chunk = t % {1};", n, s.chunks()));
  if (s.limit != no_value) add(fmt::format("const int {}_limit = (int)imin<i64>({}, {});", n, at(s.limit), s.extent));
  for (size_t k = 0; k < s.sources.size(); ++k) {
    const ChunkSource& c = s.sources[k];
    const MatmulSource& x = *c.array;
    const int64_t line_step = s.transposed ? x.depth_stride : x.stride, step = s.transposed ? x.stride : x.depth_stride;
    add(fmt::format("const {0}* {1}{2}_from = {3} + {4} + {5} * {6}ll + {1}_line * {7}ll + {1}_chunk * {8}ll;",
                    memory_type(x.ref), n, k, buffer(x.ref), at(c.offset), at(s.start), x.stride, line_step,
                    s.per() * step));
    add(fmt::format("alignas(16) {} {}{}_raw[{}][{}];", memory_type(x.ref), n, k, chunks_of_thread(s), c.count));
    jumps = jumps || x.jump.period > 0;
  }
  if (jumps) add(fmt::format("const int {}_first = (int){};", n, at(s.start)));
}

/// Returns the chunks of a slice that a thread makes.
int64_t Renderer::chunks_of_thread(const MatmulSide& s) const {
  return std::max<int64_t>(1, s.lines() * s.chunks() / threads_);
}

/// Returns the text of the condition that element `e` of chunk i of a thread exists; empty where all do.
std::string Renderer::prologue_guard(const MatmulSide& s, const std::string& e) const {
  const std::string n = s.name, line_end = s.line_end(), inner_end = s.inner_end();
  std::string guard;
  if (!line_end.empty()) guard = fmt::format("{}_line + i * {} < {}", n, threads_ / s.chunks(), line_end);
  if (!inner_end.empty())
    guard += fmt::format("{}{}_chunk * {} + {} < {}", guard.empty() ? "" : " && ", n, s.per(), e, inner_end);
  return guard;
}

/// Renders the function that loads the slice which begins at `k`. Slices are loaded in order.
void Renderer::prologue_load(const MatmulSide& s) {
  const std::string n = s.name;
  const int64_t at_once = threads_ / s.chunks();
  open(fmt::format("const auto {}_load = [&](const int k)", n));
  if (s.lines() < at_once) add(fmt::format("if ({}_line >= {}) return;", n, s.lines()));
  open(fmt::format("EACH (int i = 0; i < {}; ++i)", chunks_of_thread(s)));
  for (size_t k = 0; k < s.sources.size(); ++k) {
    const ChunkSource& c = s.sources[k];
    const MatmulSource& x = *c.array;
    const int64_t line_step = s.transposed ? x.depth_stride : x.stride, step = s.transposed ? x.stride : x.depth_stride;
    const Jump &jump = s.transposed ? x.jump : x.depth_jump, &line_jump = s.transposed ? x.depth_jump : x.jump;
    const std::string row = x.jump.period > 0 ? n + "_first" : "0", first = s.transposed ? row : "k",
                      line_first = s.transposed ? "k" : row;
    std::string from = fmt::format("{}{}_from + i * {}ll", n, k, at_once * line_step);
    from += jump_text(line_jump, fmt::format("{} + {}_line + i * {}", line_first, n, at_once));
    const std::string chunk = fmt::format("{} + {}_chunk * {}", first, n, s.per());
    if (c.regular) from += jump_text(jump, chunk);
    open("");
    add(fmt::format("const {}* const from = {};", memory_type(x.ref), from));
    if (c.word > 0) {
      const std::string there = prologue_guard(s, "0");
      if (!there.empty()) add(fmt::format("const bool there = {};", there));
      const std::string to = fmt::format("{}{}_raw[i]", n, k), word = fmt::format("*(const W{}*)(from + j)", c.word);
      add(fmt::format("EACH (int j = 0; j < {0}; j += {1}) *(W{2}*)({3} + j) = {4};", c.count,
                      c.word / dtype_of(x.ref).size(), c.word, to,
                      there.empty() ? word : fmt::format("there ? {} : W{}{{}}", word, c.word)));
    } else {
      const std::string there = prologue_guard(s, fmt::format("j * {}", c.every)),
                        element = c.regular ? fmt::format("from[j * {}ll]", c.step)
                                            : fmt::format("from[j * {}ll{}]", step, jump_text(jump, chunk + " + j"));
      add(fmt::format("EACH (int j = 0; j < {}; ++j) {}{}_raw[i][j] = {};", c.count, n, k,
                      there.empty() ? element : fmt::format("{} ? {} : ({})0", there, element, memory_type(x.ref))));
    }
    close();
  }
  close();
  for (size_t k = 0; k < s.sources.size(); ++k)
    if (const int64_t by = s.depth * s.sources[k].array->depth_stride; by != 0)
      add(fmt::format("{}{}_from += {}ll;", n, k, by));
  --indent_, add("};");
}

/// Renders the function that makes the slice which begins at `k` from what was loaded last, and stores it to `slot`.
void Renderer::prologue_make(const MatmulSide& s, int64_t offset) {
  const std::string n = s.name;
  const int64_t at_once = threads_ / s.chunks();
  const std::optional<kernel::Block> wide = before_rounding(kernel_, *s.body);
  const char* const made = wide ? "f32" : type_name(s.dtype);
  open(fmt::format("const auto {}_make = [&](const int k, const u32 slot)", n));
  if (s.lines() < at_once) add(fmt::format("if ({}_line >= {}) return;", n, s.lines()));
  open(fmt::format("EACH (int i = 0; i < {}; ++i)", chunks_of_thread(s)));
  add(fmt::format("alignas(16) {} x[{}];", made, s.per()));
  open(fmt::format("EACH (int e = 0; e < {}; ++e)", s.per()));
  for (size_t k = 0; k < s.sources.size(); ++k) {
    const ChunkSource& c = s.sources[k];
    const std::string index = c.count == 1        ? "0"
                              : c.every > 1       ? fmt::format("e / {}", c.every)
                              : c.count < s.per() ? fmt::format("e % {}", c.count)
                                                  : "e",
                      element = fmt::format("{}{}_raw[i][{}]", n, k, index);
    name(s.body->arguments[k], dtype_of(c.array->ref) == bool_ ? fmt::format("({} != 0)", element) : element);
  }
  add(fmt::format("{} made;", made));
  on_lane(wide ? *wide : *s.body, {"made"});
  const std::string there = prologue_guard(s, s.whole_chunks ? "0" : "e");
  add(there.empty() ? "x[e] = made;" : fmt::format("x[e] = {} ? made : ({})0;", there, made));
  close();
  if (wide) {
    add(fmt::format("alignas(16) u32 pairs[{}];", s.per() / 2));
    add(fmt::format("EACH (int e = 0; e < {}; ++e) pairs[e] = to_{}_pair(x[2 * e], x[2 * e + 1]);", s.per() / 2,
                    s.dtype == bfloat16 ? "bf16" : "f16"));
  }
  add(fmt::format("store_shared(slot + {} + {}({}_line + i * {}, {}_chunk), *(const W16*){});", offset, s.position(), n,
                  at_once, n, wide ? "pairs" : "x"));
  close();
  --indent_, add("};");
}

}  // namespace weft::target::cuda
