// idx files: good, bad and real; batches; the synthetic set.
#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "weft/data.h"

using namespace weft;
using namespace weft::data;

namespace {

struct File {
  std::string path = (std::filesystem::temp_directory_path() / ("weft_idx_" + std::to_string(::getpid()))).string();
  explicit File(const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  ~File() { std::filesystem::remove(path); }
};

std::string idx(const std::string& type_and_axes, const std::vector<uint32_t>& extents, size_t bytes) {
  std::string out = std::string(2, '\0') + type_and_axes;
  for (const uint32_t e : extents)
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(e >> shift & 255));
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(i * 37));
  return out;
}

std::string refusal(const std::string& bytes) {
  const File file(bytes);
  try {
    read_idx(file.path);
  } catch (const std::runtime_error& e) {
    return std::string(e.what()).substr(std::string("[read_idx] " + file.path + ": ").size());
  }
  return "accepted";
}

std::string gzipped(const std::string& bytes) {
  const File file("");
  gzFile out = gzopen(file.path.c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
  std::ifstream in(file.path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("idx: what is written is read, plain and compressed") {
  const std::string bytes = idx("\x08\x03", {2, 3, 4}, 24);
  for (const std::string& content : {bytes, gzipped(bytes)}) {
    const File file(content);
    const Idx read = read_idx(file.path);
    CHECK(read.extents == std::vector<int64_t>{2, 3, 4});
    REQUIRE(read.bytes.size() == 24);
    CHECK(read.bytes[5] == static_cast<uint8_t>(5 * 37));
  }
}

TEST_CASE("idx: bad files are refused in words") {
  CHECK(refusal("").starts_with("is no idx file"));
  CHECK(refusal("plain text").starts_with("is no idx file"));
  CHECK(refusal(idx("\x0d\x01", {2}, 8)) == "holds elements of type 13; only unsigned bytes (8) are read");
  CHECK(refusal(idx("\x08\x09", {2}, 2)) == "has 9 axes; 1 to 4 are read");
  CHECK(refusal(idx("\x08\x03", {2, 3}, 0)) == "ends within its header");
  CHECK(refusal(idx("\x08\x02", {2, 3}, 5)) == "is cut off: 6 bytes are announced, 5 are there");
  CHECK(refusal(idx("\x08\x02", {2, 3}, 7)) == "is longer than the 6 bytes that its header announces");
  CHECK(refusal(idx("\x08\x03", {0xffffffff, 0xffffffff, 2}, 9)) == "claims extents that no file of this kind has");
  CHECK(refusal(idx("\x08\x02", {0x10000000, 1}, 9)).starts_with("is cut off"));
  const std::string whole = gzipped(idx("\x08\x02", {100, 100}, 10000));
  CHECK(refusal(whole.substr(0, whole.size() / 2)) != "accepted");
  std::string changed = whole;
  changed[whole.size() / 2] = static_cast<char>(changed[whole.size() / 2] ^ 0x55);
  CHECK(refusal(changed) != "accepted");
  CHECK_THROWS_AS(read_idx("/nowhere/at/all"), std::runtime_error);
}

TEST_CASE("images and labels must fit together") {
  const Idx images{{2, 3, 3}, std::vector<uint8_t>(18, 7)};
  CHECK(ImageDataset(images, {{2}, {1, 9}}).size() == 2);
  CHECK_THROWS_AS(ImageDataset(images, {{3}, {1, 2, 3}}), std::invalid_argument);
  CHECK_THROWS_AS(ImageDataset(images, {{2}, {1, 10}}), std::invalid_argument);
  CHECK_THROWS_AS(ImageDataset({{2, 9}, std::vector<uint8_t>(18)}, {{2}, {1, 2}}), std::invalid_argument);
}

TEST_CASE("a shuffled epoch holds every image once, in an order of its own") {
  Idx images{{1000, 1, 2}, {}}, labels{{1000}, {}};
  for (int i = 0; i < 1000; ++i) {
    images.bytes.push_back(static_cast<uint8_t>(i / 256));
    images.bytes.push_back(static_cast<uint8_t>(i % 256));
    labels.bytes.push_back(static_cast<uint8_t>(i % 10));
  }
  const ImageDataset set(images, labels);
  const auto epoch = [&](uint64_t seed, int64_t e) {
    std::vector<int> order;
    for (int64_t k = 0; k < set.batches(100); ++k) {
      const ImageBatch b = set.shuffled_batch(seed, e, k, 100);
      CHECK(b.images.shape() == Shape{100, 1, 2, 1});
      const auto bytes = b.images.to_vector<int>(), classes = b.labels.to_vector<int>();
      for (size_t i = 0; i < 100; ++i) {
        order.push_back(bytes[2 * i] * 256 + bytes[2 * i + 1]);
        CHECK(classes[i] == order.back() % 10);
      }
    }
    return order;
  };
  const auto first = epoch(7, 0);
  CHECK(std::set<int>(first.begin(), first.end()).size() == 1000);
  CHECK(first == epoch(7, 0));
  CHECK(first != epoch(7, 1));
  CHECK(first != epoch(8, 0));
  int fixed = 0;
  for (int i = 0; i < 1000; ++i) fixed += first[static_cast<size_t>(i)] == i ? 1 : 0;
  CHECK(fixed < 10);
  CHECK(set.batches(300) == 3);
  CHECK_THROWS_AS(set.shuffled_batch(7, 0, 3, 300), std::out_of_range);
  CHECK_THROWS_AS(set.in_order(999, 2), std::out_of_range);
  CHECK(set.in_order(998, 2).labels.to_vector<int>() == std::vector<int>{8, 9});
}

TEST_CASE("the synthetic set: a function of the seed, with all classes") {
  const ImageSplit a = synthetic_digits(200, 50, 3), b = synthetic_digits(200, 50, 3), c = synthetic_digits(200, 50, 4);
  const auto bytes = [](const ImageDataset& d) {
    return d.in_order(0, static_cast<int>(d.size())).images.to_vector<int>();
  };
  CHECK(bytes(a.train) == bytes(b.train));
  CHECK(bytes(a.train) != bytes(c.train));
  CHECK(bytes(a.test) != bytes(synthetic_digits(50, 50, 3).train));
  const auto labels = a.train.in_order(0, 200).labels.to_vector<int>();
  CHECK(std::set<int>(labels.begin(), labels.end()).size() == 10);
}

TEST_CASE("MNIST itself") {
  const std::string folder = std::string(WEFT_TEST_DATA) + "/mnist";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: there is no ", folder);
    return;
  }
  const ImageSplit mnist = load_mnist(folder);
  CHECK(mnist.train.size() == 60000);
  CHECK(mnist.test.size() == 10000);
  CHECK(mnist.train.rows() == 28);
  CHECK(mnist.train.in_order(0, 8).labels.to_vector<int>() == std::vector<int>{5, 0, 4, 1, 9, 2, 1, 3});
  CHECK_THROWS_WITH_AS(load_mnist("/nowhere"),
                       "[load_mnist] /nowhere lacks train-images-idx3-ubyte (or train-images-idx3-ubyte.gz)",
                       std::runtime_error);
}
