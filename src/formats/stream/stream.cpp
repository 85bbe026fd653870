// SPDX-License-Identifier: MIT
#include "formats/stream/stream.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "formats/coo/coo.hpp"
#include "polyad/error.hpp"

namespace polyad {

namespace {

/// Nonzeros of a window when memory does not matter: 4 MB with three modes and f32.
constexpr std::uint64_t usual_window = std::uint64_t{1} << 18U;

/// Calls advise(address, bytes) for the pages that lie wholly within elements first .. last of each array.
template <class Advise>
void for_each_array(const CooTensor& x, std::uint64_t first, std::uint64_t last, bool whole_pages,
                    const Advise& advise) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto of = [&](const auto& buffer) {
    const auto* data = buffer.data();
    auto begin = reinterpret_cast<std::uintptr_t>(data + first);
    auto end = reinterpret_cast<std::uintptr_t>(data + last);
    // A page at an end may hold what a neighbour still reads, or, at the ends of the array, other parts of the file.
    begin = (whole_pages ? begin + page - 1 : begin) / page * page;
    end = (whole_pages ? end : end + page - 1) / page * page;
    if (begin < end) advise(reinterpret_cast<void*>(begin), end - begin);
  };
  for (const IndexBuffer& b : x.indices) std::visit(of, b);
  std::visit(of, x.values);
}

}  // namespace

Stream Stream::build(const CooTensor& x, const FormatOptions&, const Context& context) {
  Stream s;
  s.tensor_shape = shape_of(x);
  s.x = narrowest_copy(x, context);
  s.window = usual_window;
  s.threads = context.thread_count();
  return s;
}

Stream Stream::over(CooTensor&& x, const Context& context) {
  Stream s;
  s.tensor_shape = shape_of(x);
  s.in_file = true;
  s.threads = context.thread_count();
  if (!can_stream(x))
    throw usage_error("a tensor can only be streamed from a file whose arrays have the types that are computed with");
  // An eighth of the memory for all windows.
  const std::uint64_t limit = context.memory ? context.memory->limit() : 0;
  const std::uint64_t nonzero = x.bytes() / std::max<std::uint64_t>(1, x.nnz());
  s.window = usual_window;
  if (limit > 0)
    s.window = std::clamp<std::uint64_t>(
        limit / 16 / static_cast<std::uint64_t>(s.threads) / std::max<std::uint64_t>(1, nonzero), 4096, usual_window);
  s.x = std::move(x);
  return s;
}

std::uint64_t Stream::bytes() const {
  if (!in_file) return x.bytes();
  const std::uint64_t nonzero = x.bytes() / std::max<std::uint64_t>(1, tensor_shape.nnz);
  return std::min(x.bytes(), 2 * window * nonzero * static_cast<std::uint64_t>(threads));
}

void Stream::fetch(std::uint64_t first, std::uint64_t last) const {
  if (!in_file || first >= last) return;
  for_each_array(x, first, last, false, [](void* at, std::size_t bytes) { (void)madvise(at, bytes, MADV_WILLNEED); });
}

void Stream::drop(std::uint64_t first, std::uint64_t last) const {
  if (!in_file || first >= last) return;
  // The pages are those of the file: whoever still reads one gets it again.
  for_each_array(x, first, last, true, [](void* at, std::size_t bytes) { (void)madvise(at, bytes, MADV_DONTNEED); });
}

extern const FormatClass stream_format;
const FormatClass stream_format = {{{"stream", "coordinates that stay in their file and are read in windows"},
                                    "",
                                    false,
                                    "tensors larger than the memory: two windows a thread are held at a time"},
                                   [](const CooTensor& x, const FormatOptions& options, const Context& context) {
                                     return erased(stream_format, options, Stream::build(x, options, context));
                                   },
                                   predict_coo,
                                   [](const EstimateRequest& q) {
                                     SweepEstimate e;
                                     e.ns = nonzero_loops_ns(q, 1.2, 1, true);
                                     e.build_ns = 6 * q.sample.nnz();
                                     e.bytes = q.sample.nnz() * (q.index_bytes() * q.sample.order() + q.value_bytes());
                                     e.why = "as coo, in windows";
                                     return e;
                                   }};

bool can_stream(const CooTensor& x) {
  const auto is_view = [](const auto& buffer) { return buffer.is_view(); };
  return x.order() >= 2 && std::visit(is_view, x.values) &&
         std::ranges::all_of(x.indices, [&](const IndexBuffer& b) { return std::visit(is_view, b); });
}

Tensor stream_of(CooTensor&& x, const Context& context) {
  if (x.order() < 2) throw usage_error("a tensor of order 1 has no MTTKRP");
  std::vector<std::unique_ptr<TensorBody>> bodies;
  bodies.push_back(erased(stream_format, {}, Stream::over(std::move(x), context)));
  return Tensor(std::move(bodies));
}

}  // namespace polyad
