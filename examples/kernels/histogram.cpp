// Counting how often each of 64 values occurs, in the steps of a lesson on atomics: a plain loop, an atomic addition
// for each element, additions that a warp has put together, counts of a block, and the last program that adds up all.
#include "check.h"
#include "weft/kernel_function.h"
#include "weft/kernel_group.h"

using namespace weft;

namespace {

constexpr int64_t bins = 64, block = 1024;

/// What is counted: small whole numbers, some of them often.
array values(int64_t n) {
  return astype(minimum(abs(check::normal({n}, 7)) * 20.0f, array(static_cast<float>(bins - 1))), int32);
}

const auto blocks = [](const auto& x, const auto&...) { return k::Grid{k::cdiv(x.dim(0), block)}; };

}  // namespace

int main() {
  const int64_t n = 50'000;  // no multiple of a block
  const array x = values(n), none = zeros({bins}, int32);

  // A plain loop on the host.
  std::vector<int32_t> counts(bins);
  const array read = x;
  for (int64_t i = 0; i < n; ++i) ++counts[static_cast<size_t>(read.data<int32_t>()[i])];
  const array wanted(counts.data(), {bins});

  // Each element adds 1 to its bin. Integers end up the same in every order. What lies behind the array is no bin: it
  // loads as -1, and positions outside of an array are left out.
  const auto each = k::kernel("count_each", [](k::In<int32_t, 1> a, k::InOut<int32_t, 1> c) {
                      const auto bin = a(k::ds(k::program_id(0) * block, block)).load(-1);
                      k::atomic("add", c, 1, bin);
                    }).grid(blocks);
  check::near("an atomic addition an element", each(x, none), wanted, 0);

  // Lanes of a warp that have the same value put theirs together; the first of them adds.
  const auto aggregated =
      k::kernel("count_by_warps", [](k::In<int32_t, 1> a, k::InOut<int32_t, 1> c) {
        const auto bin = a(k::ds(k::program_id(0) * block, block)).load(-1);
        const auto warp = k::tiled_partition<32>(k::this_thread_block(block));
        const auto same = k::labeled_partition(warp, bin);
        k::invoke_one(same, [&](const auto& first) { k::atomic("add", c, same.size(), k::where(first, bin, -1)); });
      }).grid(blocks);
  check::near("additions put together by warps", aggregated(x, none), wanted, 0);

  // Each program counts for itself and adds all bins at once.
  const auto counted = k::kernel("count_by_blocks", [](k::In<int32_t, 1> a, k::InOut<int32_t, 1> c) {
                         const auto bin = a(k::ds(k::program_id(0) * block, block)).load(-1);
                         k::atomic("add", c(k::all), k::histogram(bin, bins));
                       }).grid(blocks);
  check::near("counts of blocks", counted(x, none), wanted, 0);

  // Each program stores its counts; the last one to come adds them up, in an order that does not depend on who it is.
  const auto parts = k::cdiv(n, block);
  const auto last = k::kernel("count_by_the_last",
                              [parts](k::In<int32_t, 1> a, k::InOut<int32_t, 1> come, k::InOut<int32_t, 2> part,
                                      k::Out<int32_t, 1> c) {
                                const auto bin = a(k::ds(k::program_id(0) * block, block)).load(-1);
                                part(k::program_id(0), k::all) = k::histogram(bin, bins);
                                k::when(k::last_program(come, 0), [&] { c(k::all) = k::sum(part(k::all, k::all), 0); });
                              })
                        .grid(blocks)
                        .outputs([](const auto&...) { return Shape{bins}; });
  const array total = std::get<2>(last(x, zeros({1}, int32), zeros({parts, bins}, int32)));
  check::near("the last program adds up", total, wanted, 0);
  check::near("the same in the interpreter",
              std::get<2>(last.interpret(x, zeros({1}, int32), zeros({parts, bins}, int32))), wanted, 0);
}
