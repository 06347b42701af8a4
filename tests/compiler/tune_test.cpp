// The tuner: its candidates agree, wrong ones are dropped, choices are kept, given back, and mean what the modes say.
#include "compiler/tune/tune.h"

#include <chrono>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "compiler/fresh_tuner.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "compiler/tune/bench.h"
#include "graph/regions/composites.h"
#include "runtime/cache_dir.h"
#include "runtime/trace.h"

using namespace weft;
using namespace weft::graph;
using namespace weft::compiler;
using namespace weft::compiler::testing;

namespace {

HostTensor random_tensor(const Shape& shape, Dtype dtype = float32, int64_t range = 0) {
  static std::mt19937_64 engine(11);
  std::normal_distribution<double> normal;
  HostTensor t{{shape, dtype}, {}};
  for (int64_t k = num_elements(shape); k > 0; --k)
    t.data.push_back(range > 0 ? Number::of_int(static_cast<int64_t>(engine() % static_cast<uint64_t>(range)))
                               : kernel::round_to(Number::of_real(normal(engine)), dtype));
  return t;
}

Policy with(Tuning tuning, std::shared_ptr<const TuneChoices> choices = nullptr) {
  Policy policy;
  policy.tuning = tuning;
  policy.choices = std::move(choices);
  return policy;
}

/// The CPU, with candidates that are slowed down or spoiled: `spoil` is told which of the kernels of one call to
/// compile a kernel is, and how many there were.
class SpoiledTarget : public target::Target {
 public:
  enum class Fault { none, slow, wrong, throws };
  using Spoil = std::function<Fault(size_t index, size_t count)>;
  explicit SpoiledTarget(Spoil spoil) : spoil_(std::move(spoil)) {
    machine_ = target::cpu().machine();
    machine_.vector_registers = 32;
    static int number = 0;  // keys of its own on disk, also for the next run of the test
    fingerprint_ = fmt::format("spoiled {} {}", ++number, std::chrono::system_clock::now().time_since_epoch().count());
  }
  std::string fingerprint() const override { return fingerprint_; }
  std::vector<std::shared_ptr<const target::Executable>> compile(std::span<const kernel::Kernel> kernels) override {
    auto all = target::cpu().compile(kernels);
    for (size_t k = 0; k < all.size(); ++k) all[k] = std::make_shared<Spoiled>(*this, all[k], spoil_(k, all.size()));
    return all;
  }
  std::shared_ptr<const target::LibraryCall> library(const kernel::DotDesc&) const override { return nullptr; }
  target::CompileStats stats() const override { return {}; }
  int runs = 0;
  int64_t longest = 0;  // the largest number that a kernel was given

 private:
  struct Spoiled : target::Executable {
    Spoiled(SpoiledTarget& t, std::shared_ptr<const target::Executable> i, Fault f)
        : target(t), inner(std::move(i)), fault(f) {}
    void run(std::span<const target::Segment> segments, double work) const override {
      ++target.runs;
      for (const int64_t n : segments[0].symbols) target.longest = std::max(target.longest, n);
      if (fault == Fault::throws) throw std::runtime_error("no such thing");
      inner->run(segments, work);
      if (fault == Fault::slow) std::this_thread::sleep_for(std::chrono::milliseconds(40));
      if (fault == Fault::wrong) static_cast<float*>(segments[0].buffers[0])[3] += 100;
    }
    SpoiledTarget& target;
    std::shared_ptr<const target::Executable> inner;
    Fault fault;
  };
  Spoil spoil_;
  std::string fingerprint_;
};

using Fault = SpoiledTarget::Fault;

/// A map of a quarter of a million elements: several widths, whose bits are the same.
Graph a_map() {
  Value x = parameter({{512, 512}, float32});
  return {{x}, {tanh(x) * x}};
}

std::string tuned(const Graph& g, target::Target& target, const Policy& policy) {
  return build({g, {}, {}}, target, policy)->print("tune");
}

/// Every choice of this process made this variant.
std::shared_ptr<const TuneChoices> all_set_to(const std::string& variant) {
  TuneChoices choices = *parse_tuning_choices(tuning_choices());
  for (auto& [key, choice] : choices) choice = variant;
  return std::make_shared<const TuneChoices>(std::move(choices));
}

/// The schedules that the tuner's notes name.
std::vector<std::string> schedules_in(const std::string& notes) {
  std::istringstream words(notes);
  std::vector<std::string> found;
  for (std::string word; words >> word;)
    if (word.find(";lanes=") != std::string::npos) found.push_back(word);
  return found;
}

}  // namespace

TEST_CASE("every variant of a group computes the same; bit by bit where nothing is summed in another order") {
  const FreshTuner fresh;
  struct Case {
    const char* name;
    Graph graph;
    std::vector<HostTensor> inputs;
    bool same_bits;
    double ulp;
  };
  std::vector<Case> cases;
  const auto add = [&](const char* name, Values outputs, Values inputs, std::vector<HostTensor> data, bool same_bits,
                       double ulp) {
    cases.push_back({name, {std::move(inputs), std::move(outputs)}, std::move(data), same_bits, ulp});
  };
  Value x = parameter({{300, 193}, float32}), y = parameter({{300, 193}, float32}),
        z = parameter({{193, 300}, float32}), i = parameter({{300}, int32});
  add("map", {gelu_tanh(x) * y}, {x, y}, {random_tensor({300, 193}), random_tensor({300, 193})}, true, 8);
  add("rows", {softmax(x, {1})}, {x}, {random_tensor({300, 193})}, false, 64);
  add("columns", {sum(x * y, {0})}, {x, y}, {random_tensor({300, 193}), random_tensor({300, 193})}, false, 2000);
  add("across", {x + permute(z, {1, 0})}, {x, z}, {random_tensor({300, 193}), random_tensor({193, 300})}, true, 0);
  add("gathered", {take(x, i, 0) * y}, {x, y, i},
      {random_tensor({300, 193}), random_tensor({300, 193}), random_tensor({300}, int32, 300)}, true, 0);
  Value deep = parameter({{600, 520}, float32});  // panels on a CPU
  add("panels", {sum(deep, {0})}, {deep}, {random_tensor({600, 520})}, false, 2000);
  Value h = parameter({{400, 256}, bfloat16});
  add("half", {exp(h) * h}, {h}, {random_tensor({400, 256}, bfloat16)}, true, 1);
  int others = 0;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    reset_tuning();
    const std::string notes = compile_and_run(c.graph, c.inputs, {}, with(Tuning::force)).program->print("tune");
    CHECK_MESSAGE(notes.find("rules ") != std::string::npos, notes);
    CHECK_MESSAGE(notes.find("wrong") == std::string::npos, notes);
    CHECK_MESSAGE(notes.find("fails") == std::string::npos, notes);
    const auto by_rules = compile_and_run(c.graph, c.inputs, {}, with(Tuning::off));
    const auto expected = evaluate_reference(c.graph, c.inputs);
    for (const std::string& variant : schedules_in(notes)) {
      CAPTURE(variant);
      const auto got = compile_and_run(c.graph, c.inputs, {}, with(Tuning::off, all_set_to(variant)));
      others += got.program->print("kernels") != by_rules.program->print("kernels");
      for (size_t k = 0; k < expected.size(); ++k) {
        CHECK(difference(got.outputs[k], expected[k], c.ulp, 1e-6) == "");
        if (c.same_bits) CHECK(difference(got.outputs[k], by_rules.outputs[k], 0) == "");
      }
    }
  }
  CHECK(others >= 8);
}

TEST_CASE("what a GPU may choose for sums of columns has the bits that it says, run by the CPU") {
  struct Columns final : weft::test::SimtTarget {
    Columns() { machine_ = target::gpu_of("sm_90a"); }
    std::string fingerprint() const override { return "sums of columns"; }
  } gpu;
  const FreshTuner fresh;
  for (const int64_t rows : {600, 4100}) {
    const Value x = parameter({{rows, 520}, float32});
    const std::string notes = tuned({{x}, {sum(x, {0})}}, gpu, with(Tuning::force));
    CHECK_MESSAGE(notes.find("rules ") != std::string::npos, notes);
    CHECK_MESSAGE(notes.find("wrong") == std::string::npos, notes);
  }
}

TEST_CASE("a faster candidate wins; one that is wrong or throws is dropped, however fast") {
  const FreshTuner fresh;
  SpoiledTarget slow([](size_t index, size_t count) { return count > 1 && index == 0 ? Fault::slow : Fault::none; });
  const std::string won = tuned(a_map(), slow, with(Tuning::on));
  CHECK_MESSAGE(won.find("-> rules") == std::string::npos, won);

  SpoiledTarget wrong([](size_t index, size_t count) {
    return count == 1 ? Fault::none : index == 0 ? Fault::slow : Fault::wrong;
  });
  const std::string dropped = tuned(a_map(), wrong, with(Tuning::on));
  CHECK_MESSAGE(dropped.find(" wrong") != std::string::npos, dropped);
  CHECK_MESSAGE(dropped.find("-> rules") != std::string::npos, dropped);

  SpoiledTarget throws([](size_t index, size_t count) {
    return count == 1 ? Fault::none : index == 0 ? Fault::slow : Fault::throws;
  });
  const std::string thrown = tuned(a_map(), throws, with(Tuning::on));
  CHECK_MESSAGE(thrown.find(" no such thing") != std::string::npos, thrown);
  CHECK_MESSAGE(thrown.find("-> rules") != std::string::npos, thrown);

  SpoiledTarget broken(
      [](size_t index, size_t count) { return count > 1 && index == 0 ? Fault::throws : Fault::none; });
  CHECK(tuned(a_map(), broken, with(Tuning::on)).find("the rules' code fails") != std::string::npos);
}

TEST_CASE("modes: off and cached measure nothing, on measures once, force once in a process") {
  const FreshTuner fresh;
  SpoiledTarget target([](size_t index, size_t count) { return count > 1 && index == 0 ? Fault::slow : Fault::none; });
  const Graph g = a_map();
  const auto runs_of = [&](Tuning tuning) {
    const int before = target.runs;
    const std::string text = tuned(g, target, with(tuning));
    return std::pair(target.runs - before, text);
  };
  CHECK(runs_of(Tuning::off) == std::pair(0, std::string()));
  CHECK(runs_of(Tuning::cached) == std::pair(0, std::string()));
  const auto [measured, first] = runs_of(Tuning::on);
  CHECK(measured > 3);
  const std::string choice = first.substr(first.rfind("-> "));
  CHECK(choice != "-> rules\n");
  for (const bool forgets : {false, true}) {  // the choice comes from the process, then from disk
    if (forgets) reset_tuning();
    for (const Tuning tuning : {Tuning::on, Tuning::cached}) {
      const auto [runs, text] = runs_of(tuning);
      CHECK(runs == 0);
      CHECK(text.substr(text.rfind("-> ")) == choice);
    }
  }
  CHECK(runs_of(Tuning::off) == std::pair(0, std::string()));
  reset_tuning();
  CHECK(runs_of(Tuning::force).first > 3);
  CHECK(runs_of(Tuning::force).first == 0);
}

TEST_CASE("an entry of the cache that is damaged or means nothing is a miss") {
  const FreshTuner fresh;
  SpoiledTarget target([](size_t index, size_t count) { return count > 1 && index == 0 ? Fault::slow : Fault::none; });
  tuned(a_map(), target, with(Tuning::on));
  const TuneChoices choices = *parse_tuning_choices(tuning_choices());
  REQUIRE(choices.size() == 1);
  const Digest key = choices.begin()->first;
  for (const std::string entry : {"garbage", "2 map;lanes=0:lanes", "2 wider", "77 rules", "2 ", ""}) {
    reset_tuning();
    runtime::cache_put("tune", key, entry.data(), entry.size());
    CHECK(tuned(a_map(), target, with(Tuning::cached)).empty());
    CHECK(tuned(a_map(), target, with(Tuning::on)).find("ms") != std::string::npos);
  }
}

TEST_CASE("choices are text, and a Program that is given them takes them in every mode") {
  const FreshTuner fresh;
  SpoiledTarget target([](size_t index, size_t count) { return count > 1 && index == 0 ? Fault::slow : Fault::none; });
  const Graph g = a_map();
  const auto first = build({g, {}, {}}, target, with(Tuning::on));
  const auto recorded = parse_tuning_choices(tuning_choices());
  reset_tuning();
  const int before = target.runs;
  for (const Tuning tuning : {Tuning::off, Tuning::cached, Tuning::on, Tuning::force}) {
    CHECK(build({g, {}, {}}, target, with(tuning, recorded))->print("kernels") == first->print("kernels"));
    CHECK(*parse_tuning_choices(tuning_choices()) == *recorded);  // and they go on into the next checkpoint
  }
  CHECK(target.runs == before);
  CHECK(build({g, {}, {}}, target, with(Tuning::off))->print("kernels") != first->print("kernels"));
  CHECK(with(Tuning::off, recorded).digest() != with(Tuning::off).digest());

  CHECK(parse_tuning_choices("")->empty());
  for (const char* text : {"x", "00 1", "0123456789abcdef0123456789abcdeg 1", "0123456789abcdef0123456789abcdef",
                           "0123456789abcdef0123456789abcdef 6", "0123456789abcdef0123456789abcdef -1"})
    CHECK_THROWS_WITH_AS(parse_tuning_choices(text), doctest::Contains("[parse_tuning_choices]"),
                         std::invalid_argument);
}

TEST_CASE(
    "without time left the rules stand: recorded where other candidates have other bits, open where they have the "
    "same") {
  const FreshTuner fresh;
  set_tuning_budget(0);
  SpoiledTarget target([](size_t, size_t) { return Fault::none; });
  CHECK(tuned(a_map(), target, with(Tuning::on)).find("no time left") != std::string::npos);
  CHECK(tuning_choices().empty());
  Value x = parameter({{300, 512}, float32});
  const Graph rows{{x}, {softmax(x, {1})}};
  CHECK(tuned(rows, target, with(Tuning::on)).find("no time left") != std::string::npos);
  CHECK(parse_tuning_choices(tuning_choices())->size() == 1);
  CHECK(target.runs == 0);
  set_tuning_budget(1e9);
  reset_tuning();
  const std::string later = tuned(rows, target, with(Tuning::on));
  CHECK_MESSAGE(later.find("recorded -> rules") != std::string::npos, later);
}

TEST_CASE("a product goes to the library or to generated code, as is chosen") {
  const FreshTuner fresh;
  Value a = parameter({{160, 192}, float32}), b = parameter({{192, 256}, float32}), c = parameter({{256}, float32});
  const Graph g{{a, b, c}, {dot(a, b, {1}, {0}) + broadcast(c, {160, 256})}};
  const std::vector<HostTensor> inputs{random_tensor({160, 192}), random_tensor({192, 256}), random_tensor({256})};
  const auto library = compile_and_run(g, inputs, {}, with(Tuning::off));
  if (library.program->stats().library_calls == 0) return;  // built without libraries
  const std::string notes = compile_and_run(g, inputs, {}, with(Tuning::force)).program->print("tune");
  CHECK_MESSAGE(notes.find(", product ") != std::string::npos, notes);
  CHECK_MESSAGE(notes.find("wrong") == std::string::npos, notes);
  const auto own = compile_and_run(g, inputs, {}, with(Tuning::off, all_set_to("product")));
  CHECK(own.program->stats().library_calls == 0);
  CHECK(difference(own.outputs[0], library.outputs[0], 64, weft::test::on_gpu() ? 3e-5 : 1e-5) == "");
}

TEST_CASE("groups with equal code share a choice and stay one launch") {
  const FreshTuner fresh;
  SpoiledTarget target([](size_t index, size_t count) { return count > 1 && index == 0 ? Fault::slow : Fault::none; });
  Value x = parameter({{1 << 18}, float32}), y = parameter({{1 << 17}, float32}), z = parameter({{100}, float32});
  const Graph g{{x, y, z}, {tanh(x) * x, tanh(y) * y, tanh(z) * z}};
  const Source source{g, {}, {{0, 0}, {1, 1}, {2, 2}}};
  CHECK(build(source, target, with(Tuning::off))->stats().launches == 1);
  const auto program = build(source, target, with(Tuning::on));
  CHECK_MESSAGE(program->print("tune").find("-> rules") == std::string::npos, program->print("tune"));
  CHECK(program->stats().launches == 1);
}

TEST_CASE("eager evaluation measures nothing") {
  const FreshTuner fresh;
  const Policy before = default_policy();
  set_default_policy(with(Tuning::force));
  const Value value = tanh(iota({512, 512}, 1, float32));
  const BuildRecord record;
  evaluate(std::vector<Value>{value});
  set_default_policy(before);
  REQUIRE(record.programs().size() == 1);
  CHECK(record.programs()[0]->print("tune").find(" ms") == std::string::npos);
  CHECK(build({Graph{{}, {tanh(iota({512, 512}, 1, float32))}}, {}, {}}, target::cpu(), with(Tuning::force))
            ->print("tune")
            .find("ms") != std::string::npos);
}

TEST_CASE("of a long map only a part is measured") {
  const FreshTuner fresh;
  SpoiledTarget target([](size_t index, size_t count) { return count > 1 && index == 0 ? Fault::slow : Fault::none; });
  Value x = parameter({{3, 1 << 20}, float32});
  const std::string text = tuned({{x}, {x + 1}}, target, with(Tuning::on));
  CHECK_MESSAGE(text.find("-> rules") == std::string::npos, text);
  CHECK(target.longest == 1 << 21);
  const std::vector<HostTensor> inputs{random_tensor({3, 1 << 20})};
  const auto program = build({{{x}, {x + 1}}, {}, {}}, target, with(Tuning::cached));
  std::vector<graph::Storage> storages{to_storage(inputs[0])};
  const HostTensor got = from_storage(program->run(storages)[0], x.type());
  CHECK(got.data.back().real() == static_cast<double>(static_cast<float>(inputs[0].data.back().real() + 1)));
  CHECK(target.longest == 3 << 20);
}

TEST_CASE("the workbench: data in range, updates from fresh data, equal within what roundings change") {
  TuneItem item;
  item.buffers = {{0, {int32, 4000, 0, 4000, 7, false, false}}, {1, {bfloat16, 4000, 0, 2000, 0, true, true}}};
  TuneBench bench(item, nullptr);
  bench.fill(true);
  const auto first = bench.results();
  REQUIRE(first.size() == 1);  // what is not written is no result
  CHECK(first[0].size() == 2000);
  CHECK(bench.mostly_finite(first));
  auto other = first;
  auto* numbers = reinterpret_cast<uint16_t*>(other[0].data());
  numbers[5] ^= 1;
  CHECK_FALSE(bench.agree(first, other, true));
  CHECK(bench.agree(first, other, false));
  numbers[5] = float_to_bf16(3);
  CHECK_FALSE(bench.agree(first, other, false));
  numbers[5] = float_to_bf16(NAN);
  CHECK_FALSE(bench.agree(first, other, false));
  struct Look : target::LibraryCall {
    std::string name() const override { return "look"; }
    void run(std::span<void* const> operands) const override {
      const auto* indices = static_cast<const int32_t*>(operands[0]);
      low = *std::min_element(indices, indices + 1000), high = *std::max_element(indices, indices + 1000);
      auto* values = static_cast<uint16_t*>(operands[1]);
      seen.push_back(values[0]);
      values[0] = float_to_bf16(bf16_to_float(values[0]) * 2);
    }
    mutable int low = 0, high = 0;
    mutable std::vector<uint16_t> seen;
  };
  const auto look = std::make_shared<Look>();
  const TuneCandidate candidate{{}, nullptr, {}, look, {{0, 0}, {1, 0}}, true};
  for (int k = 0; k < 2; ++k) bench.run(candidate, nullptr);
  CHECK(look->low == 0);
  CHECK(look->high == 6);
  CHECK(look->seen[0] == look->seen[1]);
}

TEST_CASE("measuring shows in the timeline") {
  const FreshTuner fresh;
  SpoiledTarget target([](size_t, size_t) { return Fault::none; });
  runtime::start_recording();
  const auto program = build({a_map(), {}, {}}, target, with(Tuning::on));
  const runtime::Timeline timeline = runtime::stop_recording();
  double us = 0;
  for (const runtime::Slice& slice : timeline.slices)
    if (timeline.names[static_cast<size_t>(slice.name)] == "measure" && std::string(slice.kind) == "compiler")
      us += slice.length;
  CHECK(us > 0);
  CHECK(program->stats().tune_ms * 1e3 >= 0.9 * us);
}

TEST_CASE("what there is no time for is passed over, and what comes after it is measured") {
  const FreshTuner fresh;
  kernel::Builder b("ones");
  const kernel::Ref y = b.param("y", float32, true);
  b.store(y, b.real(float32, 1, {16}), b.index(0), {1});
  auto code = std::make_shared<Lowered>();
  code->kernel = b.finish(), code->params = {0}, code->grid = 1;
  TuneItem quick;
  for (int repeat = 0; repeat < 2; ++repeat) {
    TuneCandidate candidate;
    candidate.code = code, candidate.params = {0};
    quick.candidates.push_back(candidate);
  }
  TuneBuffer& buffer = quick.buffers[0];
  buffer.bytes = buffer.used = 64, buffer.written = true;
  TuneItem slow = quick;
  slow.seconds = 1e12;
  const std::vector<TuneResult> results = measure({slow, quick, slow, slow, quick}, target::cpu());
  REQUIRE(results.size() == 5);
  for (const size_t k : {0, 2, 3}) CHECK(results[k].note.find("no time left") != std::string::npos);
  for (const size_t k : {1, 4}) CHECK(results[k].note.find(" ms") != std::string::npos);
}
