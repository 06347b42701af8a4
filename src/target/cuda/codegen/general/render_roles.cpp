// Renders roles: warps of a block take different branches. In a role, threads count from its first one, it meets at a
// named barrier of its own, and it exchanges through its own part of shared memory.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "target/cuda/codegen/renderer.h"

namespace weft::target::cuda {

namespace {

constexpr int warps_of_group = 4;
constexpr int64_t registers_of_block = int64_t{1} << 16;

}  // namespace

/// Returns the registers that each thread has when a block begins, as many as there are.
int Renderer::registers_of_launch() const {
  return static_cast<int>(std::min<int64_t>(registers_of_block / threads_ / 8 * 8, 248));
}

/// Returns whether roles get their registers: where the device can, whole warp groups have one role each, and nothing
/// follows that would want other numbers.
bool Renderer::sets_registers(const Inst& roles) const {
  const bool last = &roles + 2 == kernel_.body.insts.data() + kernel_.body.insts.size();  // but for the yield
  int64_t all = 0;
  for (size_t k = 0; k < roles.axes.size(); ++k)
    all += roles.axes[k] * 32 * (roles.strides[k] > 0 ? roles.strides[k] : registers_of_launch());
  return features_.warpgroups && last && all <= registers_of_block &&
         std::any_of(roles.strides.begin(), roles.strides.end(), [](int64_t n) { return n > 0; }) &&
         std::all_of(roles.axes.begin(), roles.axes.end(), [](int64_t n) { return n % warps_of_group == 0; });
}

void Renderer::roles(const Inst& inst) {
  sync();
  dirty_.clear(), read_.clear();
  sets_registers_ = sets_registers(inst);
  const int block_threads = threads_;
  const int64_t block_exchange = std::exchange(exchange_bytes_, 0);
  int64_t first_warp = 0, exchanged = 0;
  for (size_t k = 0; k < inst.blocks.size(); ++k) {
    threads_ = static_cast<int>(32 * inst.axes[k]);
    exchange_bytes_ = 0;
    std::string before = std::exchange(body_, {});
    shared_end_ = std::string::npos;
    role(inst, k);
    const std::string inside = std::exchange(body_, std::move(before));
    shared_end_ = std::string::npos;
    first_warp += inst.axes[k];
    open(fmt::format("{}if (t < {})", k > 0 ? "else " : "", 32 * first_warp));
    add(fmt::format("u8* const role_shared = shared + {};", exchanged));
    add(fmt::format("const int role_t = t - {};", 32 * (first_warp - inst.axes[k])));
    open("");
    add("u8* const shared = role_shared;");
    add(fmt::format("const int t = role_t % {};", threads_));  // its range, for the compiler
    body_ += inside;
    close();
    close();
    exchanged += (exchange_bytes_ + 15) / 16 * 16;
  }
  threads_ = block_threads;
  exchange_bytes_ = std::max(block_exchange, exchanged);
  sync_ = "SYNC";
  sync();
  dirty_.clear(), read_.clear();
}

/// Renders the body of a role.
void Renderer::role(const Inst& roles, size_t k) {
  indent_ += 2;
  sync_ = threads_ == 32 ? "__syncwarp();" : fmt::format("sync_role<{}, {}>();", k + 1, threads_);
  if (sets_registers_ && roles.strides[k] > 0)
    add(fmt::format("set_registers<{}, {}>();", roles.strides[k] > registers_of_launch() ? "true" : "false",
                    roles.strides[k]));
  dirty_.clear(), read_.clear();
  block(roles.blocks[k]);
  indent_ -= 2;
}

}  // namespace weft::target::cuda
