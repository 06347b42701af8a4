// Two GPUs of one machine: arrays that pass between them, programs on each, memory of each. Skipped where there are
// fewer.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "device.h"
#include "runtime/buffer.h"
#include "runtime/peer.h"
#include "runtime/trace.h"
#include "target/target.h"
#include "weft/weft.h"

using namespace weft;

namespace {

const Device first(Device::gpu, 0), second(Device::gpu, 1);

bool two_gpus() {
  if (!test::on_gpu()) {
    MESSAGE("skipped: WEFT_TEST_DEVICE is not cuda");
    return false;
  }
  if (device_count(Device::gpu) >= 2) return true;
  MESSAGE("skipped: this machine has " << device_count(Device::gpu) << " GPU");
  return false;
}

/// The default device for a while.
struct On {
  explicit On(Device d) : before(default_device()) { set_default_device(d); }
  ~On() { set_default_device(before); }
  Device before;
};

struct Copies {
  int64_t in = runtime::counters().to_device, out = runtime::counters().to_host,
          across = runtime::counters().between_devices;
  int64_t to_device() const { return runtime::counters().to_device - in; }
  int64_t to_host() const { return runtime::counters().to_host - out; }
  int64_t between() const { return runtime::counters().between_devices - across; }
};

/// Numbers in [-1, 1] on the host.
array sample(const Shape& shape, double seed) {
  std::vector<float> v;
  for (int64_t k = 0; k < num_elements(shape); ++k)
    v.push_back(static_cast<float>(
        std::sin(seed + 12.9898 * static_cast<double>(k % 1000 + 1) * static_cast<double>(k % 7 + 1))));
  return array::from_data(v.data(), shape, float32);
}

runtime::Accelerator& device(int ordinal) { return *target::gpu(ordinal).device(); }
bool reaches(int device_number, int other) {
  return dynamic_cast<runtime::Peer&>(device(device_number)).reaches(device(other));
}

}  // namespace

TEST_CASE("two GPUs: buffers pass between them once, whatever their size, and back after they were overwritten") {
  if (!two_gpus()) return;
  MESSAGE("cuda:1 reaches cuda:0: " << reaches(1, 0) << ", cuda:0 reaches cuda:1: " << reaches(0, 1));
  for (const size_t bytes : {size_t{1}, size_t{1000}, (size_t{5} << 20) + 3, size_t{90} << 20}) {
    std::vector<unsigned char> pattern(bytes), back(bytes);
    for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<unsigned char>(i * 7 + (i >> 12));
    const runtime::BufferRef b = runtime::allocate_on(&device(0), bytes);
    device(0).to_device(b->on(&device(0)), pattern.data(), bytes);
    const int64_t waits = runtime::counters().device_waits;
    Copies copies;
    void* there = b->on(&device(1));
    CHECK(b->on(&device(1)) == there);
    CHECK(copies.between() == 1);
    CHECK(copies.to_host() + copies.to_device() == 0);
    CHECK(runtime::counters().device_waits.load() == waits);
    device(1).to_host(back.data(), there, bytes);
    CHECK((back == pattern));
    for (unsigned char& c : pattern) c = static_cast<unsigned char>(c ^ 0x5a);
    device(1).to_device(there, pattern.data(), bytes);
    b->overwritten_on(&device(1));
    CHECK(std::memcmp(b->data(), pattern.data(), bytes) == 0);
    device(0).to_host(back.data(), b->on(&device(0)), bytes);
    CHECK((back == pattern));
    CHECK(copies.to_host() == 1);
  }
}

TEST_CASE("two GPUs: operations take what another device has, and the results are the same") {
  if (!two_gpus()) return;
  const array a = sample({300, 200}, 1), b = sample({200, 100}, 2);
  const array expected = softmax(matmul(tanh(a, Device::cpu), b, Device::cpu), -1, false, Device::cpu);
  const array x = tanh(a, first);
  eval(x);
  Copies copies;
  const array y = matmul(x, b, second);
  eval(y);
  CHECK(copies.between() == 1);  // x; b comes from the host
  CHECK(copies.to_device() == 1);
  const array z = softmax(y, -1, false, first);
  eval(z);
  CHECK(copies.between() == 2);
  eval(sum(x, second));  // it has been there
  CHECK(copies.between() == 2);
  CHECK(copies.to_host() == 0);
  CHECK(max(abs(z - expected)).item<float>() < 2e-6f);
}

TEST_CASE("two GPUs: a chain that changes devices at every link follows the order of both") {
  if (!two_gpus()) return;
  const auto chain = [](bool both) {
    array x = sample({1 << 22}, 3);  // copies take longer than launches
    for (int k = 0; k < 40; ++k) {
      const Device where = both && k % 2 ? second : first;
      x = sin(multiply(x, array(1.5f), where), where);
      if (k % 5 == 0) eval(x);
      if (k % 7 == 0) async_eval(x);
    }
    return x.to_vector<float>();
  };
  CHECK((chain(true) == chain(false)));
  // Memory that is let go on one device while the other still reads it.
  for (int round = 0; round < 20; ++round) {
    array x = full({1 << 22}, array(static_cast<float>(round)), first);
    eval(x);
    const array y = add(x, array(1.0f), second);
    async_eval(y);
    x = full({1 << 22}, array(-1.0f), first);  // takes over the memory, once it is free
    async_eval(x);
    synchronize();
    CHECK(min(y, second).item<float>() == static_cast<float>(round + 1));
    CHECK(max(y, second).item<float>() == static_cast<float>(round + 1));
  }
}

TEST_CASE("two GPUs: a compiled step has a program and recordings on each, with the same bits") {
  if (!two_gpus()) return;
  std::vector<std::vector<float>> weights;
  array w = sample({64, 64}, 4);
  const auto step = compile([](const std::vector<array>& in) {
    const auto loss = [&](const array& v) { return mean(square(tanh(matmul(in[1], v)) - in[2])); };
    return std::vector<array>{in[0] - multiply(array(0.1f), grad(loss)(in[0]))};
  });
  const array x = sample({256, 64}, 5), y = sample({256, 64}, 6);
  for (const Device& d : {first, second, first}) {
    const On on(d);
    const int64_t replayed = runtime::counters().graph_launches;
    std::vector<array> v{w};
    for (int k = 0; k < 30; ++k) {
      v = step({v[0], x, y});
      eval(v[0]);
    }
    CHECK(runtime::counters().graph_launches > replayed);
    weights.push_back(v[0].to_vector<float>());
  }
  CHECK((weights[0] == weights[1]));
  CHECK((weights[0] == weights[2]));
  CHECK((weights[0] != w.to_vector<float>()));
}

TEST_CASE("two GPUs: library calls work on either") {
  if (!two_gpus()) return;
  const array spd = sample({300, 300}, 7), a = matmul(spd, transpose(spd, Device::cpu), Device::cpu) +
                                               multiply(array(300.0f), eye(300), Device::cpu);
  const array image = sample({4, 28, 28, 32}, 8), kernel = sample({32, 3, 3, 32}, 9),
              q = astype(sample({2, 4, 128, 64}, 10), bfloat16);
  std::vector<std::vector<float>> results[2];
  for (int k = 0; k < 2; ++k) {
    const On on(k == 0 ? first : second);
    for (const array& r : {linalg::cholesky(a), conv2d(image, kernel), real(fft::fft(spd)),
                           astype(fast::scaled_dot_product_attention(q, q, q, 0.125f), float32),
                           astype(matmul(astype(a, bfloat16), astype(a, bfloat16)), float32), sort(spd, -1)})
      results[k].push_back(r.to_vector<float>());
  }
  for (size_t r = 0; r < results[0].size(); ++r) {
    CAPTURE(r);
    REQUIRE(results[0][r].size() == results[1][r].size());
    double worst = 0, largest = 0;
    for (size_t i = 0; i < results[0][r].size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(results[0][r][i]) - static_cast<double>(results[1][r][i])));
      largest = std::max(largest, std::abs(static_cast<double>(results[0][r][i])));
    }
    CHECK(worst <= 1e-2 * largest);  // a search may choose another algorithm on the other
    CHECK(largest > 0);
  }
}

TEST_CASE("two GPUs: memory is counted, limited and missed on each by itself") {
  if (!two_gpus()) return;
  const size_t other = device(0).memory().active;
  const On on(second);
  const size_t before = get_active_memory();
  const array x = ones({1 << 20});
  eval(x);
  CHECK(get_active_memory() >= before + (size_t{4} << 20));
  CHECK(device(0).memory().active == other);
  set_memory_limit(get_active_memory() + (size_t{1} << 20));
  clear_cache();
  CHECK_THROWS_WITH_AS(eval(ones({1 << 24})), doctest::Contains("on cuda:1 ("), std::runtime_error);
  eval(ones({1 << 24}, float32, first));
  set_memory_limit(0);
  eval(ones({1 << 24}));
  CHECK_THROWS_WITH_AS(add(x, x, Device(Device::gpu, 77)), doctest::Contains("gpu:77"), std::invalid_argument);
}

TEST_CASE("two GPUs: threads work on one each, and on each other's results") {
  if (!two_gpus()) return;
  const array shared = sample({512, 512}, 11);
  std::vector<float> results[2];
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&, k] {
      const StreamContext context(k == 0 ? first : second);
      array x = shared;
      for (int i = 0; i < 20; ++i) {
        x = matmul(x, shared) * array(0.05f);
        if (i % 3 == 0) eval(x);
      }
      results[k] = x.to_vector<float>();
    });
  for (std::thread& t : threads) t.join();
  REQUIRE(results[0].size() == results[1].size());
  double worst = 0, largest = 0;
  for (size_t i = 0; i < results[0].size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(results[0][i] - results[1][i])));
    largest = std::max(largest, std::abs(static_cast<double>(results[0][i])));
  }
  CHECK(worst <= 1e-4 * largest);
}
