// Images with labels: idx files, batches, and a synthetic set.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "weft/data.h"

namespace weft::data {

namespace {

constexpr uint8_t unsigned_bytes = 0x08;  // the type byte
constexpr size_t most_bytes = size_t{1} << 34;

[[noreturn]] void bad_file(const std::string& path, const std::string& what) {
  throw_failure("read_idx", path + ": " + what);
}

/// A file that may be compressed.
class Source {
 public:
  explicit Source(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!file_) bad_file(path_, "cannot be opened");
    gzbuffer(file_.get(), 1 << 18);
  }
  /// Reads at most `size` bytes; fewer at the end of the file.
  size_t read(void* to, size_t size) {
    size_t done = 0;
    while (done < size) {
      const int got = gzread(file_.get(), static_cast<char*>(to) + done,
                             static_cast<unsigned>(std::min<size_t>(size - done, 1 << 30)));
      if (got < 0) damaged();
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }
  /// Throws where the compressed data are truncated or damaged.
  void check_end() {
    int status = Z_OK;
    gzerror(file_.get(), &status);
    if (status != Z_OK) damaged();
  }

 private:
  [[noreturn]] void damaged() {
    int status = Z_OK;
    const std::string why = gzerror(file_.get(), &status);
    bad_file(path_, "cannot be decompressed (" + why + ")");
  }
  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

std::string count_of(size_t n, const char* what) { return std::to_string(n) + " " + what; }

}  // namespace

Idx read_idx(const std::string& path) {
  Source source(path);
  std::array<uint8_t, 4> magic{};
  if (source.read(magic.data(), 4) != 4 || magic[0] != 0 || magic[1] != 0) {
    source.check_end();
    bad_file(
        path,
        "is no idx file: it should begin with two zero bytes, the type of its elements and the number of its axes");
  }
  if (magic[2] != unsigned_bytes)
    bad_file(path, "holds elements of type " + std::to_string(magic[2]) + "; only unsigned bytes (8) are read");
  if (magic[3] < 1 || magic[3] > 4) bad_file(path, "has " + count_of(magic[3], "axes") + "; 1 to 4 are read");
  Idx out;
  size_t total = 1;
  for (int k = 0; k < magic[3]; ++k) {
    std::array<uint8_t, 4> e{};
    if (source.read(e.data(), 4) != 4) bad_file(path, "ends within its header");
    const auto extent =
        static_cast<size_t>(e[0]) << 24 | static_cast<size_t>(e[1]) << 16 | static_cast<size_t>(e[2]) << 8 | e[3];
    if (extent != 0 && total > most_bytes / extent) bad_file(path, "claims extents that no file of this kind has");
    total *= extent;
    out.extents.push_back(static_cast<int64_t>(extent));
  }
  // Reads in parts, so that a wrong header does not decide how much memory is allocated.
  while (out.bytes.size() < total) {
    const size_t had = out.bytes.size(), part = std::min<size_t>(total - had, 1 << 24);
    out.bytes.resize(had + part);
    const size_t got = source.read(out.bytes.data() + had, part);
    source.check_end();
    if (got < part)
      bad_file(path, "is cut off: " + count_of(total, "bytes are announced, ") + count_of(had + got, "are there"));
  }
  char more = 0;
  if (source.read(&more, 1) != 0)
    bad_file(path, "is longer than the " + count_of(total, "bytes that its header announces"));
  source.check_end();
  return out;
}

ImageDataset::ImageDataset(Idx images, Idx labels, int classes)
    : images_(std::move(images)), labels_(std::move(labels)) {
  const char* op = "ImageDataset";
  if (images_.extents.size() != 3)
    throw_invalid(op,
                  "images have three axes [count, rows, columns]; there are " + std::to_string(images_.extents.size()));
  if (labels_.extents != std::vector<int64_t>{images_.extents[0]})
    throw_invalid(op, "there must be one label for each of " + std::to_string(images_.extents[0]) + " images");
  for (size_t i = 0; i < labels_.bytes.size(); ++i)
    if (labels_.bytes[i] >= classes)
      throw_invalid(op, "label " + std::to_string(labels_.bytes[i]) + " of image " + std::to_string(i) +
                            " is none of " + std::to_string(classes) + " classes");
}

ImageBatch ImageDataset::gather(const std::vector<int64_t>& which) const {
  const auto pixels = static_cast<size_t>(rows() * columns());
  std::vector<uint8_t> images(which.size() * pixels);
  std::vector<int32_t> labels;
  for (size_t i = 0; i < which.size(); ++i) {
    const auto at = static_cast<size_t>(which[i]);
    std::copy_n(images_.bytes.data() + at * pixels, pixels, images.data() + i * pixels);
    labels.push_back(labels_.bytes[at]);
  }
  const auto n = static_cast<int64_t>(which.size());
  return {array::from_data(images.data(), {n, rows(), columns(), 1}, uint8),
          array::from_data(labels.data(), {n}, int32)};
}

ImageBatch ImageDataset::in_order(int64_t first, int count) const {
  if (first < 0 || count < 1 || first + count > size())
    throw_out_of_range("in_order", "images " + std::to_string(first) + " to " + std::to_string(first + count) + " of " +
                                       std::to_string(size()));
  std::vector<int64_t> which(static_cast<size_t>(count));
  std::iota(which.begin(), which.end(), first);
  return gather(which);
}

// Returns one element of the shuffled order without computing the others, by a Feistel network over the indices: four
// rounds on the smallest even number of bits that holds them, repeated until the result is an index (Black and Rogaway
// 2002).
ImageBatch ImageDataset::shuffled_batch(uint64_t seed, int64_t epoch, int64_t k, int batch) const {
  if (batch < 1 || k < 0 || k >= batches(batch))
    throw_out_of_range("shuffled_batch",
                       "batch " + std::to_string(k) + " of " + std::to_string(batch < 1 ? 0 : batches(batch)));
  const CounterRandom random(CounterRandom(seed).bits(static_cast<uint64_t>(epoch)));
  int half = 1;
  while ((int64_t{1} << (2 * half)) < size()) ++half;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  std::vector<int64_t> which;
  for (int64_t i = k * batch; i < (k + 1) * batch; ++i) {
    auto x = static_cast<uint64_t>(i);
    do {
      uint64_t left = x >> half, right = x & mask;
      for (uint64_t round = 0; round < 4; ++round) {
        const uint64_t next = left ^ (random.bits(round << 32 | right) & mask);
        left = right;
        right = next;
      }
      x = left << half | right;
    } while (x >= static_cast<uint64_t>(size()));
    which.push_back(static_cast<int64_t>(x));
  }
  return gather(which);
}

namespace {

Idx read_either(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const char* end : {"", ".gz"})
      if (const std::string path = folder + "/" + name + end; std::filesystem::exists(path)) return read_idx(path);
  throw_failure("load_mnist", folder + " lacks " + names[0] + " (or " + names[0] + ".gz)");
}

ImageDataset read_part(const std::string& folder, const std::string& part) {
  Idx images = read_either(folder, {part + "-images-idx3-ubyte", part + "-images.idx3-ubyte"});
  Idx labels = read_either(folder, {part + "-labels-idx1-ubyte", part + "-labels.idx1-ubyte"});
  try {
    return ImageDataset(std::move(images), std::move(labels));
  } catch (const std::invalid_argument& e) {
    throw_failure("load_mnist", folder + ", " + part + ": " + e.what());
  }
}

/// Returns how dark a shape of one class is at (x, y) in [-1, 1]²: rings, bars, crosses and their mixtures.
double shape_at(int kind, double x, double y) {
  const double r = std::sqrt(x * x + y * y), width = 0.18;
  const auto line = [&](double distance) { return std::clamp(1.5 - std::abs(distance) / width, 0.0, 1.0); };
  const auto within = [&](double v) { return std::abs(v) < 0.8; };
  switch (kind) {
    case 0: return line(r - 0.65);
    case 1: return within(y) ? line(x) : 0;
    case 2: return within(x) ? line(y) : 0;
    case 3: return within(x) && within(y) ? std::max(line(x), line(y)) : 0;
    case 4: return within(x) ? line((x - y) / 1.4) : 0;
    case 5: return within(x) ? std::max(line((x - y) / 1.4), line((x + y) / 1.4)) : 0;
    case 6: return within(x) && within(y) ? std::max(line(std::abs(x) - 0.6), line(std::abs(y) - 0.6)) : 0;
    case 7: return within(x) ? std::max(line(y - 0.5), line(y + 0.5)) : 0;
    case 8: return within(y) ? std::max(line(x - 0.5), line(x + 0.5)) : 0;
    default: return r < 0.5 ? 1 : 0;
  }
}

ImageDataset made_up(int64_t count, const CounterRandom& random) {
  constexpr int64_t side = 28;
  Idx images{{count, side, side}, {}}, labels{{count}, {}};
  images.bytes.reserve(static_cast<size_t>(count * side * side));
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t draw = static_cast<uint64_t>(i) << 16;
    const int kind = static_cast<int>(random.below(draw, 10));
    const double scale = 0.7 + 0.5 * random.uniform(draw + 1), dx = 0.5 * random.uniform(draw + 2) - 0.25,
                 dy = 0.5 * random.uniform(draw + 3) - 0.25;
    labels.bytes.push_back(static_cast<uint8_t>(kind));
    for (int64_t p = 0; p < side * side; ++p) {
      const int64_t row = p / side, column = p % side;
      const double x = (static_cast<double>(column) / 13.5 - 1) / scale - dx,
                   y = (static_cast<double>(row) / 13.5 - 1) / scale - dy;
      const double noise = 0.3 * random.uniform(draw + 16 + static_cast<uint64_t>(p));
      images.bytes.push_back(static_cast<uint8_t>(std::clamp(255 * (0.85 * shape_at(kind, x, y) + noise), 0.0, 255.0)));
    }
  }
  return ImageDataset(std::move(images), std::move(labels));
}

}  // namespace

ImageSplit load_mnist(const std::string& folder) { return {read_part(folder, "train"), read_part(folder, "t10k")}; }

ImageSplit synthetic_digits(int64_t train, int64_t test, uint64_t seed) {
  const CounterRandom random(seed);
  return {made_up(train, CounterRandom(random.bits(0))), made_up(test, CounterRandom(random.bits(1)))};
}

}  // namespace weft::data
