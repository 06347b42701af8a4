// Memory that arrays share with other code: borrowed from it with any strides, lent to it, and never written. With
// WEFT_TEST_DEVICE=cuda also memory and streams of a GPU.
#include "weft/interop.h"

#include <doctest/doctest.h>

#include <cstring>
#include <future>
#include <numeric>
#include <string>
#include <vector>

#include "device.h"
#include "examples/kernels/foreign_stream.h"
#include "runtime/trace.h"
#include "weft/weft.h"

using namespace weft;

namespace {

std::vector<float> numbers(size_t n) {
  std::vector<float> out(n);
  std::iota(out.begin(), out.end(), 1.0f);
  return out;
}

/// The message of the std::invalid_argument that f throws.
template <class F>
std::string refusal(const F& f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an array of borrowed memory shares it, and gives it back once when nobody needs it") {
  std::vector<float> memory = numbers(6);
  int released = 0;
  {
    const array x = borrow({.data = memory.data(), .shape = {2, 3}, .release = [&] { ++released; }});
    CHECK(x.raw_data() == memory.data());
    CHECK(device_of(x) == Device(Device::cpu));
    const array view = transpose(x);
    CHECK(sum(x, StreamOrDevice(Device::cpu)).item<float>() == 21);
    CHECK(view.to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("borrowed memory has any strides: of a part, reversed, repeated, transposed") {
  std::vector<float> memory = numbers(12);
  const auto elements = [&](float* first, Shape shape, std::vector<int64_t> strides) {
    return borrow({.data = first, .shape = std::move(shape), .strides = std::move(strides)}).to_vector<float>();
  };
  CHECK(elements(memory.data(), {2, 2}, {6, 2}) == std::vector<float>{1, 3, 7, 9});
  CHECK(elements(memory.data() + 11, {3}, {-2}) == std::vector<float>{12, 10, 8});
  CHECK(elements(memory.data() + 5, {2, 2}, {1, -4}) == std::vector<float>{6, 2, 7, 3});
  CHECK(elements(memory.data() + 4, {2, 2}, {0, 1}) == std::vector<float>{5, 6, 5, 6});
  CHECK(elements(memory.data(), {3, 2}, {1, 3}) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(elements(memory.data() + 7, {}, {}) == std::vector<float>{8});
  const array reversed = borrow({.data = memory.data() + 11, .shape = {12}, .strides = {-1}});
  CHECK(sum(reversed * array(numbers(12).begin(), Shape{12})).item<float>() == 364);
}

TEST_CASE("memory without elements, or not aligned, is copied and given back at once") {
  int released = 0;
  const array none = borrow({.data = nullptr, .shape = {0, 4}, .release = [&] { ++released; }});
  CHECK(none.size() == 0);
  CHECK(released == 1);
  std::vector<std::byte> bytes(13);
  const std::vector<float> values = numbers(3);
  std::memcpy(bytes.data() + 1, values.data(), 12);
  const array x = borrow({.data = bytes.data() + 1, .shape = {3}, .strides = {1}, .release = [&] { ++released; }});
  CHECK(released == 2);
  CHECK(x.to_vector<float>() == values);
}

TEST_CASE("borrowed memory is not written, though nobody else has the array") {
  std::vector<float> memory(64, 1.0f);
  array state = borrow({.data = memory.data(), .shape = {64}});
  const auto step = compile(
      [&](const std::vector<array>& in) {
        state = state + in[0];
        return std::vector<array>{sum(state)};
      },
      {.state = {&state}});
  for (int k = 1; k <= 3; ++k) CHECK(step({array(1.0f)})[0].item<float>() == 64.0f * static_cast<float>(k + 1));
  CHECK(state.to_vector<float>() == std::vector<float>(64, 4.0f));
  CHECK(memory == std::vector<float>(64, 1.0f));
}

TEST_CASE("lent elements are those of the array, computed and row-major on the CPU, and outlive it") {
  const auto lent = [] {
    const array x = transpose(reshape(arange(6, float32), {2, 3}));
    return lend(x + 1, RawStream{});
  }();
  CHECK(lent.shape() == Shape{3, 2});
  CHECK(lent.strides() == Strides{2, 1});
  CHECK(lent.dtype() == float32);
  CHECK(lent.device() == Device(Device::cpu));
  const auto* data = static_cast<const float*>(lent.data());
  CHECK(std::vector<float>(data, data + 6) == std::vector<float>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("a duplicate has memory of its own") {
  std::vector<float> memory = numbers(4);
  const array x = borrow({.data = memory.data(), .shape = {2, 2}}), y = duplicate(x, Device::cpu);
  const array turned = duplicate(transpose(x), Device::cpu);
  memory[0] = 9;
  CHECK(x.to_vector<float>() == std::vector<float>{9, 2, 3, 4});
  CHECK(y.to_vector<float>() == std::vector<float>{1, 2, 3, 4});
  CHECK(turned.to_vector<float>() == std::vector<float>{1, 3, 2, 4});
}

TEST_CASE("what cannot be borrowed or lent is refused with what to do") {
  float memory[4] = {};
  CHECK(refusal([&] { borrow({.data = memory, .shape = {-1}}); }).starts_with("[borrow] lengths are numbers"));
  CHECK(refusal([&] { borrow({.data = memory, .shape = {symbol("n", 4)}}); }).starts_with("[borrow] lengths"));
  CHECK(refusal([&] {
          borrow({.data = memory, .shape = {2, 2}, .strides = {1}});
        }) == "[borrow] 1 strides for shape (2,2): give one for each axis, or none");
  CHECK(refusal([&] { borrow({.data = nullptr, .shape = {2}}); }) ==
        "[borrow] memory of shape (2) has elements, but its pointer is null");
  const Device absent(Device::gpu, device_count(Device::gpu));
  CHECK(refusal([&] { borrow({.data = memory, .shape = {2}, .stream = {absent}}); }).starts_with("[borrow] device"));
  CHECK(refusal([&] { lend(array(1.0f), absent); }).starts_with("[lend] device gpu"));
  CHECK(refusal([&] { RawStreamContext context({absent}); }).starts_with("[RawStreamContext] device gpu"));
  CHECK(refusal([&] { borrowing_stream(absent); }).starts_with("[borrowing_stream] device gpu"));
  int released = 0;
  refusal([&] { borrow({.data = nullptr, .shape = {2}, .release = [&] { ++released; }}); });
  CHECK(released == 0);
}

TEST_CASE("a context of the CPU makes it the device of operations") {
  const RawStreamContext context({});
  CHECK(device_of(arange(3) + 1) == Device(Device::cpu));
  CHECK(borrowing_stream(Device::cpu).handle == nullptr);
}

TEST_CASE("memory of a GPU is borrowed and lent in the order of a stream, and the host does not wait") {
  if (!test::on_gpu()) return;
  ForeignStream others;
  const RawStream stream{Device::gpu, others.handle()};
  const array host = reshape(arange(12, float32), {3, 4}, Device::cpu);
  void* const memory = others.copy_of(host);
  int released = 0;
  {
    const array x = borrow({.data = memory, .shape = {3, 4}, .stream = stream, .release = [&] { ++released; }});
    CHECK(device_of(x) == Device(Device::gpu));
    const int64_t in = runtime::counters().to_device, out = runtime::counters().to_host,
                  waits = runtime::counters().device_waits;
    const RawStreamContext context(stream);
    CHECK(borrowing_stream(Device::gpu).handle == stream.handle);
    const LentArray turned = lend(transpose(x) * 2, stream);
    CHECK(turned.device() == Device(Device::gpu));
    CHECK(runtime::counters().to_device == in);
    CHECK(runtime::counters().to_host == out);
    CHECK(runtime::counters().device_waits == waits);
    std::vector<float> expected = (transpose(host, Device::cpu) * 2).to_vector<float>();
    CHECK(turned.strides() == Strides{3, 1});
    CHECK(others.read(const_cast<void*>(turned.data()), {4, 3}).to_vector<float>() == expected);
    const LentArray same = lend(x, stream);
    CHECK(same.data() == memory);
    const array mine = duplicate(x, Device::gpu);
    CHECK(lend(mine, stream).data() != memory);
    CHECK(mine.to_vector<float>() == host.to_vector<float>());
    CHECK(released == 0);
  }
  CHECK(released == 1);
  CHECK(borrowing_stream(Device::gpu).handle != stream.handle);
}

TEST_CASE("memory of a GPU without a known stream goes back when Weft's work on it is done") {
  if (!test::on_gpu()) return;
  ForeignStream others;
  void* const memory = others.copy_of(full({1024}, 2.0f, Device::cpu));
  std::promise<void> released;
  array total = 0.0f;
  {
    const array x = borrow({.data = memory, .shape = {1024}, .stream = borrowing_stream(Device::gpu), .release = [&] {
                              released.set_value();
                            }});
    total = sum(x, Device::gpu);
    async_eval(total);
  }
  CHECK(total.item<float>() == 2048);
  CHECK(released.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready);
}
