// NumPy's archives: a zip file with one .npy member for each array.
#include <algorithm>

#include "base/error.h"
#include "io/npy.h"
#include "io/zip.h"

namespace weft {

namespace {

std::unordered_map<std::string, array> parse_npz(const io::Bytes& archive) {
  std::unordered_map<std::string, array> out;
  for (const io::ZipMember& m : io::read_zip(archive)) {
    if (!m.name.ends_with(".npy"))
      archive.fail("member '" + m.name + "' is no .npy file: this is no archive of arrays", m.at);
    out.emplace(m.name.substr(0, m.name.size() - 4), io::parse_npy(io::content(archive, m)));
  }
  return out;
}

template <class F>
void write_npz(const char* op, const std::unordered_map<std::string, array>& arrays, bool deflate, F write) {
  std::vector<std::pair<std::string, array>> sorted(arrays.begin(), arrays.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<array> all;
  std::vector<std::string> heads;
  for (const auto& [name, a] : sorted) {
    heads.push_back(io::npy_header(op, a.dtype(), a.shape()));
    all.push_back(a);
  }
  eval(all);
  std::vector<io::ZipInput> inputs;
  for (size_t k = 0; k < all.size(); ++k)
    inputs.push_back(
        {sorted[k].first + ".npy", {heads[k], {static_cast<const char*>(all[k].raw_data()), all[k].nbytes()}}});
  write(io::write_zip(op, inputs, deflate).pieces);
}

void to_file(const char* op, const std::string& file, const std::unordered_map<std::string, array>& arrays,
             bool deflate) {
  write_npz(op, arrays, deflate,
            [&](const auto& pieces) { io::write_file_atomically(io::with_extension(file, ".npz"), pieces); });
}

void to_writer(const char* op, io::Writer& out, const std::unordered_map<std::string, array>& arrays, bool deflate) {
  write_npz(op, arrays, deflate, [&](const auto& pieces) { io::write_all(op, out, pieces); });
}

}  // namespace

std::unordered_map<std::string, array> load_npz(const std::string& file, StreamOrDevice) {
  return parse_npz(io::map_file("load_npz", file));
}
std::unordered_map<std::string, array> load_npz(const std::shared_ptr<io::Reader>& in, StreamOrDevice) {
  return parse_npz(io::read_all("load_npz", *in));
}

void savez(const std::string& file, const std::unordered_map<std::string, array>& arrays) {
  to_file("savez", file, arrays, false);
}
void savez(const std::shared_ptr<io::Writer>& out, const std::unordered_map<std::string, array>& arrays) {
  to_writer("savez", *out, arrays, false);
}
void savez_compressed(const std::string& file, const std::unordered_map<std::string, array>& arrays) {
  to_file("savez_compressed", file, arrays, true);
}
void savez_compressed(const std::shared_ptr<io::Writer>& out, const std::unordered_map<std::string, array>& arrays) {
  to_writer("savez_compressed", *out, arrays, true);
}

}  // namespace weft
