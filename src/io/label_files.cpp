// SPDX-License-Identifier: MIT
#include "io/label_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>

#include "io/input_stream.hpp"
#include "io/label_text.hpp"
#include "io/output_file.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace fs = std::filesystem;

namespace {

/// "ratings" of "folder/ratings.tns.gz".
std::string stem_of(const std::string& path) { return fs::path(without_compression(path)).stem().string(); }

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

struct LabelFile {
  int mode = 0;  // from 0
  std::string mode_name;
  bool named_after_tensor = false;
  fs::path path;
};

/// Is `file` a label file for a tensor called `stem`?
std::optional<LabelFile> recognise(const fs::path& file, const std::string& stem) {
  const std::string full = file.filename().string();
  std::string_view name = without_compression(full);
  if (!name.ends_with(".map")) return std::nullopt;
  name.remove_suffix(4);
  LabelFile found;
  found.path = file;
  if (name.starts_with(stem + ".")) {
    name.remove_prefix(stem.size() + 1);
    found.named_after_tensor = true;
  }
  if (!name.starts_with("mode-")) return std::nullopt;
  name.remove_prefix(5);
  int number = 0;
  std::size_t digits = 0;
  while (digits < name.size() && digits < 3 && std::isdigit(static_cast<unsigned char>(name[digits])) != 0)
    number = number * 10 + (name[digits++] - '0');
  if (digits == 0 || number < 1 || number > max_order) return std::nullopt;
  name.remove_prefix(digits);
  if (!name.empty() && name[0] != '-') return std::nullopt;
  found.mode = number - 1;
  found.mode_name = name.empty() ? "" : std::string(name.substr(1));
  return found;
}

ModeLabels read_labels(const std::string& path, std::string mode_name) {
  InputStream input(path);
  ModeLabels labels(std::move(mode_name));
  for_each_line(
      input, [&](std::string_view line) { labels.push_back(line); },
      [&](std::string_view begun) {
        if (begun.size() > (std::size_t{1} << 20U))
          throw file_error(path, labels.size() + 1,
                           "found a label of more than a megabyte, expected one label per line");
      });
  return labels;
}

/// Too few labels: false. Too many (a FROSTT file loses trailing empty slices): the surplus is dropped and noted.
bool fit(ModeLabels& labels, std::uint64_t dim, const std::string& path, std::vector<std::string>& notes) {
  if (labels.size() < dim) return false;
  if (labels.size() > dim) {
    notes.push_back(fmt::format("{} has {} labels for {} indices; the last {} are left out", path, labels.size(), dim,
                                labels.size() - dim));
    labels.truncate(dim);
  }
  return true;
}

}  // namespace

void attach_found_labels(CooTensor& x, const std::string& tensor_path, std::vector<std::string>& notes) {
  const std::string stem = stem_of(tensor_path);
  std::map<int, LabelFile> chosen;
  std::error_code code;
  for (fs::directory_iterator entry(folder_of(tensor_path), code), end; !code && entry != end; entry.increment(code)) {
    auto found = recognise(entry->path(), stem);
    std::error_code ignored;
    if (!found || found->mode >= x.order() || !entry->is_regular_file(ignored)) continue;
    auto [at, is_new] = chosen.try_emplace(found->mode, *found);
    if (is_new) continue;
    // The one named after the tensor wins, then the first by name, so that the choice does not depend on the disk.
    const auto rank = [](const LabelFile& f) { return std::pair(!f.named_after_tensor, f.path.string()); };
    if (rank(*found) < rank(at->second)) at->second = std::move(*found);
  }
  if (chosen.empty()) return;
  std::vector<ModeLabels> labels(x.dims.size());
  bool any = false;
  for (auto& [mode, file] : chosen) {
    const auto m = static_cast<std::size_t>(mode);
    ModeLabels read = read_labels(file.path.string(), file.mode_name);
    if (!fit(read, x.dims[m], file.path.string(), notes)) {
      notes.push_back(fmt::format("{} has only {} labels for the {} indices of mode {}; it is not used",
                                  file.path.string(), read.size(), x.dims[m], mode + 1));
      continue;
    }
    labels[m] = std::move(read);
    any = true;
  }
  if (any) x.labels = std::move(labels);
}

void attach_given_labels(CooTensor& x, const std::vector<std::string>& files, std::vector<std::string>& notes) {
  if (files.size() > x.dims.size())
    throw usage_error(fmt::format("{} label files were given for a tensor of order {}", files.size(), x.order()));
  if (x.labels.empty()) x.labels.resize(x.dims.size());
  for (std::size_t m = 0; m < files.size(); ++m) {
    if (files[m].empty()) continue;
    const auto known = recognise(files[m], "");
    ModeLabels labels = read_labels(files[m], known ? known->mode_name : stem_of(files[m]));
    if (!fit(labels, x.dims[m], files[m], notes))
      throw file_error(files[m], 0,
                       fmt::format("has {} labels, but mode {} has {} indices", labels.size(), m + 1, x.dims[m]));
    x.labels[m] = std::move(labels);
  }
}

std::vector<Companion> label_files_of(const CooTensor& x, const std::string& tensor_path) {
  std::vector<Companion> files;
  for (std::size_t m = 0; m < x.labels.size(); ++m) {
    const ModeLabels& labels = x.labels[m];
    if (labels.empty()) continue;
    std::string text;
    text.reserve(labels.text().size() + labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      // A label is one line; what would break it becomes a blank.
      for (const char c : labels[i]) text += c == '\n' || c == '\r' ? ' ' : c;
      text += '\n';
    }
    std::string mode_name = labels.name().substr(0, 100);
    std::ranges::replace_if(
        mode_name, [](unsigned char c) { return c < 0x20 || c == '/' || c == 0x7f; }, '_');
    const std::string name =
        fmt::format("{}.mode-{}{}{}.map", stem_of(tensor_path), m + 1, mode_name.empty() ? "" : "-", mode_name);
    files.push_back({(folder_of(tensor_path) / name).string(), std::move(text)});
  }
  return files;
}

}  // namespace polyad::io
