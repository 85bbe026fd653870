// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/gpu/cuda/api.hpp"
#include "backends/gpu/library.hpp"
#include "polyad/error.hpp"

namespace polyad::gpu::cuda {

using Program = struct ProgramObject*;

/// Functions of libnvrtc.
struct Compiler::Functions {
#define POLYAD_NVRTC(name, ...) Result (*name)(__VA_ARGS__) = nullptr;
#include "backends/gpu/cuda/nvrtc.list"
#undef POLYAD_NVRTC
  const char* (*error_string)(Result) = nullptr;  // nvrtcGetErrorString
};

namespace {

/// A program of NVRTC, given back at the end.
class OwnedProgram {
 public:
  OwnedProgram(Program program, Result (*destroy)(Program*)) : program_(program), destroy_(destroy) {}
  ~OwnedProgram() { destroy_(&program_); }
  OwnedProgram(const OwnedProgram&) = delete;
  OwnedProgram& operator=(const OwnedProgram&) = delete;
  [[nodiscard]] Program get() const { return program_; }

 private:
  Program program_;
  Result (*destroy_)(Program*);
};

/// What a pair of functions (size, content) gives.
std::string content(Program program, Result (*size)(Program, std::size_t*), Result (*get)(Program, char*)) {
  std::size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0) return {};
  std::string text(bytes, '\0');
  return get(program, text.data()) == 0 ? text : std::string();
}

std::string readable_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

Product product_of(int version, std::span<const int> architectures, int architecture, int driver,
                   std::string& why_not) {
  const std::string name = "NVRTC " + readable_version(version);
  if (architecture < architectures.front()) {
    why_not = fmt::format("{} begins with sm_{}, the device is sm_{}", name, architectures.front(), architecture);
    return Product::nothing;
  }
  const bool knows = std::binary_search(architectures.begin(), architectures.end(), architecture);
  if (knows && version / 1000 <= driver / 1000) return Product::cubin;
  if (!knows && version <= driver) return Product::ptx;
  why_not =
      fmt::format("{} is newer than the driver, which is for CUDA {}{}; install libnvrtc {} or a newer driver", name,
                  readable_version(driver), knows ? "" : " and must translate what it makes", driver / 1000);
  return Product::nothing;
}

Compiler::Compiler() : functions_(std::make_unique<Functions>()) {}
Compiler::~Compiler() = default;

std::shared_ptr<const Compiler> Compiler::find(int architecture, int driver, std::string& why_not) {
  // Each major version drops the oldest GPUs and needs a driver as new: a machine with an old one has an old version.
  static constexpr auto versions = std::to_array<const char*>({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"});
  std::shared_ptr<const Compiler> by_ptx;
  std::string unfit;
  std::string missing;
  for (const char* version : versions) {
    const Library library("POLYAD_NVRTC_LIBRARY", std::span(&version, 1), nullptr);
    if (!library.found()) {
      if (missing.find(library.why_not()) == std::string::npos)
        missing += (missing.empty() ? "" : ", ") + library.why_not();
      continue;
    }
    const std::shared_ptr<Compiler> compiler(new Compiler);
    bool complete = true;
    for (const auto& [name, to] : std::to_array<std::pair<const char*, void**>>({
#define POLYAD_NVRTC(name, ...) {#name, reinterpret_cast<void**>(&compiler->functions_->name)},
#include "backends/gpu/cuda/nvrtc.list"
#undef POLYAD_NVRTC
             {"nvrtcGetErrorString", reinterpret_cast<void**>(&compiler->functions_->error_string)},
         })) {
      *to = library.symbol(name);
      complete = complete && *to != nullptr;
    }
    int count = 0;
    int major = 0;
    int minor = 0;
    const Functions& f = *compiler->functions_;
    if (!complete || f.nvrtcVersion(&major, &minor) != 0 || f.nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0) {
      missing += fmt::format("{}{} is too old", missing.empty() ? "" : ", ", version);
      continue;
    }
    compiler->name_ = fmt::format("NVRTC {}.{}", major, minor);
    compiler->architectures_.resize(static_cast<std::size_t>(count));
    if (f.nvrtcGetSupportedArchs(compiler->architectures_.data()) != 0) continue;
    std::sort(compiler->architectures_.begin(), compiler->architectures_.end());
    switch (product_of(1000 * major + 10 * minor, compiler->architectures_, architecture, driver, unfit)) {
      case Product::cubin:
        return compiler;
      case Product::ptx:
        if (!by_ptx) by_ptx = compiler;
        break;
      case Product::nothing:
        break;
    }
  }
  if (!by_ptx)
    why_not = unfit.empty()
                  ? fmt::format("no compiler of kernels: {}; install NVIDIA's NVRTC library (libnvrtc)", missing)
                  : fmt::format("no compiler of kernels: {}", unfit);
  return by_ptx;
}

Compiled Compiler::compile(const std::string& source, std::string_view unit, int architecture) const {
  const Functions& f = *functions_;
  // The newest that is not newer than the device: its PTX is translated by the driver.
  const auto above = std::upper_bound(architectures_.begin(), architectures_.end(), architecture);
  if (above == architectures_.begin())
    throw Error(ErrorKind::input, fmt::format("{} begins with sm_{}, it cannot compile for sm_{}", name_,
                                              architectures_.front(), architecture));
  Compiled result;
  result.is_ptx = above[-1] != architecture;
  const std::string target = fmt::format("--gpu-architecture={}_{}", result.is_ptx ? "compute" : "sm", above[-1]);
  const std::vector<const char*> options = {target.c_str(), "--std=c++14", "-w"};
  const std::string file = fmt::format("{}.cu", unit);
  Program made = nullptr;
  if (f.nvrtcCreateProgram(&made, source.c_str(), file.c_str(), 0, nullptr, nullptr) != 0)
    throw Error(ErrorKind::limit, fmt::format("{} cannot begin with the kernels of {}.h", name_, unit));
  const OwnedProgram program(made, f.nvrtcDestroyProgram);
  const Result code = f.nvrtcCompileProgram(made, static_cast<int>(options.size()), options.data());
  std::string log = content(made, f.nvrtcGetProgramLogSize, f.nvrtcGetProgramLog);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (code != 0)
    throw Error(ErrorKind::limit, fmt::format("the kernels of {}.h do not compile with {} ({}): {}", unit, name_,
                                              f.error_string(code), log));
  result.binary = result.is_ptx ? content(made, f.nvrtcGetPTXSize, f.nvrtcGetPTX)
                                : content(made, f.nvrtcGetCUBINSize, f.nvrtcGetCUBIN);
  if (result.binary.empty())
    throw Error(ErrorKind::limit, fmt::format("{} made nothing of the kernels of {}.h", name_, unit));
  return result;
}

}  // namespace polyad::gpu::cuda
