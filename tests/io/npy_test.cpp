#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "io/folder.h"
#include "weft/io.h"
#include "weft/memory.h"
#include "weft/ops.h"

using namespace weft;

namespace {

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string out("\x93NUMPY", 6);
  out += version;
  out += '\0';
  for (int k = 0; k < (version == 1 ? 2 : 4); ++k) out += static_cast<char>((header.size() + 1) >> (8 * k) & 0xff);
  return out + header + "\n" + data;
}

std::string dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
}

array read(const std::string& bytes) { return load(std::make_shared<io::MemoryReader>(bytes, "m")); }

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const std::runtime_error& e) {
    const std::string text = e.what(), start = "[load] m: ";
    CHECK(text.starts_with(start));
    return text.substr(std::min(start.size(), text.size()));
  }
  return "accepted";
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.begin(), out.size());
  return out;
}

std::string swapped(std::string bytes, size_t width) {
  for (size_t k = 0; k < bytes.size(); k += width)
    std::reverse(bytes.begin() + static_cast<long>(k), bytes.begin() + static_cast<long>(k + width));
  return bytes;
}

const std::string fixtures = std::string(WEFT_TEST_DATA) + "/fixtures/npy/";

bool absent() {
  if (std::filesystem::exists(fixtures)) return false;
  MESSAGE("skipped: no " << fixtures);
  return true;
}

}  // namespace

TEST_CASE("npy: every dtype and shape comes back from a file and from memory") {
  const Folder folder;
  const std::vector<float> small{0, 1, 1, 0, 1, 0};
  for (const Dtype d :
       {bool_, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64}) {
    CAPTURE(dtype_name(d));
    const array a(small.begin(), {2, 3}, d);
    save(folder / "a", a);  // becomes a.npy
    const array b = load(folder / "a.npy");
    CHECK(b.dtype() == d);
    CHECK(b.shape() == Shape{2, 3});
    CHECK(b.to_vector<float>() == small);
    const auto out = std::make_shared<io::MemoryWriter>();
    save(out, a);
    CHECK(out->bytes() == io::read_file(folder / "a.npy"));
    CHECK(read(out->bytes()).to_vector<float>() == small);
    CHECK((out->bytes().size() - a.nbytes()) % 64 == 0);
  }
  const complex128_t wide[] = {{0.1, 2}, {-3, 1e300}};
  save(folder / "wide.npy", array::from_data(wide, {2}, complex128));
  CHECK(load(folder / "wide.npy").dtype() == complex128);
  CHECK(std::memcmp(load(folder / "wide.npy").raw_data(), wide, sizeof wide) == 0);
  const complex64_t z[] = {{1, 2}, {-3, 0.5f}};
  save(folder / "z.npy", array::from_data(z, {2}, complex64));
  CHECK(std::memcmp(load(folder / "z.npy").raw_data(), z, sizeof z) == 0);
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0}, Shape{3, 0, 2}, Shape{1, 2, 1}}) {
    CAPTURE(to_string(shape));
    save(folder / "s.npy", ones(shape));
    const array b = load(folder / "s.npy");
    CHECK(b.shape() == shape);
    CHECK(b.to_vector<float>() == std::vector<float>(b.size(), 1.0f));
  }
}

TEST_CASE("npy: the bytes are those that NumPy writes") {
  const auto out = std::make_shared<io::MemoryWriter>();
  save(out, array({1, 2, 3}, int16));
  std::string expected("\x93NUMPY\x01\0v\0", 10);
  expected += "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
  expected.append(127 - expected.size(), ' ');
  CHECK(out->bytes() == expected + "\n" + bytes_of<int16_t>({1, 2, 3}));
}

TEST_CASE("npy: byte orders, column-major order, versions, spellings") {
  const std::string floats = bytes_of<float>({1.5f, -2, 3, 4, 5, 6});
  const std::vector<float> plain{1.5f, -2, 3, 4, 5, 6}, crossed{1.5f, 3, 5, -2, 4, 6};
  CHECK(read(npy(dict("<f4", "(2, 3)"), floats)).to_vector<float>() == plain);
  CHECK(read(npy(dict("=f4", "(2, 3)"), floats)).to_vector<float>() == plain);
  CHECK(read(npy(dict(">f4", "(2, 3)"), swapped(floats, 4))).to_vector<float>() == plain);
  CHECK(read(npy(dict("<f4", "(2, 3)", true), floats)).to_vector<float>() == crossed);
  CHECK(read(npy(dict(">f4", "(2, 3)", true), swapped(floats, 4))).to_vector<float>() == crossed);
  CHECK((read(npy(dict("<f4", "(2, 3)", true), floats)) * 2.0f).to_vector<float>() ==
        std::vector<float>{3, 6, 10, -4, 8, 12});  // computed from as it lies
  CHECK(read(npy(dict(">i8", "(1,)"), swapped(bytes_of<int64_t>({-5}), 8))).item<int64_t>() == -5);
  CHECK(read(npy(dict(">u2", "()"), "\x01\x02")).item<int>() == 258);
  const array z = read(npy(dict(">c8", "()"), swapped(bytes_of<float>({1, -2}), 4)));
  CHECK(*z.data<complex64_t>() == complex64_t(1, -2));
  for (const char version : {1, 2, 3})
    CHECK(read(npy(dict("<f4", "(6,)"), floats, version)).to_vector<float>() == plain);
  CHECK(read(npy("{\"shape\":(6L,),\"descr\":\"<f4\",\"fortran_order\":False}", floats)).to_vector<float>() == plain);
  CHECK(read(npy("  { 'descr' : '<f4' ,\t'fortran_order':False, 'shape' : ( 2 , 3 , ) }   ", floats)).shape() ==
        Shape{2, 3});
  // A reader is read from where it stands.
  const auto in = std::make_shared<io::MemoryReader>("before" + npy(dict("<f4", "(6,)"), floats));
  in->seek(6);
  CHECK(load(in).to_vector<float>() == plain);
}

TEST_CASE("npy: types that Weft has not are refused with the reason") {
  const std::string data(64, '\0');
  const std::map<std::string, std::string> reasons{{"|O", "Python objects"},
                                                   {"<c32", "wider than complex128"},
                                                   {"<f16", "float type of 16 bytes"},
                                                   {"<f12", "float type of 12 bytes"},
                                                   {"|S4", "is no array of numbers"},
                                                   {"<U4", "is no array of numbers"},
                                                   {"<M8[ns]", "dates"},
                                                   {"<m8", "dates"},
                                                   {"|V8", "raw bytes"},
                                                   {"<x9", "no type that is known"},
                                                   {"|f4", "has no byte order"},
                                                   {"f4", "does not start with a byte order"},
                                                   {"", "does not start with a byte order"}};
  for (const auto& [descr, reason] : reasons) {
    const auto& captured = descr;  // clang 14 takes no binding of a structure into a lambda
    CAPTURE(captured);
    const std::string text = refusal(npy(dict(descr, "(1,)"), data));
    CHECK(text.find(reason) != std::string::npos);
    CHECK(text.ends_with(", at byte 20"));
  }
  CHECK(refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", data))
            .starts_with("the elements are structures"));
}

TEST_CASE("npy: malformed files are refused with the place") {
  CHECK(refusal("") == "this is no .npy file, at byte 0");
  CHECK(refusal("PK\x03\x04zip").starts_with("this is a zip archive, not one array: load_npz"));
  CHECK(refusal(npy(dict("<f4", "(1,)"), "abcd", 4)) ==
        "the format's version is 4.0; 1.0, 2.0 and 3.0 are known, at byte 6");
  CHECK(refusal(npy(dict("<f4", "(2,)"), "abcd"))
            .find("(2) float32 takes 8 bytes, but 4 follow the header: the file is truncated") == 0);
  CHECK(refusal(npy(dict("<f4", "(1,)"), "abcdefgh"))
            .find("(1) float32 takes 4 bytes, but 8 follow the header, at byte") == 0);
  CHECK(refusal(npy(dict("<f4", "(4294967296, 4294967296)"), "")).find("overflows") != std::string::npos);
  CHECK(refusal(npy(dict("<f4", "(4294967296, 0, 4294967296)"), "")).find("overflows") != std::string::npos);
  for (const char* shape : {"(-1,)", "(None,)", "(9223372036854775808,)", "(,)", "('1',)"}) {
    CAPTURE(shape);
    CHECK(refusal(npy(dict("<f4", shape), "abcd")).find("whole numbers") != std::string::npos);
  }
  CHECK(refusal(npy(dict("<f4", "(1)"), "abcd")).find("comma") != std::string::npos);
  CHECK(refusal(npy(dict("<f4", "(1.0,)"), "abcd")).find("')' is missing") != std::string::npos);
  CHECK(refusal(npy(dict("<f4", "[1]"), "abcd")).find("'(' is missing") != std::string::npos);
  CHECK(refusal(npy("{'descr': '<f4', 'shape': (1,)}", "abcd")).find("lacks fortran_order") != std::string::npos);
  CHECK(refusal(npy("{'descr': '<f4', 'descr': '<f4'}", "abcd")).find("'descr' occurs twice") != std::string::npos);
  CHECK(refusal(npy("{'descr': '<f4', 'more': 1}", "abcd")).find("a field 'more'") != std::string::npos);
  CHECK(refusal(npy("{'descr': '<f4', 'fortran_order': 1}", "abcd")).find("neither True nor False") !=
        std::string::npos);
  CHECK(refusal(npy(dict("<f4", "(1,)") + " x", "abcd")).find("something follows") != std::string::npos);
  CHECK(refusal(npy("{'descr': '<f4", "abcd")).find("does not end") != std::string::npos);
  std::string many = "(";
  for (int k = 0; k < 65; ++k) many += "1, ";
  CHECK(refusal(npy(dict("<f4", many + ")"), "abcd")).find("65 dimensions") != std::string::npos);
  CHECK(refusal(npy(dict("|b1", "(3,)"), std::string("\0\1\2", 3)))
            .starts_with("a bool that is neither 0 nor 1, at byte "));
  std::string open = npy(dict("<f4", "(1,)"), "abcd");
  open[open.size() - 5] = ' ';
  CHECK(refusal(open).starts_with("the header does not end with a new line"));
  const std::string whole = npy(dict("<f4", "(2, 1)"), "abcdefgh");
  CHECK(refusal(whole) == "accepted");
  for (size_t n = 0; n < whole.size(); ++n) CHECK(refusal(whole.substr(0, n)) != "accepted");
}

TEST_CASE("npy: a file is mapped: no memory of its own, its old content for its readers, updates in private") {
  const Folder folder;
  const std::string file = folder / "m.npy";
  save(file, arange(0, 100000, int32));
  clear_cache();
  const size_t before = get_active_memory();
  array a = load(file);
  CHECK(get_active_memory() == before);
  save(file, zeros({5}, int32));
  CHECK(load(file).size() == 5);
  CHECK(sum(a).item<int64_t>() == 704982704);  // of 0 … 99999 in 32 bits, as it wraps
  std::filesystem::remove(file);
  CHECK(a.data<int>()[99999] == 99999);
}

TEST_CASE("npy fixtures: files of other writers") {
  if (absent()) return;
  const std::map<std::string, Dtype> dtypes{
      {"float32", float32}, {"float64", float64}, {"int8", int8},     {"int16", int16},   {"int32", int32},
      {"int64", int64},     {"uint8", uint8},     {"uint16", uint16}, {"uint32", uint32}, {"uint64", uint64}};
  const std::map<std::string, Shape> shapes{{"1x1", {1, 1}}, {"2x3", {2, 3}}, {"6x1", {6, 1}}, {"scalar", {}}};
  for (const auto& [type, dtype] : dtypes)
    for (const auto& [size, shape] : shapes)
      for (const std::string order : {"corder", "forder"}) {
        const std::string file = "npyio/data_" + type + "_" + size + "_" + order + ".npy";
        CAPTURE(file);
        const array a = load(fixtures + file);
        CHECK(a.dtype() == dtype);
        CHECK(a.shape() == shape);
        const bool one = size == "1x1" || size == "scalar", across = size == "2x3" && order == "forder";
        CHECK(a.to_vector<double>() == (one      ? std::vector<double>{42}
                                        : across ? std::vector<double>{0, 2, 4, 1, 3, 5}
                                                 : std::vector<double>{0, 1, 2, 3, 4, 5}));
      }
  std::vector<double> counted(24);
  for (size_t k = 0; k < 24; ++k) counted[k] = static_cast<double>(k);
  CHECK(load(fixtures + "npyio/data_float64_2x3x4_corder.npy").to_vector<double>() == counted);
  for (const std::string name :
       {"little_endian_standard", "little_endian_fortran", "big_endian_standard", "big_endian_fortran"}) {
    const array a = load(fixtures + "ndarray-npy/example_f64_" + name + ".npy");
    CHECK(a.shape() == Shape{2, 3, 4});
    CHECK(a.to_vector<double>() == counted);
  }
  const auto odd = load(fixtures + "npyio/nans_inf.npy").to_vector<double>();
  CHECK(std::isnan(odd[0]));
  CHECK(odd[1] == -INFINITY);
  CHECK(odd[3] == INFINITY);
  for (const std::string name : {"bool", "double"})
    CHECK(load(fixtures + "xtensor/" + name + ".le.npy").to_vector<double>() ==
          load(fixtures + "xtensor/" + name + "_fortran.le.npy").to_vector<double>());
  CHECK(load(fixtures + "xtensor/unsignedlong_fortran.le.npy").to_vector<int>() ==
        std::vector<int>{12, 14, 16, 18, 1234321});
  CHECK(load(fixtures + "NPZ.jl_linspace.npy").shape() == Shape{11});
}

TEST_CASE("npy fixtures: what must be refused") {
  if (absent()) return;
  for (const std::string file : {"npyio/ragged-array.npy", "npyio/ragged-array-mixed.npy", "numpy/py2-objarr.npy",
                                 "numpy/py2-np0-objarr.npy", "numpy/py3-objarr.npy"})
    CHECK_THROWS_WITH_AS(load(fixtures + file), doctest::Contains("Python objects"), std::runtime_error);
  CHECK_THROWS_WITH_AS(load(fixtures + "ndarray-npy/example_bool_bad_value.npy"),
                       doctest::Contains("neither 0 nor 1, at byte"), std::runtime_error);
  for (const std::string name : {"little_endian_standard", "big_endian_fortran"})
    CHECK(load(fixtures + "ndarray-npy/example_c64_" + name + ".npy").dtype() == complex128);
  CHECK_THROWS_WITH_AS(load(fixtures + "missing.npy"), doctest::Contains("No such file"), std::runtime_error);
  CHECK_THROWS_WITH_AS(load(fixtures + "missing.bla"), doctest::Contains("not that of a known format"),
                       std::invalid_argument);  // as MLX's Python
  CHECK_THROWS_AS(load(fixtures + "missing"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(load(fixtures), doctest::Contains("Is a directory"), std::runtime_error);
}
