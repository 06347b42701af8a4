// GGUF: files of the package gguf and of MLX (golden/generate.py), files of Weft read again, and files that are wrong.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "io/folder.h"
#include "weft/io.h"
#include "weft/ops.h"

using namespace weft;

namespace {

const std::string golden = std::string(WEFT_SOURCE_DIR) + "/tests/io/golden/";

GGUFLoad read(const std::string& bytes) { return load_gguf(std::make_shared<io::MemoryReader>(bytes, "m")); }

std::string written(const std::unordered_map<std::string, array>& arrays,
                    const std::unordered_map<std::string, GGUFMetaData>& metadata = {}) {
  const auto out = std::make_shared<io::MemoryWriter>();
  save_gguf(out, arrays, metadata);
  return out->bytes();
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const std::runtime_error& e) {
    const std::string text = e.what(), start = "[load_gguf] m: ";
    CHECK(text.starts_with(start));
    return text.substr(std::min(start.size(), text.size()));
  }
  return "accepted";
}

/// Builds a file field by field, of either byte order, and of version 1 with lengths of 4 bytes.
struct File {
  std::string bytes = "GGUF";
  uint32_t version;
  bool big;

  explicit File(uint64_t tensors, uint64_t metadata, uint32_t v = 3, bool big_endian = false)
      : version(v), big(big_endian) {
    number(v), length(tensors), length(metadata);
  }
  template <class T>
  File& number(T value) {
    std::string text(sizeof value, '\0');
    std::memcpy(text.data(), &value, sizeof value);
    if (big) std::reverse(text.begin(), text.end());
    bytes += text;
    return *this;
  }
  File& length(uint64_t n) { return version == 1 ? number(static_cast<uint32_t>(n)) : number(n); }
  File& text(const std::string& t) {
    length(t.size());
    bytes += t;
    return *this;
  }
  File& raw(const std::string& t) {
    bytes += t;
    return *this;
  }
  File& tensor(const std::string& name, const std::vector<uint64_t>& lengths, uint32_t type, uint64_t offset = 0) {
    text(name).number(static_cast<uint32_t>(lengths.size()));
    for (const uint64_t n : lengths) length(n);
    return number(type).number(offset);
  }
  File& data(const std::string& content, size_t alignment = 32) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return raw(content);
  }
};

constexpr uint32_t f32 = 0, q4_0 = 2, i8 = 24, u32 = 4, boolean = 7, text_type = 8, list_type = 9;

const array& number_of(const GGUFLoad& file, const std::string& key) { return std::get<array>(file.second.at(key)); }

}  // namespace

TEST_CASE("gguf: quantised types are the numbers that GGML's own package makes of them") {
  const auto tensors = load_gguf(golden + "blocks.gguf").first;
  const array all = load(golden + "blocks.npy");
  int64_t at = 0;
  for (const char* name :
       {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"}) {
    CAPTURE(std::string(name));
    const std::string key(name);
    array numbers = tensors.at(key + ".weight");
    if (tensors.contains(key + ".scales")) {
      CHECK(numbers.dtype() == uint32);
      const array &scales = tensors.at(key + ".scales"), &biases = tensors.at(key + ".biases");
      CHECK(scales.dtype() == float16);
      CHECK(scales.shape() == Shape{1, 2});
      numbers = dequantize(numbers, scales, biases, 32, key == "Q8_0" ? 8 : 4);
    }
    CHECK(numbers.dtype() == float16);
    const auto n = static_cast<int64_t>(numbers.size());
    CHECK(numbers.shape() == Shape{1, n});
    CHECK(array_equal(numbers, reshape(slice(all, {at}, {at + n}), {1, n})).item<bool>());
    at += n;
  }
  CHECK(at == static_cast<int64_t>(all.size()));
  CHECK(tensors.size() == 13 + 2 * 3);
}

TEST_CASE("gguf: codes are packed as quantized_matmul takes them, and Q8_K has a float32 scale") {
  std::string block("\x00\x3c", 2);  // 1
  for (int k = 0; k < 16; ++k) block += static_cast<char>(k | (15 - k) << 4);
  const auto q = read(File(1, 0).tensor("l.weight", {32, 2}, q4_0).data(block + block).bytes).first;
  CHECK(q.at("l.weight").to_vector<uint32_t>() == std::vector<uint32_t>{0x76543210, 0xfedcba98, 0x89abcdef, 0x01234567,
                                                                        0x76543210, 0xfedcba98, 0x89abcdef,
                                                                        0x01234567});
  CHECK(q.at("l.weight").shape() == Shape{2, 4});
  CHECK(q.at("l.biases").to_vector<float>() == std::vector<float>{-8, -8});
  CHECK(sum(quantized_matmul(ones({1, 32}), q.at("l.weight"), q.at("l.scales"), q.at("l.biases"), true, 32, 4))
            .item<float>() == -2 * 16);
  // Without ".weight" in the name, all of it is the prefix.
  CHECK(read(File(1, 0).tensor("l", {32}, q4_0).data(block).bytes).first.contains("l.scales"));

  std::string wide(292, '\0');
  const float half = 0.5f;
  std::memcpy(wide.data(), &half, 4);
  for (int k = 0; k < 256; ++k) wide[static_cast<size_t>(4 + k)] = static_cast<char>(k - 128);
  const auto k = read(File(1, 0).tensor("k", {256}, 15).data(wide).bytes).first.at("k").to_vector<float>();
  CHECK(k.front() == -64);
  CHECK(k.back() == 63.5f);
}

TEST_CASE("gguf: values of every type of the package gguf") {
  const GGUFLoad file = load_gguf(golden + "metadata.gguf");
  const std::pair<const char*, Dtype> dtypes[] = {
      {"uint8", uint8},   {"int8", int8},   {"uint16", uint16},   {"int16", int16},
      {"uint32", uint32}, {"int32", int32}, {"float32", float32}, {"bool", bool_},
      {"uint64", uint64}, {"int64", int64}, {"float64", float64}, {"general.alignment", uint32}};
  const double values[] = {200, -3, 65535, -5, 4294967295.0, -7, 1.5, 1, 18446744073709551615.0, -9223372036854775808.0,
                           0.1, 64};
  for (size_t k = 0; k < std::size(dtypes); ++k) {
    CAPTURE(std::string(dtypes[k].first));
    const array& a = number_of(file, dtypes[k].first);
    CHECK(a.dtype() == dtypes[k].second);
    CHECK(a.ndim() == 0);
    CHECK(a.item<double>() == values[k]);
  }
  CHECK(std::get<std::string>(file.second.at("string")) == "héllo");
  CHECK(std::get<std::vector<std::string>>(file.second.at("texts")) == std::vector<std::string>{"a", "", "bc"});
  CHECK(number_of(file, "integers").to_vector<int>() == std::vector<int>{1, 2, 3});
  CHECK(number_of(file, "bools").to_vector<int>() == std::vector<int>{1, 0});
  CHECK(number_of(file, "floats").to_vector<float>() == std::vector<float>{1.5f, 2.5f});
  CHECK(number_of(file, "nested").shape() == Shape{3, 2});
  CHECK(number_of(file, "nested").to_vector<int>() == std::vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(file.first.at("f32").shape() == Shape{2, 3});
  CHECK(file.first.at("f32").to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(file.first.at("f64").to_vector<double>() == std::vector<double>{0, 1, 2});
  CHECK(file.first.at("bf16").dtype() == bfloat16);
  CHECK(file.first.at("bf16").to_vector<float>() == std::vector<float>{1, -2});
}

TEST_CASE("gguf: a file of MLX") {
  const GGUFLoad file = load_gguf(golden + "mlx.gguf");
  CHECK(file.first.at("float16").shape() == Shape{1, 2, 3});
  CHECK(file.first.at("float16").to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(file.first.at("int8").to_vector<int>() == std::vector<int>{-1, 2});
  CHECK(file.first.at("scalar").ndim() == 0);
  CHECK(file.first.at("scalar").item<float>() == 2.5f);
  CHECK(std::get<std::string>(file.second.at("text")) == "t");
  CHECK(std::get<std::vector<std::string>>(file.second.at("texts")) == std::vector<std::string>{"a", "b"});
  CHECK(number_of(file, "number").item<int>() == 7);
  CHECK(number_of(file, "list").dtype() == bool_);
}

TEST_CASE("gguf: what is written comes back, and equal content gives equal bytes") {
  std::unordered_map<std::string, array> arrays;
  for (const Dtype d : {float16, bfloat16, float32, float64, int8, int16, int32, int64})
    arrays.emplace(dtype_name(d), reshape(arange(0, 6, d), {2, 3}));
  arrays.emplace("transposed", transpose(reshape(arange(0, 6, int32), {2, 3})));
  arrays.emplace("scalar", array(2.5f));
  arrays.emplace("empty", zeros({0, 3}));
  arrays.emplace("", zeros({1, 1, 1, 1, 1, 1, 1, 2}));
  std::unordered_map<std::string, GGUFMetaData> metadata{{"", std::string("empty key")},
                                                         {"texts", std::vector<std::string>{"", "é"}},
                                                         {"none", std::vector<std::string>{}},
                                                         {"cube", reshape(arange(0, 8, float32), {2, 2, 2})},
                                                         {"general.alignment", array(128u)}};
  for (const Dtype d : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float32, float64})
    metadata.emplace(dtype_name(d), array({0, 1, 1}, d));
  const std::string bytes = written(arrays, metadata);
  CHECK(bytes.size() % 128 == 0);
  const auto [tensors, values] = read(bytes);
  REQUIRE(tensors.size() == arrays.size());
  for (const auto& [name, a] : arrays) {
    const auto& captured = name;  // clang 14 takes no binding of a structure into a lambda
    CAPTURE(captured);
    CHECK(tensors.at(name).dtype() == a.dtype());
    CHECK(tensors.at(name).shape() == a.shape());
    CHECK(tensors.at(name).to_vector<double>() == a.to_vector<double>());
  }
  REQUIRE(values.size() == metadata.size());
  for (const auto& [key, value] : metadata) {
    const auto* a = std::get_if<array>(&value);
    const GGUFMetaData& back = values.at(key);
    REQUIRE(back.index() == value.index());
    if (!a) continue;
    CHECK(std::get<array>(back).dtype() == a->dtype());
    CHECK(std::get<array>(back).shape() == a->shape());
    CHECK(std::get<array>(back).to_vector<double>() == a->to_vector<double>());
  }
  CHECK(std::get<std::vector<std::string>>(values.at("texts")) == std::vector<std::string>{"", "é"});
  CHECK(written(tensors, values) == bytes);
  CHECK(read(written({}, {})).first.empty());

  const Folder folder;
  save_gguf(folder / "a", arrays, metadata);
  CHECK(io::read_file(folder / "a.gguf") == bytes);
  CHECK(load_gguf(folder / "a.gguf").first.at("int32").to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("gguf: codes are written as the tensors that they were") {
  const auto tensors = load_gguf(golden + "blocks.gguf").first;
  std::unordered_map<std::string, array> codes;
  for (const char* name : {"Q4_0", "Q4_1", "Q8_0"})
    for (const char* part : {".weight", ".scales", ".biases"})
      codes.emplace(std::string(name) + part, tensors.at(std::string(name) + part));
  const std::string bytes = written(codes);
  const auto back = read(bytes).first;
  CHECK(back.size() == codes.size());
  for (const auto& [name, a] : codes) CHECK(array_equal(a, back.at(name)).item<bool>());
  CHECK(bytes.find("Q4_0.scales") == std::string::npos);
  CHECK(written(back) == bytes);
  // The blocks are those of the other package, bit by bit: the last tensor here is Q8_0.
  const std::string file = io::read_file(golden + "blocks.gguf"), last = bytes.substr(bytes.size() - 96, 68);
  CHECK(file.find(last) != std::string::npos);
  for (const size_t before : {64 + 96, 64 + 64 + 96}) {
    CAPTURE(before);
    CHECK(file.find(bytes.substr(bytes.size() - before, 36)) != std::string::npos);
  }

  const array words = zeros({2, 8}, uint32), halves = ones({2, 2}, float16), wide = zeros({2, 16}, uint32);
  CHECK(read(written({{"w", words}, {"w.scales", halves}, {"w.biases", halves}})).first.size() == 3);
  CHECK(read(written({{"w", zeros({2, 0}, uint32)},
                      {"w.scales", zeros({2, 0}, float16)},
                      {"w.biases", zeros({2, 0}, float16)}}))
            .first.at("w.scales")
            .shape() == Shape{2, 0});
  const std::unordered_map<std::string, array> others[] = {
      {{"w", words}, {"w.scales", halves}},
      {{"w", words}, {"w.scales", halves}, {"w.biases", ones({2, 2})}},
      {{"w", words}, {"w.scales", halves}, {"w.biases", ones({2, 1}, float16)}},
      {{"w", words}, {"w.scales", ones({1, 2}, float16)}, {"w.biases", ones({1, 2}, float16)}},
      {{"w", zeros({2, 6}, uint32)}, {"w.scales", halves}, {"w.biases", halves}},
      {{"w", zeros({}, uint32)}, {"w.scales", ones({}, float16)}, {"w.biases", ones({}, float16)}}};
  for (const auto& arrays : others) CHECK_THROWS_WITH_AS(written(arrays), doctest::Contains("'w'"), std::runtime_error);
  CHECK_THROWS_WITH_AS(written({{"w", wide}, {"w.scales", halves}, {"w.biases", halves}}),
                       doctest::Contains("biases other than -128"), std::runtime_error);
}

TEST_CASE("gguf: older versions, and the other byte order") {
  std::string six(6, '\0');
  for (char k = 0; k < 6; ++k) six[static_cast<size_t>(k)] = k;
  for (const uint32_t version : {1, 2, 3}) {
    File file(1, 2, version);
    file.text("k").number(text_type).text("v").text("l").number(list_type).number(u32).length(2).number(7u).number(8u);
    const GGUFLoad read_back = read(file.tensor("t", {3, 2}, i8).data(six).bytes);
    CHECK(read_back.first.at("t").shape() == Shape{2, 3});
    CHECK(read_back.first.at("t").to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});
    CHECK(std::get<std::string>(read_back.second.at("k")) == "v");
    CHECK(number_of(read_back, "l").to_vector<int>() == std::vector<int>{7, 8});
  }
  File big(1, 1, 3, true);
  big.text("k").number(u32).number(258u).tensor("t", {2}, f32).data("");
  const GGUFLoad swapped = read(big.number(1.5f).number(-2.0f).bytes);
  CHECK(number_of(swapped, "k").item<int>() == 258);
  CHECK(swapped.first.at("t").to_vector<float>() == std::vector<float>{1.5f, -2});
  CHECK(refusal(File(1, 0, 3, true).tensor("t", {32}, q4_0).data(std::string(18, 'x')).bytes) ==
        "tensor 't' is quantised in a file of the other byte order, which is not read, at byte 24");
}

TEST_CASE("gguf: files that are damaged, hostile or of another kind are refused") {
  constexpr uint64_t huge = uint64_t{1} << 62;
  const auto one = [](const std::vector<uint64_t>& lengths, uint32_t type, uint64_t offset, const std::string& data) {
    return refusal(File(1, 0).tensor("t", lengths, type, offset).data(data).bytes);
  };
  CHECK(one({1}, f32, 0, "abcd") == "accepted");
  CHECK(refusal("") == "this is no GGUF file, which begins with \"GGUF\", at byte 0");
  CHECK(refusal("GGML....").starts_with("this is no GGUF file"));
  CHECK(refusal("GGUF") == "the file ends within the version: it is truncated or no GGUF file, at byte 4");
  CHECK(refusal(File(0, 0, 4).bytes) == "the file has version 4 of GGUF; versions 1 to 3 are read, at byte 4");
  CHECK(refusal(File(0, 0, 0).bytes).starts_with("the file has version 0"));
  CHECK(refusal(File(huge, 0).bytes).starts_with("the file ends within the name of a tensor"));
  CHECK(refusal(File(0, huge).bytes).starts_with("the file ends within the key of a value"));
  CHECK(refusal(File(0, 1).length(huge).bytes).starts_with("the file ends within the key of a value"));
  CHECK(one({1}, f32, 0, "abc") ==
        "tensor 't' should have 4 bytes at offset 0 of the data, which has 3: the file is truncated, at byte 24");
  CHECK(one({1}, f32, 32, "abcd").starts_with("tensor 't' should have 4 bytes at offset 32"));
  CHECK(one({1}, f32, UINT64_MAX, "abcd").starts_with("tensor 't' should have 4 bytes"));
  CHECK(one({huge, 4}, f32, 0, "abcd") == "tensor 't' has more elements than 63 bits count, at byte 24");
  CHECK(one({0, UINT64_MAX}, f32, 0, "").starts_with("tensor 't' has more elements"));
  CHECK(one({0, 5}, f32, 0, "") == "accepted");
  CHECK(one({huge / 8}, i8, 0, "abcd").starts_with("tensor 't' should have 576460752303423488 bytes"));
  CHECK(one({1, 1, 1, 1, 1, 1, 1, 1, 1}, f32, 0, "abcd").starts_with("tensor 't' has 9 axes; 8 are read"));
  CHECK(one({33}, q4_0, 0, std::string(64, 'x')) ==
        "tensor 't' has rows of 33 elements, which are no whole blocks of Q4_0, at byte 24");
  CHECK(one({}, q4_0, 0, std::string(64, 'x')).starts_with("tensor 't' has rows of 1 elements"));
  CHECK(one({256}, 17, 0, "") == "tensor 't' has the type 17 (IQ2_XS), which is not read, at byte 24");
  CHECK(one({256}, 99, 0, "").starts_with("tensor 't' has the type 99 (unknown to GGUF), which is not read"));
  const auto two = [](const std::string& a, const std::string& b, uint32_t type, uint64_t offset) {
    return refusal(File(2, 0).tensor(a, {64}, type).tensor(b, {64}, i8, offset).data(std::string(256, 'x')).bytes);
  };
  CHECK(two("a", "b", i8, 64) == "accepted");
  CHECK(two("a", "a", i8, 64) == "the name 'a' occurs twice among tensors, at byte 57");
  CHECK(two("a", "b", i8, 63) == "tensors 'a' and 'b' share bytes, at byte 57");
  CHECK(two("a.weight", "a.scales", q4_0, 64).starts_with("the name 'a.scales' occurs twice among tensors"));
}

TEST_CASE("gguf: metadata that is wrong is refused") {
  const auto value = [](uint32_t type, auto fill) {
    File file(0, 1);
    file.text("k").number(type);
    fill(file);
    return refusal(file.bytes);
  };
  constexpr uint64_t huge = uint64_t{1} << 60;
  const std::string list = "is a list of lists that differ in ";
  CHECK(value(13, [](File&) {}) == "metadata 'k' has the unknown type 13, at byte 33");
  CHECK(value(boolean, [](File& f) { f.raw("\2"); }) == "metadata 'k' has a bool that is neither 0 nor 1, at byte 37");
  CHECK(value(text_type, [](File& f) { f.length(huge); }) ==
        "the file ends within a text: it is truncated or no GGUF file, at byte 45");
  CHECK(value(list_type, [](File& f) { f.number(u32).length(huge); }) ==
        "metadata 'k' claims 1152921504606846976 numbers, which the file does not hold, at byte 49");
  CHECK(value(list_type, [](File& f) { f.number(text_type).length(huge); }).starts_with("the file ends within a text"));
  CHECK(value(list_type, [](File& f) { f.number(list_type).length(huge); }).starts_with("the file ends within a list"));
  CHECK(value(list_type, [](File& f) { f.number(13u).length(0); }).starts_with("metadata 'k' has the unknown type 13"));
  CHECK(value(list_type, [](File& f) {
          f.number(list_type).length(1).number(text_type).length(0);
        }).starts_with("metadata 'k' has texts in lists of lists"));
  const auto inner = [](uint32_t type, uint64_t n) {
    return File(0, 0).number(type).length(n).raw(std::string(n * 4, 'x')).bytes.substr(24);
  };
  const auto outer = [&](const std::string& a, const std::string& b) {
    return value(list_type, [&](File& f) { f.number(list_type).length(2).raw(a + b); });
  };
  CHECK(outer(inner(u32, 1), inner(u32, 1)) == "accepted");
  CHECK(outer(inner(u32, 0), inner(u32, 0)) == "accepted");
  CHECK(outer(inner(u32, 1), inner(u32, 2)).starts_with("metadata 'k' " + list + "length"));
  CHECK(outer(inner(u32, 1), inner(5, 1)).starts_with("metadata 'k' " + list + "type"));
  std::string deep;
  for (int k = 0; k < 100; ++k) deep += inner(list_type, 1).substr(0, 12);
  CHECK(value(list_type, [&](File& f) { f.raw(deep); }).starts_with("metadata 'k' is nested too deeply"));
  CHECK(refusal(File(0, 2).text("k").number(u32).number(1u).text("k").number(u32).number(1u).bytes) ==
        "metadata 'k' occurs twice, at byte 41");
  for (const uint32_t alignment : {0u, 3u, 0x80000000u})
    CHECK(refusal(File(0, 1).text("general.alignment").number(u32).number(alignment).bytes)
              .starts_with("general.alignment is " + std::to_string(alignment) + ", which is no power of two"));
  CHECK(refusal(File(0, 1).text("general.alignment").number(text_type).text("x").bytes) ==
        "general.alignment is no integer, at byte 24");
}

TEST_CASE("gguf: every part of a file that is cut off is refused") {
  const std::string bytes = io::read_file(golden + "metadata.gguf");
  const size_t last = bytes.find_last_not_of('\0') + 1;  // of the data
  for (size_t n = 0; n < last; ++n) CHECK(refusal(bytes.substr(0, n)) != "accepted");
}

TEST_CASE("gguf: what cannot be written is refused, with MLX's classes of exceptions") {
  CHECK_THROWS_WITH_AS(
      written({{"a", zeros({2}, uint32)}}),
      "[save_gguf] tensor 'a' is uint32, which GGUF has not: cast it to a float or signed integer dtype",
      std::runtime_error);
  CHECK_THROWS_AS(written({{"a", zeros({1, 1, 1, 1, 1, 1, 1, 1, 1})}}), std::runtime_error);
  CHECK_THROWS_WITH_AS(written({}, {{"k", array(1.0f, float16)}}), doctest::Contains("float16"), std::invalid_argument);
  CHECK_THROWS_AS(written({}, {{"k", zeros({0})}}), std::runtime_error);
  CHECK_THROWS_WITH_AS(written({}, {{"k", GGUFMetaData()}}), "[save_gguf] metadata 'k' has no value",
                       std::invalid_argument);
  CHECK_THROWS_AS(written({}, {{"general.alignment", array(3u)}}), std::invalid_argument);
  CHECK_THROWS_AS(load_gguf("/nowhere/a.gguf"), std::invalid_argument);
}

TEST_CASE("gguf: vocabularies of llama.cpp") {
  const std::string folder = std::string(WEFT_TEST_DATA) + "/tokenizers/gguf/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: no " << folder);
    return;
  }
  const auto gpt2 = load_gguf(folder + "ggml-vocab-gpt-2.gguf");
  CHECK(gpt2.first.empty());
  CHECK(std::get<std::vector<std::string>>(gpt2.second.at("tokenizer.ggml.tokens")).size() == 50257);
  CHECK(number_of(gpt2, "tokenizer.ggml.token_type").shape() == Shape{50257});
  const auto llama = load_gguf(folder + "ggml-vocab-llama-spm.gguf");
  CHECK(std::get<std::string>(llama.second.at("general.architecture")) == "llama");
  CHECK(number_of(llama, "tokenizer.ggml.scores").dtype() == float32);
}
