// SPDX-License-Identifier: MIT
#include "kernel_options.hpp"
#include "session.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

struct ConvertOptions {
  InputOptions input;
  std::string output;
  WriteOptions write;
  int output_base = -1;
  bool sort = false;
  bool merge = false;
  std::string transform;
};

std::function<void(Session&)> declare_convert(CLI::App& command) {
  auto o = std::make_shared<ConvertOptions>();
  declare_input(command, o->input, "--from");
  command.add_option("OUT", o->output, "file to write (- for standard output); .gz and .zst compress")->required();
  command.add_option("--to", o->write.dialect, "dialect to write (default: by the ending of OUT)");
  command.add_option("--output-base", o->output_base, "0 or 1: base of the indices in text")->check(CLI::Range(0, 1));
  command.add_flag("--compact", o->write.compact, ".ptn: narrowest index width per mode; smaller, slower to open");
  command.add_flag("--sort", o->sort, "sort the nonzeros by mode 1, then 2, ...");
  command.add_flag("--merge", o->merge, "sum duplicates (sorts too)");
  command.add_option("--transform", o->transform, transform_help);
  return [o](Session& session) {
    if (o->output == "-") session.keep_output_free();
    if (o->output == "-" && session.options().json == "-")
      throw usage_error("the tensor and the JSON cannot both go to standard output");
    if (o->output_base >= 0) o->write.index_base = o->output_base;
    ReadResult read = load(o->input, session);
    CooTensor& x = read.tensor;
    if (o->merge) merge_duplicates(x, session.context());
    if (o->sort) ensure_sorted(x, session.context());
    if (!o->transform.empty()) apply_transform(o->transform, x, session.context());
    const auto written = session.timed("write", [&] { return write(x, o->output, o->write, session.context()); });
    for (const std::string& note : read.report.notes) session.note(note);
    session.print("{} ({}) -> {}: order {}, {}, {} nonzeros\n", o->input.file, read.report.dialect,
                  fmt::join(written, ", "), x.order(), readable_dims(x.dims), readable_count(x.nnz()));
    session.json() = {{"order", x.order()},          {"dims", x.dims},   {"nnz", x.nnz()},
                      {"from", read.report.dialect}, {"files", written}, {"notes", read.report.notes}};
  };
}

}  // namespace

const Verb convert_verb = {"convert", "from any file dialect to any other", "polyad convert ratings.tns.gz ratings.ptn",
                           declare_convert};

}  // namespace polyad::cli
