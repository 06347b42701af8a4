// Kernels of the language on the CPU target: the interpreter's bits.
#include <doctest/doctest.h>

#include <cmath>

#include "kernel/language/kernels.h"
#include "kernel/language/library_kernels.h"
#include "kernel/language/random_program.h"
#include "target/cpu/language_support.h"

namespace {

namespace k = weft::k;
using test_kernels::Bytes;
using weft::Dtype;

using test_kernels::compare_on_cpu;

k::Param in(std::vector<int64_t> dims, Dtype t = weft::float32) { return {k::Use::in, t, std::move(dims)}; }
k::Param out(std::vector<int64_t> dims, Dtype t = weft::float32) { return {k::Use::out, t, std::move(dims)}; }

TEST_CASE("kernels of the language give the interpreter's bits on a CPU") {
  using k::AnyRef;
  for (const int64_t n : {int64_t{1}, int64_t{97}, int64_t{1000}, int64_t{4096}})
    for (const int64_t block : {1, 96, 1024})
      if (n / block < 100)
        compare_on_cpu(
            k::trace("add", {in({n}), in({n}), out({n})}, {k::cdiv(n, block)}, [&](std::span<const AnyRef> r) {
              test_kernels::add(k::In<float, 1>(r[0]), k::In<float, 1>(r[1]), k::Out<float, 1>(r[2]), block);
            }));
  for (const int64_t n : {1, 7, 77, 256, 300, 1000, 1024})
    for (const int64_t more : {0, 3})
      compare_on_cpu(k::trace("softmax", {in({5, n}), out({5, n})}, {5}, [&](std::span<const AnyRef> r) {
        test_kernels::softmax(k::In<float, 2>(r[0]), k::Out<float, 2>(r[1]), n + more);
      }));
  for (const int64_t parts : {1, 4, 32})
    compare_on_cpu(k::trace("by_parts", {in({5, 300}), out({5})}, {5}, [&](std::span<const AnyRef> r) {
      test_kernels::logsumexp_by_parts(k::In<float, 2>(r[0]), k::Out<float, 1>(r[1]), parts, 8);
    }));
  for (const int64_t n : {33, 768})
    compare_on_cpu(
        k::trace("layer_norm", {in({9, n}), in({n}), in({n}), out({9, n})}, {9}, [](std::span<const AnyRef> r) {
          test_kernels::layer_norm(k::In<float, 2>(r[0]), k::In<float, 1>(r[1]), k::In<float, 1>(r[2]),
                                   k::Out<float, 2>(r[3]), 1e-5f);
        }));
  for (const test_kernels::Tiles tile : {test_kernels::Tiles{48, 40, 24}, {64, 64, 32}, {7, 100, 5}}) {
    compare_on_cpu(k::trace("matmul", {in({100, 90}), in({90, 70}), in({70}), out({100, 70})},
                            {k::cdiv(100, tile.m), k::cdiv(70, tile.n)}, [&](std::span<const AnyRef> r) {
                              test_kernels::matmul_bias_relu(k::In<float, 2>(r[0]), k::In<float, 2>(r[1]),
                                                             k::In<float, 1>(r[2]), k::Out<float, 2>(r[3]), tile);
                            }));
    compare_on_cpu(k::trace(
        "matmul_bf16",
        {in({100, 90}, weft::bfloat16), in({90, 70}, weft::bfloat16), in({70}), out({100, 70}, weft::bfloat16)},
        {k::cdiv(100, tile.m), k::cdiv(70, tile.n)}, [&](std::span<const AnyRef> r) {
          test_kernels::matmul_bias_relu(k::In<k::bf16, 2>(r[0]), k::In<k::bf16, 2>(r[1]), k::In<float, 1>(r[2]),
                                         k::Out<k::bf16, 2>(r[3]), tile);
        }));
  }
  for (const bool causal : {false, true})
    compare_on_cpu(k::trace("attention", {in({75, 16}), in({75, 16}), in({75, 16}), out({75, 16}), out({75})},
                            {k::cdiv(75, 32)}, [&](std::span<const AnyRef> r) {
                              test_kernels::attention(k::In<float, 2>(r[0]), k::In<float, 2>(r[1]),
                                                      k::In<float, 2>(r[2]), k::Out<float, 2>(r[3]),
                                                      k::Out<float, 1>(r[4]), 32, 24, causal);
                            }));
}

TEST_CASE("kernels of the language's library give the interpreter's bits on a CPU") {
  for (const k::Program& program : test_kernels::library_programs()) compare_on_cpu(program);
}

TEST_CASE("random kernels of the language give the interpreter's bits on a CPU") {
  for (unsigned seed = 1; seed <= 60; ++seed) compare_on_cpu(test_kernels::RandomProgram(seed).make(), seed);
}

}  // namespace
