// SPDX-License-Identifier: MIT
/// \file A model as JSON, for programs that have no other reader: weights, factors row by row, names and labels.
#include <fmt/format.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "io/json_reader.hpp"
#include "io/label_text.hpp"
#include "io/model_files.hpp"
#include "io/output_file.hpp"
#include "polyad/error.hpp"
#include "polyad/types.hpp"

namespace polyad::io {

namespace {

/// Reads the parts of a model in whatever order they come, then compares them.
class ModelReader {
 public:
  ModelReader(const std::string& path, const Context& context) : json_(path, context), memory_(context) {}

  CpModel read() {
    json_.object(R"(an object {"weights": [..], "factors": [..]})", [&](const std::string& key) {
      if (key == "weights") {
        once(key, has_weights_);
        json_.array("an array of weights", [&] { model_.weights.push_back(number()); });
      } else if (key == "factors") {
        once(key, has_factors_);
        json_.array("an array of matrices", [&] { read_matrix(); });
      } else if (key == "modes") {
        once(key, has_modes_);
        json_.array("an array of modes", [&] { read_mode(); });
      } else {
        json_.skip();
      }
    });
    json_.finish();
    check();
    return std::move(model_);
  }

 private:
  double number() {
    if (++uncounted_ == 1U << 12U) {
      memory_.add(uncounted_);
      uncounted_ = 0;
    }
    return json_.number("a finite number");
  }

  void once(const std::string& key, bool& has) const {
    if (has) throw error(json_.line(), fmt::format("found \"{}\" again, expected it once", key));
    has = true;
  }

  void read_matrix() {
    if (model_.factors.size() == static_cast<std::size_t>(max_order))
      throw error(json_.line(), fmt::format("found more than {} matrices, expected one per mode", max_order));
    Matrix& a = model_.factors.emplace_back();
    const std::string which = fmt::format("the factor of mode {}", model_.factors.size());
    json_.array(fmt::format("{} as an array of rows", which), [&] {
      std::uint64_t count = 0;
      json_.array(fmt::format("a row of {} as an array of numbers", which), [&] {
        a.values.push_back(number());
        ++count;
      });
      if (a.rows == 0) a.cols = count;
      if (count != a.cols)
        throw error(json_.line(), fmt::format("found {} numbers in row {} of {}, expected {} as in the first", count,
                                              a.rows + 1, which, a.cols));
      ++a.rows;
    });
    factor_lines_.push_back(json_.line());
  }

  void read_mode() {
    if (model_.labels.size() == static_cast<std::size_t>(max_order))
      throw error(json_.line(), fmt::format("found more than {} modes", max_order));
    ModeLabels& labels = model_.labels.emplace_back();
    bool has_name = false;
    bool has_labels = false;
    json_.object(R"(an object {"name": "..", "labels": [..]})", [&](const std::string& key) {
      if (key == "name") {
        once(key, has_name);
        labels.set_name(json_.string("the name of a mode in quotation marks"));
      } else if (key == "labels") {
        once(key, has_labels);
        json_.array("an array of labels", [&] {
          const std::string label = json_.string("a label in quotation marks");
          memory_.add_label(label.size());
          labels.push_back(label);
        });
      } else {
        json_.skip();
      }
    });
    label_lines_.push_back(json_.line());
  }

  void check() {
    if (!has_weights_ || !has_factors_)
      throw error(0, fmt::format("found no \"{}\", expected a model: {{\"weights\": [..], \"factors\": [..]}}",
                                 has_weights_ ? "factors" : "weights"));
    if (model_.weights.empty()) throw error(0, "found no weights, expected one per component");
    if (model_.factors.empty()) throw error(0, "found no factors, expected a matrix per mode");
    for (std::size_t m = 0; m < model_.factors.size(); ++m) {
      const Matrix& a = model_.factors[m];
      if (a.rows == 0) throw error(factor_lines_[m], fmt::format("found no rows in the factor of mode {}", m + 1));
      if (a.cols != model_.rank())
        throw error(factor_lines_[m], fmt::format("found {} columns in the factor of mode {}, expected {} as there are "
                                                  "weights",
                                                  a.cols, m + 1, model_.rank()));
    }
    if (model_.labels.empty()) return;
    if (model_.labels.size() != model_.factors.size())
      throw error(label_lines_.back(), fmt::format("found {} modes, expected {} as there are factors",
                                                   model_.labels.size(), model_.factors.size()));
    for (std::size_t m = 0; m < model_.labels.size(); ++m)
      if (const std::size_t count = model_.labels[m].size(); count != 0 && count != model_.factors[m].rows)
        throw error(label_lines_[m], fmt::format("found {} labels of mode {}, expected {} as its factor has rows",
                                                 count, m + 1, model_.factors[m].rows));
    drop_empty_labels(model_);
  }

  [[nodiscard]] Error error(std::uint64_t line, const std::string& sentence) const {
    return file_error(json_.name(), line, sentence);
  }

  JsonReader json_;
  ModelMemory memory_;
  CpModel model_;
  bool has_weights_ = false;
  bool has_factors_ = false;
  bool has_modes_ = false;
  std::vector<std::uint64_t> factor_lines_;  // where each ends
  std::vector<std::uint64_t> label_lines_;
  std::uint64_t uncounted_ = 0;  // numbers not yet given to the budget
};

/// "[1, 2, 3]".
template <class Numbers>
void append_array(std::string& text, const Numbers& numbers, std::string_view what) {
  text += '[';
  for (std::size_t r = 0; r < numbers.size(); ++r) {
    if (!std::isfinite(numbers[r]))
      throw usage_error(fmt::format("{} has {}, which JSON cannot hold", what, numbers[r]));
    if (r > 0) text += ", ";
    append_number(text, numbers[r]);
  }
  text += ']';
}

void write_mode(const ModeLabels& labels, OutputFile& file) {
  std::string text = "  {\"name\": ";
  append_json_string(text, labels.name());
  text += ", \"labels\": [";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text += i == 0 ? "\n   " : ",\n   ";
    append_json_string(text, labels[i]);
    if (text.size() < (1U << 16U)) continue;
    file.write(text);
    text.clear();
  }
  file.write(text + "]}");
}

}  // namespace

bool is_json(std::string_view path) { return without_compression(path).ends_with(".json"); }

CpModel read_json_model(const std::string& path, const Context& context) { return ModelReader(path, context).read(); }

void write_json_model(const CpModel& model, const std::string& path, const Context& context) {
  OutputFile file(path, compression_of(path), context.cancelled);
  std::string head = "{\n \"weights\": ";
  append_array(head, model.weights, "a weight");
  file.write(head + ",\n \"factors\": [\n");
  std::uint64_t total = 0;
  for (const Matrix& a : model.factors) total += a.rows;
  std::uint64_t written = 0;
  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    const Matrix& a = model.factors[m];
    const std::string which = fmt::format("the factor of mode {}", m + 1);
    const auto format = [&](std::string& text, std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) {
        text += "   ";
        append_array(text, std::span(a.values.data() + i * a.cols, a.cols), which);
        text += i + 1 < a.rows ? ",\n" : "\n";
      }
    };
    file.write("  [\n");
    write_rows(a, context, format, [&](std::uint64_t count, const std::string& text) {
      file.write(text);
      written += count;
      context.report({"writing", written, total, "rows"});
    });
    file.write(m + 1 < model.factors.size() ? "  ],\n" : "  ]\n");
  }
  file.write(" ],\n \"modes\": [\n");
  for (std::size_t m = 0; m < model.factors.size(); ++m) {
    write_mode(m < model.labels.size() ? model.labels[m] : ModeLabels(), file);
    file.write(m + 1 < model.factors.size() ? ",\n" : "\n");
  }
  file.write(" ]\n}\n");
  file.commit();
}

}  // namespace polyad::io
