// weft/c.h: groups of processes and their collective operations.
#include "weft/distributed.h"

#include "c/handles.h"

using weft::c::guarded;
using weft::c::in;
using weft::c::out;

namespace {

std::optional<weft::distributed::Group> group_of(weft_group group) {
  return group ? std::optional(group->value) : std::nullopt;
}
weft::distributed::Group all_or(weft_group group) { return group ? group->value : weft::distributed::init(); }

}  // namespace

weft_status weft_distributed_is_available(bool* result, const char* backend) {
  return guarded([&] { out(result, weft::distributed::is_available(in(backend))); });
}
weft_status weft_distributed_init(weft_group* result, bool strict, const char* backend) {
  return guarded([&] { out(result, weft::distributed::init(strict, in(backend))); });
}
void weft_group_free(weft_group group) { delete group; }
int weft_group_rank(weft_group group) { return all_or(group).rank(); }
int weft_group_size(weft_group group) { return all_or(group).size(); }
weft_status weft_group_split(weft_group* result, weft_group group, int color, int key) {
  return guarded([&] { out(result, all_or(group).split(color, key)); });
}

weft_status weft_distributed_all_sum(weft_array* result, weft_array x, weft_group group, weft_stream stream) {
  return guarded([&] { out(result, weft::distributed::all_sum(in(x), group_of(group), in(stream))); });
}
weft_status weft_distributed_all_max(weft_array* result, weft_array x, weft_group group, weft_stream stream) {
  return guarded([&] { out(result, weft::distributed::all_max(in(x), group_of(group), in(stream))); });
}
weft_status weft_distributed_all_min(weft_array* result, weft_array x, weft_group group, weft_stream stream) {
  return guarded([&] { out(result, weft::distributed::all_min(in(x), group_of(group), in(stream))); });
}
weft_status weft_distributed_all_gather(weft_array* result, weft_array x, weft_group group, weft_stream stream) {
  return guarded([&] { out(result, weft::distributed::all_gather(in(x), group_of(group), in(stream))); });
}
weft_status weft_distributed_sum_scatter(weft_array* result, weft_array x, weft_group group, weft_stream stream) {
  return guarded([&] { out(result, weft::distributed::sum_scatter(in(x), group_of(group), in(stream))); });
}
weft_status weft_distributed_send(weft_array* result, weft_array x, int dst, weft_group group, weft_stream stream) {
  return guarded([&] { out(result, weft::distributed::send(in(x), dst, group_of(group), in(stream))); });
}
weft_status weft_distributed_recv(weft_array* result, const int64_t* shape, size_t ndim, weft_dtype dtype, int src,
                                  weft_group group, weft_stream stream) {
  return guarded([&] {
    out(result, weft::distributed::recv(weft::c::lengths(shape, ndim), in(dtype), src, group_of(group), in(stream)));
  });
}
weft_status weft_distributed_recv_like(weft_array* result, weft_array x, int src, weft_group group,
                                       weft_stream stream) {
  return guarded([&] { out(result, weft::distributed::recv_like(in(x), src, group_of(group), in(stream))); });
}
