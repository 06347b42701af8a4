// Programs that call kernels of users, to files and back: without the C++ functions of the kernels.
#include <doctest/doctest.h>

#include <fstream>

#include "io/folder.h"
#include "weft/compile.h"
#include "weft/export.h"
#include "weft/io.h"
#include "weft/kernel_function.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

/// Rows divided by their sums, and a running sum that is an in_out array.
std::vector<array> normalised(const std::vector<array>& in) {
  const auto rows = k::kernel("row \"shares\"", [](k::In<float, 2> x, k::Out<float, 2> y) {
                      const auto row = k::program_id(0);
                      const auto v = x(row, k::all).load();
                      y(row, k::all) = v / k::sum(v, 0);
                    }).grid([](auto x, auto) { return k::Grid{x.dim(0)}; });
  const auto add = k::kernel("add_row", [](k::In<float, 2> x, k::InOut<float, 1> sums) {
                     const auto all = k::ds(0, x.dim(1));
                     k::loop(0, x.dim(0), 1, [&](k::Index i) { sums(all) = sums(all) + x(i, all); });
                   }).grid(k::Grid{1});
  const array shares = rows(in[0] * 2.0f);
  return {add(shares, in[1]), vmap([&](const std::vector<array>& x) { return std::vector{rows(x[0])}; })({in[2]})[0]};
}

}  // namespace

TEST_CASE("export: kernels of users run from a file, with the same bits") {
  const Folder folder;
  const std::string file = folder / "kernels.weft";
  const std::vector<array> in{random::uniform(array(1.0f), array(2.0f), {5, 7}, float32, random::key(1)),
                              random::normal({7}, float32, 0, 1, random::key(2)),
                              random::uniform(array(1.0f), array(2.0f), {2, 3, 4}, float32, random::key(3))};
  export_function(file, normalised, in);
  const auto read = import_function(file);
  const auto got = read(in), wanted = compile(ArrayFunction(normalised), {})(in);
  REQUIRE(got.size() == 2);
  for (size_t k = 0; k < got.size(); ++k) CHECK(got[k].to_vector<float>() == wanted[k].to_vector<float>());
}

TEST_CASE("export: a kernel in a file that is wrong is refused with its place in the file") {
  const Folder folder;
  const std::string file = folder / "wrong.weft";
  export_function(file, normalised, {ones({5, 7}, float32), ones({7}, float32), ones({2, 3, 4}, float32)});
  const std::string sound = io::read_file(file);
  const auto refused = [&](const std::string& word, const std::string& instead, const std::string& message) {
    std::string bytes = sound;
    const size_t at = bytes.find(word);
    REQUIRE(at != std::string::npos);
    bytes.replace(at, word.size(), instead);
    std::ofstream(file, std::ios::binary) << bytes;
    CAPTURE(instead);
    try {
      import_function(file);
      FAIL("taken");
    } catch (const std::runtime_error& e) {
      const std::string what = e.what();
      CHECK_MESSAGE(what.find(message) != std::string::npos, what);
    }
  };
  const size_t at = sound.find("reduce sum") + std::string("reduce ").size();
  refused("reduce sum", "reduce sun", "byte " + std::to_string(at) + ": entry ");
  refused("reduce sum", "reduce sun", ": there is no reducer sun");
  refused("load p0", "load p9", "p9 does not exist");
  refused("store p1", "store p0", "not declared as written");
  refused("f32[5,7], p1", "f32[0,7], p1", "must be f32(0,7), got f32(5,7)");
}

TEST_CASE("kernels show their stages") {
  const auto twice = k::kernel("twice", [](k::In<float, 1> x, k::Out<float, 1> y) {
                       const auto at = k::ds(k::program_id(0) * 64, 64);
                       y(at) = x(at) + x(at);
                     }).grid([](auto x, auto) { return k::Grid{k::cdiv(x.dim(0), 64)}; });
  const array x = ones({100}, float32);
  CHECK(twice.show("tile", x).starts_with("kernel @twice(p0: f32[100], p1: out f32[100]) grid 2 any_size {\n"));
  CHECK(twice.show("legalized", x).find("grid") == std::string::npos);
  CHECK(twice.show("llvm", x).find("fadd") != std::string::npos);
  CHECK(k::show(twice.program(x), "assembly", "generic").find("ret") != std::string::npos);
  CHECK(k::show(twice.program(x), "cuda", "sm_80").find("__global__") != std::string::npos);
  CHECK_THROWS_WITH_AS(twice.show("hlo", x), doctest::Contains("[kernel twice] there is no stage hlo: known are tile,"),
                       std::invalid_argument);
  CHECK_THROWS_AS(k::show(twice.program(x), "cuda", "gfx90a"), std::invalid_argument);
}
