// The table of patterns × dtypes × machines: launches and bytes are contracts, results are held against float64.
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "compiler/contract/patterns.h"
#include "compiler/null_machine.h"
#include "compiler/simt_target.h"
#include "compiler/support.h"
#include "compiler/verify/semantic.h"
#include "thinning.h"
#include "transforms/traced.h"
#include "weft/ops.h"

using namespace weft;
using namespace weft::compiler;
using namespace weft::compiler::testing;
using graph::Graph;

namespace {

const std::string path = std::string(WEFT_SOURCE_DIR) + "/tests/compiler/contract/contracts.txt";

/// What a program for a machine takes: launches, library calls and copies, and the bytes that they read and write.
struct Taken {
  int launches = 0;
  int64_t bytes = 0;
  bool operator==(const Taken&) const = default;
};

/// A pattern's graph; its inputs behind the arguments are the numbers that the function refers to.
struct Traced {
  Source source;
  std::vector<HostTensor> numbers;
};

Traced traced(const Pattern& p, const std::vector<graph::Type>& types) {
  transforms::FunctionGraph f = transforms::graph_of(p.function, types);
  Traced out{{std::move(f.graph), {}, p.updates}, {}};
  for (const array& a : f.captured) {
    HostTensor t{out.source.graph.inputs[types.size() + out.numbers.size()].type(), {}};
    for (const double v : astype(a, float64).to_vector<double>())
      t.data.push_back(is_float(t.type.dtype) ? Number::of_real(v) : Number::of_int(static_cast<int64_t>(v)));
    out.numbers.push_back(std::move(t));
  }
  return out;
}

Taken taken(const Source& source, target::Target& target) {
  const auto program = build(source, target);
  Taken out{program->stats().count(), 0};
  for (const StepInfo& step : program->steps()) out.bytes += static_cast<int64_t>(step.bytes);
  return out;
}

int64_t bytes_of(const graph::Type& type) { return num_elements(type.shape) * static_cast<int64_t>(type.dtype.size()); }

/// Returns the bytes of results and of arguments that are read once; of sparse arguments the rows of the result.
int64_t floor_of(const Pattern& p, const Graph& g) {
  const auto nodes = graph::topological(g.outputs);
  int64_t bytes = 0;
  for (const graph::Value& v : g.outputs) bytes += bytes_of(v.type());
  for (size_t k = 0; k < p.counted.size(); ++k) {
    if (std::find(nodes.begin(), nodes.end(), g.inputs[k].node) == nodes.end()) continue;
    const bool sparse = std::find(p.sparse.begin(), p.sparse.end(), k) != p.sparse.end();
    bytes += bytes_of(sparse ? g.outputs[0].type() : g.inputs[k].type());
  }
  return bytes;
}

std::string line_of(const std::string& name, Dtype t, const std::vector<Taken>& all, int launches, int64_t bytes) {
  std::string line = fmt::format("{:<32} {:<9}", name, dtype_name(t));
  for (const Taken& taken : all) line += fmt::format(" {:>3} {:>11}", taken.launches, taken.bytes);
  return line + fmt::format(" | {} {}", launches, bytes);
}

/// A line of the file without what stands behind '#', and whether that says anything.
struct Line {
  std::string numbers, reason;
};

/// Returns the lines by their first 42 characters, pattern and dtype, and the comments in front of them.
std::map<std::string, Line> stated(std::string* head = nullptr) {
  std::ifstream file(path);
  REQUIRE(file);
  std::map<std::string, Line> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') {
      if (head) *head += line + "\n";
      continue;
    }
    const size_t at = line.find('#');
    Line parsed{line.substr(0, at), at == std::string::npos ? "" : line.substr(at)};
    parsed.numbers.erase(parsed.numbers.find_last_not_of(' ') + 1);
    out[line.substr(0, 42)] = parsed;
  }
  return out;
}

}  // namespace

TEST_CASE("patterns take the launches and the bytes that the table states") {
  weft::test::NullMachine avx2("avx2"), h200("NVIDIA H200"), a100("NVIDIA A100");
  std::string head, written;
  std::map<std::string, Line> table = stated(&head);
  for (const Dtype t : {float32, bfloat16, float16})
    for (const Pattern& p : patterns(t)) {
      const Source source = traced(p, p.counted).source;
      std::vector<Taken> all;
      for (weft::test::NullMachine* target : {&avx2, &h200, &a100}) all.push_back(taken(source, *target));
      const int64_t bytes = floor_of(p, source.graph);
      const std::string line = line_of(p.name, t, all, p.launches, bytes), key = line.substr(0, 42);
      CAPTURE(key);
      const Line known = table[key];
      written += line + (known.reason.empty() ? "" : "  " + known.reason) + "\n";
      table.erase(key);
      if (std::getenv("WEFT_UPDATE_GOLDEN")) continue;
      CHECK(line == known.numbers);
      // A count off its floor has a reason beside it: 2 % are vectors and scratch.
      bool off = false;
      for (const Taken& taken : all)
        off =
            off || taken.launches > p.launches || static_cast<double>(taken.bytes) > 1.02 * static_cast<double>(bytes);
      CHECK(off == !known.reason.empty());
    }
  for (const auto& [key, line] : table) FAIL_CHECK("no pattern is called ", key);
  if (std::getenv("WEFT_UPDATE_GOLDEN")) std::ofstream(path) << head << written;
}

TEST_CASE("patterns compute what they do in float64, by the CPU's schedules and a GPU's") {
  weft::test::SimtTarget gpu;
  const std::vector<Pattern> wide = patterns(float64);
  for (const Dtype t : {float32, bfloat16, float16}) {
    const std::vector<Pattern> all = patterns(t);
    for (size_t k = 0; k < all.size(); ++k) {
      CAPTURE(all[k].name);
      Pattern p = all[k], exact = wide[k];
      p.updates.clear(), exact.updates.clear();
      const Traced narrow = traced(p, p.computed), reference = traced(exact, exact.computed);
      graph::testing::Random r(7);
      std::vector<HostTensor> inputs, widened;
      for (size_t i = 0; i < p.computed.size(); ++i) {
        inputs.push_back(graph::testing::random_tensor(r, p.computed[i], {0.1, 1, 0, 4}));
        widened.push_back({exact.computed[i], inputs.back().data});
      }
      inputs.insert(inputs.end(), narrow.numbers.begin(), narrow.numbers.end());
      widened.insert(widened.end(), reference.numbers.begin(), reference.numbers.end());
      const std::vector<HostTensor> expected = evaluate_reference(reference.source.graph, widened);
      for (target::Target* target : {&weft::test::target_under_test(), static_cast<target::Target*>(&gpu)}) {
        // Float32 has both targets, a 16-bit type one or the other by turns.
        const bool other = (k + (t == bfloat16)) % 2 == 0;
        if ((t != float32 && other == (target == &gpu)) || !weft::test::taken(static_cast<int64_t>(k))) continue;
        std::vector<graph::Storage> storages;
        for (const HostTensor& tensor : inputs) storages.push_back(to_storage(tensor));
        const auto results = build(narrow.source, *target)->run(storages);
        std::vector<HostTensor> got;
        for (size_t o = 0; o < results.size(); ++o) {
          got.push_back(from_storage(results[o], narrow.source.graph.outputs[o].type()));
        }
        std::vector<HostTensor> rounded = expected;
        for (size_t o = 0; o < got.size(); ++o) rounded[o].type = got[o].type;
        CHECK(disagreement(got, rounded, 2e-5) == "");
      }
    }
  }
}
