// SPDX-License-Identifier: MIT
/// \file TTV kernels that run on devices: Algorithms 3 to 6 of Yang, Li and Li 2019. The texts are in src/device.
#include <array>

#include "formats/cfb/cfb.hpp"
#include "formats/hocfs/hocfs.hpp"
#include "formats/hocoo/hocoo.hpp"
#include "formats/hocsr/hocsr.hpp"
#include "formats/stream/stream.hpp"
#include "kernels/ttv/gpu_run.hpp"

namespace polyad {

namespace {

/// \param report may be null
template <TtvJob (*make)(const TtvRequest&)>
CooTensor run_job(const TtvRequest& r, PipelineReport* report) {
  return TtvDevices::open(r, report)->run(make(r));
}

template <CooTensor (*run_with)(const TtvRequest&, PipelineReport*)>
CooTensor run(const TtvRequest& r) {
  return run_with(r, nullptr);
}

}  // namespace

extern const TtvKernel ttv_gpu_hocoo;
const TtvKernel ttv_gpu_hocoo = {
    {{"ttv/gpu/hocoo", "Algorithm 3 of HOCFS on devices: multiply, then segmented reduction in two passes"},
     "ttv",
     "hocoo",
     true,
     "gpu"},
    [](const TtvQuestion& q) {
      if (get_if<Hocoo>(q.tensor) == nullptr) return cannot("it works on hocoo");
      const bool last = q.mode + 1 == q.tensor.shape().order();
      return can((last ? 1 : 27) * q.nnz(), last ? "the fibres of the last mode are runs of sorted coordinates"
                                                 : "the host sorts by the other modes, the device sums runs");
    },
    run<run_job<hocoo_job>>};

extern const TtvKernel ttv_gpu_hocsr;
const TtvKernel ttv_gpu_hocsr = {
    {{"ttv/gpu/hocsr", "Algorithm 4 of HOCFS on devices: a row per work-item"}, "ttv", "hocsr", true, "gpu"},
    [](const TtvQuestion& q) {
      const auto* h = get_if<Hocsr>(q.tensor);
      if (h == nullptr) return cannot("it works on hocsr");
      return ask_for_mode(q, "hocsr", h->mode, q.nnz() + static_cast<double>(h->rows.groups()), "a row per work-item");
    },
    run<run_job<hocsr_job>>};

extern const TtvKernel ttv_gpu_cfb;
const TtvKernel ttv_gpu_cfb = {
    {{"ttv/gpu/cfb", "Algorithm 5 of HOCFS on devices: a fibre per work-item"}, "ttv", "cfb", true, "gpu"},
    [](const TtvQuestion& q) {
      const auto* c = get_if<Cfb>(q.tensor);
      if (c == nullptr) return cannot("it works on cfb");
      return ask_for_mode(q, "cfb", c->mode, q.nnz() + static_cast<double>(c->fibres()), "a fibre per work-item");
    },
    run<run_job<cfb_job>>};

extern const TtvKernel ttv_gpu_hocfs_csr;
const TtvKernel ttv_gpu_hocfs_csr = {
    {{"ttv/gpu/hocfs-csr", "Algorithm 6 of HOCFS on devices: a grid of slices and fibres, rows in CSR"},
     "ttv",
     "hocfs-csr",
     true,
     "gpu"},
    [](const TtvQuestion& q) {
      const auto* h = get_if<HocfsCsr>(q.tensor);
      if (h == nullptr) return cannot("it works on hocfs-csr");
      return ask_for_mode(q, "hocfs-csr", h->mode(), q.nnz(), "slices over groups, fibres over work-items");
    },
    run<run_job<hocfs_csr_job>>};

extern const TtvKernel ttv_gpu_hocfs_ell;
const TtvKernel ttv_gpu_hocfs_ell = {
    {{"ttv/gpu/hocfs-ell", "Algorithm 6 of HOCFS on devices: a grid of slices and fibres, rows in ELL"},
     "ttv",
     "hocfs-ell",
     true,
     "gpu"},
    [](const TtvQuestion& q) {
      const auto* h = get_if<HocfsEll>(q.tensor);
      if (h == nullptr) return cannot("it works on hocfs-ell");
      return ask_for_mode(q, "hocfs-ell", h->mode(), static_cast<double>(h->elements()),
                          "neighbouring work-items read neighbouring elements of 16 rows");
    },
    run<run_job<hocfs_ell_job>>};

extern const TtvKernel ttv_gpu_stream;
const TtvKernel ttv_gpu_stream = {
    {{"ttv/gpu/stream", "windows of the file, of whole slices where they fit, pass through the devices as hocoo"},
     "ttv",
     "stream",
     true,
     "gpu"},
    [](const TtvQuestion& q) {
      if (get_if<Stream>(q.tensor) == nullptr) return cannot("it works on stream");
      return can(27 * q.nnz(), "the tensor stays in its file");
    },
    run<run_windows>};

PipelineReport ttv_pipeline(const Tensor& x, int mode, std::span<const double> vector, const Context& context,
                            std::string_view kernel) {
  struct Line {
    const TtvKernel* kernel;
    CooTensor (*run)(const TtvRequest&, PipelineReport*);
  };
  static constexpr std::array lines = {Line{&ttv_gpu_hocoo, run_job<hocoo_job>},
                                       Line{&ttv_gpu_hocsr, run_job<hocsr_job>},
                                       Line{&ttv_gpu_cfb, run_job<cfb_job>},
                                       Line{&ttv_gpu_hocfs_csr, run_job<hocfs_csr_job>},
                                       Line{&ttv_gpu_hocfs_ell, run_job<hocfs_ell_job>},
                                       Line{&ttv_gpu_stream, run_windows}};
  if (context.devices.empty()) throw usage_error("the pipeline is that of a device: name one with --device");
  check_ttv(x, mode, vector);
  std::array<const TtvKernel*, lines.size()> kernels = {};
  for (std::size_t k = 0; k < lines.size(); ++k) kernels[k] = lines[k].kernel;
  const TensorBody& body = x.body(mode);
  const Chosen<TtvKernel> chosen =
      choose<TtvKernel>(kernels, TtvQuestion{body, mode, context}, kernel, context.deterministic);
  const TtvRequest request{body, mode, vector, context};
  PipelineReport report;
  report.kernel = {chosen.kernel->entry.name, chosen.why};
  for (const Line& line : lines)
    if (line.kernel == chosen.kernel) static_cast<void>(line.run(request, &report));
  return report;
}

}  // namespace polyad
