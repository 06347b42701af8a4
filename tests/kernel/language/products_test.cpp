// Products on CPUs: what all iterations of a loop multiply with is packed once, before it; operands that lie near are
// read where they lie; sums are continued and stored in the memory that has them. Each keeps the bits.
#include <functional>
#include <string>

#include "kernel/language/run.h"

namespace {

namespace k = weft::k;
namespace kernel = weft::kernel;
using k::AnyRef;

k::Param in(std::vector<int64_t> dims) { return {k::Use::in, weft::float32, std::move(dims)}; }
k::Param in_out(std::vector<int64_t> dims) { return {k::Use::in_out, weft::float32, std::move(dims)}; }

kernel::Kernel legal(const k::Program& program) {
  return kernel::legalize(kernel::expand(program.data().kernel), {64, 32});
}

/// Returns how many instructions of a kind on a parameter there are in the loops of the kernel's body that hold a
/// product, and how many outside of these.
std::pair<int, int> accesses(const kernel::Kernel& made, kernel::Op op, kernel::Ref ref) {
  const std::function<int(const kernel::Block&, const std::function<bool(const kernel::Inst&)>&)> number =
      [&](const kernel::Block& block, const auto& is_counted) {
        int n = 0;
        for (const kernel::Inst& inst : block.insts) {
          n += is_counted(inst) ? 1 : 0;
          for (const kernel::Block& inner : inst.blocks) n += number(inner, is_counted);
        }
        return n;
      };
  const auto accesses_it = [&](const kernel::Inst& inst) { return inst.op == op && inst.ref == ref; };
  const auto multiplies = [](const kernel::Inst& inst) { return inst.op == kernel::Op::dot; };
  int inside = 0;
  for (const kernel::Inst& inst : made.body.insts)
    if (inst.op == kernel::Op::loop && number(inst.blocks[0], multiplies) > 0)
      inside += number(inst.blocks[0], accesses_it);
  return {inside, number(made.body, accesses_it) - inside};
}

size_t scratch_elements(const kernel::Kernel& made) {
  size_t n = 0;
  for (const kernel::Local& local : made.locals) n += static_cast<size_t>(local.elements);
  return n;
}

/// The sum over blocks of rows of x of (x qᵀ)ᵀ x.
k::Program scores(int64_t rows, int64_t width) {
  return k::trace("scores", {in({rows, width}), in({32, width}), in_out({32, width})}, {1},
                  [=](std::span<const AnyRef> r) {
                    const k::In<float, 2> x(r[0]), q(r[1]);
                    const k::InOut<float, 2> y(r[2]);
                    const auto turned = k::trans(q(k::all, k::all).load());
                    k::Mut sum = k::zeros<float>({32, width});
                    k::loop(0, rows, 16, [&](k::Index i) {
                      const auto block = x(k::ds(i, 16), k::all).load();
                      sum = k::dot(k::trans(k::dot(block, turned)), block, sum.get());
                    });
                    y(k::all, k::all) = sum;
                  });
}

}  // namespace

TEST_CASE("the right operand of a product in a loop is packed once where all iterations have it") {
  for (const int64_t rows : {16, 64, 70}) {
    const k::Program program = scores(rows, 24);
    test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 3));
  }
  const auto [inside, outside] = accesses(legal(scores(64, 64)), kernel::Op::load, 1);
  CHECK(inside == 0);
  CHECK(outside > 0);
}

TEST_CASE("a right operand whose rows lie near is read where it lies") {
  const auto elements = [](int64_t pitch) {
    const k::Program program =
        k::trace("product", {in({48, 64}), in({64, pitch}), in_out({48, 64})}, {1}, [](std::span<const AnyRef> r) {
          const k::In<float, 2> a(r[0]), b(r[1]);
          const k::InOut<float, 2> c(r[2]);
          c(k::all, k::all) = k::dot(a(k::all, k::all).load(), b(k::all, k::ds(0, 64)).load());
        });
    test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 4));
    return scratch_elements(legal(program));
  };
  CHECK(elements(64) == 0);
  CHECK(elements(1024) == 64 * 64);  // its panels
}

TEST_CASE("a product is added to the memory that has the sum, where nothing comes between") {
  const auto elements = [](int64_t rows, bool between) {
    const k::Program program =
        k::trace("update", {in({32, 64}), in({64, 64}), in_out({rows, 64})}, {1}, [&](std::span<const AnyRef> r) {
          const k::In<float, 2> a(r[0]), b(r[1]);
          const k::InOut<float, 2> c(r[2]);
          const auto part = c(k::ds(rows - 32, 32), k::all), other = c(k::ds(0, 32), k::all);
          const auto before = part.load();
          if (between) other.store(k::zeros<float>({32, 64}));
          part.store(k::dot(a(k::all, k::all).load(), b(k::all, k::all).load(), before));
        });
    test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 5));
    return scratch_elements(legal(program));
  };
  CHECK(elements(48, false) == 0);
  CHECK(elements(48, true) == 32 * 64);  // some rows of the sum are overwritten before it is continued
}

TEST_CASE("a product that continues a sum of other rows is not stored before that is read") {
  const k::Program program =
      k::trace("moved", {in({32, 64}), in({64, 64}), in_out({48, 64})}, {1}, [&](std::span<const AnyRef> r) {
        const k::In<float, 2> a(r[0]), b(r[1]);
        const k::InOut<float, 2> c(r[2]);
        const auto before = c(k::ds(0, 32), k::all).load();
        c(k::ds(16, 32), k::all) = k::dot(a(k::all, k::all).load(), b(k::all, k::all).load(), before);
      });
  test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 6));
}

TEST_CASE("a tile that a loop puts into memory is computed again behind it: the loop may not run") {
  const k::Program program =
      k::trace("behind", {in({32, 32}), in({32, 32}), in_out({64, 32})}, {2}, [](std::span<const AnyRef> r) {
        const k::In<float, 2> a(r[0]), b(r[1]);
        const k::InOut<float, 2> c(r[2]);
        const k::Tile<float, 2> twice = b(k::all, k::all).load() * 2.0f;
        k::Mut sum = k::zeros<float>({32, 32});
        k::loop(0, k::program_id(0), 1,
                [&](k::Index) { sum = k::dot(a(k::all, k::all).load(), k::trans(twice), sum.get()); });
        c(k::block(k::program_id(0), 32), k::all) = sum + k::dot(a(k::all, k::all).load(), k::trans(twice));
      });
  test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 7));
}

TEST_CASE("a computed sum that a product continues is read behind it as it was") {
  const k::Program program =
      k::trace("both", {in({32, 32}), in({32, 32}), in_out({32, 32})}, {1}, [](std::span<const AnyRef> r) {
        const k::In<float, 2> a(r[0]), b(r[1]);
        const k::InOut<float, 2> c(r[2]);
        const k::Tile<float, 2> before = b(k::all, k::all).load() * 2.0f;
        c(k::all, k::all) = before * k::dot(a(k::all, k::all).load(), b(k::all, k::all).load(), before);
      });
  test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 8));
}

TEST_CASE("scratch is read where it lies as long as nothing is stored there") {
  const auto elements = [](bool overwritten) {
    const k::Program program =
        k::trace("scratch", {in({32, 32}), in({32, 32}), in_out({32, 32})}, {1}, [&](std::span<const AnyRef> r) {
          const k::In<float, 2> a(r[0]), b(r[1]);
          const k::InOut<float, 2> c(r[2]);
          const auto rows = k::scratch<float>({32, 32});
          rows(k::all, k::all) = b(k::all, k::all).load() * 2.0f;
          k::loop(0, 2, 1, [&](k::Index) {
            const auto operand = rows(k::all, k::all).load();
            if (overwritten) rows(k::all, k::all) = k::zeros<float>({32, 32});
            c(k::all, k::all) += k::dot(a(k::all, k::all).load(), operand);
          });
        });
    test_kernels::compare_rewritten(program, test_kernels::random_arrays(program, 9));
    return scratch_elements(legal(program));
  };
  CHECK(elements(true) == elements(false) + 32 * 32);
}
