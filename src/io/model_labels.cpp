// SPDX-License-Identifier: MIT
/// \file Labels in the directory of a model: `modeK.labels`, and the names of the modes in `summary.json`.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/input_stream.hpp"
#include "io/json_reader.hpp"
#include "io/label_text.hpp"
#include "io/model_files.hpp"
#include "io/shown.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

/// Adds a label per line; Error unless there are exactly `count`.
void read_lines(ModeLabels& labels, const std::string& path, std::uint64_t count, ModelMemory& memory,
                const Context& context) {
  InputStream input(path, context.cancelled);
  const auto add = [&](std::string_view line) {
    const std::uint64_t number = labels.size() + 1;
    if (number > count)
      throw file_error(path, number, fmt::format("found one more label, expected {}, one per index", count));
    const std::optional<std::string> label = label_of_line(line);
    if (!label)
      throw file_error(path, number, fmt::format("found '{}', expected \\\\, \\n or \\r for each '\\'", shown(line)));
    memory.add_label(label->size());
    labels.push_back(*label);
  };
  for_each_line(input, add, [&](std::string_view begun) {
    if (begun.size() > longest_label)
      throw file_error(path, labels.size() + 1,
                       fmt::format("found more than {} MB in a line, expected a label", longest_label >> 20U));
    context.report({"reading", input.consumed(), input.file_bytes().value_or(0), "bytes"});
  });
  if (labels.size() != count)
    throw file_error(path, labels.size() + 1,
                     fmt::format("found the end of the file after {} labels, expected {}", labels.size(), count));
}

/// The "labels" of a `summary.json`, nothing when it has none or is not ours.
std::vector<std::string> names_in(const std::string& path, const Context& context) {
  try {
    std::vector<std::string> names;
    JsonReader json(path, context);
    json.object("an object", [&](const std::string& key) {
      if (key != "labels") return json.skip();
      json.array("names", [&] { names.push_back(json.string("a name")); });
    });
    return names;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::input) return {};
    throw;
  }
}

}  // namespace

std::string labels_file(std::size_t mode) { return fmt::format("mode{}.labels", mode + 1); }

void write_labels(const ModeLabels& labels, OutputFile& file) {
  std::string text;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    append_line(text, labels[i]);
    text += '\n';
    if (text.size() < (1U << 16U) && i + 1 < labels.size()) continue;
    file.write(text);
    text.clear();
  }
}

void read_labels(CpModel& model, const std::string& folder, const Context& context) {
  namespace fs = std::filesystem;
  std::error_code failure;
  ModelMemory memory(context);
  model.labels.assign(model.factors.size(), {});
  if (const fs::path summary = fs::path(folder) / "summary.json"; fs::is_regular_file(summary, failure)) {
    const std::vector<std::string> names = names_in(summary.string(), context);
    for (std::size_t m = 0; m < names.size() && names.size() == model.labels.size(); ++m)
      model.labels[m].set_name(names[m]);
  }
  for (std::size_t m = 0; m < model.labels.size(); ++m)
    if (const fs::path file = fs::path(folder) / labels_file(m); fs::is_regular_file(file, failure))
      read_lines(model.labels[m], file.string(), model.factors[m].rows, memory, context);
  drop_empty_labels(model);
}

void drop_empty_labels(CpModel& model) {
  const auto is_known = [](const ModeLabels& labels) { return !labels.empty() || !labels.name().empty(); };
  if (std::ranges::none_of(model.labels, is_known)) model.labels.clear();
}

}  // namespace polyad::io
