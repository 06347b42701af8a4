// weft/schedule.h: arrays and kernels by steps, in compiled functions, under grad and vmap, and through a file.
#include "weft/schedule.h"

#include <filesystem>
#include <functional>
#include <stdexcept>

#include "compiler/program.h"
#include "support.h"
#include "weft/compile.h"
#include "weft/export.h"
#include "weft/kernel_function.h"
#include "weft/kernel_library.h"
#include "weft/random.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

bool same(const array& a, const array& b) { return array_equal(a, b).item<bool>(); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const char* const vectors = "split(d1, 16, {block, lane}); bind(block, program); vectorize(lane)";

/// A product of two arrays, a tile a program, which `tile` rows and columns have.
auto products(int64_t tile) {
  return k::kernel("products",
                   [tile](k::In<k::bf16, 2> a, k::In<k::bf16, 2> b, k::Out<float, 2> c) {
                     k::gemm(a, b, k::program_id(0), k::program_id(1), {tile, tile, 64},
                             [&](k::Ds rows, k::Ds columns, k::Tile<float, 2> sum) { c(rows, columns) = sum; });
                   })
      .grid([tile](auto, auto, auto c) {
        return k::Grid{k::cdiv(c.dim(0), tile), k::cdiv(c.dim(1), tile)};
      })
      .outputs([](const array& a, const array& b) {
        return Shape{a.shape(0), b.shape(1)};
      });
}

}  // namespace

TEST_CASE("scheduled arrays have the same values, eagerly, compiled, derived and mapped") {
  const array x = random::normal({48, 300});
  const auto plain = [](const array& v) { return exp(v) * v; };
  const auto by_steps = [&](const array& v) { return scheduled(plain(v), vectors); };
  CHECK(same(by_steps(x), plain(x)));
  const auto compiled = compile([&](const std::vector<array>& in) { return std::vector{by_steps(in[0])}; });
  CHECK(same(compiled({x})[0], plain(x)));
  const auto derived = [&](auto f) { return grad(UnaryFunction([f](const array& v) { return sum(f(v)); }))(x); };
  CHECK(same(derived(by_steps), derived(plain)));
  const array batch = random::normal({3, 48, 300});
  const auto mapped = [&](auto f) { return vmap(UnaryFunction(f))(batch); };
  CHECK(same(mapped(by_steps), mapped(plain)));
  CHECK(same(scheduled(x, schedule::Steps()), x));
}

TEST_CASE("what a kernel cannot have is refused with its step when the array is computed") {
  const array x = random::normal({48, 300});
  CHECK(has(error_of([&] { scheduled(exp(x), "split(d9, 4, {a, b})").eval(); }),
            "[schedule] split(d9, 4, {a, b}): there is no axis d9: the axes here are d0 (48), d1 (300)"));
  CHECK(has(error_of([&] { scheduled(exp(x), "split(d1, 4)"); }), "[schedule] line 1, column 12: expected ','"));
}

TEST_CASE("an exported program keeps its steps") {
  const array x = random::normal({48, 300});
  const std::string path = (std::filesystem::temp_directory_path() / "weft_schedule_test.weft").string();
  export_function(path, [&](const std::vector<array>& in) { return std::vector{scheduled(exp(in[0]), vectors)}; }, {x});
  const compiler::BuildRecord record(true);
  const std::vector<array> results = import_function(path)({x});
  CHECK(same(results[0], exp(x)));
  std::string all;
  for (const auto& program : record.programs()) all += program->print("schedules");
  CHECK_MESSAGE(has(all, "split(d1, 16, {block, lane})"), all);
  std::filesystem::remove(path);
}

TEST_CASE("a kernel takes steps for its loops, its order and its launch, with the same bits") {
  const array a = astype(random::normal({256, 192}), bfloat16), b = astype(random::normal({192, 128}), bfloat16);
  const auto rules = products(64);
  const auto staged = rules.schedule("pipeline(l0, 3); warps(4); registers(128); specialize(off)");
  CHECK(same(staged(a, b), rules(a, b)));
  const std::string tile = staged.program(a, b).to_string();
  CHECK_MESSAGE(has(tile, "stages 3"), tile);
  CHECK(has(tile, "warps 4 registers 128 specialize 2"));
  CHECK(staged.show("schedule", a, b) == "pipeline(l0, 3); specialize(off); warps(4); registers(128)\n");
  CHECK(rules.show("schedule", a, b) == "# as the compiler chooses\n");
  CHECK(schedule::parse(rules.show("schedule", a, b)).empty());
  const auto bands = rules.schedule(schedule::Steps().raster(2));
  CHECK(same(bands(a, b), rules(a, b)));
  CHECK(bands.program(a, b).to_string() != rules.program(a, b).to_string());
  CHECK(same(bands.interpret(a, b), rules.interpret(a, b)));
  // A read-back text is the same kernel.
  const std::string text = staged.show("schedule", a, b);
  CHECK(rules.schedule(text).program(a, b).to_string() == tile);
}

TEST_CASE("the CUDA code of a kernel is staged and launched as its steps say") {
  const array a = astype(random::normal({256, 192}), bfloat16), b = astype(random::normal({192, 128}), bfloat16);
  const auto source = [&](const char* steps) {
    return k::show(products(64).schedule(steps).program(a, b), "cuda", "sm_90a");
  };
  const std::string rules = k::show(products(64).program(a, b), "cuda", "sm_90a");
  CHECK_MESSAGE(has(rules, "copied by TMA"), rules);
  CHECK(has(source("specialize(off)"), "no TMA: the launch asks for none"));
  CHECK(has(source("specialize(on)"), "copied by TMA"));
  CHECK(source("persistent(off)") != rules);
  CHECK(source("pipeline(l0, 2)") != source("pipeline(l0, 3)"));
  CHECK(has(source("tensorize(wgmma)"), "wgmma of bfloat16"));
  CHECK(has(source("tensorize(mma)"), "mma.sync of bfloat16"));
  CHECK(has(source("tensorize(fma)"), "fma: the launch asks for it"));
  const auto by_wgmma = products(64).schedule("tensorize(wgmma)");
  CHECK(by_wgmma.show("schedule", a, b) == "tensorize(wgmma)\n");
  CHECK(has(error_of([&] { k::show(by_wgmma.program(a, b), "cuda", "sm_80"); }), "is asked to multiply by wgmma"));
  CHECK(has(error_of([&] { products(64).schedule("tensorize(library)").program(a, b); }),
            "a kernel's products are multiplied by wgmma, mma or fma"));
  CHECK(has(error_of([&] { k::show(products(64).schedule("specialize(on)").program(a, b), "cuda", "sm_80"); }),
            "is asked to copy by warps of its own, and has none"));
  const auto sums = k::kernel("sums", [](k::In<float, 1> x, k::Out<float, 1> y) {
                      k::Mut total = k::zeros<float>({32});
                      k::loop(k::Index(0), k::Index(x.dim(0)), 32,
                              [&](const k::Index& i) { total = total.get() + x(k::ds(i, 32)).load(); });
                      y(k::ds(0, 32)) = total.get();
                    }).grid({1});
  CHECK(has(error_of([&] { k::show(sums.schedule("pipeline(l0, 3)").program(ones({64})), "cuda", "sm_90a"); }),
            "is asked to run a loop of 3 stages, which copies nothing ahead"));
}

TEST_CASE("a kernel refuses steps that it cannot have") {
  const array a = astype(ones({128, 128}), bfloat16);
  const auto why = [&](const char* steps) { return error_of([&] { products(64).schedule(steps).program(a, a); }); };
  CHECK(why("pipeline(l1, 3)") == "[kernel products] pipeline(l1, 3): there is no loop l1: the kernel has 1, l0 to l0");
  CHECK(has(why("split(l0, 2, {a, b})"), "[kernel products] split(l0, 2, {a, b}): a kernel divides its work itself"));
  CHECK(has(why("warps(4); warps(8)"), "[kernel products] warps(8): the launch has 4 already: say it once"));
  CHECK(has(why("warps(5)"), "give it a power of two"));
  CHECK(has(why("registers(300)"), "0 to 255 are possible"));
  const auto line = k::kernel("line", [](k::In<float, 1> x, k::Out<float, 1> y) {
                      y(k::ds(0, 64)) = x(k::ds(0, 64)).load();
                    }).grid({1});
  CHECK(has(error_of([&] { line.schedule("raster(2)").program(ones({64})); }),
            "[kernel line] raster(2): the grid does not end in two parallel axes"));
}

TEST_CASE("parallel iterations are bound to warps, to blocks of a cluster, or run in turn") {
  const auto sums =
      k::kernel("sums_by_parts", [](k::In<float, 2> x, k::Out<float, 1> y) {
        const auto row = x.fixed(k::program_id(0));
        const auto parts = k::scratch<float>({8});
        k::parallel(8, [&](const k::Index& i) {
          k::Mut total = k::zeros<float>({32});
          k::loop(i * 32, x.dim(1), 8 * 32, [&](const k::Index& at) { total += row(k::ds(at, 32)).load(); });
          parts(i) = k::sum(total, 0);
        });
        y(k::program_id(0)) = k::sum(parts(k::all), 0);
      }).grid([](auto x, auto) {
          return k::Grid{x.dim(0)};
        }).outputs([](const array& x) { return Shape{x.shape(0)}; });
  const array x = random::normal({3, 1000});
  const auto source = [&](const char* steps, const char* arch) {
    return k::show(sums.schedule(steps).program(x), "cuda", arch);
  };
  CHECK(has(source("", "sm_90a"), "// 8 parallel iterations by 8 warps"));
  CHECK(has(source("bind(l0, warp); warps(4)", "sm_80"), "by 4 warps"));
  CHECK(has(source("bind(l0, cluster)", "sm_90a"), "by 8 blocks of a cluster"));
  CHECK(has(source("bind(l0, serial)", "sm_90a"), "by all threads in turn, as the launch asks"));
  CHECK(has(error_of([&] { source("bind(l0, cluster)", "sm_80"); }), "this GPU has no clusters"));
  const auto asked = sums.config({}, {.iterations = k::Iterations::cluster});
  CHECK(asked.show("schedule", x) == "bind(l0, cluster)\n");
  CHECK(has(asked.program(x).to_string(), "iterations 3"));
  CHECK(sums.schedule(asked.show("schedule", x)).program(x).to_string() == asked.program(x).to_string());
  for (const char* const steps : {"bind(l0, warp)", "bind(l0, cluster)", "bind(l0, serial)"}) {
    CAPTURE(steps);
    CHECK(same(sums.schedule(steps)(x), sums(x)));
    CHECK(same(sums.schedule(steps).interpret(x), sums(x)));
  }
  const auto why = [&](const char* steps) { return error_of([&] { sums.schedule(steps).program(x); }); };
  CHECK(has(why("bind(l1, warp)"), "[kernel sums_by_parts] bind(l1, warp): its iterations run one after another"));
  CHECK(has(why("bind(l0, lane)"), "are bound to warp, cluster or serial"));
  CHECK(has(why("bind(l0, warp); bind(l0, cluster)"), "bind(l0, cluster): the launch has 2 already"));
}

TEST_CASE("configurations hold steps") {
  struct Tile {
    int64_t side;
  };
  const array x = random::normal({64});
  const auto copy = k::kernel("copied", [](k::In<float, 1> from, k::Out<float, 1> to, Tile t) {
                      const auto span = k::ds(k::program_id(0) * t.side, t.side);
                      to(span) = from(span).load();
                    }).grid([](auto from, auto, Tile t) { return k::Grid{k::cdiv(from.dim(0), t.side)}; });
  const auto tuned = copy.configs({{{16}, {}, schedule::parse("warps(1)")}, {{32}, {}, schedule::parse("warps(2)")}});
  CHECK(same(tuned(x), x));
  CHECK(has(tuned.program(x).to_string(), "warps 1"));
  CHECK(has(tuned.schedule("registers(64)").program(x).to_string(), "warps 1 registers 64"));
}
