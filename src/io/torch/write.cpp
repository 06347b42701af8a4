// Writing as torch.save does: a pickle of protocol 2 that makes a dictionary of tensors, and a storage for each.
#include <fmt/format.h>

#include <map>

#include "io/torch/objects.h"
#include "io/zip.h"
#include "weft/io.h"

namespace weft {

namespace io::torch {

namespace {

// Instructions of the pickle (pickle.cpp has their names).
constexpr std::string_view protocol_2("\x80\x02", 2), new_false("\x89", 1);

template <class T>
std::string little(T value) {
  std::string out;
  for (size_t k = 0; k < sizeof value; ++k) out += static_cast<char>(static_cast<uint64_t>(value) >> (8 * k) & 0xff);
  return out;
}

std::string pickled(std::string_view text) {
  return 'X' + little(static_cast<uint32_t>(text.size())) + std::string(text);
}

std::string pickled(uint64_t n) {
  if (n < 256) return 'K' + little(static_cast<uint8_t>(n));
  if (n <= INT32_MAX) return 'J' + little(static_cast<uint32_t>(n));
  return std::string("\x8a\x08", 2) + little(n);  // below 2^63: no sign bit
}

std::string named(std::string_view module, std::string_view name) { return fmt::format("c{}\n{}\n", module, name); }

/// Returns the pickle of a row-major tensor in storage number `key`.
std::string pickled_tensor(const array& a, size_t key) {
  const TorchDtype& dtype = torch_dtype(a.dtype());
  const bool of_bytes = dtype.storage.empty();
  std::string out = named("torch._utils", of_bytes ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
  out += "((" + pickled("storage");
  out += of_bytes ? named("torch.storage", "UntypedStorage") : named("torch", dtype.storage);
  out += pickled(std::to_string(key)) + pickled("cpu") + pickled(of_bytes ? a.nbytes() : a.size()) + "tQ";
  out += pickled(uint64_t{0}) + '(';
  for (const Dim& n : a.shape()) out += pickled(static_cast<uint64_t>(n.bound()));
  out += "t(";
  for (const int64_t step : row_major_strides(a.shape())) out += pickled(static_cast<uint64_t>(step));
  out += 't' + std::string(new_false) + named("collections", "OrderedDict") + ")R";
  if (of_bytes) out += named("torch", dtype.name);
  return out + "tR";
}

/// Calls put(pieces) with the archive as pieces that are written one after the other.
template <class F>
void write_archive(const std::unordered_map<std::string, array>& arrays, F put) {
  const std::map<std::string, array> sorted(arrays.begin(), arrays.end());
  std::vector<array> all;
  std::string pickle = std::string(protocol_2) + '}';
  if (!sorted.empty()) pickle += '(';
  for (const auto& [name, a] : sorted) {
    pickle += pickled(name) + pickled_tensor(a, all.size());
    all.push_back(a);
  }
  pickle += sorted.empty() ? "." : "u.";
  eval(all);
  std::vector<ZipInput> members{{"archive/data.pkl", {pickle}}, {"archive/byteorder", {"little"}}};
  for (size_t k = 0; k < all.size(); ++k)
    members.push_back(
        {fmt::format("archive/data/{}", k), {{static_cast<const char*>(all[k].raw_data()), all[k].nbytes()}}});
  members.push_back({"archive/version", {"3\n"}});
  put(write_zip("save_torch", members, false).pieces);
}

std::string torch_file(const std::string& file) {
  return file.ends_with(".pth") || file.ends_with(".bin") ? file : with_extension(file, ".pt");
}

}  // namespace

}  // namespace io::torch

void save_torch(const std::string& file, const std::unordered_map<std::string, array>& arrays) {
  io::torch::write_archive(arrays,
                           [&](const auto& pieces) { io::write_file_atomically(io::torch::torch_file(file), pieces); });
}
void save_torch(const std::shared_ptr<io::Writer>& out, const std::unordered_map<std::string, array>& arrays) {
  io::torch::write_archive(arrays, [&](const auto& pieces) { io::write_all("save_torch", *out, pieces); });
}

}  // namespace weft
