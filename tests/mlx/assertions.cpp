#include "mlx/assertions.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>

#include "mlx/differences.h"
#include "weft/compile.h"
#include "weft/ops.h"

namespace weft::test {

void check_assertions(const std::string& subject, const std::vector<Assertion>& assertions, const std::string& file) {
  Golden golden(file);
  std::map<std::string, const Case*> cases;
  for (const Case& c : golden.cases())
    if (c.name.starts_with(subject + "/")) cases[c.name.substr(subject.size() + 1)] = &c;
  size_t outputs = 0, agree = 0;
  for (const Assertion& assertion : assertions) {
    std::string title = subject + "/" + assertion.name;
    INFO(title);
    auto found = cases.find(assertion.name);
    REQUIRE_MESSAGE(found != cases.end(), "the file has no such case");
    const Case& c = *found->second;
    Arrays inputs = c.inputs();
    std::vector<std::string> wrong(c.out.size());  // what is wrong with each result
    auto compare = [&](const char* how, const std::function<Arrays()>& call) {
      Arrays results;
      std::string message, threw = thrown_by([&] { eval(results = call()); }, &message);
      if (!threw.empty()) message = std::string(how) + ": throws " + threw + ": " + message;
      else if (results.size() != c.out.size())
        message = std::string(how) + ": " + std::to_string(results.size()) + " results, MLX has " +
                  std::to_string(c.out.size());
      if (!message.empty()) {
        for (std::string& text : wrong) text = message;
        return;
      }
      for (size_t i = 0; i < results.size(); ++i) {
        std::string text = difference(results[i], c.out[i], assertion.bound);
        if (!text.empty()) wrong[i] += std::string(how) + ": " + text + ". ";
      }
    };
    compare("eager", [&] { return assertion.call(inputs); });
    if (assertion.compiles) {
      auto compiled = compile(assertion.call);
      compare("compiled", [&] { return compiled(inputs); });
      compare("compiled, second call", [&] { return compiled(inputs); });
    }
    for (size_t i = 0; i < wrong.size(); ++i) {
      bool listed = is_listed(title, i);
      agree += wrong[i].empty();
      if (wrong[i].empty() == listed)
        FAIL_CHECK(title << ", result " << i << ": " << (listed ? "is listed as different, and agrees" : wrong[i]));
    }
    outputs += c.out.size();
    cases.erase(found);
  }
  for (const auto& [name, c] : cases) FAIL_CHECK(subject << "/" << name << " is in the file, and not in the test");
  MESSAGE(subject << ": " << agree << " of " << outputs << " results agree");
}

Arrays gradient(const std::function<array(const Arrays&)>& f, const Arrays& arguments) {
  ScalarFunction weighted = [&](const Arrays& a) {
    array r = f(a);
    return sum(r * reshape(arange(1, static_cast<int>(r.size()) + 1), r.shape()));
  };
  std::vector<int> all(arguments.size());
  std::iota(all.begin(), all.end(), 0);
  return grad(weighted, all)(arguments);
}

}  // namespace weft::test
