// SPDX-License-Identifier: MIT
/// \file Models from the files of others and our own: `model.ktensor` (Tensor Toolbox's export_data, GenTen), SPLATT's
/// `lambda.mat` and `modeK.mat`. Both are numbers between blanks; a row of a `.mat` is a line.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "io/input_stream.hpp"
#include "io/model_files.hpp"
#include "io/shown.hpp"
#include "io/text_numbers.hpp"
#include "polyad/error.hpp"
#include "polyad/io.hpp"
#include "polyad/types.hpp"

namespace polyad {

namespace io {

ModelMemory::~ModelMemory() {
  if (budget_) budget_->give_back(taken_);
}

void ModelMemory::take(std::uint64_t bytes) {
  if (!budget_) return;
  budget_->take(bytes, "the model");
  taken_ += bytes;
}

void ModelMemory::add(std::uint64_t numbers) { take(numbers * sizeof(double)); }

void ModelMemory::add_label(std::uint64_t bytes) { take(bytes + sizeof(std::uint64_t)); }

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ','; }

/// The words of a text, each with its line.
class Words {
 public:
  Words(const std::string& path, const Context& context)
      : input_(path, context.cancelled), memory_(context), context_(&context) {}

  /// What messages call the file.
  [[nodiscard]] const std::string& name() const { return input_.name(); }
  /// Line of the last word, from 1.
  [[nodiscard]] std::uint64_t line() const { return line_; }

  /// The next word, empty at the end of the text. Valid until the next call.
  std::string_view next() {
    while (true) {
      for (; at_ < end_ && is_blank(text_[at_]); ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
      std::size_t length = 0;
      while (at_ + length < end_ && !is_blank(text_[at_ + length])) ++length;
      if (at_ + length < end_ || !refill()) {  // refill() moves the word, and leaves zeros after the last one
        const std::string_view word(text_.data() + at_, length);
        at_ += length;
        return word;
      }
    }
  }

  /// The next word as a number of a header.
  std::uint64_t whole(std::string_view what) {
    const std::string_view word = expect(what);
    std::uint64_t n = 0;
    if (parse_index(word.data(), n) != word.data() + word.size()) throw unexpected(word, what);
    return n;
  }
  /// A word as a finite number.
  double number(std::string_view word, std::string_view what = "a number") {
    double value = 0;
    if (parse_value(word.data(), word.data() + word.size(), value) != word.data() + word.size())
      throw unexpected(word, what);
    if (++uncounted_ == 1U << 12U) {
      memory_.add(uncounted_);
      uncounted_ = 0;
    }
    return value;
  }
  /// The next word; Error at the end of the text.
  std::string_view expect(std::string_view what) {
    const std::string_view word = next();
    if (word.empty()) throw file_error(name(), line_, fmt::format("found the end of the file, expected {}", what));
    return word;
  }
  [[nodiscard]] Error unexpected(std::string_view word, std::string_view what) const {
    return file_error(name(), line_, fmt::format("found '{}', expected {}", shown(word), what));
  }
  /// Room for so many numbers of a matrix, but never more than the file can hold: two bytes each.
  [[nodiscard]] std::size_t believable(std::uint64_t numbers) const {
    return static_cast<std::size_t>(std::min(numbers, input_.total_bytes().value_or(0) / 2));
  }

 private:
  /// Keeps the word begun and reads on; false at the end of the text.
  bool refill() {
    constexpr std::size_t most = 1U << 20U;
    if (end_ - at_ >= most) throw file_error(name(), line_, "found a word of a megabyte, expected a number");
    text_.erase(0, at_);
    end_ -= at_;
    at_ = 0;
    text_.resize(end_ + most + text_padding);
    const std::size_t got = input_.read(text_.data() + end_, most);
    end_ += got;
    text_.resize(end_);
    text_.resize(end_ + text_padding);  // zeros
    context_->report({"reading", input_.consumed(), input_.file_bytes().value_or(0), "bytes"});
    return got > 0;
  }

  InputStream input_;
  ModelMemory memory_;
  const Context* context_;
  std::string text_ = std::string(text_padding, '\0');  // [at_, end_) is still to be read
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t uncounted_ = 0;  // numbers not yet given to the budget
};

CpModel read_ktensor(const std::string& path, const Context& context) {
  Words words(path, context);
  if (const std::string_view word = words.next(); word != "ktensor") throw words.unexpected(word, "'ktensor'");
  const std::uint64_t order = words.whole("the number of modes");
  if (order < 1 || order > static_cast<std::uint64_t>(max_order))
    throw file_error(words.name(), words.line(), fmt::format("found {} modes, expected 1 to {}", order, max_order));
  std::vector<std::uint64_t> dims;
  for (std::uint64_t m = 0; m < order; ++m) dims.push_back(words.whole("the length of a mode"));
  const std::uint64_t rank = words.whole("the number of components");
  if (rank == 0) throw file_error(words.name(), words.line(), "found 0 components, expected at least 1");
  CpModel model;
  for (std::uint64_t r = 0; r < rank; ++r) model.weights.push_back(words.number(words.expect("a weight"), "a weight"));
  for (std::uint64_t m = 0; m < order; ++m) {
    const std::string which = fmt::format("the factor of mode {}", m + 1);
    if (const std::string_view word = words.expect("'matrix'"); word != "matrix" && word != "facmatrix")
      throw words.unexpected(word, fmt::format("'matrix' and {}", which));
    const std::uint64_t axes = words.whole("2");
    const std::uint64_t rows = words.whole("a number of rows");
    const std::uint64_t cols = words.whole("a number of columns");
    if (axes != 2 || rows != dims[m] || cols != rank)
      throw file_error(
          words.name(), words.line(),
          fmt::format("found a matrix of {} x {}, expected {} x {} for {}", rows, cols, dims[m], rank, which));
    if (rows > std::numeric_limits<std::uint64_t>::max() / cols)
      throw file_error(words.name(), words.line(), fmt::format("found {} rows, which no file holds", rows));
    Matrix& a = model.factors.emplace_back();
    a.rows = rows;
    a.cols = cols;
    a.values.reserve(words.believable(rows * cols));
    for (std::uint64_t k = 0; k < rows * cols; ++k)
      a.values.push_back(words.number(words.expect("a number"), "a number"));
  }
  if (const std::string_view word = words.next(); !word.empty())
    throw words.unexpected(word, "nothing after the last matrix");
  return model;
}

/// All numbers of a file, whatever its lines.
std::vector<double> read_numbers(const std::string& path, const Context& context) {
  Words words(path, context);
  std::vector<double> all;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) all.push_back(words.number(word));
  if (all.empty()) throw file_error(words.name(), 0, "found no numbers, expected one per component");
  return all;
}

Matrix read_mat(const std::string& path, std::uint64_t rank, const Context& context) {
  Words words(path, context);
  Matrix a;
  a.cols = rank;
  std::uint64_t line = 0;  // of the row at hand
  std::uint64_t count = 0;
  const auto end_row = [&] {
    if (line != 0 && count != rank)
      throw file_error(words.name(), line, fmt::format("found {} numbers, expected {} as in lambda.mat", count, rank));
  };
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    if (words.line() != line) {
      end_row();
      line = words.line();
      count = 0;
      ++a.rows;
    }
    a.values.push_back(words.number(word));
    ++count;
  }
  end_row();
  if (a.rows == 0) throw file_error(words.name(), 0, "found no rows, expected one per index");
  return a;
}

CpModel read_mats(const std::string& path, const Context& context) {
  namespace fs = std::filesystem;
  const fs::path folder(path);
  std::error_code failure;
  const auto mat = [&](std::size_t m) { return folder / fmt::format("mode{}.mat", m + 1); };
  if (!fs::exists(mat(0), failure))
    throw file_error(path, 0, "found neither model.ktensor nor mode1.mat in this directory, expected a model");
  CpModel model;
  model.weights = read_numbers((folder / "lambda.mat").string(), context);
  std::size_t modes = static_cast<std::size_t>(max_order);
  while (!fs::exists(mat(modes - 1), failure)) --modes;
  for (std::size_t m = 0; m < modes; ++m)  // one that is missing in between is said by name
    model.factors.push_back(read_mat(mat(m).string(), model.rank(), context));
  return model;
}

}  // namespace

}  // namespace io

CpModel read_model(const std::string& path, const Context& context) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (!fs::is_directory(path, failure)) {
    if (io::is_npz(path)) return io::read_npz_model(path, context);
    if (io::is_json(path)) return io::read_json_model(path, context);
    return io::read_ktensor(path, context);
  }
  const fs::path ktensor = fs::path(path) / "model.ktensor";
  CpModel model =
      fs::exists(ktensor, failure) ? io::read_ktensor(ktensor.string(), context) : io::read_mats(path, context);
  io::read_labels(model, path, context);
  return model;
}

}  // namespace polyad
