// SPDX-License-Identifier: MIT
// The public read() and write(): find the dialect, hand over, attach or write the labels.
#include <fmt/format.h>

#include <memory>

#include "io/dialect.hpp"
#include "io/label_files.hpp"
#include "io/mapped_file.hpp"
#include "io/ptn.hpp"
#include "io/read_options.hpp"
#include "polyad/error.hpp"
#include "polyad/io.hpp"

namespace polyad {

namespace io {

const Dialect& choose_dialect(InputStream& input, const ReadOptions& options) {
  // Some editors begin a text with a byte order mark, which says nothing in UTF-8.
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (char skipped[3]; input.peek(mark.size()).starts_with(mark)) input.read(skipped, mark.size());
  if (!options.dialect.empty()) return dialect_by_name(options.dialect);
  if (!options.columns.empty()) return csv_dialect;
  return detect_dialect(input);
}

void attach_labels(CooTensor& x, const std::string& path, const ReadOptions& options, ReadReport& report) {
  if (!options.label_files.empty()) {
    attach_given_labels(x, options.label_files, report.notes);
  } else if (options.find_labels && x.labels.empty() && path != "-") {
    attach_found_labels(x, path, report.notes);
  }
}

}  // namespace io

ReadResult read_with_report(const std::string& path, const ReadOptions& options, const Context& context) {
  io::InputStream input(path, context.cancelled);
  ReadResult result;
  const io::Dialect& dialect = io::choose_dialect(input, options);
  result.report.dialect = dialect.name;
  result.report.compression = input.compression();
  result.report.file_bytes = input.file_bytes().value_or(0);
  result.tensor = dialect.read(input, options, context, result.report);
  io::attach_labels(result.tensor, path, options, result.report);
  return result;
}

CooTensor read(const std::string& path, const ReadOptions& options, const Context& context) {
  return read_with_report(path, options, context).tensor;
}

std::vector<std::string> write(const CooTensor& x, const std::string& path, const WriteOptions& options,
                               const Context& context) {
  const io::Dialect& dialect =
      options.dialect.empty() ? io::dialect_for_writing(path) : io::dialect_by_name(options.dialect);
  if (dialect.write == nullptr) throw usage_error(fmt::format("{}: '{}' can only be read", path, dialect.name));
  io::OutputFile output(path, path == "-" ? io::Compression::none : io::compression_of(path), context.cancelled);
  dialect.write(x, output, options, context);

  std::vector<Companion> companions = options.companions;
  if (options.write_labels && !dialect.holds_labels && path != "-")
    for (Companion& file : io::label_files_of(x, path)) companions.push_back(std::move(file));
  // All are written before the first gets its name: what can fail has failed by then.
  std::vector<std::unique_ptr<io::OutputFile>> others;
  for (const Companion& file : companions) {
    others.push_back(std::make_unique<io::OutputFile>(file.path, io::compression_of(file.path)));
    others.back()->write(file.text);
    others.back()->flush();
  }
  std::vector<std::string> written = {path};
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i]->commit();
    written.push_back(companions[i].path);
  }
  output.commit();
  return written;
}

void write_text(const std::string& text, const std::string& path) { io::write_file(path, text); }

std::uint64_t verify_file(const std::string& path, const Context& context) {
  if (path == "-") return 0;
  io::InputStream input(path, context.cancelled);
  if (&io::detect_dialect(input) != &io::ptn_dialect) return 0;
  return io::verify_ptn(path, context);
}

const char* mapped_file_at(const void* address) noexcept { return io::mapped_path_at(address); }

}  // namespace polyad
