// Nodes: identity, storage, and destruction of chains of any length.
#include "graph/node.h"

#include <array>
#include <atomic>

#include "base/error.h"

namespace weft::graph {
namespace {

std::atomic<uint64_t> next_id{1};
thread_local int current_stream = -1;
std::atomic<int> process_stream = 0;

/// Nodes whose last reference was dropped while another node of this thread was being freed. The outermost
/// destructor frees them one after the other, so that a chain of a hundred thousand nodes needs few stack frames.
thread_local std::vector<std::shared_ptr<Node>>* pending = nullptr;

/// Frees a node: at once, or where the calling thread frees one already, after that one.
void free_in_turn(std::shared_ptr<Node> node) {
  if (pending) return pending->push_back(std::move(node));
  std::vector<std::shared_ptr<Node>> list;
  pending = &list;
  for (node.reset(); !list.empty();) {
    node = std::move(list.back());
    list.pop_back();
    node.reset();  // may append its own inputs
  }
  pending = nullptr;
}

const char* short_name(Dtype t) {
  switch (t.val()) {
    case Dtype::Val::bool_: return "bool";
    case Dtype::Val::uint8: return "u8";
    case Dtype::Val::uint16: return "u16";
    case Dtype::Val::uint32: return "u32";
    case Dtype::Val::uint64: return "u64";
    case Dtype::Val::int8: return "i8";
    case Dtype::Val::int16: return "i16";
    case Dtype::Val::int32: return "i32";
    case Dtype::Val::int64: return "i64";
    case Dtype::Val::float16: return "f16";
    case Dtype::Val::bfloat16: return "bf16";
    case Dtype::Val::float32: return "f32";
    case Dtype::Val::float64: return "f64";
    case Dtype::Val::complex64: return "c64";
    case Dtype::Val::float8_e4m3: return "f8e4m3";
    case Dtype::Val::float8_e5m2: return "f8e5m2";
    case Dtype::Val::complex128: return "c128";
  }
  return "?";
}

}  // namespace

std::string to_string(const Type& type) { return short_name(type.dtype) + weft::to_string(type.shape); }

std::string_view name(ScatterMode mode) {
  constexpr std::string_view names[] = {"set", "add", "max", "min", "prod"};
  return names[static_cast<size_t>(mode)];
}

const Type& Value::type() const { return node->types()[static_cast<size_t>(index)]; }

const std::shared_ptr<Attrs>& SharedAttrs::none() {
  static const auto* attrs =
      new std::shared_ptr<Attrs>(std::make_shared<Attrs>());  // never destroyed: nodes may be made by static objects
  return *attrs;
}

namespace {

/// What a thread shared last, by hash: most attributes and types of a graph are equal to some of those.
template <class T>
class Recent {
 public:
  /// Returns the value, or an equal one that is shared already.
  std::shared_ptr<T> shared(T value, const Hasher& hash) {
    std::shared_ptr<T>& slot = slots_[hash.finish().lo % slots_.size()];
    if (!slot || !(*slot == value)) slot = std::make_shared<T>(std::move(value));
    return slot;
  }

 private:
  std::array<std::shared_ptr<T>, 256> slots_;
};

std::shared_ptr<Attrs> share(Attrs attrs) {
  // What a composite, control flow or a kernel holds would live on.
  if (attrs.composite || attrs.control || attrs.kernel) return std::make_shared<Attrs>(std::move(attrs));
  thread_local Recent<Attrs> recent;
  Hasher h;
  hash(h, attrs);
  return recent.shared(std::move(attrs), h);
}

std::shared_ptr<const std::vector<Type>> share(std::vector<Type> types) {
  thread_local Recent<std::vector<Type>> recent;
  Hasher h;
  for (const Type& type : types) {
    h.number(type.dtype.val());
    for (const Dim& d : type.shape) h.number(d.bound());
  }
  return recent.shared(std::move(types), h);
}

}  // namespace

SharedAttrs::SharedAttrs(Attrs attrs) : attrs_(share(std::move(attrs))) {}
SharedTypes::SharedTypes(std::vector<Type> types) : types_(share(std::move(types))) {}

Node::Node(Op op, Values inputs, SharedAttrs attrs, SharedTypes types)
    : op_(op), inputs_(std::move(inputs)), attrs_(std::move(attrs)), types_(std::move(types)),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)), stream_(StreamScope::current()) {}

Node::~Node() {
  for (Value& input : inputs_)
    if (input.node.use_count() == 1) free_in_turn(std::move(input.node));
    else input.node.reset();  // others hold it, so that it is not freed here
}

void Node::materialise(std::vector<Storage> storage) {
  check(storage.size() == types().size(), "materialise", "one storage for each output");
  storage_ = std::move(storage);
  Values dropped;
  dropped.swap(inputs_);  // freed here, after the node is consistent
}

StreamScope::StreamScope(int stream) : before_(current_stream) { current_stream = stream; }
StreamScope::~StreamScope() { current_stream = before_; }
int StreamScope::current() {
  return current_stream >= 0 ? current_stream : process_stream.load(std::memory_order_relaxed);
}
void StreamScope::set(int stream) { current_stream = stream; }
void StreamScope::set_for_process(int stream) { process_stream = stream; }

std::shared_mutex& structure() {
  static std::shared_mutex mutex;
  return mutex;
}

}  // namespace weft::graph
