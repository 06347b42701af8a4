// The Context of the index algebra: the table of nodes, the memo of requests, and the operators on handles.
#include "base/index.h"

#include <algorithm>

#include "base/error.h"
#include "base/index_builder.h"

namespace weft::ix {

namespace {

size_t mix_hash(size_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

uint32_t add_sizes(uint64_t a, uint64_t b) { return static_cast<uint32_t>(std::min<uint64_t>(1 + a + b, UINT32_MAX)); }

}  // namespace

size_t NodeHash::operator()(const Node* n) const noexcept {
  size_t h = mix_hash(static_cast<size_t>(n->kind) + 1, static_cast<uint64_t>(n->value));
  return mix_hash(mix_hash(h, reinterpret_cast<uintptr_t>(n->a)), reinterpret_cast<uintptr_t>(n->b));
}

size_t RequestHash::operator()(const Request& r) const noexcept {
  return mix_hash(mix_hash(static_cast<size_t>(r.kind) + 1, reinterpret_cast<uintptr_t>(r.a)),
                  reinterpret_cast<uintptr_t>(r.b));
}

const Node* Builder::constant(int64_t v) { return make(Kind::constant, v, nullptr, nullptr); }

const Node* Builder::make(Kind kind, int64_t value, const Node* a, const Node* b) {
  Node node{};
  node.kind = kind;
  node.value = value;
  node.a = a;
  node.b = b;
  if (auto it = s.table.find(&node); it != s.table.end()) return *it;
  if (kind != Kind::variable) {
    const Facts f = facts_of(kind, value, a, b);
    if (kind != Kind::constant && f.min == f.max) return constant(f.min);
    node.min = f.min;
    node.max = f.max;
    node.mod = f.mod;
    node.rem = f.rem;
  }
  node.size = add_sizes(a ? a->size : 0, b ? b->size : 0);
  node.serial = static_cast<uint32_t>(s.nodes.size());
  node.context = &cx;
  s.nodes.push_back(node);
  s.table.insert(&s.nodes.back());
  return &s.nodes.back();
}

const Node* Builder::remembered(Kind kind, const Node* a, const Node* b) const {
  auto it = s.memo.find(Request{kind, a, b});
  return it == s.memo.end() ? nullptr : it->second;
}

const Node* Builder::remember(Kind kind, const Node* a, const Node* b, const Node* result) {
  s.memo.emplace(Request{kind, a, b}, result);
  return result;
}

bool Builder::may_try(const Node* n) {
  constexpr int deepest = 24;
  constexpr uint32_t largest = 4000;
  return s.depth <= deepest && n->size <= largest && --s.fuel > 0;
}

Context::Context() : state_(std::make_unique<State>()) {}
Context::~Context() = default;

namespace {

const Node* operand(const Context& cx, Expr e, const char* where) {
  check(static_cast<bool>(e), where, "an empty index expression");
  check(e->context == &cx, where, "index expressions of two contexts do not mix");
  return e.get();
}

int64_t divisor(int64_t c, const char* where) {
  check(c > 0, where, "an index is divided by positive constants only");
  return c;
}

}  // namespace

Expr Context::constant(int64_t v) { return Expr(Builder(*this).constant(v)); }

Expr Context::variable(const std::string& name, int64_t min, int64_t max) {
  check(min <= max, "index variable", "an empty interval for " + name);
  Builder b(*this);
  Node node{};
  node.kind = Kind::variable;
  node.value = static_cast<int64_t>(state_->names.size());
  node.min = min;
  node.max = max;
  if (min == max) {
    node.mod = 0;
    node.rem = min;
  }
  node.serial = static_cast<uint32_t>(state_->nodes.size());
  node.context = this;
  state_->names.push_back(name);
  state_->nodes.push_back(node);
  state_->table.insert(&state_->nodes.back());
  return Expr(&state_->nodes.back());
}

const std::string& Context::name(int64_t variable_id) const {
  return state_->names.at(static_cast<size_t>(variable_id));
}
size_t Context::nodes() const { return state_->nodes.size(); }

Expr Context::add(Expr a, Expr b) {
  return Expr(Builder(*this).add(operand(*this, a, "index add"), operand(*this, b, "index add")));
}
Expr Context::mul(Expr a, int64_t c) { return Expr(Builder(*this).mul(operand(*this, a, "index mul"), c)); }
Expr Context::floordiv(Expr a, int64_t c) {
  return Expr(Builder(*this).floordiv(operand(*this, a, "index floordiv"), divisor(c, "index floordiv")));
}
Expr Context::mod(Expr a, int64_t c) {
  return Expr(Builder(*this).mod(operand(*this, a, "index mod"), divisor(c, "index mod")));
}
Expr Context::min(Expr a, Expr b) {
  return Expr(Builder(*this).extremum(Kind::min, operand(*this, a, "index min"), operand(*this, b, "index min")));
}
Expr Context::max(Expr a, Expr b) {
  return Expr(Builder(*this).extremum(Kind::max, operand(*this, a, "index max"), operand(*this, b, "index max")));
}
Expr Context::less(Expr a, Expr b) {
  return Expr(Builder(*this).less(operand(*this, a, "index less"), operand(*this, b, "index less")));
}
Expr Context::both(Expr a, Expr b) {
  return Expr(Builder(*this).connect(Kind::both, operand(*this, a, "index both"), operand(*this, b, "index both")));
}
Expr Context::either(Expr a, Expr b) {
  return Expr(
      Builder(*this).connect(Kind::either, operand(*this, a, "index either"), operand(*this, b, "index either")));
}

Expr operator+(Expr a, Expr b) { return a->context->add(a, b); }
Expr operator+(Expr a, int64_t b) { return a->context->add(a, a->context->constant(b)); }
Expr operator-(Expr a, Expr b) { return a->context->add(a, a->context->mul(b, -1)); }
Expr operator-(Expr a, int64_t b) {
  return b == INT64_MIN ? a - a->context->constant(b) : a->context->add(a, a->context->constant(-b));
}
Expr operator*(Expr a, int64_t b) { return a->context->mul(a, b); }
Expr operator/(Expr a, int64_t b) { return a->context->floordiv(a, b); }
Expr operator%(Expr a, int64_t b) { return a->context->mod(a, b); }
Expr operator<(Expr a, Expr b) { return a->context->less(a, b); }
Expr operator<(Expr a, int64_t b) { return a->context->less(a, a->context->constant(b)); }
Expr operator>=(Expr a, int64_t b) {
  Context& cx = *a->context;  // a >= b is b - 1 < a
  return b == INT64_MIN ? cx.constant(1) : cx.less(cx.constant(b - 1), a);
}
Expr operator&&(Expr a, Expr b) { return a->context->both(a, b); }

}  // namespace weft::ix
