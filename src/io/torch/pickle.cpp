// The instructions are those of Python's pickletools, under its names, but for protocols 0 and 1 and for those that
// make objects of classes.
#include "io/torch/pickle.h"

#include <fmt/format.h>

#include <array>

namespace weft::io::torch {

const Pickle::Instruction Pickle::instructions[] = {
    {0x80, "PROTO", &Pickle::version, 0},
    {0x95, "FRAME", &Pickle::frame, 0},
    {'(', "MARK", &Pickle::mark, 0},
    {'0', "POP", &Pickle::drop, 0},
    {'1', "POP_MARK", &Pickle::drop_to_mark, 0},
    {'2', "DUP", &Pickle::duplicate, 0},
    {'N', "NONE", &Pickle::constant, static_cast<int>(Kind::none)},
    {0x88, "NEWTRUE", &Pickle::boolean, 1},
    {0x89, "NEWFALSE", &Pickle::boolean, 0},
    {'K', "BININT1", &Pickle::small_integer, 1},
    {'M', "BININT2", &Pickle::small_integer, 2},
    {'J', "BININT", &Pickle::signed_integer, 4},
    {0x8a, "LONG1", &Pickle::long_integer, 1},
    {0x8b, "LONG4", &Pickle::long_integer, 4},
    {'G', "BINFLOAT", &Pickle::real, 0},
    {0x8c, "SHORT_BINUNICODE", &Pickle::text, 1},
    {'X', "BINUNICODE", &Pickle::text, 4},
    {0x8d, "BINUNICODE8", &Pickle::text, 8},
    {'U', "SHORT_BINSTRING", &Pickle::text, 1},
    {'T', "BINSTRING", &Pickle::text, 4},
    {'C', "SHORT_BINBYTES", &Pickle::raw, 1},
    {'B', "BINBYTES", &Pickle::raw, 4},
    {0x8e, "BINBYTES8", &Pickle::raw, 8},
    {0x96, "BYTEARRAY8", &Pickle::raw, 8},
    {']', "EMPTY_LIST", &Pickle::empty, static_cast<int>(Kind::list)},
    {')', "EMPTY_TUPLE", &Pickle::empty, static_cast<int>(Kind::list)},
    {'}', "EMPTY_DICT", &Pickle::empty, static_cast<int>(Kind::dict)},
    {0x8f, "EMPTY_SET", &Pickle::empty, static_cast<int>(Kind::set)},
    {0x85, "TUPLE1", &Pickle::tuple, 1},
    {0x86, "TUPLE2", &Pickle::tuple, 2},
    {0x87, "TUPLE3", &Pickle::tuple, 3},
    {'t', "TUPLE", &Pickle::marked, static_cast<int>(Kind::list)},
    {0x91, "FROZENSET", &Pickle::marked, static_cast<int>(Kind::set)},
    {'a', "APPEND", &Pickle::append, 0},
    {'e', "APPENDS", &Pickle::append_marked, static_cast<int>(Kind::list)},
    {0x90, "ADDITEMS", &Pickle::append_marked, static_cast<int>(Kind::set)},
    {'s', "SETITEM", &Pickle::set_item, 0},
    {'u', "SETITEMS", &Pickle::set_marked, 0},
    {'q', "BINPUT", &Pickle::remember, 1},
    {'r', "LONG_BINPUT", &Pickle::remember, 4},
    {0x94, "MEMOIZE", &Pickle::remember_next, 0},
    {'h', "BINGET", &Pickle::recall, 1},
    {'j', "LONG_BINGET", &Pickle::recall, 4},
    {'c', "GLOBAL", &Pickle::global_lines, 0},
    {0x93, "STACK_GLOBAL", &Pickle::global_stack, 0},
    {'R', "REDUCE", &Pickle::apply, 0},
    {'b', "BUILD", &Pickle::build, 0},
    {'Q', "BINPERSID", &Pickle::persistent, 0},
};

const Pickle::Instruction* Pickle::find(uint8_t code) {
  static const auto by_code = [] {
    std::array<const Instruction*, 256> all{};
    for (const Instruction& i : instructions) all[i.code] = &i;
    return all;
  }();
  return by_code[code];
}

Ref Pickle::load() {
  stack_.clear(), marks_.clear(), memory_.clear();
  constexpr uint8_t stop = '.';
  for (;;) {
    instruction_ = at_;
    const auto code = static_cast<uint8_t>(take(1).front());
    if (code == stop) break;
    const Instruction* i = find(code);
    if (!i) refuse(fmt::format("the pickle has the instruction 0x{:02x}, which no file of tensors needs", code));
    (this->*i->run)(i->argument);
  }
  const Ref result = pop();
  if (!stack_.empty()) refuse("the pickle ends with more than one value");
  return result;
}

Ref Pickle::make(PickleValue v) {
  if (values_.size() == UINT32_MAX) refuse("the pickle makes too many values");
  values_.push_back(std::move(v));
  return static_cast<Ref>(values_.size() - 1);
}

std::string_view Pickle::take(uint64_t n) {
  if (n > bytes_.size() - at_) bytes_.fail("the pickle ends within an instruction: the file is truncated", at_);
  const auto part = bytes_.view.substr(at_, n);
  at_ += n;
  return part;
}

uint64_t Pickle::number(int width) {
  const auto bytes = take(static_cast<uint64_t>(width));
  uint64_t v = 0;
  for (size_t k = bytes.size(); k-- > 0;) v = v << 8 | static_cast<uint8_t>(bytes[k]);
  return v;
}

std::string_view Pickle::line() {
  const size_t end = bytes_.view.find('\n', at_);
  if (end == std::string_view::npos) bytes_.fail("the pickle ends within a name", at_);
  const auto text = bytes_.view.substr(at_, end - at_);
  at_ = end + 1;
  return text;
}

Ref Pickle::pop() {
  const Ref r = top();
  stack_.pop_back();
  return r;
}

Ref Pickle::top() const {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("the pickle takes a value where there is none");
  return stack_.back();
}

std::vector<Ref> Pickle::pop_to_mark() {
  if (marks_.empty()) refuse("the pickle goes back to a mark where there is none");
  std::vector<Ref> all(stack_.begin() + static_cast<int64_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return all;
}

std::vector<Ref>& Pickle::items_of(Ref r, Kind kind, const char* what) {
  PickleValue& v = values_[r];
  if (v.kind != kind) refuse(std::string("the pickle adds to something that is no ") + what);
  return v.items;
}

void Pickle::version(int) {
  const uint64_t n = number(1);
  if (n < 2 || n > 5) refuse(fmt::format("the pickle has protocol {}; 2 to 5 are read", n));
}
void Pickle::frame(int) { number(8); }
void Pickle::mark(int) { marks_.push_back(stack_.size()); }
void Pickle::drop(int) { pop(); }
void Pickle::drop_to_mark(int) { pop_to_mark(); }
void Pickle::duplicate(int) { push(top()); }

void Pickle::constant(int kind) { push_new({.kind = static_cast<Kind>(kind)}); }
void Pickle::boolean(int truth) { push_new({.kind = Kind::boolean, .integer = truth}); }
void Pickle::small_integer(int width) {
  push_new({.kind = Kind::integer, .integer = static_cast<int64_t>(number(width))});
}
void Pickle::signed_integer(int width) {
  push_new({.kind = Kind::integer, .integer = static_cast<int32_t>(number(width))});
}
void Pickle::long_integer(int width) {
  const auto bytes = take(number(width));
  if (bytes.size() > 8) return push_new({.kind = Kind::none, .text = bytes});
  uint64_t v = !bytes.empty() && bytes.back() < 0 ? UINT64_MAX : 0;
  for (size_t k = bytes.size(); k-- > 0;) v = v << 8 | static_cast<uint8_t>(bytes[k]);
  push_new({.kind = Kind::integer, .integer = static_cast<int64_t>(v)});
}
void Pickle::real(int) {
  uint64_t v = 0;  // big endian, unlike all else
  for (const char c : take(8)) v = v << 8 | static_cast<uint8_t>(c);
  push_new({.kind = Kind::real, .integer = static_cast<int64_t>(v)});
}
void Pickle::text(int width) { push_new({.kind = Kind::text, .text = take(number(width))}); }
void Pickle::raw(int width) { push_new({.kind = Kind::bytes, .text = take(number(width))}); }

void Pickle::empty(int kind) { push_new({.kind = static_cast<Kind>(kind)}); }
void Pickle::tuple(int count) {
  std::vector<Ref> items(static_cast<size_t>(count));
  for (size_t k = items.size(); k-- > 0;) items[k] = pop();
  push_new({.kind = Kind::list, .items = std::move(items)});
}
void Pickle::marked(int kind) { push_new({.kind = static_cast<Kind>(kind), .items = pop_to_mark()}); }
void Pickle::append(int) {
  const Ref item = pop();
  items_of(top(), Kind::list, "list").push_back(item);
}
void Pickle::append_marked(int kind) {
  const std::vector<Ref> more = pop_to_mark();
  auto& items = items_of(top(), static_cast<Kind>(kind), "list or set");
  items.insert(items.end(), more.begin(), more.end());
}
void Pickle::set_item(int) {
  const Ref item = pop(), key = pop();
  auto& items = items_of(top(), Kind::dict, "dictionary");
  items.push_back(key);
  items.push_back(item);
}
void Pickle::set_marked(int) {
  const std::vector<Ref> more = pop_to_mark();
  if (more.size() % 2) refuse("the pickle sets a key without a value");
  auto& items = items_of(top(), Kind::dict, "dictionary");
  items.insert(items.end(), more.begin(), more.end());
}

void Pickle::remember(int width) { memory_[number(width)] = top(); }
void Pickle::remember_next(int) { memory_[memory_.size()] = top(); }
void Pickle::recall(int width) {
  const auto found = memory_.find(number(width));
  if (found == memory_.end()) refuse("the pickle recalls a value that it has not remembered");
  push(found->second);
}

void Pickle::global_lines(int) {
  const std::string_view module = line(), name = line();
  push(global(module, name));
}
void Pickle::global_stack(int) {
  const Ref name = pop(), module = pop();
  if (values_[name].kind != Kind::text || values_[module].kind != Kind::text)
    refuse("the pickle names a function by something that is no text");
  push(global(values_[module].text, values_[name].text));
}
void Pickle::apply(int) {
  const Ref arguments = pop(), function = pop();
  if (values_[function].kind != Kind::function || values_[arguments].kind != Kind::list)
    refuse("the pickle calls something that is no function");
  push(call(function, values_[arguments].items));
}
/// Sets attributes of an object. Those of dictionaries hold versions of modules, those of parameters marks of users:
/// both are left out.
void Pickle::build(int) {
  pop();
  const Kind kind = values_[top()].kind;
  if (kind != Kind::dict && kind != Kind::tensor) refuse("the pickle sets attributes of something that has none");
}
void Pickle::persistent(int) { push(outside(pop())); }

}  // namespace weft::io::torch
