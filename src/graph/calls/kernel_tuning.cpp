#include "graph/calls/kernel_tuning.h"

#include <bit>
#include <cstdlib>

namespace weft::graph {
namespace {

class ShapeFree {
 public:
  ShapeFree(const kernel::Kernel& kernel, bool keyed) : kernel_(kernel), keyed_(keyed) {}

  Digest run() {
    for (const kernel::Param& p : kernel_.params) hash_.number(p.dtype.val()).number(p.written);
    hash_.number(kernel_.locals.size());
    block(kernel_.body);
    return hash_.finish();
  }

 private:
  void whole(int64_t n) {
    if (!keyed_) hash_.number(n < 0 ? -bucket_of(-n) : bucket_of(n));
  }

  void type(const kernel::Type& t) {
    hash_.number(t.dtype.val()).number(t.dims.size());
    for (const int64_t d : t.dims) whole(d);
  }

  void block(const kernel::Block& b) {
    hash_.number(b.insts.size());
    for (const kernel::Inst& inst : b.insts) instruction(inst);
  }

  void instruction(const kernel::Inst& i) {
    hash_.number(i.op).number(i.scalar_op).number(i.reducer).number(i.ref).number(i.axis).number(i.precision);
    hash_.number(i.args.size()).number(i.lane_op).number(i.number.integral);
    if (i.number.integral) whole(i.number.i);
    else hash_.number(std::bit_cast<uint64_t>(i.number.f));
    if (!i.results.empty()) type(i.type);
    if (i.code) hash_.text(i.code->text).text(i.code->header);
    hash_.number(i.blocks.size());
    for (const kernel::Block& inner : i.blocks) block(inner);
  }

  const kernel::Kernel& kernel_;
  bool keyed_;
  Hasher hash_;
};

}  // namespace

int64_t bucket_of(int64_t n) { return n <= 1 ? n : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }

Digest shape_free_digest(const kernel::Kernel& kernel, bool keyed) { return ShapeFree(kernel, keyed).run(); }

std::shared_ptr<const KernelTuning> kernel_tuning(KernelTuning tuning) {
  Hasher h;
  h.text("tuning").number(tuning.candidates.size()).number(tuning.most_measured).number(tuning.repetitions);
  for (const KernelCandidate& c : tuning.candidates) {
    h.text(c.word).number(c.program != nullptr);
    if (c.program) h.digest(c.program->key);
    h.number(std::bit_cast<uint64_t>(c.estimate.value_or(-1)));
  }
  h.number(tuning.keyed);
  for (const int64_t n : tuning.shape_key) h.number(n);
  for (const KernelReset& r : tuning.resets) h.number(r.array).number(std::bit_cast<uint64_t>(r.value));
  h.number(tuning.restored.has_value());
  if (tuning.restored)
    for (const size_t k : *tuning.restored) h.number(k);
  tuning.key = h.finish();
  return std::make_shared<const KernelTuning>(std::move(tuning));
}

}  // namespace weft::graph
