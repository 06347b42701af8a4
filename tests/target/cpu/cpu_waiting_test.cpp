// Programs that wait for each other on the CPU target, with as many threads as there are and with one.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "runtime/threads.h"
#include "target/waiting_cases.h"

using namespace weft;
using namespace weft::test;

namespace {

constexpr double much_work = 1e9;  // that is divided among threads

/// Sets the number of threads while it lives.
class Threads {
 public:
  explicit Threads(int n) : before_(runtime::num_threads()) { runtime::set_num_threads(n); }
  ~Threads() { runtime::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace

TEST_CASE("programs that wait for each other give the interpreter's bits on a CPU") {
  for (const RandomCase& c : waiting_cases()) agree(c);
  for (const RandomCase& c : cluster_cases()) agree(c);
}

TEST_CASE("programs that wait for each other end, whatever threads there are") {
  for (const int threads : {1, 2, 4}) {
    const Threads set(threads);
    for (const RandomCase& c : waiting_cases()) {
      RandomCase got = c;
      run_compiled(*cpu_target("native"), got, much_work);
      const std::string d = difference(interpreted(c), got);
      CHECK_MESSAGE(d.empty(), d);
    }
  }
}

TEST_CASE("a barrier to which not all programs come is a failure of the launch on a CPU") {
  const k::Program program =
      k::trace("stuck", {test_kernels::array_of(k::Use::in_out, int32, {3})}, {3}, [](std::span<const k::AnyRef> r) {
        const k::InOut<int32_t, 1> y(r[0]);
        const auto most = k::where(k::program_id(0) == 1, k::scalar<int64_t>(0), k::scalar<int64_t>(1));
        k::loop(most, [](k::Index) { k::grid_barrier(); });
        y(k::program_id(0)) = k::scalar<int32_t>(1);
      });
  RandomCase c = case_of(program);
  std::string message;
  try {
    run_compiled(*cpu_target("native"), c);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  CHECK(message.find("[kernel stuck]") != std::string::npos);
  CHECK(message.find("deadlock: programs wait for others that have ended, or wait as well") != std::string::npos);
}
