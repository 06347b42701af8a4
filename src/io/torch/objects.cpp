#include "io/torch/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weft::io::torch {

namespace {

constexpr TorchDtype dtypes[] = {{"FloatStorage", "float32", float32},
                                 {"DoubleStorage", "float64", float64},
                                 {"HalfStorage", "float16", float16},
                                 {"BFloat16Storage", "bfloat16", bfloat16},
                                 {"LongStorage", "int64", int64},
                                 {"IntStorage", "int32", int32},
                                 {"ShortStorage", "int16", int16},
                                 {"CharStorage", "int8", int8},
                                 {"ByteStorage", "uint8", uint8},
                                 {"BoolStorage", "bool", bool_},
                                 {"ComplexFloatStorage", "complex64", complex64},
                                 {"ComplexDoubleStorage", "complex128", complex128},
                                 {"", "uint16", uint16},
                                 {"", "uint32", uint32},
                                 {"", "uint64", uint64},
                                 {"", "float8_e4m3fn", float8_e4m3},
                                 {"", "float8_e5m2", float8_e5m2}};

}  // namespace

const TorchDtype& torch_dtype(Dtype dtype) {
  return *std::find_if(std::begin(dtypes), std::end(dtypes), [&](const TorchDtype& d) { return d.dtype == dtype; });
}

const TorchPickle::Function TorchPickle::functions[] = {
    {"torch._utils", "_rebuild_tensor", Action::tensor},
    {"torch._utils", "_rebuild_tensor_v2", Action::tensor},
    {"torch._utils", "_rebuild_tensor_v3", Action::tensor_of_bytes},
    {"torch._utils", "_rebuild_parameter", Action::parameter},
    {"torch._utils", "_rebuild_parameter_with_state", Action::parameter},
    {"torch", "UntypedStorage", Action::storage},
    {"torch.storage", "UntypedStorage", Action::storage},
    {"torch.storage", "TypedStorage", Action::storage},
    {"collections", "OrderedDict", Action::dict},
    {"collections", "Counter", Action::dict},
    {"torch", "Size", Action::list},
    {"torch", "device", Action::nothing},
    {"_codecs", "encode", Action::nothing},  // how protocol 2 writes bytes
    {"builtins", "set", Action::nothing},
    {"__builtin__", "set", Action::nothing},
    {"builtins", "frozenset", Action::nothing},
    {"__builtin__", "frozenset", Action::nothing},
};

Ref TorchPickle::make_function(Action action, std::optional<Dtype> dtype) {
  known_.push_back({action, dtype});
  return make({.kind = Kind::function, .integer = static_cast<int64_t>(known_.size() - 1)});
}

Ref TorchPickle::global(std::string_view module, std::string_view name) {
  for (const Function& f : functions)
    if (f.module == module && f.name == name) return make_function(f.action);
  for (const TorchDtype& d : dtypes) {
    if ((module == "torch" || module == "torch.cuda") && !name.empty() && name == d.storage)
      return make_function(Action::storage, d.dtype);
    if (module == "torch" && name == d.name) return make_function(Action::dtype, d.dtype);
  }
  refuse(
      fmt::format("the pickle names '{}.{}', which is no part of tensors that are read: save a dictionary of tensors "
                  "(state_dict()) instead",
                  module, name));
}

Ref TorchPickle::call(Ref function, const std::vector<Ref>& arguments) {
  switch (known_[static_cast<size_t>((*this)[function].integer)].action) {
    case Action::tensor: return make_tensor(arguments, false);
    case Action::tensor_of_bytes: return make_tensor(arguments, true);
    case Action::parameter:
      if (arguments.empty() || (*this)[arguments[0]].kind != Kind::tensor) refuse("a parameter is made of no tensor");
      return arguments[0];
    case Action::dict: return make_dict(arguments);
    case Action::list:
      if (arguments.size() != 1 || (*this)[arguments[0]].kind != Kind::list) refuse("a size is made of no list");
      return arguments[0];
    case Action::nothing: return make({});
    case Action::storage:
    case Action::dtype: break;
  }
  refuse("the pickle calls a storage or a dtype");
}

/// Makes a dictionary of nothing, of another one, or of a list of pairs.
Ref TorchPickle::make_dict(const std::vector<Ref>& arguments) {
  if (arguments.empty()) return make({.kind = Kind::dict});
  const PickleValue& from = (*this)[arguments[0]];
  if (from.kind == Kind::dict) return arguments[0];
  if (from.kind != Kind::list) refuse("a dictionary is made of something that is no list of pairs");
  copied_ += from.items.size();
  if (copied_ > at()) refuse("the pickle makes many dictionaries of one list, which is not credible");
  std::vector<Ref> items;
  for (const Ref r : from.items) {
    const PickleValue& pair = (*this)[r];
    if (pair.kind != Kind::list || pair.items.size() != 2) refuse("a dictionary is made of a list of no pairs");
    items.insert(items.end(), pair.items.begin(), pair.items.end());
  }
  return make({.kind = Kind::dict, .items = std::move(items)});
}

uint64_t TorchPickle::natural(Ref r, const char* what) const {
  const PickleValue& v = (*this)[r];
  if (v.kind != Kind::integer || v.integer < 0) refuse(std::string(what) + " is no integer from 0 on");
  return static_cast<uint64_t>(v.integer);
}

/// Arguments: storage, offset, shape, strides, requires_grad, hooks, of bytes the dtype, and flags.
Ref TorchPickle::make_tensor(const std::vector<Ref>& arguments, bool of_bytes) {
  const size_t flags = of_bytes ? 7 : 6;
  if (arguments.size() < (of_bytes ? 7 : 4) || (*this)[arguments[0]].kind != Kind::storage)
    refuse("a tensor is made of no storage, offset, shape and strides");
  TorchTensor t;
  t.storage = static_cast<size_t>((*this)[arguments[0]].integer);
  t.offset = natural(arguments[1], "a tensor's offset");
  t.shape = arguments[2], t.strides = arguments[3];
  t.told = at() - 1;
  const auto& shape = (*this)[t.shape];
  const auto& strides = (*this)[t.strides];
  if (shape.kind != Kind::list || strides.kind != Kind::list || shape.items.size() != strides.items.size())
    refuse("a tensor's shape and strides are no lists of one length");
  constexpr size_t most_axes = 64;  // as in PyTorch
  if (shape.items.size() > most_axes) refuse(fmt::format("a tensor has {} axes", shape.items.size()));
  for (const Ref r : shape.items) natural(r, "a tensor's length");
  for (const Ref r : strides.items) natural(r, "a tensor's stride");
  std::optional<Dtype> dtype = storages_[t.storage].dtype;
  if (of_bytes) {
    const PickleValue& named = (*this)[arguments[6]];
    dtype = named.kind == Kind::function ? known_[static_cast<size_t>(named.integer)].dtype : std::nullopt;
  }
  if (arguments.size() > flags && !(*this)[arguments[flags]].items.empty())
    refuse("a tensor is a conjugate or negative view: save x.resolve_conj().resolve_neg() instead");
  if (!dtype) refuse("a tensor has no dtype");
  t.dtype = *dtype;
  tensors_.push_back(t);
  return make({.kind = Kind::tensor, .integer = static_cast<int64_t>(tensors_.size() - 1)});
}

/// The name: ("storage", class, key, device, elements), and in the format before 1.6 a part of another storage, or
/// None.
Ref TorchPickle::outside(Ref r) {
  const PickleValue& name = (*this)[r];
  const auto is = [&](size_t k, Kind kind) { return (*this)[name.items[k]].kind == kind; };
  if (name.kind != Kind::list || name.items.size() < 5 || name.items.size() > 6 || !is(0, Kind::text) ||
      (*this)[name.items[0]].text != "storage" || !is(1, Kind::function) || !is(2, Kind::text))
    refuse("the pickle asks for something outside that is no storage");
  if (name.items.size() == 6 && !is(5, Kind::none)) refuse("a storage is a part of another one, which is not read");
  const Known& of = known_[static_cast<size_t>((*this)[name.items[1]].integer)];
  if (of.action != Action::storage) refuse("the pickle asks for something outside that is no storage");
  const TorchStorage s{(*this)[name.items[2]].text, of.dtype, natural(name.items[4], "a storage's number of elements")};
  if (s.elements > static_cast<uint64_t>(INT64_MAX) / 16) refuse("a storage has more elements than a file can hold");
  const auto [found, is_new] = by_key_.emplace(s.key, storages_.size());
  if (is_new) storages_.push_back(s);
  const TorchStorage& first = storages_[found->second];
  if (first.dtype != s.dtype || first.elements != s.elements)
    refuse("the storage '" + std::string(s.key) + "' is named twice, with another dtype or size");
  return make({.kind = Kind::storage, .integer = static_cast<int64_t>(found->second)});
}

}  // namespace weft::io::torch
