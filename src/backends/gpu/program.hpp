// SPDX-License-Identifier: MIT
/// \file From a kernel text to what a driver compiles, and compiled programs that are kept on disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/device.hpp"

namespace polyad::gpu {

/// A text of src/device that the library carries.
struct Text {
  std::string_view name;  ///< without ".h"
  const std::string_view* text;
};

/// All of them, preludes too, sorted by name. The table is made by CMake.
[[nodiscard]] std::span<const Text> texts();
/// The text of a name; Error when there is none. A file NAME.h in the folder $POLYAD_DEVICE_TEXTS is taken in its
/// place: kernels can be changed without building the library again, and tests put faults into them.
[[nodiscard]] std::string text_named(std::string_view name);

/// Defines, the prelude of a door ("opencl", "cuda", "cpp") and the unit, one behind the other; compilers count the
/// lines of each by its own file.
[[nodiscard]] std::string assemble(std::string_view door, std::string_view unit, std::span<const Define> defines);

/// The name under which a compiled program is kept: a hash of all that it depends on.
[[nodiscard]] std::string program_key(std::string_view source, std::string_view options, std::string_view device,
                                      std::string_view driver);

/// Compiled programs in a folder, a file each. A cache never stands in the way: what cannot be read or is damaged is
/// not there, what cannot be written is not kept.
class ProgramCache {
 public:
  /// \param folder empty: nothing is kept
  explicit ProgramCache(std::string folder) : folder_(std::move(folder)) {}
  /// Whether anything is kept: what a driver takes long to hand out need not be asked for otherwise.
  [[nodiscard]] bool keeps() const { return !folder_.empty(); }
  /// The bytes kept under a key; empty when there are none.
  [[nodiscard]] std::string load(const std::string& key) const;
  void store(const std::string& key, std::string_view bytes) const;
  [[nodiscard]] std::string path(const std::string& key) const;

 private:
  std::string folder_;
};

/// Programs of a device that are loaded, each compiled or read from the cache once. Thread-safe.
template <class Program>
class Programs {
 public:
  /// The program of a source; made by `make` when it is first asked for.
  std::shared_ptr<Program> get(const std::string& source, const std::function<std::shared_ptr<Program>()>& make) {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<Program>& program = loaded_[source];
    if (!program) program = make();
    return program;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Program>> loaded_;
};

}  // namespace polyad::gpu
