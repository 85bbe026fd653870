// SPDX-License-Identifier: MIT
// CSV (RFC 4180; also semicolons and tabs): chosen columns become modes, their values become labels. A row is one
// nonzero; rows with the same labels are added up, so that an event log becomes a tensor of counts.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>

#include "io/dialect.hpp"
#include "io/shown.hpp"
#include "io/text_numbers.hpp"
#include "polyad/error.hpp"
#include "polyad/operations.hpp"

namespace polyad::io {

namespace {

constexpr std::size_t longest_record = std::size_t{1} << 24U;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Records of a CSV file, one at a time.
class CsvRecords {
 public:
  CsvRecords(InputStream& input, char delimiter) : input_(input), delimiter_(delimiter) {}

  /// The fields of the next record; false at the end. Blank lines are skipped, and blanks around a field that is not
  /// quoted. Valid until the next call.
  bool next(std::vector<std::string_view>& fields) {
    do {
      if (!next_line()) return false;
      first_line_ = line_number_;
    } while (line_.find_first_not_of(" \r\t") == std::string_view::npos);
    fields.clear();
    if (line_.find('"') == std::string_view::npos) {
      std::string_view rest = line_;
      if (rest.ends_with('\r')) rest.remove_suffix(1);
      while (true) {
        const std::size_t end = rest.find(delimiter_);
        fields.push_back(trimmed(rest.substr(0, end)));
        if (end == std::string_view::npos) return true;
        rest.remove_prefix(end + 1);
      }
    }
    quoted_record(fields);
    return true;
  }

  /// Line of the record's beginning.
  [[nodiscard]] std::uint64_t line() const noexcept { return first_line_; }

 private:
  bool next_line() {
    while (true) {
      const std::size_t end = std::string_view(buffer_).find('\n', at_);
      if (end != std::string_view::npos) {
        line_ = std::string_view(buffer_).substr(at_, end - at_);
        at_ = end + 1;
        ++line_number_;
        return true;
      }
      if (ended_) {
        if (at_ >= buffer_.size()) return false;
        line_ = std::string_view(buffer_).substr(at_);
        at_ = buffer_.size();
        ++line_number_;
        return true;
      }
      buffer_.erase(0, at_);
      at_ = 0;
      if (buffer_.size() > longest_record)
        throw file_error(input_.name(), line_number_ + 1,
                         fmt::format("found a line of more than {} bytes", longest_record));
      const std::size_t have = buffer_.size();
      buffer_.resize(have + (std::size_t{1} << 20U));
      const std::size_t got = input_.read(buffer_.data() + have, std::size_t{1} << 20U);
      buffer_.resize(have + got);
      ended_ = got < (std::size_t{1} << 20U);
    }
  }

  /// Fields with quotes: "" is a quote, delimiters and line ends inside quotes belong to the field.
  void quoted_record(std::vector<std::string_view>& fields) {
    text_.clear();
    std::vector<std::size_t> ends;
    std::vector<bool> had_quotes(1, false);
    std::string line(line_);
    bool quoted = false;
    while (true) {
      for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quoted) {
          if (c != '"') {
            text_ += c;
          } else if (i + 1 < line.size() && line[i + 1] == '"') {
            text_ += '"';
            ++i;
          } else {
            quoted = false;
          }
        } else if (c == '"') {
          quoted = true;
          had_quotes.back() = true;
        } else if (c == delimiter_) {
          ends.push_back(text_.size());
          had_quotes.push_back(false);
        } else if (c != '\r' || i + 1 < line.size()) {
          text_ += c;
        }
      }
      if (!quoted) break;
      if (text_.size() > longest_record || !next_line())
        throw file_error(input_.name(), first_line_, "a quote is opened and never closed");
      text_ += '\n';
      line = line_;
    }
    ends.push_back(text_.size());
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::string_view field = std::string_view(text_).substr(begin, ends[i] - begin);
      fields.push_back(had_quotes[i] ? field : trimmed(field));
      begin = ends[i];
    }
  }

  InputStream& input_;
  char delimiter_;
  std::string buffer_;
  std::size_t at_ = 0;
  bool ended_ = false;
  std::string_view line_;
  std::uint64_t line_number_ = 0;
  std::uint64_t first_line_ = 0;
  std::string text_;
};

bool parse_number(std::string_view text, double& value) {
  text = trimmed(text);
  const char* const begin = text.data();
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('-') && text.data() != begin) return false;
  const auto r = fast_float::from_chars(text.data(), text.data() + text.size(), value);
  return r.ec == std::errc() && r.ptr == text.data() + text.size() && std::isfinite(value) && !text.empty();
}

template <class Names>
std::string names(const Names& columns) {
  std::string text;
  std::size_t most = 20;
  for (const auto& name : columns) {
    if (most-- == 0) return text + ", ...";
    text += fmt::format("{}{}", text.empty() ? "" : ", ", shown(name));
  }
  return text;
}

/// The labels of one column and their numbers, in order of appearance.
class Dictionary {
 public:
  explicit Dictionary(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  Dictionary(Dictionary&& other) noexcept = default;
  Dictionary& operator=(Dictionary&&) = delete;
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;
  ~Dictionary() {
    if (budget_) budget_->give_back(counted_);
  }

  std::uint32_t number_of(std::string_view label) {
    if (const auto at = numbers_.find(label); at != numbers_.end()) return at->second;
    if (numbers_.size() == 0xFFFFFFFFU) throw Error(ErrorKind::limit, "a column has more than 2^32-1 different values");
    count(label.size());
    const auto number = static_cast<std::uint32_t>(numbers_.size());
    labels_.push_back(numbers_.emplace(std::string(label), number).first->first);
    return number;
  }

  /// Labels in their final order (numbers by size when all are numbers, else by their bytes), and for each number of
  /// appearance its place in that order.
  ModeLabels arrange(std::string name, std::vector<std::uint32_t>& place) const {
    std::vector<double> keys(labels_.size());
    bool numeric = true;
    for (std::size_t i = 0; i < labels_.size() && numeric; ++i) numeric = parse_number(labels_[i], keys[i]);
    std::vector<std::uint32_t> sorted(labels_.size());
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::ranges::sort(sorted, [&](std::uint32_t a, std::uint32_t b) {
      if (numeric && keys[a] != keys[b]) return keys[a] < keys[b];
      return labels_[a] < labels_[b];
    });
    ModeLabels out(std::move(name));
    place.resize(labels_.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      out.push_back(labels_[sorted[i]]);
      place[sorted[i]] = static_cast<std::uint32_t>(i);
    }
    return out;
  }

 private:
  /// Counts the memory of a label, in steps: the text twice (here and in the tensor), a node of the table, a view.
  void count(std::size_t bytes) {
    constexpr std::uint64_t step = std::uint64_t{1} << 20U;
    constexpr std::uint64_t overhead = 120;
    needed_ += 2 * bytes + overhead;
    if (!budget_ || needed_ <= counted_) return;
    budget_->take(step, "the labels of a column");
    counted_ += step;
  }

  std::shared_ptr<MemoryBudget> budget_;
  std::uint64_t needed_ = 0;
  std::uint64_t counted_ = 0;
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<std::string_view> labels_;  // the keys of numbers_, which do not move
};

bool detect(std::string_view, std::string_view extension) { return extension == ".csv" || extension == ".tsv"; }

char delimiter_of(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  char best = ',';
  for (const char c : {';', '\t'})
    if (std::ranges::count(line, c) > std::ranges::count(line, best)) best = c;
  return best;
}

/// Which column a number from 1, or else a name, means.
std::size_t column_of(const std::string& wanted, const std::vector<std::string>& header, const std::string& file) {
  const auto number = as_integer(wanted);
  if (number && *number >= 1 && *number <= header.size()) return static_cast<std::size_t>(*number - 1);
  for (std::size_t i = 0; i < header.size(); ++i)
    if (header[i] == wanted) return i;
  throw file_error(file, 1, fmt::format("there is no column '{}'; there are {}", shown(wanted), names(header)));
}

CooTensor read(InputStream& input, const ReadOptions& options, const Context& context, ReadReport& report) {
  const std::string_view head = input.peek(head_bytes);
  if (head.empty()) throw file_error(input.name(), 0, "is empty, expected a header and rows");
  CsvRecords records(input, delimiter_of(head));
  std::vector<std::string_view> fields;

  if (options.columns.empty()) {
    // Numbers from the first line on are a plain tensor with commas.
    const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    const bool plain = std::ranges::all_of(line, [](unsigned char c) {
      return std::isdigit(c) != 0 || std::string_view(",.+-eE \t").find(static_cast<char>(c)) != std::string_view::npos;
    });
    if (plain) {
      report.dialect = frostt_dialect.name;
      return frostt_dialect.read(input, options, context, report);
    }
    records.next(fields);
    throw file_error(
        input.name(), 1,
        fmt::format("a CSV file needs --columns to say which columns are modes; there are {}", names(fields)));
  }

  if (!options.dims.empty())
    throw file_error(input.name(), 0,
                     "the dims of a CSV file are the numbers of its labels; --dims cannot change them");
  if (!records.next(fields)) throw file_error(input.name(), 0, "holds no rows, expected a header and rows");
  std::vector<std::string> header;
  for (const std::string_view f : fields) header.emplace_back(f);
  if (header[0].starts_with("\xef\xbb\xbf")) header[0].erase(0, 3);  // a byte order mark
  std::vector<std::size_t> columns;
  for (const std::string& name : options.columns) columns.push_back(column_of(name, header, input.name()));
  if (columns.size() > max_order)
    throw usage_error(fmt::format("found {} columns for modes, expected at most {}", columns.size(), max_order));
  const bool has_value = !options.value_column.empty();
  const std::size_t value_column = has_value ? column_of(options.value_column, header, input.name()) : 0;
  // Columns given by number: the first row is data when its value is a number.
  const bool by_number =
      std::ranges::all_of(options.columns, [](const std::string& c) { return as_integer(c).has_value(); });
  double ignored = 0;
  const bool has_header = !(by_number && has_value && parse_number(header[value_column], ignored));
  bool waiting = !has_header;  // the first row, already taken
  if (by_number && has_header) report.notes.push_back("the first line was taken as the names of the columns");

  const std::size_t order = columns.size();
  std::vector<Dictionary> dictionaries;
  for (std::size_t m = 0; m < order; ++m) dictionaries.emplace_back(context.memory);
  std::vector<Buffer<std::uint32_t>> indices;
  for (std::size_t m = 0; m < order; ++m) indices.emplace_back(context, 0, "");
  Buffer<double> values(context, 0, "");
  std::uint64_t count = 0;
  while (waiting || records.next(fields)) {
    waiting = false;
    if (fields.size() != header.size())
      throw file_error(input.name(), records.line(),
                       fmt::format("found {} fields, expected {} as in the first line", fields.size(), header.size()));
    if (count == values.size()) {
      const std::size_t more = count + count / 2 + 1024;
      for (std::size_t m = 0; m < order; ++m) indices[m].resize(more, fmt::format("the index array of mode {}", m + 1));
      values.resize(more, "the array of values");
    }
    double value = 1;
    if (has_value && !parse_number(fields[value_column], value))
      throw file_error(input.name(), records.line(),
                       fmt::format("found '{}' in column '{}', expected a finite number", shown(fields[value_column]),
                                   header[value_column]));
    if (options.precision == Precision::f32 && std::abs(value) > std::numeric_limits<float>::max())
      throw file_error(
          input.name(), records.line(),
          fmt::format("found value {}, which f32 cannot hold (--precision f64 can)", shown(fields[value_column])));
    for (std::size_t m = 0; m < order; ++m) indices[m][count] = dictionaries[m].number_of(fields[columns[m]]);
    values[count++] = value;
    if (count % 65536 == 0) context.report({"reading", input.consumed(), input.file_bytes().value_or(0), "bytes"});
  }
  if (count == 0) throw file_error(input.name(), 0, "holds a header and no rows");

  CooTensor x;
  for (std::size_t m = 0; m < order; ++m) {
    std::vector<std::uint32_t> place;
    x.labels.push_back(dictionaries[m].arrange(has_header ? header[columns[m]] : "", place));
    indices[m].resize(count, "");
    for (std::uint32_t& i : indices[m]) i = place[i];
    x.dims.push_back(place.size());
    x.indices.emplace_back(std::move(indices[m]));
  }
  values.resize(count, "");
  x.values = std::move(values);
  if (const std::uint64_t merged = merge_duplicates(x, context); merged > 0)
    report.notes.push_back(fmt::format("{} rows repeat the labels of another and were added to it", merged));
  if (options.precision == Precision::f32) x = copy_as(x, Precision::f32, context);
  report.index_base = 0;
  return x;
}

void append_field(std::string& line, std::string_view text, char delimiter) {
  const bool plain =
      text.find_first_of("\"\r\n") == std::string_view::npos && text.find(delimiter) == std::string_view::npos;
  if (plain && trimmed(text) == text) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

void write(const CooTensor& x, OutputFile& output, const WriteOptions&, const Context& context) {
  const char delimiter = without_compression(output.name()).ends_with(".tsv") ? '\t' : ',';
  std::string line;
  for (int m = 0; m < x.order(); ++m) {
    append_field(line, x.mode_name(m), delimiter);
    line += delimiter;
  }
  output.write(line + "value\n");
  char number[64];
  for (std::uint64_t k = 0; k < x.nnz(); ++k) {
    line.clear();
    for (int m = 0; m < x.order(); ++m) {
      const auto i = static_cast<std::size_t>(m);
      const std::uint64_t index = x.index(m, k);
      if (i < x.labels.size() && !x.labels[i].empty()) {
        append_field(line, x.labels[i][index], delimiter);
      } else {
        line.append(number, format_index(number, index + 1));
      }
      line += delimiter;
    }
    char* end = x.precision() == Precision::f32 ? format_value(number, static_cast<float>(x.value(k)))
                                                : format_value(number, x.value(k));
    line.append(number, end);
    line += '\n';
    output.write(line);
    if (k % 65536 == 0) context.report({"writing", k, x.nnz(), "nonzeros"});
  }
}

}  // namespace

const Dialect csv_dialect = {
    .name = "csv",
    .summary = "text, one row per event; --columns names the modes, --value the values",
    .extensions = {".csv", ".tsv"},
    .is_text = true,
    .holds_labels = true,
    .detect = detect,
    .read = read,
    .write = write,
};

}  // namespace polyad::io
