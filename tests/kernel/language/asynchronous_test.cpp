// Kernels of the explicit level in the interpreter, against plain loops, and what it says of those that are wrong.
#include "kernel/language/asynchronous_kernels.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "kernel/language/errors.h"
#include "kernel/language/run.h"
#include "kernel/text/text.h"

namespace {

using namespace test_kernels;

std::vector<float> values_of(const Bytes& array) {
  std::vector<float> out(static_cast<size_t>(array.elements));
  std::memcpy(out.data(), array.data.data(), array.data.size());
  return out;
}

/// Runs a kernel of arrays with 64 numbers, one in and one out, whose fault the message names.
void found(const std::vector<std::string>& words, const std::function<void(k::In<float, 1>, k::Out<float, 1>)>& body) {
  const k::Program program =
      k::trace("wrong", {floats(k::Use::in, {64}), floats(k::Use::out, {64})}, {1},
               [&](std::span<const k::AnyRef> r) { body(k::In<float, 1>(r[0]), k::Out<float, 1>(r[1])); });
  std::vector<float> x(64, 1), y(64);
  void* const arrays[] = {x.data(), y.data()};
  check_message<std::runtime_error>([&] { program.interpret(arrays); }, "[kernel wrong] ", words);
}
std::string line(int number) { return "asynchronous_test.cpp:" + std::to_string(number); }

}  // namespace

TEST_CASE("kernels of the explicit level compute what plain loops compute, also rewritten for CPUs") {
  for (const AsyncKernel& c : asynchronous_kernels()) {
    CAPTURE(c.program.name());
    std::vector<Bytes> arrays = random_arrays(c.program, 7);
    const std::vector<float> wanted = [&] {
      std::vector<std::vector<float>> in;
      for (const Bytes& a : arrays) in.push_back(values_of(a));
      return c.wanted(in);
    }();
    std::vector<void*> pointers;
    for (Bytes& a : arrays) pointers.push_back(a.data.data());
    c.program.interpret(pointers);
    const std::vector<float> got = values_of(arrays.back());
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
    compare_rewritten(c.program, arrays);
  }
}

TEST_CASE("tile IR refuses reads of a product under way, and waits for none") {
  const std::string head = "kernel @w(p0: out f32) any_size {\n  %0 = constant 1 : f32[2,2]\n";
  const auto refused_text = [&](const std::string& text, const char* words) {
    CHECK_THROWS_WITH_AS(weft::kernel::parse(head + text + "}\n"), doctest::Contains(words), std::invalid_argument);
  };
  refused_text("  %1 = dot_async %0 %0 %0 : f32[2,2]\n  %2 = add %1 %0 : f32[2,2]\n",
               "it reads a product under way: wait for it before");
  refused_text("  %1 = wait_dot %0 : f32[2,2]\n", "it waits for what is no product under way");
  refused_text("  %1 = dot_async %0 %0 %0 : f32[2,2]\n  %2 = wait_dot %1 : f32[4]\n",
               "the result's type is not the product's");
}

TEST_CASE("the text of asynchronous work is read back") {
  for (const AsyncKernel& c : asynchronous_kernels()) {
    const std::string text = weft::kernel::print(c.program.data().kernel);
    CAPTURE(text);
    CHECK(digest(weft::kernel::parse(text).kernel) == digest(c.program.data().kernel));
  }
}

TEST_CASE("the interpreter finds reads before their wait, and copies that nothing waits for") {
  found({"reads element 0, which the copy at", "still writes: wait for the copy before"}, [](auto x, auto y) {
    const auto slots = k::shared<float>({2, 32});
    k::loop(2, [&](k::Index i) {
      k::copy_async(slots(i, k::all), x(k::ds(i * 32, 32)));
      k::commit_copies();
      k::wait_copies(1);
      y(k::ds(i * 32, 32)) = slots(i, k::all);
    });
    k::wait_copies();
  });
  found({"is never waited for: wait for it before the program ends"}, [](auto x, auto y) {
    const auto slots = k::shared<float>({3, 32});
    k::loop(2, [&](k::Index i) {
      k::copy_async(slots(i, k::all), x(k::ds(i * 32, 32)));
      k::commit_copies();
    });
    k::wait_copies(1);
    y(k::all) = k::zeros<float>({64});
  });
  found({"writes element 0, which the copy at", "still writes"}, [](auto x, auto y) {
    const auto row = k::shared<float>({64});
    k::copy_async(row(k::all), x(k::all));
    k::commit_copies();
    row(0) = k::scalar<float>(1);
    k::wait_copies();
    y(k::all) = row(k::all);
  });
}

TEST_CASE("the interpreter finds races between roles, by their lines") {
  const auto body = [](bool ordered, int& reads) {
    return [=, &reads](k::In<float, 1> x, k::Out<float, 1> y) {
      const auto row = k::shared<float>({64});
      const k::Barrier full;
      k::roles({{.warps = 1,
                 .body =
                     [&] {
                       row(k::all) = x(k::all);
                       full.arrive();
                     }},
                {.warps = 1, .body = [&] {
                   if (ordered) full.wait(0);
                   y(k::all) = row(k::all).load(), reads = __LINE__;
                 }}});
    };
  };
  int reads = 0;
  const std::string file = "asynchronous_test.cpp:";
  found({file, "race: role", "at the same time: let a barrier order them"}, body(false, reads));
  const auto right = body(true, reads);
  const k::Program program =
      k::trace("right", {floats(k::Use::in, {64}), floats(k::Use::out, {64})}, {1},
               [&](std::span<const k::AnyRef> r) { right(k::In<float, 1>(r[0]), k::Out<float, 1>(r[1])); });
  std::vector<float> a(64, 3), b(64);
  void* const arrays[] = {a.data(), b.data()};
  program.interpret(arrays);
  CHECK(b == a);
}

TEST_CASE("a slot that is filled before its release is a race") {
  found({"race: role 0 writes element", "reads at"}, [](auto x, auto y) {
    const auto slots = k::shared<float>({2, 16});
    const k::Pipeline pipe(2);
    k::roles({{.warps = 1,
               .body =
                   [&] {
                     k::loop(4, [&](k::Index i) {
                       k::when(i < 2, [&] { pipe.acquire(i); });  // not those that follow
                       pipe.copy(i, slots(pipe.slot(i), k::all), x(k::ds(i * 16, 16)));
                       pipe.commit(i);
                       k::when(i < 2, [&] { pipe.acquire(i + 2); });
                     });
                   }},
              {.warps = 1, .body = [&] {
                 k::loop(4, [&](k::Index i) {
                   pipe.wait(i);
                   pipe.release(i);
                   y(k::ds(i * 16, 16)) = slots(pipe.slot(i), k::all);  // after its release
                 });
               }}});
  });
}

TEST_CASE("a deadlock says who waits where for what") {
  int first = 0, second = 0;
  found({"deadlock: role 0 waits at", line(0).substr(0, 22), "for phase 0 of barrier l0[0], which has 1 of 2 arrivals",
         "role 1 waits at"},
        [&](auto, auto y) {
          const k::Barrier both(2), other;
          k::roles({{.warps = 1,
                     .body =
                         [&] {
                           both.arrive();
                           both.wait(0), first = __LINE__;
                           other.arrive();
                         }},
                    {.warps = 1, .body = [&] {
                       other.wait(0), second = __LINE__;
                       both.arrive();
                     }}});
          y(k::all) = k::zeros<float>({64});
        });
  found({"deadlock: the program waits at"}, [](auto, auto y) {
    const k::Barrier b;
    b.wait(-1);
    b.arrive();
    k::loop(2, [&](k::Index i) { b.wait(i); });
    y(k::all) = k::zeros<float>({64});
  });
  found({"waits for phase 0 of a barrier in phase 2: wait for each phase"}, [](auto, auto y) {
    const k::Barrier b;
    b.arrive(), b.arrive();
    b.wait(0);
    y(k::all) = k::zeros<float>({64});
  });
}

TEST_CASE("what is wrong with asynchronous work in any case is refused when it is traced") {
  using k::AnyBarriers;
  const auto shared = [] { return k::shared(float32, {4, 8}, k::SharedLayout::row_major); };
  const auto copy = [](const k::AnyRef& to, const k::AnyRef& from, k::Line at = k::Line::here()) {
    k::copy_async(to, everything, from, everything, 0, {}, {}, at);
  };
  refused({"reads what the copy at", "still writes: wait for the copy before"}, [&](Test& t) {
    const k::AnyRef s = shared();
    copy(s, t.x), k::commit_copies();
    t.at(__LINE__), k::store(t.y, everything, k::load(s, everything));
    k::wait_copies();
  });
  refused({"reads what the copy at"}, [&](Test& t) {
    const k::AnyRef s = shared();
    copy(s, t.x), k::commit_copies();
    k::wait_copies(1);
    t.at(__LINE__), k::store(t.y, everything, k::load(s, everything));
  });
  refused({"nothing waits for the copy: wait_copies()"}, [&](Test& t) {
    const k::AnyRef s = shared();
    t.at(__LINE__), copy(s, t.x), k::commit_copies();
  });
  refused({"the copy belongs to no group: commit_copies()"}, [&](Test& t) {
    const k::AnyRef s = shared();
    t.at(__LINE__), copy(s, t.x), k::wait_copies();
  });
  refused({"nothing waits for the product: wait for it, or compute it by dot"},
          [&](Test& t) { t.at(__LINE__), k::dot_async(plane(4, 8), plane(8, 4)); });
  refused({"dot: inner extents 8 and 4 of f32[4,8] and f32[4,8] differ"},
          [&](Test& t) { t.at(__LINE__), k::dot_async(plane(4, 8), plane(4, 8)); });
  refused({"the wait never ends: a phase of the barrier ends with 2 arrivals, and the kernel has 1"}, [&](Test& t) {
    const AnyBarriers b = k::barriers(1, 2);
    k::arrive(b, k::constant(int64, 0));
    t.at(__LINE__), k::wait(b, k::constant(int64, 0), k::constant(int64, 0));
  });
  refused({"copies go from an array to a buffer made by shared()"}, [&](Test& t) { t.at(__LINE__), copy(t.y, t.x); });
  refused({"float32[4,8]", "give both slices one dtype and one shape"}, [&](Test& t) {
    const k::AnyRef s = k::shared(bfloat16, {4, 8}, k::SharedLayout::row_major);
    t.at(__LINE__), copy(s, t.x);
  });
  refused({"may leave the shared buffer"}, [&](Test& t) {
    const k::AnyRef s = shared();
    const auto part = both(whole, from(2, 8));
    t.at(__LINE__), k::copy_async(s, part, t.x, everything);
  });
  refused({"may begin before the array"}, [&](Test& t) {
    const k::AnyRef s = shared();
    const auto part = both(whole, from(-2, 8));
    t.at(__LINE__), k::copy_async(s, everything, t.x, part);
  });
  refused({"there is no barrier 3: there are 2"}, [&](Test& t) {
    const AnyBarriers b = k::barriers(2, 1);
    t.at(__LINE__), k::arrive(b, k::constant(int64, 3));
  });
  refused({"barriers: 1 of 0 arrivals"}, [&](Test& t) { t.at(__LINE__), k::barriers(1, 0); });
  refused({"70 groups may be left"}, [&](Test& t) { t.at(__LINE__), k::wait_copies(70); });
  refused({"it is made in a loop"}, [&](Test& t) { k::loop(2, [&](k::Index) { t.at(__LINE__), k::barriers(1, 1); }); });
  refused({"role 1 has 20 warps", "32 at most"}, [&](Test& t) {
    t.at(__LINE__), k::roles({{.warps = 20, .body = [] {}}, {.warps = 20, .body = [] {}}});
  });
  refused({"role 0 has 100 registers"},
          [&](Test& t) { t.at(__LINE__), k::roles({{.warps = 4, .registers = 100, .body = [] {}}}); });
  refused({"role 0 has no body"}, [&](Test& t) { t.at(__LINE__), k::roles({{.warps = 4}}); });
  refused({"a role has no roles of its own"}, [&](Test& t) {
    k::roles({{.warps = 4, .body = [&] { t.at(__LINE__), k::roles({{.warps = 1, .body = [] {}}}); }}});
  });
  refused({"a role uses the tile f32[4] from outside"}, [&](Test& t) {
    const auto outside = k::exp(test_kernels::line(4));
    k::roles({{.warps = 4, .body = [&] { t.at(__LINE__), outside + 1; }}});
  });
  refused({"a role uses the tile f32[4] from outside"}, [&](Test& t) {
    k::Mut outside = test_kernels::line(4);
    k::roles({{.warps = 4, .body = [&] { t.at(__LINE__), outside + 1.f; }}});
  });
  refused({"a role assigns a variable from outside"}, [&](Test& t) {
    k::Mut n = k::scalar<int64_t>(4);
    t.at(__LINE__), k::roles({{.warps = 4, .body = [&] { n += 1; }}});
  });
}
