// Streams: where operations run, overlap and order, asynchronous evaluation and its errors. Latches and events instead
// of time.
#include <doctest/doctest.h>

#include <latch>
#include <sstream>
#include <thread>

#include "runtime/executor.h"
#include "runtime/trace.h"
#include "weft/control.h"
#include "weft/memory.h"
#include "weft/ops.h"
#include "weft/stream.h"
#include "weft/transforms.h"

using namespace weft;

namespace {

// Holds a stream up until it is let go.
class Hold {
 public:
  explicit Hold(Stream s) { event_.wait(s); }
  ~Hold() { release(); }
  void release() { event_.signal(); }

 private:
  weft::Event event_;
};

}  // namespace

TEST_CASE("streams have names; the default belongs to the thread") {
  const StreamContext on_cpu(Device::cpu);
  const Stream first = default_stream(Device::cpu), s = new_stream(Device::cpu);
  CHECK(s != first);
  CHECK(first < s);
  CHECK(get_streams().size() >= 2);
  {
    StreamContext context(s);
    CHECK(default_stream(Device::cpu) == s);
    CHECK(to_stream(Device::cpu) == s);
    std::thread([&] { CHECK(default_stream(Device::cpu) != s); }).join();
  }
  CHECK(default_stream(Device::cpu) == first);
  std::ostringstream os;
  os << first;
  CHECK(os.str() == "Stream(Device(cpu, 0), 0)");
  const ThreadLocalStream local = new_thread_local_stream(Device::cpu);
  const Stream mine = stream_from_thread_local_stream(local);
  CHECK(stream_from_thread_local_stream(local) == mine);
  std::thread([&] { CHECK(stream_from_thread_local_stream(local) != mine); }).join();
  CHECK_THROWS_AS(to_stream(Stream(12345, Device::cpu)), std::invalid_argument);
  CHECK_THROWS_AS(new_stream(Device(Device::gpu, 99)), std::invalid_argument);
  CHECK_THROWS_AS(StreamContext(StreamOrDevice{}), std::runtime_error);
  CHECK_THROWS_AS(add(array(1), array(2), Stream(12345, Device::cpu)), std::invalid_argument);
}

TEST_CASE("async_eval returns before the values are there; looking at one waits") {
  const Stream s = new_stream();
  const array x = add(arange(5), array(1), s);
  Hold hold(s);
  async_eval(x);
  CHECK_FALSE(x.is_available());  // the stream is held up
  hold.release();
  CHECK(x.to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5});
  CHECK(x.is_available());
  const array y = multiply(x, array(2), s);
  async_eval(y);
  synchronize(s);
  CHECK(y.is_available());
}

TEST_CASE("two streams overlap: each waits for the other in the middle of its work") {
  const Stream a = new_stream(), b = new_stream();
  weft::Event from_a, from_b;
  const array x = arange(6), p = add(x, array(1), a), q = add(x, array(2), b);
  async_eval(p);
  from_a.signal(a);
  from_b.wait(a);  // a goes on only when b has come to its event, and the other way round
  async_eval(multiply(p, array(10), a));
  async_eval(q);
  from_b.signal(b);
  from_a.wait(b);
  const array r = multiply(q, array(10), b);
  async_eval(r);
  synchronize(a);
  synchronize(b);
  CHECK(p.is_available());
  CHECK(r.to_vector<int>() == std::vector<int>{20, 30, 40, 50, 60, 70});
}

TEST_CASE("values pass from stream to stream in order") {
  const Stream a = new_stream(), b = new_stream();
  const array x = arange(4);
  Hold hold(a);
  array v = add(x, array(1), a);
  for (int k = 0; k < 6; ++k) v = add(multiply(v, array(2), k % 2 ? a : b), array(1), b);
  async_eval(v);
  synchronize(default_stream(Device::cpu));
  CHECK_FALSE(v.is_available());
  hold.release();
  std::vector<int> expected{1, 2, 3, 4};
  for (int& n : expected)
    for (int k = 0; k < 6; ++k) n = 2 * n + 1;
  CHECK(v.to_vector<int>() == expected);
}

TEST_CASE("synchronous evaluation over several streams, with shared values and views") {
  const Stream a = new_stream(), b = new_stream();
  const array x = reshape(arange(6), {2, 3});
  const array shared = add(x, array(1), a), left = sum(shared, 0, false, b),
              right = multiply(transpose(shared, b), array(3), a);
  eval(left, right, shared);
  CHECK(left.to_vector<int>() == std::vector<int>{5, 7, 9});
  CHECK(right.to_vector<int>() == std::vector<int>{3, 12, 6, 15, 9, 18});
  const array t = transpose(x, a);
  eval(x);
  eval(t);
  CHECK(t.strides() == Strides{1, 3});
  const auto g = grad([&](const array& v) { return sum(square(v, a), false, b); })(array({1.f, 2.f}));
  CHECK(g.to_vector<float>() == std::vector<float>{2, 4});
}

TEST_CASE("an asynchronous error surfaces once, at the next wait, with the operation's name; the array stays pending") {
  const Stream s = new_stream();
  const array big = add(broadcast_to(arange(1000, float32), {1000, 1000}), array(1.5f), s);
  clear_cache();
  const size_t limit = set_memory_limit(1);
  async_eval(big);
  std::string message;
  try {
    synchronize(s);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  set_memory_limit(limit);
  CAPTURE(message);
  CHECK(message.find("[async_eval] add f32(1000,1000)") == 0);
  CHECK(message.find("[alloc]") != std::string::npos);
  CHECK_FALSE(big.is_available());
  CHECK_NOTHROW(synchronize(s));
  CHECK(sum(big, s).item<float>() == doctest::Approx(1000.0 * (499.5 + 1.5) * 1000));
}

TEST_CASE("brief asynchronous work is done where it is given, once its program has run") {
  const Stream s = new_stream();
  const array one = ones({64});
  array x = zeros({64});
  eval(one, x);
  x = add(x, one, s);
  async_eval(x);  // builds the program
  synchronize(s);
  const int64_t queued = runtime::counters().tasks_queued, built = runtime::counters().programs_built;
  for (int k = 0; k < 100; ++k) {
    x = add(x, one, s);
    async_eval(x);
    CHECK(x.is_available());
  }
  CHECK(runtime::counters().tasks_queued == queued);
  CHECK(runtime::counters().programs_built == built);
  {
    Hold hold(s);
    x = add(x, one, s);
    async_eval(x);
    CHECK_FALSE(x.is_available());  // it follows what was given before
  }
  CHECK(x.to_vector<float>() == std::vector<float>(64, 102));
}

TEST_CASE("long asynchronous work is handed over, and so is work whose cost is not known") {
  const Stream s = new_stream(Device::cpu);
  const array big = zeros({2000, 2000}), x = zeros({8}), one = ones({1}), matrix = eye(8);
  eval(big, x, one, matrix);
  const auto queued = [&](const auto& work) {
    eval(work());  // builds the program
    const int64_t before = runtime::counters().tasks_queued;
    const array result = work();
    async_eval(result);
    synchronize(s);
    return runtime::counters().tasks_queued - before;
  };
  const StreamContext on(s);
  CHECK(queued([&] { return add(x, one); }) == 0);
  CHECK(queued([&] { return add(big, one); }) == 1);
  const auto loop = [&] {
    return while_loop([](const std::vector<array>& v) { return sum(v[0]) < array(3.0f); },
                      [&](const std::vector<array>& v) { return std::vector<array>{v[0] + one}; }, {x})[0];
  };
  CHECK(queued(loop) == 1);
}

TEST_CASE("an error of brief asynchronous work surfaces once, at the next wait, with the operation's name") {
  const Stream s = new_stream();
  const array x = ones({24}), y = array({2.0f});
  eval(x, y);
  eval(subtract(x, y, s));
  const array difference = subtract(x, y, s);
  clear_cache();
  const size_t limit = set_memory_limit(1);
  CHECK_NOTHROW(async_eval(difference));
  std::string message;
  try {
    synchronize(s);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  set_memory_limit(limit);
  CAPTURE(message);
  CHECK(message.find("[async_eval] sub f32(24)") == 0);
  CHECK(message.find("[alloc]") != std::string::npos);
  CHECK_FALSE(difference.is_available());
  CHECK_NOTHROW(synchronize(s));
  CHECK(difference.to_vector<float>() == std::vector<float>(24, -1));
}

TEST_CASE("threads evaluate chains of brief work at once and later") {
  const Stream s = new_stream();
  const array one = ones({32});
  eval(one);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      array x = full({32}, static_cast<float>(t));
      for (int k = 0; k < 50; ++k) {
        x = add(x, one, s);
        if ((k + t) % 3 == 0) eval(x);
        else async_eval(x);
      }
      CHECK(x.to_vector<float>() == std::vector<float>(32, static_cast<float>(50 + t)));
    });
  for (std::thread& t : threads) t.join();
}

TEST_CASE("an error travels to the streams that wait for the value") {
  const Stream a = new_stream(), b = new_stream();
  const array big = add(broadcast_to(arange(1000, float32), {1000, 1000}), array(1.5f), a), total = sum(big, false, b);
  clear_cache();
  const size_t limit = set_memory_limit(1);
  async_eval(total);
  CHECK_THROWS_AS(synchronize(a), std::runtime_error);
  CHECK_THROWS_AS(synchronize(b), std::runtime_error);
  CHECK_THROWS_AS(total.eval(), std::runtime_error);
  set_memory_limit(limit);
  CHECK(total.item<float>() == doctest::Approx(501000000.0));
}

TEST_CASE("a buffer lives until the work that reads it is done") {
  const Stream s = new_stream();
  array y = array(0);
  Hold hold(s);
  {
    array x = arange(100000, float32) + 1.0f;
    x.eval();
    y = add(x, array(1.0f), s);
    async_eval(y);
  }  // the last handle to x is gone, its reader has not begun
  std::vector<array> others;
  for (int k = 0; k < 4; ++k) others.push_back(zeros({100000}) + static_cast<float>(k)), others.back().eval();
  hold.release();
  CHECK(y.to_vector<float>()[99999] == 100001.0f);
}

TEST_CASE("several threads evaluate one graph on several streams") {
  const Stream a = new_stream(), b = new_stream();
  for (int round = 0; round < 10; ++round) {
    const array x = add(arange(1000), array(round), a), y = multiply(transpose(reshape(x, {10, 100}), b), array(2), b);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] { CHECK((t % 2 ? y : x).to_vector<int>()[999] == (999 + round) * (t % 2 ? 2 : 1)); });
    for (std::thread& t : threads) t.join();
  }
  clear_streams();
  CHECK(add(array(1), array(2), a).item<int>() == 3);
}
