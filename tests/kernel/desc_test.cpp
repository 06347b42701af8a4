#include <doctest/doctest.h>

#include <functional>

#include "kernel/describe/desc.h"

using namespace weft;
using namespace weft::kernel;

TEST_CASE("a call's descriptor prints and hashes all of itself") {
  CallDesc d{"sort", {{float32, {4, 8}}}, {{float32, {4, 8}}, {uint32, {4, 8}}}, {1}};
  CHECK(d.to_string() == "sort(1) f32[4,8] -> f32[4,8] u32[4,8]");
  d.outputs[1].used = false;
  CHECK(d.to_string() == "sort(1) f32[4,8] -> f32[4,8] u32[4,8] unused");
  const auto differs = [&](const std::function<void(CallDesc&)>& change) {
    CallDesc other = d;
    change(other);
    return !(other.digest() == d.digest()) && !(other == d);
  };
  CHECK(CallDesc(d).digest() == d.digest());
  CHECK(differs([](CallDesc& o) { o.name = "order"; }));
  CHECK(differs([](CallDesc& o) { o.integers[0] = 0; }));
  CHECK(differs([](CallDesc& o) { o.integers.push_back(0); }));
  CHECK(differs([](CallDesc& o) { o.inputs[0].extents[1] = 9; }));
  CHECK(differs([](CallDesc& o) { o.inputs[0].extents.push_back(1); }));
  CHECK(differs([](CallDesc& o) { o.inputs[0].dtype = int32; }));
  CHECK(differs([](CallDesc& o) { o.outputs[1].used = true; }));
  CHECK(differs([](CallDesc& o) { o.outputs.pop_back(); }));
  CHECK(differs([](CallDesc& o) { o.inputs.push_back(o.outputs.back()), o.outputs.pop_back(); }));
}

TEST_CASE("a product's descriptor prints, counts and hashes all of itself") {
  DotDesc d;
  d.batch = {12};
  d.m = 64, d.n = 64, d.k = 32;
  d.a_batch = {2048}, d.b_batch = {0}, d.c_batch = {4096};
  d.a_m = 32, d.a_k = 1, d.b_k = 64, d.b_n = 1, d.c_m = 64, d.c_n = 1;
  CHECK(d.flops() == 12.0 * 2 * 64 * 64 * 32);
  d.bias = true;
  CHECK(d.to_string() == "dot f32 [12]x64x64x32 +bias");
  DotDesc gelu = d;
  gelu.activation = Activation::gelu;
  CHECK(gelu.to_string() == "dot f32 [12]x64x64x32 +bias gelu");
  CHECK(!(gelu.digest() == d.digest()));
  DotDesc sum = d;
  sum.sum = OperandSum::b;
  CHECK(sum.to_string() == "dot f32 [12]x64x64x32 +bias sum(b)");
  CHECK(!(sum.digest() == d.digest()));
  CHECK(d.flops() == 12.0 * (2 * 64 * 64 * 32 + 64 * 64));

  auto differs = [&](const std::function<void(DotDesc&)>& change) {
    DotDesc other = d;
    change(other);
    return !(other.digest() == d.digest()) && !(other == d);
  };
  CHECK(d.digest() == DotDesc(d).digest());
  for (Dtype DotDesc::*field : {&DotDesc::a, &DotDesc::b, &DotDesc::c})
    CHECK(differs([&](DotDesc& o) { o.*field = bfloat16; }));
  for (int64_t DotDesc::*field : {&DotDesc::m, &DotDesc::n, &DotDesc::k, &DotDesc::a_m, &DotDesc::a_k, &DotDesc::b_k,
                                  &DotDesc::b_n, &DotDesc::c_m, &DotDesc::c_n})
    CHECK(differs([&](DotDesc& o) { o.*field += 1; }));
  for (auto field : {&DotDesc::batch, &DotDesc::a_batch, &DotDesc::b_batch, &DotDesc::c_batch})
    CHECK(differs([&](DotDesc& o) { (o.*field)[0] += 1; }));
  CHECK(differs([](DotDesc& o) { o.bias = false; }));
  CHECK(differs([](DotDesc& o) { o.residual = true; }));
  CHECK(differs([](DotDesc& o) { std::swap(o.batch, o.a_batch); }));

  DotDesc mixed = d;
  mixed.a = mixed.b = bfloat16;
  mixed.residual = true;
  CHECK(mixed.to_string() == "dot bf16xbf16->f32 [12]x64x64x32 +bias +residual");
}
