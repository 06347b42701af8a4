#include "fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <variant>

#include "graph/build.h"
#include "io/program/tape.h"
#include "io/zip.h"
#include "kernel/text/text.h"
#include "models/text_config.h"
#include "text/utf8.h"
#include "tools/weft/train/checkpoint.h"
#include "tools/weft/train/train_options.h"
#include "weft/data.h"
#include "weft/io.h"
#include "weft/text.h"

namespace weft::fuzz {

namespace {

struct Finding : std::logic_error {
  using std::logic_error::logic_error;
};

void require(bool ok, const char* what) {
  if (!ok) throw Finding(what);
}

/// Runs `f`, which may refuse its input as the library does: by std::runtime_error or std::invalid_argument, with the
/// operation in front.
template <class F>
void or_refused(F f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    require(e.what()[0] == '[', "a refusal does not name its operation");
  } catch (const std::invalid_argument& e) {
    require(e.what()[0] == '[', "a refusal does not name its operation");
  }
}

std::shared_ptr<io::Reader> reader(std::string_view bytes) {
  return std::make_shared<io::MemoryReader>(std::string(bytes));
}

bool same(const array& a, const array& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return a.nbytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0;
}

bool same(const std::unordered_map<std::string, array>& a, const std::unordered_map<std::string, array>& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& entry) {
           return b.contains(entry.first) && same(entry.second, b.at(entry.first));
         });
}

// What was read is written and read again.

void npy(std::string_view bytes) {
  or_refused([&] {
    const array a = load(reader(bytes));
    const auto out = std::make_shared<io::MemoryWriter>();
    save(out, a);
    require(same(a, load(reader(out->bytes()))), "an array changes when it is written and read again");
  });
}

/// The archive alone, its members being any bytes.
void zip(std::string_view bytes) {
  or_refused([&] {
    const auto unpacked = [](const io::Bytes& archive) {
      std::vector<std::pair<std::string, io::Bytes>> out;
      for (const io::ZipMember& m : io::read_zip(archive)) out.emplace_back(m.name, io::content(archive, m));
      return out;
    };
    const auto members = unpacked({"zip", "input", bytes, nullptr});
    std::vector<io::ZipInput> inputs;
    for (const auto& [name, content] : members) inputs.push_back({name, {content.view}});
    std::string image;
    for (const std::string_view piece : io::write_zip("zip", inputs, bytes.size() % 2, bytes.size() % 4 < 2).pieces)
      image += piece;
    const auto back = unpacked({"zip", "output", image, nullptr});
    require(back.size() == members.size(),
            "an archive has another number of members when it is written and read again");
    for (size_t k = 0; k < back.size(); ++k)
      require(back[k].first == members[k].first && back[k].second.view == members[k].second.view,
              "a member changes when it is written and read again");
  });
}

void npz(std::string_view bytes) {
  or_refused([&] {
    const auto arrays = load_npz(reader(bytes));
    const auto out = std::make_shared<io::MemoryWriter>();
    if (bytes.size() % 2) savez(out, arrays);
    else savez_compressed(out, arrays);
    require(same(arrays, load_npz(reader(out->bytes()))), "arrays change when they are written and read again");
  });
}

void safetensors(std::string_view bytes) {
  or_refused([&] {
    const auto [arrays, metadata] = load_safetensors(reader(bytes));
    const auto out = std::make_shared<io::MemoryWriter>();
    save_safetensors(out, arrays, metadata);
    const auto back = load_safetensors(reader(out->bytes()));
    require(same(arrays, back.first) && metadata == back.second, "tensors change when they are written and read again");
  });
}

void gguf(std::string_view bytes) {
  or_refused([&] {
    auto [arrays, metadata] = load_gguf(reader(bytes));  // metadata without elements cannot be written
    std::erase_if(metadata, [](const auto& entry) {
      const auto* a = std::get_if<array>(&entry.second);
      return entry.first == "general.alignment" || (a && a->size() == 0);
    });
    const auto out = std::make_shared<io::MemoryWriter>();
    save_gguf(out, arrays, metadata);
    const auto back = load_gguf(reader(out->bytes()));
    require(same(arrays, back.first), "tensors change when they are written and read again");
    require(metadata.size() == back.second.size(), "metadata change when they are written and read again");
    for (const auto& [key, value] : metadata) {
      const GGUFMetaData& other = back.second.at(key);
      const auto *a = std::get_if<array>(&value), *b = std::get_if<array>(&other);
      const bool equal = a ? b && same(*a, *b)
                         : std::get_if<std::string>(&value)
                             ? std::get<std::string>(value) == std::get<std::string>(other)
                             : std::get<std::vector<std::string>>(value) == std::get<std::vector<std::string>>(other);
      require(equal, "metadata change when they are written and read again");
    }
  });
}

void torch(std::string_view bytes) {
  or_refused([&] {
    std::unordered_map<std::string, TorchValue> values;
    const auto arrays = load_torch(reader(bytes), values);
    // A file may hold one element as a large tensor of it, which has no memory until it is asked for.
    size_t total = 0;
    for (const auto& entry : arrays) total = std::max(total, entry.second.nbytes());
    if (total > 1 << 16 || arrays.size() > 64) return;
    const auto out = std::make_shared<io::MemoryWriter>();
    save_torch(out, arrays);
    require(same(arrays, load_torch(reader(out->bytes()))), "tensors change when they are written and read again");
  });
}

/// The pickle alone, beside one storage of 8 bytes: an archive has checksums, which few changes survive.
void pickle(std::string_view bytes) {
  const std::vector<io::ZipInput> members{{"a/data.pkl", {bytes}},
                                          {"a/data/0", {std::string_view("\0\1\1\0\1\1\0\1", 8)}}};
  std::string image;
  for (const std::string_view piece : io::write_zip("pickle", members, false).pieces) image += piece;
  torch(image);
}

/// Its reader takes files, as zlib does: this one lives in memory.
void idx(std::string_view bytes) {
  const int file = memfd_create("idx", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    throw Finding("no file in memory could be made");
  or_refused([&] {
    const data::Idx idx = data::read_idx("/proc/self/fd/" + std::to_string(file));
    size_t total = 1;
    for (const int64_t extent : idx.extents) total *= static_cast<size_t>(extent);
    require(total == idx.bytes.size(), "extents and bytes do not fit together");
  });
  close(file);
}

void tokenizer(std::string_view bytes) {
  or_refused([&] {
    const auto t = text::tokenizer_from_json(bytes);
    require(text::tokenizer_from_json(t->to_json())->to_json() == t->to_json(),
            "a tokenizer changes when it is written and read again");
    std::string all;
    for (int32_t id = 0; id < t->vocab_size(); ++id) all += t->token(id);
    const auto ids = t->encode(all);
    require(t->decode(ids) == all, "a tokenizer does not decode what it encodes");
  });
}

void utf8(std::string_view bytes) {
  const text::ByteTokenizer each_byte;
  text::StreamDecoder stream(each_byte);
  std::string streamed, whole;
  for (const int32_t id : each_byte.encode(bytes)) streamed += stream.push(id);
  streamed += stream.finish();
  for (size_t at = 0; at < bytes.size();) {
    const text::Utf8Step step = text::utf8_step(bytes.substr(at));
    require(step.bytes >= 1 && step.bytes <= bytes.size() - at, "a step leaves the text");
    const bool character = step.kind == text::Utf8Step::Kind::character;
    if (character)
      require(text::utf8_encode(step.code) == bytes.substr(at, step.bytes),
              "a character is not encoded as it stood there");
    whole += character ? std::string(bytes.substr(at, step.bytes)) : "\uFFFD";
    at += step.bytes;
  }
  require(streamed == whole, "decoding byte by byte gives another text");
  or_refused([&] {
    const text::CharTokenizer t(bytes);
    require(t.decode(t.encode(bytes)) == bytes, "a character tokenizer does not decode its own text");
  });
}

void config(std::string_view bytes) {
  tool::TrainOptions options, again;
  tool::OptionSet set = tool::train_option_set(options), second = tool::train_option_set(again);
  try {
    set.set_json(bytes, "config.json");
    second.set_json(set.json(), "again.json");
    require(set.json() == second.json(), "options change when they are written and read again");
    tool::complete(options, set);
  } catch (const tool::UsageError&) {
  }
}

void state(std::string_view bytes) {
  tool::Checkpoint checkpoint;
  try {
    tool::parse_state(std::string(bytes), checkpoint);
    require(checkpoint.state.step >= 0 && checkpoint.state.key.size() == 2, "impossible values are taken");
    std::visit([](const auto& config) { models::validate(config); }, checkpoint.state.model);
  } catch (const std::runtime_error&) {
  } catch (const std::invalid_argument&) {
  }
}

void model_config(std::string_view bytes) {
  or_refused([&] {
    const models::TextConfig c = models::text_config_from_json(bytes);
    require(models::to_json(models::text_config_from_json(models::to_json(c))) == models::to_json(c),
            "a configuration changes when it is written and read again");
  });
}

void program(std::string_view bytes) {
  or_refused([&] { io::read_program(reader(bytes)); });
}

/// The same without the file around it, where most of the ways to be wrong are.
void tape(std::string_view bytes) {
  try {
    const auto functions = io::functions_from_json(bytes);
    const std::string text = io::functions_json(functions);
    require(io::functions_json(io::functions_from_json(text)) == text,
            "functions change when they are written and read again");
    for (const io::TapedFunction& f : functions) {
      const std::vector<graph::Type> types = io::example_types(f);
      graph::Values inputs;
      for (const graph::Type& t : types) inputs.push_back(graph::parameter(t));
      io::replay(io::tape_for(f, types), inputs);
    }
  } catch (const std::runtime_error&) {
  } catch (const std::invalid_argument&) {
  }
}

/// The text of a kernel; what is taken has the same text and digest when it is read again.
void kernel_text(std::string_view bytes) {
  or_refused([&] {
    const kernel::ParsedKernel read = kernel::parse(bytes);
    const std::string text = read.launch ? print(read.kernel, *read.launch) : print(read.kernel);
    const kernel::ParsedKernel back = kernel::parse(text);
    require(digest(back.kernel) == digest(read.kernel), "a kernel changes when it is written and read again");
    require((back.launch ? print(back.kernel, *back.launch) : print(back.kernel)) == text,
            "the text of a kernel changes when it is read and written");
  });
}

constexpr Target all[] = {{"npy", npy},         {"npz", npz},
                          {"zip", zip},         {"safetensors", safetensors},
                          {"idx", idx},         {"tokenizer", tokenizer},
                          {"utf8", utf8},       {"config", config},
                          {"state", state},     {"model_config", model_config},
                          {"program", program}, {"tape", tape},
                          {"gguf", gguf},       {"torch", torch},
                          {"pickle", pickle},   {"kernel", kernel_text}};

}  // namespace

std::span<const Target> targets() { return all; }

const Target& target(std::string_view name) {
  const auto* found = std::find_if(std::begin(all), std::end(all), [&](const Target& t) { return name == t.name; });
  if (found == std::end(all)) throw std::out_of_range("there is no fuzz target " + std::string(name));
  return *found;
}

}  // namespace weft::fuzz
