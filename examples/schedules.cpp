// Schedules as values: how an array is computed, and how a kernel is staged and launched, without changing what either
// computes.
#include <cstdio>

#include "weft/kernel_function.h"
#include "weft/kernel_library.h"
#include "weft/weft.h"

using namespace weft;

namespace {

// A softmax whose programs have a row each, and whose lanes walk it 64 elements at a time.
array rows(const array& x) { return scheduled(softmax(x, -1), "split(r0, 64, {step, lane}); vectorize(lane)"); }

// The same steps by functions. Lists are compared, hashed, printed and read back.
schedule::Steps row_steps() { return schedule::Steps().split("r0", 64, {"step", "lane"}).vectorize("lane"); }

// The logits are stored once; without the step both readers would compute them.
array distance(const array& x, const array& w) {
  const array logits = scheduled(tanh(x * w) + w, "compute_root()");
  return sum(square(logits), -1) + max(logits, -1);
}

// A sum in two levels: 8 parts, then what they gave. This step changes the tree, and so the bits.
array two_levels(const array& x) { return scheduled(sum(x, -1), "split_reduce(r0, 8)"); }

// A kernel's loop copies three steps ahead on a GPU, and its programs go through the tiles in bands of four rows.
auto product() {
  return k::kernel("product",
                   [](k::In<k::bf16, 2> a, k::In<k::bf16, 2> b, k::Out<float, 2> c) {
                     k::gemm(a, b, k::program_id(0), k::program_id(1), {64, 64, 64},
                             [&](k::Ds i, k::Ds j, k::Tile<float, 2> sum) { c(i, j) = sum; });
                   })
      .grid([](auto, auto, auto c) {
        return k::Grid{k::cdiv(c.dim(0), 64), k::cdiv(c.dim(1), 64)};
      })
      .outputs([](const array& a, const array& b) {
        return Shape{a.shape(0), b.shape(1)};
      })
      .schedule("pipeline(l0, 3); raster(4); warps(4)");
}

bool close(const array& a, const array& b) { return allclose(a, b, 1e-4, 1e-4).item<bool>(); }

}  // namespace

int main() {
  const array x = random::normal({48, 512}), w = random::normal({512});
  bool ok = close(rows(x), softmax(x, -1));
  ok = ok && schedule::parse(to_string(row_steps())) == row_steps();
  ok = ok && distance(x, w).shape(0) == 48;
  ok = ok && close(two_levels(x), sum(x, -1));
  const array a = astype(random::normal({128, 192}), bfloat16), b = astype(random::normal({192, 64}), bfloat16);
  ok = ok && close(product()(a, b), matmul(astype(a, float32), astype(b, float32)));
  std::printf("%s", product().show("schedule", a, b).c_str());
  return ok ? 0 : 1;
}
