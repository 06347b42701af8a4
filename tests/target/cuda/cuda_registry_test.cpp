// The table of hand-written kernels (target/cuda/handwritten/registry.h) and the choice among candidates
// (target/cuda/driver/candidates.h): every row compiles for each architecture that it takes work on; a row that a test
// adds is found, measured, recorded, and can lose.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <map>
#include <stdexcept>

#include "target/cuda/codegen/text/source.h"
#include "target/cuda/driver/candidates.h"
#include "target/cuda/driver/nvrtc.h"
#include "target/cuda/handwritten/loaded.h"
#include "target/own_call.h"

namespace cuda = weft::target::cuda;
using namespace weft;
using cuda::Candidates;

namespace {

/// A100, L4, H100, B200, RTX 4090 …
std::vector<target::Machine> gpus() {
  std::vector<target::Machine> out;
  for (const target::Machine& machine : target::stated_machines())
    if (machine.simt) out.push_back(machine);
  out.push_back(target::gpu_of("sm_120a"));
  return out;
}

/// 1024 images of 14 x 14 with 32 channels, or the gradient of the weights.
kernel::CallDesc convolution(const char* name) {
  kernel::CallDesc d;
  d.name = name;
  const kernel::CallDesc::Array x{float32, {1024, 14, 14, 32}}, y{float32, {1024, 14, 14, 64}},
      w{float32, {64, 3, 3, 32}};
  const bool forward = d.name == "convolution";
  d.inputs = {x, forward ? w : y}, d.outputs = {forward ? y : w};
  d.integers = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  d.numerics.tf32 = true;
  return d;
}

/// 64 images of 14 x 14 with 160 channels and a filter of 7 x 7 for each, or the gradient of the filters.
kernel::CallDesc depthwise(const char* name, Dtype dtype) {
  kernel::CallDesc d;
  d.name = name;
  const kernel::CallDesc::Array x{dtype, {64, 14, 14, 160}}, w{dtype, {160, 7, 7, 1}};
  const bool forward = d.name == "convolution";
  d.inputs = {x, forward ? w : x}, d.outputs = {forward ? x : w};
  d.integers = {160, 1, 1, 3, 3, 3, 3, 1, 1, 1, 1};
  return d;
}

std::vector<kernel::CallDesc> works() {
  const kernel::CallDesc scatter{
      "scatter_rows", {{int32, {1000}}, {bfloat16, {1000, 768}}}, {{float32, {50, 768}}}, {}, {.deterministic = false}};
  std::vector<kernel::CallDesc> all = {convolution("convolution"), convolution("convolution_weights"), scatter};
  for (const Dtype dtype : {float32, bfloat16, float16})
    for (const char* name : {"convolution", "convolution_weights"}) all.emplace_back(depthwise(name, dtype));
  return all;
}

/// A call that notes that it ran.
class Noting final : public target::LibraryCall {
 public:
  Noting(std::string name, std::vector<std::string>& runs) : name_(std::move(name)), runs_(runs) {}
  std::string name() const override { return name_; }
  void run(std::span<void* const>) const override { runs_.push_back(name_); }
  void begin() const override { runs_.push_back(name_ + " begins"); }
  bool ready() const override { return runs_.push_back(name_ + " is awaited"), true; }

 private:
  std::string name_;
  std::vector<std::string>& runs_;
};

/// Milliseconds by name, without a device.
class StatedTimes final : public cuda::LaunchTimer {
 public:
  StatedTimes(std::vector<std::string>& runs, std::map<std::string, float> times, const bool& capturing)
      : runs_(runs), times_(std::move(times)), capturing_(capturing) {}
  bool may_measure() const override { return !capturing_; }
  float milliseconds(const std::function<bool()>& launch) override {
    launch();
    return times_.at(runs_.back());
  }

 private:
  std::vector<std::string>& runs_;
  std::map<std::string, float> times_;
  const bool& capturing_;
};

/// Of this run of the test alone: choices outlive it in the cache folder.
Digest fresh_key() {
  static int64_t count = 0;
  return Hasher()
      .number(static_cast<int64_t>(::getpid()))
      .number(std::chrono::steady_clock::now().time_since_epoch().count())
      .number(++count)
      .finish();
}

/// A library and a kernel of a row, with stated times.
struct Contest {
  std::vector<std::string> runs;
  bool capturing = false;

  std::unique_ptr<Candidates> of(float library, float row, const Digest& key, const std::string& version = "row 1",
                                 Candidates::Choose how = Candidates::Choose::by_measurement) {
    std::vector<cuda::Candidate> all = {{std::make_shared<Noting>("library", runs), "library 1"},
                                        {std::make_shared<Noting>("row", runs), version, 16}};
    if (how == Candidates::Choose::in_order) std::swap(all[0], all[1]);
    const std::map<std::string, float> times = {{"library", library}, {"row", row}};
    return std::make_unique<Candidates>(std::make_unique<StatedTimes>(runs, times, capturing), std::move(all), how,
                                        key);
  }
  /// Runs a call once; returns which candidates ran.
  std::vector<std::string> ran(const Candidates& call, void* operand = nullptr) {
    runs.clear();
    void* operands[] = {operand};
    call.run(operands);
    return runs;
  }
};

std::optional<cuda::Match> match_toy(const kernel::CallDesc& work, const target::Machine& machine) {
  if (work.name != "toy" || machine.processors < 2) return std::nullopt;
  cuda::Match match;
  match.form = match.label = "toy";
  match.may_win = work.integers.empty();
  return match;
}

}  // namespace

TEST_CASE("every hand-written kernel takes some work, and compiles wherever it does, without local memory") {
  std::string why;
  const bool compiles = cuda::nvrtc_available(&why);
  if (!compiles) MESSAGE("nothing is compiled: " << why);
  for (const cuda::HandwrittenKernel& row : cuda::handwritten_kernels()) {
    CAPTURE(row.name);
    int taken = 0;
    for (const target::Machine& machine : gpus()) {
      CAPTURE(machine.name);
      std::vector<cuda::Match> found;
      if (!row.match) found.emplace_back();
      for (const kernel::CallDesc& work : works())
        if (auto match = row.match ? row.match(work, machine) : std::nullopt) found.push_back(std::move(*match));
      for (const cuda::Match& match : found) {
        ++taken;
        CHECK(match.may_win);
        for (const cuda::KernelEntry& entry : match.entries) CHECK(entry.shape.shared_bytes <= machine.shared_bytes);
        if (!compiles) continue;
        std::string log;
        try {
          CHECK(!cuda::compile(cuda::source_of(row, match.parameters), machine.arch, {}, &log).empty());
        } catch (const std::runtime_error& error) {
          if (std::string(error.what()).find("does not know") == std::string::npos) throw;
          MESSAGE("skipped: " << error.what());
          continue;
        }
        const auto usage = cuda::parse_usage(log);
        CHECK(usage.size() >= match.entries.size());
        for (const auto& use : usage) {
          CAPTURE(use.name);
          CHECK(use.stack_bytes == 0);
          CHECK(use.spill_store_bytes == 0);
          CHECK(use.spill_load_bytes == 0);
        }
      }
    }
    CHECK(taken > 0);
  }
}

TEST_CASE("rows need the instructions that they use") {
  const auto names = [](const kernel::CallDesc& work, const target::Machine& machine) {
    std::vector<std::string> out;
    for (const cuda::Found& found : cuda::matches(work, machine)) out.emplace_back(found.kernel->name);
    return out;
  };
  using Names = std::vector<std::string>;
  for (const target::Machine& machine : gpus()) {
    CAPTURE(machine.name);
    const bool warpgroups = machine.arch == "sm_90a";
    CHECK(names(convolution("convolution"), machine) == (warpgroups ? Names{"convolution"} : Names{}));
    CHECK(names(convolution("convolution_weights"), machine) == Names{"convolution_wgrad"});
    CHECK(names(depthwise("convolution", bfloat16), machine) == Names{"depthwise"});
    CHECK(names(depthwise("convolution_weights", float32), machine) == Names{"depthwise_weights"});
    target::Machine without = machine;
    without.tensor_cores = false;
    CHECK(names(convolution("convolution_weights"), without).empty());
  }
}

TEST_CASE("a row that is added to the table is found and matched") {
  std::vector<cuda::HandwrittenKernel> table(cuda::handwritten_kernels().begin(), cuda::handwritten_kernels().end());
  table.push_back({"toy", 1, "scatter_add_rows.cu", match_toy});
  kernel::CallDesc toy;
  toy.name = "toy";
  const target::Machine& machine = target::stated_machine("NVIDIA A100");
  CHECK(cuda::matches(toy, machine).empty());
  const auto found = cuda::matches(toy, machine, table);
  REQUIRE(found.size() == 1);
  CHECK(found[0].kernel->name == "toy");
  CHECK(found[0].match.label == "toy");
  CHECK(cuda::matches(convolution("convolution"), machine, table).empty());
  target::Machine small = machine;
  small.processors = 1;
  CHECK(cuda::matches(toy, small, table).empty());
  toy.integers = {1};  // the row takes it, and cannot win
  CHECK(cuda::matches(toy, machine, table).empty());
}

TEST_CASE("candidates: the fastest runs, the first before anything is measured") {
  Contest contest;
  const auto wins = contest.of(2.0f, 1.0f, fresh_key()), loses = contest.of(1.0f, 2.0f, fresh_key());
  contest.capturing = true;
  CHECK(contest.ran(*wins) == std::vector<std::string>{"library"});  // nothing is measured in a capture
  CHECK(wins->name() == "library");
  contest.capturing = false;
  CHECK(contest.ran(*wins).back() == "row");
  CHECK(contest.runs.size() > 4);
  CHECK(wins->name() == "row");
  CHECK(contest.ran(*wins) == std::vector<std::string>{"row"});  // measured once
  CHECK(contest.ran(*loses).back() == "library");
  CHECK(loses->name() == "library");
}

TEST_CASE("candidates: they are timed in turns, so that a clock that falls counts against all") {
  /// A device that is slower once it has run for a while.
  struct Warming final : cuda::LaunchTimer {
    bool may_measure() const override { return true; }
    float milliseconds(const std::function<bool()>& launch) override {
      const float slower = launches >= 4 ? 1.5f : 1.0f;
      return launch() ? slower * (last == 0 ? 0.21f : 0.2f) : std::numeric_limits<float>::infinity();
    }
    void done() override { ended = true; }
    size_t last = 0;
    int launches = 0;
    bool ended = false;
  } device;
  CHECK(cuda::fastest(device, 2, [&](size_t k) { return device.last = k, ++device.launches, true; }) == 1);
  CHECK(device.ended);
  CHECK(device.launches == 12);
  // What cannot run is never the fastest, and what is much slower is not repeated.
  device.launches = 0;
  CHECK(cuda::fastest(device, 3, [&](size_t k) { return device.last = k == 1 ? 0 : 1, ++device.launches, k > 0; }) ==
        2);
}

TEST_CASE("candidates: a choice is recorded, and holds for the versions among which it was made") {
  Contest contest;
  const Digest key = fresh_key();
  contest.ran(*contest.of(2.0f, 1.0f, key));
  const auto replayed = contest.of(1.0f, 2.0f, key);
  CHECK(replayed->name() == "row");
  CHECK(contest.ran(*replayed) == std::vector<std::string>{"row"});
  const auto newer = contest.of(1.0f, 2.0f, key, "row 2");
  CHECK(contest.ran(*newer).size() > 4);
  CHECK(newer->name() == "library");
}

TEST_CASE("candidates: all are prepared for a measurement, and the winner alone where it is recorded") {
  Contest contest;
  using Names = std::vector<std::string>;
  const auto prepared = [&](const Candidates& call) {
    contest.runs.clear();
    call.begin();
    CHECK(call.ready());
    return contest.runs;
  };
  const Digest key = fresh_key();
  const auto call = contest.of(2.0f, 1.0f, key);
  CHECK(prepared(*call) == Names{"library begins", "row begins", "library is awaited", "row is awaited"});
  contest.ran(*call);
  CHECK(prepared(*call) == Names{"row begins", "row is awaited"});
  CHECK(prepared(*contest.of(2.0f, 1.0f, key)) == Names{"row begins", "row is awaited"});
  // Which of candidates in order runs is known with the operands.
  CHECK(prepared(*contest.of(1.0f, 2.0f, fresh_key(), "row 1", Candidates::Choose::in_order)).size() == 4);
}

TEST_CASE("candidates: operands that are not aligned go to one that takes them, and are not measured") {
  Contest contest;
  const auto call = contest.of(2.0f, 1.0f, fresh_key());
  char* const odd = reinterpret_cast<char*>(uintptr_t{1 << 20} + 4);
  CHECK(contest.ran(*call, odd) == std::vector<std::string>{"library"});
  contest.ran(*call);
  CHECK(call->name() == "row");
  CHECK(contest.ran(*call, odd) == std::vector<std::string>{"library"});
  CHECK(contest.ran(*call) == std::vector<std::string>{"row"});

  const auto ordered = contest.of(1.0f, 2.0f, fresh_key(), "row 1", Candidates::Choose::in_order);
  CHECK(contest.ran(*ordered) == std::vector<std::string>{"row"});  // the first, without a measurement
  CHECK(contest.ran(*ordered, odd) == std::vector<std::string>{"library"});
}

TEST_CASE("embedded sources: files with what they include, by name") {
  const std::string text = cuda::cuda_source("target/cuda/handwritten/convolution/convolution.cu");
  CHECK(text.find("#include") == std::string::npos);
  const size_t first = text.find("typedef signed char i8;");
  REQUIRE(first != std::string::npos);
  CHECK(text.find("typedef signed char i8;", first + 1) == std::string::npos);
  CHECK(text.find("KERNEL(") > first);
  CHECK_THROWS_WITH_AS(cuda::cuda_source("target/cuda/none.cu"), doctest::Contains("none.cu"), std::exception);
  CHECK(cuda::Parameters()
            .entry("KERNEL", "k")
            .flag("a", true)
            .integer("b", -3)
            .integer("c", int64_t{1} << 40)
            .type("T", "float")
            .text() ==
        "#define KERNEL k\nconstexpr bool a = true;\nconstexpr int b = -3;\nconstexpr long long c = "
        "1099511627776;\nusing T = float;\n");
}

TEST_CASE("a row of the test on the device: compiled, measured beside the row of the table, and loses or wins") {
  if (!test::on_hopper()) return;
  cuda::Context& context = test::context();
  std::vector<cuda::HandwrittenKernel> table(cuda::handwritten_kernels().begin(), cuda::handwritten_kernels().end());
  table.push_back(cuda::handwritten_kernel("convolution"));
  table.back().name = "another convolution";
  const auto compile = [](const std::string& source) { return cuda::compile(source, "sm_90a"); };
  const cuda::HandwrittenKernels kernels(context, compile, target::stated_machine("NVIDIA H200"), table);
  const kernel::CallDesc desc = convolution("convolution");
  std::vector<cuda::Candidate> found = kernels.candidates(desc);
  REQUIRE(found.size() == 2);
  CHECK(found[0].version != found[1].version);
  const Candidates call(std::make_unique<cuda::EventTimer>(context, "test"), found, Candidates::Choose::by_measurement,
                        fresh_key());
  const std::vector<double> x = test::numbers(1024 * 14 * 14 * 32, 1), w = test::numbers(64 * 9 * 32, 2);
  const test::DeviceArray on_x(context, x, float32), on_w(context, w, float32),
      y(context, std::vector<double>(1024 * 14 * 14 * 64, NAN), float32);
  void* operands[] = {on_x.address(), on_w.address(), y.address()};
  call.run(operands);
  const std::vector<double> got = y.values();
  found[0].call->run(operands);
  CHECK(y.values() == got);
}
