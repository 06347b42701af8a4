// The life of a kernel, the flash attention of flash_attention.h: run by the interpreter, which also catches a wrong
// version at its line, looked at in the debugger, run on the CPU and on a GPU, tuned, batched by vmap, differentiated
// by its rule in a compiled training step, exported and imported, launched on memory and in a stream of somebody
// else's. docs/kernels/life.md has what it prints.
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"
#include "flash_attention.h"
#include "foreign_stream.h"
#include "weft/compile.h"
#include "weft/export.h"
#include "weft/profile.h"

using namespace weft;

namespace {

const int64_t length = 64, d = 16;

std::vector<array> drawn(const Shape& shape) {
  return {check::normal(shape, 1), check::normal(shape, 2), check::normal(shape, 3)};
}

void title(const char* text) { std::printf("\n== %s\n", text); }

/// Ends the program where something is not as it should be.
void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("wrong: %s\n", what.c_str());
  std::exit(1);
}

void interpreted() {
  title("interpreted");
  const std::vector<array> in = drawn({length, d});
  check::near("the interpreter against arrays", flash::forward_kernel({}).interpret(in)[0],
              flash::attention_by_arrays(in, false), 1e-5);
}

/// A mean over blocks of keys, whose author stored the block and not the row: programs write the same rows.
void wrong(k::In<float, 2> values, k::Out<float, 2> out) {
  const auto first = k::program_id(0) * 16;
  const auto block = values(k::ds(first, 32), k::all).load();  // 32 rows, but blocks are 16 apart
  out(k::ds(first, 32), k::all) = block / 2.0;
}

void caught() {
  title("a wrong version, caught at its line");
  const auto kernel = k::kernel("wrong", wrong).grid([](auto v, auto) { return k::Grid{k::cdiv(v.dim(0), 16)}; });
  std::string message;
  try {
    kernel.interpret(drawn({length, d})[2]);
  } catch (const std::runtime_error& e) {
    message = e.what();
  }
  std::printf("%s\n", message.c_str());
  expect(message.find("life.cpp:") != std::string::npos, "the interpreter names no line");
}

void debugged() {
  title("in the debugger: the loop's first two steps in program 1");
  const auto kernel = flash::forward_kernel({});
  int stops = 0;
  k::Debugger debugger;
  debugger.breakpoints = {{.program = 1, .value = "larger"}};  // the running maxima, a k::watch of the kernel
  debugger.stopped = [&](k::Stop& stop) {
    const std::string loop = stop.backtrace()[0];
    std::printf("%s: program %d, %s\n  larger[0:4] = %s\n", stop.reason().c_str(), static_cast<int>(stop.program()),
                loop.substr(0, loop.find(" at ")).c_str(), stop.print("larger[0:4]").c_str());
    ++stops;
    return k::Go::on;
  };
  kernel.debug(debugger, drawn({length, d}));
  expect(stops == 2, "the debugger stops once for each block of keys");
}

void on_devices() {
  title("on the CPU, and on a GPU");
  const std::vector<array> in = drawn({length, d});
  const array wanted = flash::forward_kernel({}).interpret(in)[0];
  for (const Device device : {Device(Device::cpu), Device(Device::gpu)}) {
    if (!is_available(device)) {
      std::printf("there is no GPU here\n");
      continue;
    }
    const Device before = default_device();
    set_default_device(device);
    const auto [out, lse] = flash::forward_kernel({})(in[0], in[1], in[2]);
    check::near(device.type == Device::cpu ? "the CPU against the interpreter" : "the GPU against the interpreter", out,
                wanted, 1e-5);
    set_default_device(before);
  }
}

void tuned() {
  title("tuned");
  const auto choices = flash::forward_kernel({}).configs(
      {{{.queries = 32, .keys = 32}}, {{.queries = 64, .keys = 32}, {.warps = 4}}, {{.queries = 16, .keys = 64}}});
  const std::vector<array> in = drawn({256, d});
  check::near("the fastest of three", choices(in)[0], flash::attention_by_arrays(in, false), 1e-5);
  const KernelTable table = explain([=](const std::vector<array>& v) { return choices(v); }, in);
  for (const KernelRow& row : table.rows) std::printf("%s: %s\n", row.name.c_str(), row.what.c_str());
}

/// Attention of [batch, heads, length, d]: the kernel of one head, mapped twice.
ArrayFunction of_heads(bool causal) { return vmap(vmap(flash::flash_attention({.causal = causal}))); }

void batched() {
  title("batched by vmap");
  const std::vector<array> in = drawn({2, 3, length, d});
  check::near("a batch of heads in one launch", of_heads(true)(in)[0], flash::attention_by_arrays(in, true), 1e-5);
}

/// The loss of a layer: x [batch, length, width] through weights of queries, keys and values, heads of d, against y.
array loss_of(const std::vector<array>& weights, const array& x, const array& y) {
  std::vector<array> heads;
  for (const array& w : weights) {
    const array v = reshape(matmul(x, w), {x.shape(0), length, w.shape(1) / d, d});
    heads.push_back(swapaxes(v, 1, 2));
  }
  const array out = swapaxes(of_heads(true)(heads)[0], 1, 2);
  return mean(square(reshape(out, y.shape()) - y));
}

void trained() {
  title("differentiated by its rule, in a compiled training step");
  const array x = check::normal({2, length, 32}, 4), y = matmul(x, check::normal({32, 32}, 5)) * 0.2f;
  const auto step = compile([](const std::vector<array>& in) {
    const auto loss = [&](const std::vector<array>& weights) { return loss_of(weights, in[3], in[4]); };
    const auto [value, gradients] = value_and_grad(ScalarFunction(loss), {0, 1, 2})({in[0], in[1], in[2]});
    std::vector<array> out{value};
    for (size_t i = 0; i < 3; ++i) out.push_back(in[i] - gradients[i] * 4.0f);
    return out;
  });
  std::vector<array> weights;
  for (uint64_t i = 0; i < 3; ++i) weights.push_back(check::normal({32, 32}, 6 + i) * 0.1f);
  float first = 0, last = 0;
  for (int i = 0; i < 40; ++i) {
    std::vector<array> out = step({weights[0], weights[1], weights[2], x, y});
    weights = {out[1], out[2], out[3]};
    eval(weights);
    last = out[0].item<float>();
    if (i == 0) first = last;
    if (i % 13 == 0) std::printf("step %2d: loss %.4f\n", i, last);
  }
  expect(last < 0.8f * first, "the loss does not fall");
}

void exported() {
  title("exported and imported");
  const std::vector<array> in = drawn({2, 3, length, d});
  const auto path = std::filesystem::temp_directory_path() / "weft_life_of_a_kernel.weft";
  export_function(path.string(), of_heads(true), in);
  const array again = import_function(path.string())(in)[0];
  expect(array_equal(again, of_heads(true)(in)[0]).item<bool>(), "the imported function computes something else");
  std::printf("the imported function has the same bits; the file has %d KiB\n",
              static_cast<int>(std::filesystem::file_size(path) / 1024));
  std::filesystem::remove(path);
}

void launched() {
  title("launched on memory of others");
  const auto kernel = flash::forward_kernel({});
  std::vector<array> in = drawn({length, d});
  const array wanted = flash::attention_by_arrays(in, false);
  const Shape shape{length, d};
  std::vector<std::vector<float>> host;
  for (array& a : in) host.emplace_back(a.data<float>(), a.data<float>() + a.size());
  host.emplace_back(length * d);
  host.emplace_back(length);
  std::vector<k::RawArray> memory;
  for (size_t i = 0; i < 4; ++i) memory.push_back({host[i].data(), shape});
  memory.push_back({host[4].data(), Shape{length}});
  kernel.launch({Device::cpu}, memory);
  check::near("on the host's vectors", array(host[3].data(), shape), wanted, 1e-5);
  if (!is_available(Device::gpu)) {
    std::printf("there is no GPU here\n");
    return;
  }
  ForeignStream stream;
  std::vector<k::RawArray> arrays;
  for (const array& a : in) arrays.push_back({stream.copy_of(a), shape});
  arrays.push_back({stream.copy_of(zeros(shape)), shape});
  arrays.push_back({stream.copy_of(zeros({length})), Shape{length}});
  kernel.launch({Device::gpu, stream.handle()}, arrays);
  check::near("in a CUstream of its own", stream.read(arrays[3].data, shape), wanted, 1e-5);
}

void shown() {
  title("shown: what an H100 would run");
  std::vector<array> in;
  for (const array& a : drawn({1024, 64})) in.push_back(a);
  const std::string source = k::show(flash::forward_kernel({64, 64}).program(in), "cuda", "sm_90a");
  for (size_t at = 0; (at = source.find("// dot", at)) != std::string::npos; ++at)
    std::printf("%s\n", source.substr(at, source.find('\n', at) - at).c_str());
}

}  // namespace

int main() {
  interpreted();
  caught();
  debugged();
  on_devices();
  tuned();
  batched();
  trained();
  exported();
  launched();
  shown();
}
