// Files of torch.save: those of PyTorch (golden/generate.py), those of Weft read again, and files that are wrong.
#include <doctest/doctest.h>

#include <cstring>

#include "io/folder.h"
#include "io/zip.h"
#include "weft/io.h"
#include "weft/ops.h"

using namespace weft;

namespace {

using Arrays = std::unordered_map<std::string, array>;
using Values = std::unordered_map<std::string, TorchValue>;

const std::string golden = std::string(WEFT_SOURCE_DIR) + "/tests/io/golden/";

std::string archive(const std::vector<std::pair<std::string, std::string>>& members, bool deflate = false) {
  std::vector<io::ZipInput> inputs;
  for (const auto& [name, content] : members) inputs.push_back({name, {content}});
  std::string out;
  for (const auto piece : io::write_zip("test", inputs, deflate).pieces) out += piece;
  return out;
}

Arrays read(const std::string& bytes) { return load_torch(std::make_shared<io::MemoryReader>(bytes, "m")); }

std::string refusal_of(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const std::runtime_error& e) {
    const std::string text = e.what(), start = "[load_torch] m: ";
    CHECK(text.starts_with(start));
    return text.substr(std::min(start.size(), text.size()));
  }
  return "accepted";
}

// Pieces of pickles.

std::string text(const std::string& t) { return "X" + std::string{static_cast<char>(t.size()), 0, 0, 0} + t; }
std::string pickled(int n) { return "J" + std::string(reinterpret_cast<const char*>(&n), 4); }
std::string named(const std::string& module, const std::string& name) { return "c" + module + "\n" + name + "\n"; }

std::string storage(const std::string& type, const std::string& key, int elements) {
  return "(" + text("storage") + named("torch", type) + text(key) + text("cpu") + pickled(elements) + "tQ";
}
std::string list(const std::vector<int>& numbers) {
  std::string out = "(";
  for (const int n : numbers) out += pickled(n);
  return out + "t";
}
std::string tensor(const std::string& from, int offset, const std::vector<int>& shape,
                   const std::vector<int>& strides) {
  return named("torch._utils", "_rebuild_tensor_v2") + "(" + from + pickled(offset) + list(shape) + list(strides) +
         "\x89" + named("collections", "OrderedDict") + ")RtR";
}
std::string pickle(const std::string& body) { return std::string("\x80\x02", 2) + body + "."; }

std::string file(const std::string& body, const std::string& content = "", const std::string& order = "little") {
  return archive({{"a/data.pkl", pickle(body)}, {"a/byteorder", order}, {"a/data/0", content}});
}

/// Returns why an object is refused, without the member's name; its storage "0" has `content`.
std::string refusal(const std::string& body, const std::string& content = "") {
  const std::string text = refusal_of(file(body, content)), start = "a/data.pkl: ";
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

void check_golden(const Arrays& state) {
  const std::pair<const char*, Dtype> dtypes[] = {{"bool", bool_},
                                                  {"uint8", uint8},
                                                  {"uint16", uint16},
                                                  {"uint32", uint32},
                                                  {"uint64", uint64},
                                                  {"int8", int8},
                                                  {"int16", int16},
                                                  {"int32", int32},
                                                  {"int64", int64},
                                                  {"float16", float16},
                                                  {"bfloat16", bfloat16},
                                                  {"float32", float32},
                                                  {"float64", float64},
                                                  {"complex64", complex64},
                                                  {"complex128", complex128},
                                                  {"float8_e4m3fn", float8_e4m3},
                                                  {"float8_e5m2", float8_e5m2}};
  for (const auto& [name, dtype] : dtypes) {
    const std::string key = std::string("dtypes.") + name;
    CAPTURE(key);
    REQUIRE(state.contains(key));
    CHECK(state.at(key).dtype() == dtype);
    CHECK(state.at(key).shape() == Shape{2, 3});
    CHECK(astype(state.at(key), float32).to_vector<int>() == std::vector<int>{0, 1, 1, 1, 0, 1});
  }
  const array count = arange(0, 24, float32);
  const std::pair<const char*, array> others[] = {
      {"layouts.0", transpose(reshape(count, {4, 6}))},
      {"layouts.1", slice(count, {3}, {9})},
      {"layouts.2", slice(count, {1}, {24}, {5})},
      {"layouts.3.0", ones({3, 4})},
      {"layouts.3.1", array({0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, {3, 4}, float32)},
      {"empty", zeros({0, 3})},
      {"scalar", array(2.5f)},
      {"parameter", array({0.0f, 1.0f})},
      {"layer.bias", array({0.0f})},
      {"7", array({5.0f})}};
  for (const auto& [name, expected] : others) {
    const std::string key = name;
    CAPTURE(key);
    REQUIRE(state.contains(key));
    CHECK(state.at(key).dtype() == float32);
    CHECK(state.at(key).shape() == expected.shape());
    CHECK(state.at(key).to_vector<float>() == expected.to_vector<float>());
  }
  CHECK(state.size() == std::size(dtypes) + std::size(others));
}

}  // namespace

TEST_CASE("torch: tensors of every dtype and layout, in both formats of PyTorch") {
  for (const char* name : {"state.pt", "old.pt"}) {
    CAPTURE(std::string(name));
    Values values{{"former", true}};
    check_golden(load_torch(golden + name, values));
    check_golden(load_torch(golden + name));
    check_golden(read(io::read_file(golden + name)));
    const Values expected{{"epoch", int64_t{3}}, {"loss", 0.5},          {"name", std::string("näme")},
                          {"flag", true},        {"size.0", int64_t{1}}, {"size.1", int64_t{2}}};
    CHECK(values == expected);
  }
}

TEST_CASE("torch: tensors of one storage share its memory, and stay values") {
  const Arrays state = load_torch(golden + "state.pt");
  const array &one = state.at("7"), &all = state.at("layouts.0"), &part = state.at("layouts.1");
  CHECK(part.flags().row_contiguous);
  CHECK(all.strides() == Strides{1, 6});
  CHECK(static_cast<const float*>(one.raw_data()) == static_cast<const float*>(part.raw_data()) + 2);
}

TEST_CASE("torch: what is written comes back, and equal content gives equal bytes") {
  Arrays arrays;
  for (const Dtype d : {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32,
                        float64, complex64, complex128, float8_e4m3, float8_e5m2})
    arrays.emplace(dtype_name(d), array({0, 1, 1, 0, 1, 0}, {2, 3}, d));
  arrays.emplace("model.ü", transpose(reshape(arange(0, 6, int32), {2, 3})));
  arrays.emplace("scalar", array(2.5f));
  arrays.emplace("empty", zeros({0, 70000}, int16));
  arrays.emplace("long", zeros({70000}, int8));
  const auto out = std::make_shared<io::MemoryWriter>();
  save_torch(out, arrays);
  const Arrays back = read(out->bytes());
  REQUIRE(back.size() == arrays.size());
  for (const auto& [name, a] : arrays) {
    const auto& captured = name;  // clang 14 takes no binding of a structure into a lambda
    CAPTURE(captured);
    CHECK(back.at(name).dtype() == a.dtype());
    CHECK(back.at(name).shape() == a.shape());
    CHECK((a.size() == 0 || std::memcmp(back.at(name).raw_data(), a.raw_data(), a.nbytes()) == 0));
  }
  const auto again = std::make_shared<io::MemoryWriter>();
  save_torch(again, back);
  CHECK(again->bytes() == out->bytes());

  const Folder folder;
  for (const char* name : {"a", "b.pt", "c.pth", "d.bin"}) save_torch(folder / name, {});
  for (const char* name : {"a.pt", "b.pt", "c.pth", "d.bin"}) CHECK(load_torch(folder / name).empty());
  save_torch(folder / "mapped", arrays);
  CHECK(load_torch(folder / "mapped.pt").at("model.ü").to_vector<int>() == std::vector<int>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("torch: objects that are no dictionary, archives that are deflated, the other byte order") {
  const std::string two("\x01\x02\x03\x04", 4), body = tensor(storage("ShortStorage", "0", 2), 0, {2}, {1});
  CHECK(read(file(body, two)).at("").to_vector<int>() == std::vector<int>{0x0201, 0x0403});
  CHECK(read(file(body, two, "big")).at("").to_vector<int>() == std::vector<int>{0x0102, 0x0304});
  CHECK(read(file("(" + body + "(" + body + "tt", two)).at("1.0").to_vector<int>() == std::vector<int>{0x0201, 0x0403});
  CHECK(read(archive({{"data.pkl", pickle(body)}, {"data/0", two}}, true)).at("").shape() == Shape{2});
  CHECK(refusal_of(file(body, two, "middle")) == "a/byteorder: the byte order is neither little nor big, at byte 0");
  // As Python 2 wrote dictionaries with an order.
  CHECK(
      read(file(named("collections", "OrderedDict") + "((" + "(" + text("a") + body + "t(" + text("b") + body + "tttR",
                two))
          .size() == 2);
}

TEST_CASE("torch: functions other than those of tensors are refused by name") {
  const std::string end =
      "', which is no part of tensors that are read: save a dictionary of tensors (state_dict()) "
      "instead, at byte 2";
  const std::pair<const char*, const char*> functions[] = {{"os", "system"},
                                                           {"posix", "system"},
                                                           {"builtins", "eval"},
                                                           {"__builtin__", "getattr"},
                                                           {"torch", "load"},
                                                           {"torch", ""},
                                                           {"torch._utils", "_import"},
                                                           {"torch.nn.modules.linear", "Linear"},
                                                           {"numpy", "ndarray"},
                                                           {"torch", "FloatTensor"},
                                                           {"collections", "namedtuple"},
                                                           {"torch._utils", "_rebuild_qtensor"}};
  for (const auto& [module, name] : functions)
    CHECK(refusal(named(module, name) + "(" + text("x") + "tR") ==
          std::string("the pickle names '") + module + "." + name + end);
  CHECK(refusal(text("os") + text("system") + "\x93").starts_with("the pickle names 'os.system'"));
  CHECK(refusal(named("torch", "FloatStorage") + ")R").starts_with("the pickle calls a storage or a dtype"));
}

TEST_CASE("torch: tensors outside of their storage are refused") {
  const std::string six(24, '\0');
  const auto of = [&](int offset, const std::vector<int>& shape, const std::vector<int>& strides, int elements = 6) {
    return refusal(tensor(storage("FloatStorage", "0", elements), offset, shape, strides), six);
  };
  CHECK(of(0, {2, 3}, {3, 1}) == "accepted");
  CHECK(of(5, {}, {}) == "accepted");
  CHECK(of(1, {5}, {1}) == "accepted");
  CHECK(of(5, {1000000, 1000000}, {0, 0}) == "accepted");
  CHECK(of(0, {0, 1000000}, {1000000, 7}) == "accepted");
  CHECK(of(9, {0}, {1}) == "accepted");
  CHECK(of(6, {}, {}).starts_with("a tensor lies outside of its storage, at byte 1"));
  CHECK(of(2, {5}, {1}).starts_with("a tensor lies outside of its storage"));
  CHECK(of(0, {2, 3}, {4, 1}).starts_with("a tensor lies outside of its storage"));
  CHECK(of(0, {1 << 30, 1 << 30}, {INT32_MAX, INT32_MAX}).starts_with("a tensor lies outside of its storage"));
  CHECK(
      of(0, {INT32_MAX, INT32_MAX, INT32_MAX}, {0, 0, 0}).starts_with("a tensor has more elements than 63 bits count"));
  CHECK(of(-1, {1}, {1}).starts_with("a tensor's offset is no integer from 0 on"));
  CHECK(of(0, {-1}, {1}).starts_with("a tensor's length is no integer from 0 on"));
  CHECK(of(0, {1}, {-1}).starts_with("a tensor's stride is no integer from 0 on"));
  CHECK(of(0, {1, 1}, {1}).starts_with("a tensor's shape and strides are no lists of one length"));
  CHECK(of(0, std::vector<int>(65, 1), std::vector<int>(65, 1)).starts_with("a tensor has 65 axes"));
  CHECK(of(0, {1}, {1}, 7) == "member 'a/data/0' has 24 bytes, not the 28 of its storage, at byte 320");
  CHECK(of(0, {1}, {1}, -1).starts_with("a storage's number of elements is no integer from 0 on"));
  CHECK(refusal(tensor(storage("BoolStorage", "0", 2), 0, {1}, {1}), std::string("\1\2")) ==
        "a/data/0: a bool that is neither 0 nor 1, at byte 1");
  CHECK(refusal(tensor(storage("FloatStorage", "1", 6), 0, {1}, {1}), six).starts_with("there is no member a/data/1"));
  CHECK(refusal("(" + tensor(storage("FloatStorage", "0", 6), 0, {1}, {1}) +
                    tensor(storage("IntStorage", "0", 6), 0, {1}, {1}) + "t",
                six)
            .starts_with("the storage '0' is named twice, with another dtype or size"));
}

TEST_CASE("torch: pickles that are damaged or hostile are refused") {
  const auto whole = [](const std::string& bytes) {
    const std::string text = refusal_of(archive({{"a/data.pkl", bytes}})), start = "a/data.pkl: ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  };
  CHECK(refusal("}") == "accepted");
  CHECK(whole("") == "the pickle ends within an instruction: the file is truncated, at byte 0");
  CHECK(whole("\x80\x06}.") == "the pickle has protocol 6; 2 to 5 are read, at byte 0");
  CHECK(whole("}") == "the pickle ends within an instruction: the file is truncated, at byte 1");
  CHECK(whole(".") == "the pickle takes a value where there is none, at byte 0");
  CHECK(refusal("}}") == "the pickle ends with more than one value, at byte 4");
  CHECK(refusal("(.").starts_with("the pickle takes a value where there is none"));
  CHECK(refusal("t") == "the pickle goes back to a mark where there is none, at byte 2");
  CHECK(refusal("I1\n") == "the pickle has the instruction 0x49, which no file of tensors needs, at byte 2");
  CHECK(refusal("i").starts_with("the pickle has the instruction 0x69"));
  CHECK(refusal("X\xff\xff\xff\xff").starts_with("the pickle ends within an instruction"));
  CHECK(refusal(std::string("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"))
            .starts_with("the pickle ends within an instruction"));
  CHECK(refusal("cos").starts_with("the pickle ends within a name"));
  CHECK(refusal("h\1").starts_with("the pickle recalls a value that it has not remembered"));
  CHECK(refusal("}Na").starts_with("the pickle adds to something that is no list"));
  CHECK(refusal("]NNs").starts_with("the pickle adds to something that is no dictionary"));
  CHECK(refusal("}(Nu").starts_with("the pickle sets a key without a value"));
  CHECK(refusal("N)R").starts_with("the pickle calls something that is no function"));
  CHECK(refusal("N}b").starts_with("the pickle sets attributes of something that has none"));
  CHECK(refusal("NQ").starts_with("the pickle asks for something outside that is no storage"));
  CHECK(refusal("}(NNu") == "a dictionary has a key that is neither a text nor an integer, at byte 0");
  CHECK(refusal(named("torch._utils", "_rebuild_tensor_v2") + ")R").starts_with("a tensor is made of no storage"));
  CHECK(refusal(named("torch._utils", "_rebuild_parameter") + ")R").starts_with("a parameter is made of no tensor"));
  const std::string one = tensor(storage("CharStorage", "0", 1), 0, {1}, {1});
  CHECK(refusal("}(" + text("a") + "}" + text("b") + one + "s" + text("a.b") + one + "u", "x")
            .starts_with("two tensors have the name 'a.b'"));
}

TEST_CASE("torch: pickles that name one value without end are refused") {
  CHECK(refusal("]q\1h\1a").starts_with("the object is nested too deeply"));
  std::string deep;
  for (int k = 0; k < 100; ++k) deep += '(';
  CHECK(refusal(deep + std::string(100, 't')).starts_with("the object is nested too deeply"));
  std::string doubled = ")";
  for (int k = 0; k < 60; ++k) doubled += "2\x86";
  CHECK(refusal(doubled) == "the pickle names the same values over and over, at byte 0");
  // A long key before many names.
  std::string names = "}X" + std::string("\0\x40\0\0", 4) + std::string(0x4000, 'k') + "}(" + pickled(0) +
                      tensor(storage("CharStorage", "0", 1), 0, {1}, {1}) + "q\3";
  for (int k = 1; k < 10000; ++k) names += pickled(k) + "h\3";
  CHECK(refusal(names + "us", "x") == "the pickle names the same values over and over, at byte 0");
}

TEST_CASE("torch: archives and old files that are wrong are refused") {
  CHECK(refusal_of("") == "the file is neither a zip archive nor a pickle: torch.save did not write it, at byte 0");
  CHECK(refusal_of("PK").starts_with("the file is too short for a zip archive"));
  CHECK(refusal_of(archive({{"a/code.py", "x"}})).starts_with("there is no member NAME/data.pkl"));
  CHECK(refusal_of(pickle(pickled(1))).starts_with("the first pickle is no magic number of torch.save"));
  for (const char* name : {"state.pt", "old.pt"}) {
    const std::string bytes = io::read_file(golden + name);
    for (size_t n = 0; n < bytes.size(); n += 7) CHECK(refusal_of(bytes.substr(0, n)) != "accepted");
  }
}

TEST_CASE("torch: files of other people") {
  const std::string folder = std::string(WEFT_TEST_DATA) + "/fixtures/torch_pt/";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: no " << folder);
    return;
  }
  CHECK(load_torch(folder + "test.pt").at("test").shape() == Shape{2, 4});
  CHECK(load_torch(folder + "test_with_key.pt").at("model_state_dict.test").dtype() == int64);
  CHECK(load_torch(folder + "fortran_tensor_3d.pth").at("tensor_fortran").shape() == Shape{2, 3, 4});
}
