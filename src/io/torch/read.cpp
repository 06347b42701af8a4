// Reading files of torch.save. The zip archive holds the pickle "NAME/data.pkl", storages as "NAME/data/KEY", and
// "NAME/byteorder". The format before it is five pickles, a magic number, a version, the writer's machine, the object
// and a list of the keys of storages, and then each storage: the number of elements in 8 bytes, and these.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "graph/build.h"
#include "io/torch/objects.h"
#include "io/zip.h"
#include "runtime/buffer.h"
#include "weft/io.h"

namespace weft {

namespace io::torch {

namespace {

using Kind = PickleValue::Kind;
using Tensors = std::unordered_map<std::string, array>;
using Values = std::unordered_map<std::string, TorchValue>;

/// The magic number of the format before 1.6, as LONG1 has it.
constexpr std::string_view old_magic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr char pickle_start = '\x80';
constexpr int64_t old_version = 1001;
constexpr uint64_t most_pickle_bytes = 100'000'000;

/// The elements of a storage in the machine's byte order, in place where the file has them aligned. All tensors of a
/// storage have one buffer, since a compiled step may update an array that alone owns its buffer.
runtime::BufferRef elements_of(const Bytes& bytes, const TorchStorage& storage, bool swap) {
  const size_t width = storage.dtype ? real_of(*storage.dtype).size() : 1;
  if (storage.dtype == bool_) {
    const auto bad = std::find_if(bytes.view.begin(), bytes.view.end(), [](char c) { return c != 0 && c != 1; });
    if (bad != bytes.view.end())
      bytes.fail("a bool that is neither 0 nor 1", static_cast<uint64_t>(bad - bytes.view.begin()));
  }
  constexpr uintptr_t widest = 8;
  char* data = const_cast<char*>(bytes.view.data());
  if ((!swap || width == 1) && reinterpret_cast<uintptr_t>(data) % widest == 0)
    return std::make_shared<runtime::Buffer>(data, bytes.size(), [owner = bytes.owner](void*) {});
  auto buffer = runtime::allocate(bytes.size());
  auto* to = static_cast<char*>(buffer->data());
  if (bytes.size() > 0) std::memcpy(to, data, bytes.size());
  for (size_t k = 0; swap && k < bytes.size(); k += width) std::reverse(to + k, to + k + width);
  return buffer;
}

/// Returns the tensor in its storage. Throws where it leaves it.
array tensor_in(const Bytes& pickle_bytes, const TorchPickle& pickle, const TorchTensor& t,
                const runtime::BufferRef& buffer) {
  const TorchStorage& storage = pickle.storages()[t.storage];
  const auto fail = [&](const char* what) { pickle_bytes.fail(std::string("a tensor ") + what, t.told); };
  constexpr uint64_t limit = INT64_MAX / 16;
  Shape shape;
  Strides strides;
  std::vector<uint64_t> lengths;
  uint64_t last = t.offset, bytes = 0;
  if (last > limit) fail("lies outside of its storage");
  for (size_t k = 0; k < pickle[t.shape].items.size(); ++k) {
    const int64_t n = pickle[pickle[t.shape].items[k]].integer, step = pickle[pickle[t.strides].items[k]].integer;
    shape.emplace_back(n);
    strides.push_back(step);
    lengths.push_back(static_cast<uint64_t>(n));
    if (n < 2 || step == 0) continue;
    const auto steps = static_cast<uint64_t>(n - 1), most = (limit - last) / static_cast<uint64_t>(step);
    last = steps > most ? limit : last + steps * static_cast<uint64_t>(step);
  }
  if (!byte_count(lengths, t.dtype, bytes)) fail("has more elements than 63 bits count");
  if (bytes == 0) return array(graph::data({shape, t.dtype}, {runtime::allocate(0), 0, row_major_strides(shape)}));
  if (last >= storage.bytes() / t.dtype.size()) fail("lies outside of its storage");
  return array(graph::data({shape, t.dtype}, {buffer, static_cast<int64_t>(t.offset), std::move(strides)}));
}

/// Names the tensors and values of an object by the keys on the way to them.
class Naming {
 public:
  Naming(const Bytes& bytes, const TorchPickle& pickle, const std::vector<runtime::BufferRef>& buffers, Values* values)
      : bytes_(bytes), pickle_(pickle), buffers_(buffers), values_(values) {}

  Tensors name_all(Ref object) {
    visit(object, "", 0);
    return std::move(tensors_);
  }

 private:
  /// A pickle can say in few bytes that lists of lists of … are one list many times over: what it names is held against
  /// its own size.
  void spend(uint64_t& spent, uint64_t n, uint64_t times) {
    spent += n;
    if (spent > times * bytes_.size() + 4096) bytes_.fail("the pickle names the same values over and over", 0);
  }

  void visit(Ref r, const std::string& name, int depth) {
    const PickleValue& v = pickle_[r];
    spend(visits_, 1, 2);
    if (depth > 64) bytes_.fail("the object is nested too deeply", 0);
    const auto inner = [&](const std::string& key, Ref item) {
      visit(item, depth == 0 ? key : name + "." + key, depth + 1);
    };
    switch (v.kind) {
      case Kind::list:
        for (size_t k = 0; k < v.items.size(); ++k) inner(std::to_string(k), v.items[k]);
        return;
      case Kind::dict:
        for (size_t k = 0; k < v.items.size(); k += 2) inner(key_of(v.items[k]), v.items[k + 1]);
        return;
      case Kind::tensor: return add_tensor(pickle_.tensors()[static_cast<size_t>(v.integer)], name);
      case Kind::boolean: return add(name, v.integer != 0);
      case Kind::integer: return add(name, v.integer);
      case Kind::real: return add(name, v.real());
      case Kind::text: spend(characters_, v.text.size(), 16); return add(name, std::string(v.text));
      case Kind::none:
      case Kind::bytes:
      case Kind::set:
      case Kind::function:
      case Kind::storage: return;
    }
  }

  std::string key_of(Ref r) {
    const PickleValue& key = pickle_[r];
    if (key.kind == Kind::integer) return std::to_string(key.integer);
    if (key.kind != Kind::text) bytes_.fail("a dictionary has a key that is neither a text nor an integer", 0);
    return std::string(key.text);
  }

  void add_tensor(const TorchTensor& t, const std::string& name) {
    spend(characters_, name.size(), 16);
    if (!tensors_.emplace(name, tensor_in(bytes_, pickle_, t, buffers_[t.storage])).second)
      bytes_.fail("two tensors have the name '" + name + "'", t.told);
  }

  void add(const std::string& name, TorchValue value) {
    if (!values_) return;
    spend(characters_, name.size(), 16);
    values_->insert_or_assign(name, std::move(value));
  }

  const Bytes& bytes_;
  const TorchPickle& pickle_;
  const std::vector<runtime::BufferRef>& buffers_;
  Values* values_;
  Tensors tensors_;
  uint64_t visits_ = 0, characters_ = 0;
};

/// Returns whether the archive's numbers are of the other byte order.
bool swapped(const Bytes& archive, const std::map<std::string, const ZipMember*>& members, const std::string& folder) {
  const auto found = members.find(folder + "byteorder");
  if (found == members.end()) return false;
  const Bytes order = content(archive, *found->second);
  if (order.view != "little" && order.view != "big") order.fail("the byte order is neither little nor big", 0);
  return order.view == "big";
}

Tensors read_archive(const Bytes& archive, Values* values) {
  const std::vector<ZipMember> all = read_zip(archive);
  std::map<std::string, const ZipMember*> members;
  const ZipMember* main = nullptr;
  for (const ZipMember& m : all) {
    members.emplace(m.name, &m);
    const size_t slash = m.name.find('/');
    if (m.name.substr(slash == std::string::npos ? 0 : slash + 1) == "data.pkl") main = &m;
  }
  if (!main) archive.fail("there is no member NAME/data.pkl: this is no archive of torch.save", 0);
  if (main->size > most_pickle_bytes) archive.fail("data.pkl is too large to describe tensors", main->at);
  const std::string folder = main->name.substr(0, main->name.size() - 8);
  const bool swap = swapped(archive, members, folder);
  const Bytes bytes = content(archive, *main);
  TorchPickle pickle(bytes, 0);
  const Ref object = pickle.load();
  std::vector<runtime::BufferRef> buffers;
  for (const TorchStorage& s : pickle.storages()) {
    const auto found = members.find(folder + "data/" + std::string(s.key));
    if (found == members.end()) archive.fail("there is no member " + folder + "data/" + std::string(s.key), main->at);
    if (found->second->size != s.bytes())
      archive.fail(fmt::format("member '{}' has {} bytes, not the {} of its storage", found->first, found->second->size,
                               s.bytes()),
                   found->second->at);
    if (swap && !s.dtype) bytes.fail("a storage of bytes in a file of the other byte order, which is not read", 0);
    buffers.push_back(elements_of(content(archive, *found->second), s, swap));
  }
  return Naming(bytes, pickle, buffers, values).name_all(object);
}

/// Returns whether the machine of the writer had the other byte order.
bool swapped(const TorchPickle& pickle, Ref machine) {
  const std::vector<Ref>& items = pickle[machine].items;
  for (size_t k = 0; k + 1 < items.size(); k += 2)
    if (pickle[items[k]].text == "little_endian" && pickle[items[k + 1]].kind == Kind::boolean)
      return pickle[items[k + 1]].integer == 0;
  return false;
}

Tensors read_old(const Bytes& bytes, Values* values) {
  TorchPickle pickle(bytes, 0);
  const Ref mark = pickle.load();
  if (pickle[mark].text != old_magic) bytes.fail("the first pickle is no magic number of torch.save", 0);
  const uint64_t version_at = pickle.at();
  const Ref version = pickle.load();
  if (pickle[version].kind != Kind::integer || pickle[version].integer != old_version)
    bytes.fail("the version of torch.save is not 1001", version_at);
  const bool swap = swapped(pickle, pickle.load());
  const Ref object = pickle.load();
  const Ref keys = pickle.load();
  uint64_t at = pickle.at();
  std::vector<runtime::BufferRef> buffers(pickle.storages().size());
  for (const Ref key : pickle[keys].items) {
    const auto& all = pickle.storages();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.key == pickle[key].text; });
    const auto index = static_cast<size_t>(found - all.begin());
    if (found == all.end() || buffers[index]) bytes.fail("a storage has no tensors, or comes twice", at);
    uint64_t elements = 0;
    if (bytes.size() - at < sizeof elements) bytes.fail("the file ends before a storage: it is truncated", at);
    std::memcpy(&elements, bytes.view.data() + at, sizeof elements);
    if (elements != found->elements)
      bytes.fail(fmt::format("a storage has {} elements, not the {} that the pickle says", elements, found->elements),
                 at);
    at += sizeof elements;
    if (found->bytes() > bytes.size() - at) bytes.fail("the file ends within a storage: it is truncated", at);
    buffers[index] =
        elements_of({bytes.op, bytes.name, bytes.view.substr(at, found->bytes()), bytes.owner}, *found, swap);
    at += found->bytes();
  }
  for (size_t k = 0; k < buffers.size(); ++k)
    if (!buffers[k]) bytes.fail("the storage '" + std::string(pickle.storages()[k].key) + "' is missing", at);
  return Naming(bytes, pickle, buffers, values).name_all(object);
}

Tensors read_torch(const Bytes& bytes, Values* values) {
  Values found;
  Tensors tensors;
  if (bytes.view.starts_with(pickle_start)) tensors = read_old(bytes, values ? &found : nullptr);
  else if (bytes.view.starts_with("PK")) tensors = read_archive(bytes, values ? &found : nullptr);
  else bytes.fail("the file is neither a zip archive nor a pickle: torch.save did not write it", 0);
  if (values) *values = std::move(found);
  return tensors;
}

}  // namespace

}  // namespace io::torch

std::unordered_map<std::string, array> load_torch(const std::string& file, StreamOrDevice) {
  return io::torch::read_torch(io::map_file("load_torch", file), nullptr);
}
std::unordered_map<std::string, array> load_torch(const std::shared_ptr<io::Reader>& in, StreamOrDevice) {
  return io::torch::read_torch(io::read_all("load_torch", *in), nullptr);
}
std::unordered_map<std::string, array> load_torch(const std::string& file,
                                                  std::unordered_map<std::string, TorchValue>& values, StreamOrDevice) {
  return io::torch::read_torch(io::map_file("load_torch", file), &values);
}
std::unordered_map<std::string, array> load_torch(const std::shared_ptr<io::Reader>& in,
                                                  std::unordered_map<std::string, TorchValue>& values, StreamOrDevice) {
  return io::torch::read_torch(io::read_all("load_torch", *in), &values);
}

}  // namespace weft
