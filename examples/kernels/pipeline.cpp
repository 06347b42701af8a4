// The explicit level: copies that run ahead of the computation, in groups that one program waits for, and between
// roles: some warps copy, others compute.
#include "check.h"
#include "weft/kernel_async.h"
#include "weft/kernel_function.h"

using namespace weft;

/// Rows, four of them in shared memory: three on their way while one is used.
void scaled_rows(k::In<float, 2> x, k::Out<float, 2> y) {
  constexpr int64_t rows = 16, stages = 4;
  const int64_t n = x.dim(1);
  const auto slots = k::shared<float>({stages, n});
  const auto first = k::program_id(0) * rows;
  const auto begin = [&](const k::Index& row) {
    k::copy_async(slots(row % stages, k::all), x(first + row, k::all));  // zeros after the last row
    k::commit_copies();
  };
  for (int64_t s = 0; s + 1 < stages; ++s) begin(k::Index(s));
  k::loop(rows, [&](k::Index row) {
    begin(row + (stages - 1));
    k::wait_copies(stages - 1);
    y(first + row, k::all) = slots(row % stages, k::all) * 2.f;
  });
  k::wait_copies();
}

/// C = A · B: a warp copies blocks of A and B into a ring, four warps multiply them.
void product(k::In<float, 2> a, k::In<float, 2> b, k::Out<float, 2> c) {
  constexpr int64_t m = 64, n = 64, depth = 16, stages = 3;
  const int64_t steps = k::cdiv(a.dim(1), depth);
  const auto as = k::shared<float>({stages, m, depth}, k::SharedLayout::swizzle64);
  const auto bs = k::shared<float>({stages, depth, n}, k::SharedLayout::swizzle128);
  const k::Pipeline pipe(stages);
  const auto rows = k::ds(k::program_id(0) * m, m), columns = k::ds(k::program_id(1) * n, n);
  const auto copies = [&] {
    k::loop(steps, [&](k::Index i) {
      pipe.acquire(i);  // until the slot is empty
      pipe.copy(i, as(pipe.slot(i), k::all, k::all), a(rows, k::ds(i * depth, depth)));
      pipe.copy(i, bs(pipe.slot(i), k::all, k::all), b(k::ds(i * depth, depth), columns));
      pipe.commit(i);
    });
  };
  const auto multiplies = [&] {
    k::Mut sum = k::zeros<float>({m, n});
    k::loop(steps, [&](k::Index i) {
      pipe.wait(i);  // until the slot is full
      sum = k::dot(as(pipe.slot(i), k::all, k::all), bs(pipe.slot(i), k::all, k::all), sum.get());
      pipe.release(i);
    });
    c(rows, columns) = sum;
  };
  k::roles({{.warps = 1, .body = copies}, {.warps = 4, .body = multiplies}});
}

int main() {
  const array x = check::normal({100, 200}, 1);
  const auto rows =
      k::kernel("scaled_rows", scaled_rows).grid([](auto in, auto) { return k::Grid{k::cdiv(in.dim(0), 16)}; });
  check::near("rows through a ring of copies", rows(x), x * 2.0f, 0);

  const int64_t m = 150, n = 130, depth = 170;
  const array a = check::normal({m, depth}, 2), b = check::normal({depth, n}, 3);
  const auto by_roles = k::kernel("product_by_roles", product)
                            .grid([](auto in, auto other, auto) {
                              return k::Grid{k::cdiv(in.dim(0), 64), k::cdiv(other.dim(1), 64)};
                            })
                            .outputs([](const array& in, const array& other) {
                              return Shape{in.shape(0), other.shape(1)};
                            });
  check::near("a product by two roles", by_roles(a, b), matmul(a, b), 1e-4);
}
