// SPDX-License-Identifier: MIT
#include "kernel_options.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

namespace polyad::cli {

void check_order(const CooTensor& x, const InputOptions& input) {
  if (x.order() < 2)
    throw file_error(input.file == "-" ? "standard input" : input.file, 0,
                     fmt::format("found a tensor of order {}, expected at least 2 modes", x.order()));
}

void merge_and_note(CooTensor& x, Session& session) {
  if (const std::uint64_t merged = session.timed("merge", [&] { return merge_duplicates(x, session.context()); });
      merged > 0)
    session.note(fmt::format("{} nonzeros had the coordinate of another: their values were added", merged));
}

int mode_option(std::string_view flag, const std::string& text, int order) {
  int mode = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), mode);
  if (failure != std::errc() || end != text.data() + text.size() || mode < 1 || mode > order)
    throw usage_error(fmt::format("{}: found '{}', expected a mode from 1 to {} of this tensor", flag, text, order));
  return mode - 1;
}

std::vector<int> modes_option(std::string_view flag, const std::string& text, int order) {
  std::vector<int> modes;
  if (text == "all") {
    for (int m = 0; m < order; ++m) modes.push_back(m);
    return modes;
  }
  for (const std::string& part : split(text)) {
    const int mode = mode_option(flag, part, order);
    if (std::ranges::count(modes, mode) > 0)
      throw usage_error(fmt::format("{}: found mode {} twice in '{}'", flag, mode + 1, text));
    modes.push_back(mode);
  }
  if (modes.empty()) throw usage_error(fmt::format("{}: found nothing, expected 'all' or modes such as 1,3", flag));
  return modes;
}

void PlannerFlags::declare(CLI::App& command) {
  command.add_flag("--tune", tune,
                   "auto: build the planner's best three formats, time them, take the fastest and remember it for this "
                   "tensor");
  command.add_flag("--lean", lean,
                   "auto: only formats that are no larger than the coordinates (default: 1.5 times; with --memory: "
                   "whatever fits)");
}

Choice format_option(const std::string& name, const std::string& kernel, const CooTensor& x, std::uint64_t rank,
                     const Session& session, const PlannerFlags& flags) {
  if ((flags.tune || flags.lean) && (name != "auto" || !kernel.empty()))
    throw usage_error(fmt::format("{} is about how auto chooses; it does not go with {}",
                                  flags.tune ? "--tune" : "--lean",
                                  kernel.empty() ? fmt::format("the format {}", name) : "--kernel"));
  for (const KernelEntry& k : kernels())
    if (name == "auto" && k.name == kernel && k.formats != "any")
      return {format_named(split(std::string(k.formats)).back()).name, "the kernel works on it"};
  if (name != "auto") return {format_named(name).name, "asked for"};
  const double most_size = flags.lean                         ? 1
                           : session.options().memory.empty() ? usual_size
                                                              : std::numeric_limits<double>::infinity();
  if (flags.tune) return tune_format(x, rank, session.context(), most_size);
  Context context = session.context();
  if (flags.same_again) context.cache.clear();
  return choose_format(x, rank, context, most_size);
}

std::optional<Choice> stream_option(const std::string& name, const CooTensor& x, std::uint64_t rank,
                                    const Session& session) {
  if (!can_stream(x) || !x.duplicates_merged) return std::nullopt;
  if (name == "stream") return Choice{"stream", "asked for"};
  if (name != "auto" || !needs_streaming(x, rank, session.context())) return std::nullopt;
  return Choice{"stream", fmt::format("its coordinates ({}) do not fit the memory: they stay in the file",
                                      readable_bytes(static_cast<std::uint64_t>(coordinate_bytes(x))))};
}

CooTensor view_of(CooTensor& x) {
  const std::shared_ptr<const void> owner(std::shared_ptr<const void>(), &x);  // does not own
  const auto view = [&]<class T>(Buffer<T>& b) { return Buffer<T>::view(owner, b.data(), b.size(), b.is_in_file()); };
  CooTensor same;
  same.dims = x.dims;
  same.sorted_by = x.sorted_by;
  same.duplicates_merged = x.duplicates_merged;
  for (IndexBuffer& indices : x.indices)
    same.indices.push_back(std::visit([&](auto& b) { return IndexBuffer(view(b)); }, indices));
  same.values = std::visit([&](auto& b) { return ValueBuffer(view(b)); }, x.values);
  return same;
}

void check_kernel(std::string_view flag, const std::string& name, std::string_view operation) {
  if (name.empty()) return;
  std::string known;
  for (const KernelEntry& k : kernels()) {
    if (k.operation != operation) continue;
    if (k.name == name) return;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", k.name);
  }
  throw usage_error(fmt::format("{}: there is no kernel '{}' for {}; there are {}", flag, name, operation, known));
}

void keep_inputs(std::string_view flag, const std::string& output, const InputOptions& input, const Session& session,
                 const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::string& json = session.options().json;
  const auto same = [&](const std::string& a, const std::string& b) {
    if (a.empty() || b.empty() || a == "-" || b == "-") return false;
    return fs::equivalent(a, b, ignored) ||
           fs::weakly_canonical(a, ignored).lexically_normal() == fs::weakly_canonical(b, ignored).lexically_normal();
  };
  const auto refuse = [](std::string_view what, std::string_view victim) {
    throw usage_error(fmt::format("{} would overwrite {}", what, victim));
  };
  if (same(output, input.file)) refuse(flag, "the tensor that is read");
  if (same(output, json)) refuse(flag, "the file of --json");
  for (const std::string& read : inputs) {
    if (same(output, read)) refuse(flag, read);
    if (same(json, read)) refuse("--json", read);
    if (!read.empty() && fs::is_directory(read, ignored) && !output.empty() && output != "-" &&
        same(fs::path(output).parent_path().empty() ? "." : fs::path(output).parent_path().string(), read))
      refuse(flag, fmt::format("a file of {}", read));
  }
}

void check_place(const std::string& path, bool is_folder) {
  namespace fs = std::filesystem;
  if (path.empty() || path == "-") return;
  std::error_code ignored;
  const auto refuse = [&](const std::string& what) {
    throw file_error(path, 0, fmt::format("cannot be written: {}", what));
  };
  fs::path folder = fs::absolute(path).lexically_normal();
  if (is_folder) {
    while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  } else {
    if (fs::is_directory(folder, ignored)) refuse("it is a directory");
    folder = folder.parent_path();
  }
  if (!fs::exists(folder, ignored)) refuse(fmt::format("there is no folder {}", folder.string()));
  if (!fs::is_directory(folder, ignored)) refuse(fmt::format("{} is no folder", folder.string()));
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    refuse(fmt::format("the folder {} is closed to writing", folder.string()));
}

void apply_transform(const std::string& text, CooTensor& x, const Context& context) {
  constexpr std::string_view with_mode = "deviance:";
  if (text == "log1p") return transform_values(x, ValueTransform::log1p, context);
  if (text == "binary") return transform_values(x, ValueTransform::binary, context);
  if (text == "deviance") return to_deviance(x, std::nullopt, context);
  if (text.starts_with(with_mode))
    return to_deviance(x, mode_option("--transform deviance", text.substr(with_mode.size()), x.order()), context);
  throw usage_error(fmt::format("--transform: found '{}', expected log1p, binary, deviance or deviance:K", text));
}

}  // namespace polyad::cli
