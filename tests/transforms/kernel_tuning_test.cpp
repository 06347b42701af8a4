// Configurations of kernels: which one is chosen, what becomes of those that crash, hang, lie or are refused, what is
// kept on disk, and who measures where several want to.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include "compiler/program.h"
#include "compiler/tune/trial.h"
#include "compiler/tune/tune.h"
#include "device.h"
#include "support.h"
#include "weft/compile.h"
#include "weft/kernel_function.h"

using namespace weft;
using namespace weft::testing;

namespace {

namespace fs = std::filesystem;

/// A cache folder of its own, and a tuner that knows nothing.
class FreshFolder {
 public:
  FreshFolder() : before_(std::getenv("WEFT_CACHE_DIR") ? std::getenv("WEFT_CACHE_DIR") : "") {
    std::string name = (fs::temp_directory_path() / "weft-tuning-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    ::setenv("WEFT_CACHE_DIR", path_.c_str(), 1);
    compiler::reset_tuning();
  }
  ~FreshFolder() {
    compiler::reset_tuning();
    if (before_.empty()) ::unsetenv("WEFT_CACHE_DIR");
    else ::setenv("WEFT_CACHE_DIR", before_.c_str(), 1);
    fs::remove_all(path_);
  }
  FreshFolder(const FreshFolder&) = delete;
  FreshFolder& operator=(const FreshFolder&) = delete;
  const fs::path& path() const { return path_; }

  /// The number of configurations of which something is kept.
  size_t kept() const {
    const fs::path folder = path_ / "tune-kernel";
    return fs::exists(folder) ? static_cast<size_t>(std::distance(fs::directory_iterator(folder), {})) : 0;
  }

 private:
  std::string before_;
  fs::path path_;
};

enum class Fault { none, lies, hangs, checks, crashes, refuses };

struct Way {
  int64_t block = 64;
  Fault fault = Fault::none;
  friend bool operator==(const Way&, const Way&) = default;
};

using Ways = std::vector<k::Configured<Way>>;

/// y = 3 x, in blocks, with a fault where the configuration has one.
auto triple_kernel(const std::string& name = "triple") {
  return k::kernel(name,
                   [](k::In<float, 1> x, k::Out<float, 1> y, Way way) {
                     const auto part = k::ds(k::program_id(0) * way.block, way.block);
                     if (way.fault == Fault::refuses) throw std::invalid_argument("no such way");
                     if (way.fault == Fault::checks) k::check(x(0).load() > 1000.f, "x is large");
                     if (way.fault == Fault::crashes) {
                       const auto all = k::scratch<float>({int64_t{1} << 40, 64});  // more than there are addresses
                       all(k::program_id(0) * (int64_t{1} << 30), k::all) = x(k::ds(0, 64));
                       y(part) = x(part) * all(0, 0).load();
                     }
                     if (way.fault == Fault::hangs)
                       k::while_([&] { return x(0).load() < 1000.f; }, [&] { y(part) = x(part); });
                     y(part) = x(part) * (way.fault == Fault::lies ? 3.5f : 3.f);
                   })
      .grid([](auto x, auto, const Way& way) { return k::Grid{k::cdiv(x.dim(0), way.block)}; });
}

array some(int n) { return array(3.f) + astype(arange(n), float32) / array(float(n)); }

/// What the tuner says of a call: its choice, with figures. A program that this process has built before is not built
/// again, and says what it said then: each test has lengths of its own.
std::string tuned(const std::function<array()>& call) {
  const compiler::BuildRecord record(true);
  const array y = call();
  eval(y);
  std::string text;
  for (const auto& program : record.programs()) text += program->print("tune");
  return text;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const Ways good{Way{64}, Way{128}, Way{256}};

}  // namespace

TEST_CASE("a kernel with configurations computes what it should, and says what was chosen") {
  const FreshFolder folder;
  const auto triple = triple_kernel().configs(good);
  const array x = some(1000);
  const std::string text = tuned([&] { return triple(x); });
  CAPTURE(text);
  CHECK(has(text, "kernel triple (kernel_tuning_test.cpp:"));
  for (const char* word : {"{64,0} ", "{128,0} ", "{256,0} "}) CHECK(has(text, word));
  CHECK(has(text, " ms"));
  CHECK(has(text, " -> {"));
  CHECK(!has(text, "in this process"));  // weft-try was found
  CHECK(folder.kept() == 3);
  check_close(astype(triple(x), float64), astype(x * array(3.f), float64), 1e-6);
  const compiler::BuildRecord record;
  const auto compiled = compile([&](const std::vector<array>& in) { return std::vector{triple(in[0])}; });
  check_close(astype(compiled({x})[0], float64), astype(x * array(3.f), float64), 1e-6);
  std::string step;  // as profiles show it
  for (const auto& program : record.programs())
    for (const compiler::StepInfo& s : program->steps())
      if (s.name.starts_with("triple ")) step = s.name;
  REQUIRE(step.starts_with("triple {"));
  CHECK(has(text, " -> " + step.substr(7)));
}

TEST_CASE("a process that comes later knows the choice, and measures what is new alone") {
  const FreshFolder folder;
  const array x = some(1010);
  const auto call = [&](const Ways& ways) { return tuned([&] { return triple_kernel().configs(ways)(x); }); };
  CHECK(!has(call(good), "recorded"));
  compiler::reset_tuning();  // as in a new process
  const array other = some(900);
  const std::string near = tuned([&] { return triple_kernel().configs(good)(other); });
  CAPTURE(near);
  CHECK(has(near, "recorded"));  // of the same bucket
  const std::string far = tuned([&] { return triple_kernel().configs(good)(some(5000)); });
  CHECK(!has(far, "recorded"));
  Ways more = good;
  more.push_back(Way{32});
  CHECK(has(call(more), "{32,0} "));
  CHECK(folder.kept() == 7);
}

TEST_CASE("configurations that crash, hang, lie or are refused drop out with the reason") {
  const FreshFolder folder;
  const Ways ways{Way{64}, Way{64, Fault::lies}, Way{64, Fault::hangs}, Way{64, Fault::checks}, Way{64, Fault::refuses},
                  Way{128}};
  const auto triple = triple_kernel().configs(ways).tune_options({.run_limit = 4, .repetitions = 3});
  const array x = some(200);
  const std::string text = tuned([&] { return triple(x); });
  CAPTURE(text);
  CHECK(has(text, "{64,1} computes something else than {64,0}"));
  CHECK(has(text, "{64,2} does not end: it was stopped after 4 s"));
  CHECK(has(text, "{64,3} "));
  CHECK(has(text, test::on_gpu() ? "CUDA_ERROR_LAUNCH_FAILED" : "x is large"));  // a GPU prints it
  CHECK(has(text, "{64,5} no such way"));
  check_close(astype(triple(x), float64), astype(x * array(3.f), float64), 1e-6);
  compiler::reset_tuning();
  const std::string again = tuned([&] { return triple_kernel().configs(ways)(some(201)); });
  CHECK(has(again, "recorded"));
}

TEST_CASE("no configuration works: each is named with its reason, and the failures are kept") {
  const FreshFolder folder;
  const Ways ways{Way{64, Fault::checks}, Way{64, Fault::refuses}, Way{64, Fault::hangs}};
  const auto triple = triple_kernel().configs(ways).tune_options({.run_limit = 4});
  const array x = some(100);
  const std::string text = message_of([&] { eval(triple(x)); });
  CAPTURE(text);
  CHECK(text.starts_with("[kernel triple] kernel_tuning_test.cpp:"));
  CHECK(has(text, ": no configuration works:\n"));
  CHECK(has(text, "{64,3}: the interpreter: "));
  CHECK(!has(text, "tile IR:"));  // the user's lines, not those of the text that the child has read
  CHECK(has(text, "{64,5}: no such way"));
  CHECK(has(text, "{64,2}: does not end"));
  CHECK(folder.kept() == 2);
  compiler::reset_tuning();
  const auto start = std::chrono::steady_clock::now();
  CHECK(message_of([&] { eval(triple(x)); }) == text);
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 0.9);  // not tried again
  CHECK(has(message_of([&] {
              triple_kernel().configs({Way{64, Fault::refuses}})(x);
            }),
            "[kernel triple] no configuration works:\n  {64,5}: no such way"));
}

TEST_CASE("a configuration that crashes does so in a process of its own") {
  const FreshFolder folder;
  const array x = some(3'000'000);  // more than the interpreter tries
  const std::string text = tuned([&] { return triple_kernel().configs({Way{4096, Fault::crashes}, Way{8192}})(x); });
  CAPTURE(text);
  // Sanitizers make an exit status of the signal. A GPU has no memory for it.
  CHECK(
      has(text, test::on_gpu() ? "{4096,4} [kernel triple] its tiles need " : "{4096,4} crashes: its process ended "));
  CHECK(has(text, "-> {8192,0}"));
}

TEST_CASE("a child that dies takes one configuration along") {
  const FreshFolder folder;
  // In place of weft-try a program that dies where it would run the second configuration.
  const fs::path script = folder.path() / "dies";
  std::ofstream(script)
      << "#!/bin/sh\n"
         "n=0; [ -f \"$0.n\" ] && read n < \"$0.n\"; echo $((n + 1)) > \"$0.n\"\n"
         "echo ready >&3\n"
         "if [ $n = 0 ]; then echo running 0 >&3; echo works 0 >&3; echo running 1 >&3; kill -SEGV $$\n"
         "elif [ $n = 1 ]; then echo running 2 >&3; echo works 2 >&3; echo done >&3; fi\n";
  fs::permissions(script, fs::perms::owner_all);
  const std::string before = compiler::set_trial_program(script.string());
  const std::string text = tuned([&] { return triple_kernel().configs(good)(some(100)); });
  compiler::set_trial_program(before);
  CAPTURE(text);
  CHECK(has(text, "{128,0} crashes: its process ended by signal 11"));
  CHECK((has(text, "-> {64,0}") || has(text, "-> {256,0}")));
}

TEST_CASE("without weft-try configurations are tried in this process, which is said") {
  const FreshFolder folder;
  const std::string before = compiler::set_trial_program("/nowhere/weft-try");
  const std::string text = tuned([&] { return triple_kernel().configs(good)(some(101)); });
  compiler::set_trial_program(before);
  CHECK(has(text, "in this process"));
}

TEST_CASE("choices are recorded and honoured") {
  const FreshFolder folder;
  const array x = some(300);
  tuned([&] { return triple_kernel().configs(good)(x); });
  auto choices = *compiler::parse_tuning_choices(compiler::tuning_choices());
  REQUIRE(choices.size() == 1);
  CHECK(choices.begin()->second.starts_with("config:{"));
  const std::string other = choices.begin()->second == "config:{64,0}" ? "{128,0}" : "{64,0}";
  choices.begin()->second = "config:" + other;
  const compiler::Policy policy = compiler::default_policy();
  compiler::Policy replay = policy;
  replay.choices = std::make_shared<const compiler::TuneChoices>(choices);
  compiler::set_default_policy(replay);
  const std::string text = tuned([&] { return triple_kernel().configs(good)(x); });
  compiler::set_default_policy(policy);
  CAPTURE(text);
  CHECK(has(text, "recorded -> " + other));
}

TEST_CASE("keys, pruning and ranks say what is measured") {
  const FreshFolder folder;
  const array x = some(512);
  const auto small = [](const Ways& all, const array& a) {
    Ways out;
    for (const auto& c : all)
      if (c.values.block < static_cast<int64_t>(a.size()) / 2) out.push_back(c);
    return out;
  };
  const std::string pruned = tuned([&] { return triple_kernel().configs(good).prune(small)(x); });
  CHECK(has(pruned, "{128,0} "));
  CHECK(!has(pruned, "{256,0}"));
  const auto seconds = [](const Way& way, const array&) { return 1.0 / static_cast<double>(way.block); };
  const auto best_two = triple_kernel().configs(good).rank(seconds, 2);
  const std::string ranked = tuned([&] { return best_two(x); });
  CAPTURE(ranked);
  CHECK(has(ranked, "{64,0} not measured, by rank"));
  CHECK(!has(ranked, "{128,0} not measured"));
  const Ways mixed{Way{64}, Way{256, Fault::checks}, Way{128, Fault::checks}};
  const std::string next = tuned([&] { return triple_kernel().configs(mixed).rank(seconds, 2)(x); });
  CHECK(has(next, "-> {64,0}"));  // what ranks first does not work
  const array y = some(1500);
  CHECK(has(tuned([&] { return triple_kernel().configs(good).rank(2)(y); }), "not measured, by rank"));
  const auto no_key = [](const array&) { return std::vector<int64_t>{7}; };
  CHECK(!has(tuned([&] { return triple_kernel().configs(good).key(no_key)(some(700)); }), "recorded"));
  const std::string keyed = tuned([&] { return triple_kernel().configs(good).key(no_key)(some(3000)); });
  CAPTURE(keyed);
  CHECK(has(keyed, "recorded"));
  CHECK(
      has(message_of([&] { triple_kernel().configs(good).prune([](const Ways&, const array&) { return Ways{}; })(x); }),
          "prune has left no configuration"));
}

namespace {

/// Counts its runs in an array, and fails where it does not begin with 0.
auto counting_kernel() {
  return k::kernel("counting",
                   [](k::In<float, 1> x, k::InOut<int32_t, 1> count, k::Out<float, 1> y, Way way) {
                     const auto part = k::ds(k::program_id(0) * way.block, way.block);
                     k::check(count(0).load() < 1, "count begins at 0");
                     y(part) = x(part) * 2.f;
                     k::when(k::program_id(0) == 0, [&] { count(1) = count(0).load() + 1; });
                   })
      .grid([](auto x, auto, auto, const Way& way) { return k::Grid{k::cdiv(x.dim(0), way.block)}; });
}

}  // namespace

TEST_CASE("arrays are reset and restored between runs") {
  const FreshFolder folder;
  const array x = some(256), count = zeros({2}, int32);
  const auto counting = counting_kernel().configs({Way{64}, Way{128}});
  // Random data is no counter.
  CHECK(has(message_of([&] { eval(std::get<1>(counting(x, count))); }), "count begins at 0"));
  const auto [after, y] = counting.reset({{1, 0}})(x, count);
  CHECK(after.to_vector<int32_t>()[1] == 1);
  CHECK(y.to_vector<float>()[0] == 2 * x.to_vector<float>()[0]);
  const auto [kept, z] = counting.reset({{1, 0}}).restore({1})(x, count);
  CHECK(kept.to_vector<int32_t>()[1] == 1);
  CHECK(has(message_of([&] { counting.restore({0})(x, count); }), "not k::InOut"));
  CHECK(has(message_of([&] { counting.reset({{5, 0}})(x, count); }), "reset names array 5"));
}

TEST_CASE("configurations with vmap, derivatives, and one of them alone") {
  const FreshFolder folder;
  const auto triple = triple_kernel().configs(good).tune_options({.repetitions = 1});
  const array x = reshape(some(600), {3, 200});
  const auto mapped = vmap([&](const std::vector<array>& in) { return std::vector{triple(in[0])}; });
  check_close(astype(mapped({x})[0], float64), astype(x * array(3.f), float64), 1e-6);
  const auto slope = grad([&](const array& a) { return sum(triple(a)); });
  check_close(astype(slope(some(100)), float64), astype(full({100}, 3.f), float64), 1e-6);
  CHECK(has(triple.config(Way{32}).program(some(100)).to_string(), "[32]"));
  const auto wide = triple.config(Way{32}, {.warps = 2, .stages = 3, .registers = 64});
  CHECK(has(wide.show("tile", some(100)), "any_size warps 2 stages 3 registers 64"));
  CHECK(has(message_of([&] { triple.config(Way{32}, {.warps = 5})(some(100)); }), "asks for 5 warps"));
}

TEST_CASE("one of two processes measures" * doctest::skip()) {
  const array x = some(1000);
  const std::string text = tuned([&] { return triple_kernel("shared").configs(good)(x); });
  const char* const file = std::getenv("WEFT_TUNING_REPORT");
  REQUIRE(file);
  std::ofstream(file, std::ios::app) << (has(text, "recorded") ? "recorded\n" : "measured\n");
}

TEST_CASE("two processes on one folder do not disturb each other") {
  const FreshFolder folder;
  const std::string report = (folder.path() / "report").string();
  ::setenv("WEFT_TUNING_REPORT", report.c_str(), 1);
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  const std::string one = "'" + self + "' --no-skip --test-case='one of two processes measures' > /dev/null";
  CHECK(std::system((one + " & " + one + "; wait").c_str()) == 0);
  ::unsetenv("WEFT_TUNING_REPORT");
  std::ifstream in(report);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  CHECK(lines == std::vector<std::string>{"measured", "recorded"});
  CHECK(folder.kept() == 3);
}
