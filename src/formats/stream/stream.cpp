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

/// Calls advise(address, bytes) for the pages of elements first .. last of each array.
/// \param before bytes before them that belong to it too
template <class Advise>
void for_each_array(const CooTensor& x, std::uint64_t first, std::uint64_t last, std::uintptr_t before,
                    const Advise& advise) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto of = [&](const auto& buffer) {
    const auto array = reinterpret_cast<std::uintptr_t>(buffer.data()) / page * page;
    const auto at = reinterpret_cast<std::uintptr_t>(buffer.data() + first);
    const std::uintptr_t begin = std::max(array, at - std::min(at, before)) / page * page;
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(buffer.data() + last) / page * page;
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
  s.counted = std::make_unique<Counted>(context, s.bytes(), "the windows of a streamed tensor");
  return s;
}

std::uint64_t Stream::bytes() const {
  if (!in_file) return x.bytes();
  const std::uint64_t nonzero = x.bytes() / std::max<std::uint64_t>(1, tensor_shape.nnz);
  return std::min(x.bytes(), 2 * window * nonzero * static_cast<std::uint64_t>(threads));
}

void Stream::fetch(std::uint64_t first, std::uint64_t last) const {
  if (!in_file || first >= last) return;
  for_each_array(x, first, last, 0, [](void* at, std::size_t bytes) { (void)madvise(at, bytes, MADV_WILLNEED); });
}

void Stream::drop(std::uint64_t first, std::uint64_t last) const {
  if (!in_file || first >= last) return;
  // The pages are the file's: whoever still reads one gets it again. The system maps 64 KiB around a page that is
  // missing, so what lies before was mapped again.
  for_each_array(x, first, last, std::uintptr_t{64} << 10U,
                 [](void* at, std::size_t bytes) { (void)madvise(at, bytes, MADV_DONTNEED); });
}

extern const FormatClass stream_format;
const FormatClass stream_format = {{{"stream", "coordinates that stay in their file and are read in windows"},
                                    "",
                                    false,
                                    "tensors larger than the memory: two windows a thread are held at a time"},
                                   [](const CooTensor& x, const FormatOptions& options, const Context& context) {
                                     return erased(stream_format, options, Stream::build(x, options, context));
                                   },
                                   predict_coo};

bool can_stream(const CooTensor& x) {
  const auto in_file = [](const auto& buffer) { return buffer.is_in_file(); };
  const std::size_t width = width_for(x.dims) == IndexWidth::u32 ? 0 : 1;  // which of the variant's buffers
  return x.order() >= 2 && std::visit(in_file, x.values) && std::ranges::all_of(x.indices, [&](const IndexBuffer& b) {
           return b.index() == width && std::visit(in_file, b);
         });
}

Tensor stream_of(CooTensor&& x, const Context& context) {
  if (x.order() < 2) throw usage_error("a tensor of order 1 has no MTTKRP");
  std::vector<std::unique_ptr<TensorBody>> bodies;
  bodies.push_back(erased(stream_format, {}, Stream::over(std::move(x), context)));
  return Tensor(std::move(bodies));
}

}  // namespace polyad
