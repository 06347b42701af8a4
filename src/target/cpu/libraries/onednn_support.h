#pragma once
// Shared by the files that call oneDNN: its engine, a stream for each thread, scratch memory. Included by
// src/target/cpu/libraries/onednn*.cpp only.
#include <dnnl.hpp>

#include "runtime/buffer.h"
#include "weft/dtype.h"

namespace weft::target {

const dnnl::engine& onednn_engine();
dnnl::stream& onednn_stream();  // of the calling thread
/// Returns scratch of the calling thread, for one call at a time; it grows and is never freed.
void* onednn_scratch(size_t bytes);

dnnl::memory::data_type onednn_type(Dtype t);

}  // namespace weft::target
