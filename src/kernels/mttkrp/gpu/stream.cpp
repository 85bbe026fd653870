// SPDX-License-Identifier: MIT
/// \file A tensor that stays in its file, on devices: parts are windows of the file, whose pages are given back as soon
/// as they are on their way to the device. So neither the host nor the device ever has all of it.
#include "formats/stream/stream.hpp"

#include "kernels/mttkrp/gpu/coo_parts.hpp"
#include "kernels/mttkrp/gpu/run.hpp"

namespace polyad::gpu {

std::vector<PartGroup> cut_stream(const TensorBody& tensor, const CutRequest& q) {
  const Stream& stream = *get_if<Stream>(tensor);
  CutRequest windows = q;
  if (stream.in_file) {
    const std::uint64_t nonzero = stream.x.bytes() / std::max<std::uint64_t>(1, stream.x.nnz());
    windows.most_bytes = std::min(q.most_bytes, std::max(stream.window, group_nonzeros) * nonzero);
  }
  PartGroup group;
  group.unit = "mttkrp_coo";
  group.function = "mttkrp_coo_blocked";
  group.defines = {{"PD_INDEX", index_type(stream.x.index_width())}, {"PD_OFFSET", "u32"}, {"PD_INTERLEAVED", "0"}};
  group.columns = Columns::registers;
  group.heaviest = heaviest_run;
  group.parts = coo_parts(stream.x, windows);
  std::uint64_t begin = 0;
  for (Part& part : group.parts) {
    const std::uint64_t end = begin + part.nnz;
    const std::uint64_t next = std::min(stream.x.nnz(), end + part.nnz);
    if (stream.in_file)
      part.copied = [&stream, begin, end, next] {
        stream.fetch(end, next);
        stream.drop(begin, end);
      };
    begin = end;
  }
  return {group};
}

}  // namespace polyad::gpu

namespace polyad {

extern const MttkrpKernel mttkrp_gpu_stream_windows;
const MttkrpKernel mttkrp_gpu_stream_windows = {
    {{"mttkrp/gpu/stream/windows", "windows of the file pass through the device; rows added atomically"},
     "mttkrp",
     "stream",
     false,
     "gpu"},
    [](const MttkrpQuestion& q) {
      return gpu::ask(q, get_if<Stream>(q.tensor) != nullptr, "stream", 4, "the tensor stays in its file");
    },
    gpu::run<float, gpu::cut_stream>,
    gpu::run<double, gpu::cut_stream>,
    gpu::cut_stream};

}  // namespace polyad
