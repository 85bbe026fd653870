// SPDX-License-Identifier: MIT
#include <charconv>
#include <string>
#include <vector>

#include "session.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

struct GenerateFlags {
  std::string output;
  std::string dims;
  std::string nnz;
  std::string like;
  std::string skew;
  std::string burst;
  std::string widths;
  std::string planted;
  std::string noise;
  std::string truth;
  WriteOptions write;
  int output_base = -1;
};

/// "0.5" or "0.5,1,0.7"; Error (usage) that names the flag.
std::vector<double> numbers_option(std::string_view flag, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& part : split(text)) {
    double v = 0;
    const auto [end, failure] = std::from_chars(part.data(), part.data() + part.size(), v);
    if (failure != std::errc() || end != part.data() + part.size())
      throw usage_error(fmt::format("{}: found '{}', expected numbers such as 0.5 or 0.5,1,0.7", flag, text));
    numbers.push_back(v);
  }
  return numbers;
}

double number_option(std::string_view flag, const std::string& text) {
  const std::vector<double> numbers = numbers_option(flag, text);
  if (numbers.size() != 1) throw usage_error(fmt::format("{}: found '{}', expected one number", flag, text));
  return numbers[0];
}

std::string preset_names() {
  std::string names;
  for (const Preset& p : presets()) names += fmt::format("{}{}", names.empty() ? "" : ", ", p.name);
  return names;
}

const Preset& preset_option(const std::string& name) {
  for (const Preset& p : presets())
    if (p.name == name) return p;
  throw usage_error(fmt::format("--like {}: there is no such tensor; expected one of {}", name, preset_names()));
}

GenerateOptions generate_options(const GenerateFlags& flags, const Session& session) {
  GenerateOptions o;
  if (!flags.like.empty()) {
    o = preset_option(flags.like).options;
    if (!flags.planted.empty()) {  // a planted model takes the shape only
      o.skew.clear();
      o.burst = 1;
      o.widths.clear();
    }
  } else if (!flags.dims.empty()) {
    o.dims = dims_option("--dims", flags.dims);
    if (flags.nnz.empty()) throw usage_error("--nnz is missing: how many nonzeros, such as 20000 or 1M");
  } else {
    throw usage_error(fmt::format("either --dims (such as 100x200x300) or --like ({}) is expected", preset_names()));
  }
  if (!flags.nnz.empty()) o.nnz = size_option("--nnz", flags.nnz);
  if (o.nnz == 0) throw usage_error("--nnz: found 0, expected at least 1");
  if (!flags.skew.empty()) o.skew = numbers_option("--skew", flags.skew);
  if (!flags.burst.empty()) o.burst = number_option("--burst", flags.burst);
  if (!flags.widths.empty()) o.widths = numbers_option("--widths", flags.widths);
  o.precision = session.precision();
  return o;
}

void run(GenerateFlags flags, Session& session) {
  const GenerateOptions options = generate_options(flags, session);
  const std::uint64_t rank = flags.planted.empty() ? 0 : size_option("--planted", flags.planted);
  const double noise = flags.noise.empty() ? 0 : number_option("--noise", flags.noise);
  if (flags.output == "-") session.keep_output_free();
  if (flags.output == "-" && session.options().json == "-")
    throw usage_error("the tensor and the JSON cannot both go to standard output");
  if (flags.output_base >= 0) flags.write.index_base = flags.output_base;

  Planted made;
  session.timed("generate", [&] {
    if (flags.planted.empty()) {
      made.tensor = generate(options, session.context());
    } else {
      made = generate_planted(options, rank, noise, session.context());
    }
  });
  if (!flags.truth.empty()) session.timed("truth", [&] { write(made.truth, flags.truth, session.context()); });
  const CooTensor& x = made.tensor;
  const auto files = session.timed("write", [&] { return write(x, flags.output, flags.write, session.context()); });

  session.print("{}: order {}, {}, {} nonzeros, seed {}\n", flags.output == "-" ? "standard output" : flags.output,
                x.order(), readable_dims(x.dims), readable_count(x.nnz()), session.options().seed);
  if (!flags.truth.empty()) session.print("{}: the planted model of rank {}\n", flags.truth, rank);
  session.json() = {{"order", x.order()},
                    {"dims", x.dims},
                    {"nnz", x.nnz()},
                    {"seed", session.options().seed},
                    {"precision", name_of(x.precision())},
                    {"files", files}};
  if (!flags.like.empty()) session.json()["like"] = flags.like;
  if (rank > 0) session.json()["planted"] = {{"rank", rank}, {"noise", noise}, {"weights", made.truth.weights}};
}

std::function<void(Session&)> declare_generate(CLI::App& command) {
  auto flags = std::make_shared<GenerateFlags>();
  command.add_option("OUT", flags->output, "file to write (- for standard output); .gz and .zst compress")->required();
  CLI::Option* dims = command.add_option("--dims", flags->dims, "lengths of the modes, e.g. 100x200x300");
  command.add_option("--like", flags->like, fmt::format("shape and clustering of {}", preset_names()))->excludes(dims);
  command.add_option("--nnz", flags->nnz, "nonzeros, e.g. 20000, 1M (default with --like: as many as the original)");
  command.add_option("--skew", flags->skew, "Zipf exponent, one for all modes or one each (0: uniform)");
  command.add_option("--burst", flags->burst, "mean nonzeros per cluster (1: no clusters)");
  command.add_option("--widths", flags->widths, "mean different indices per mode in a cluster, one or one each");
  CLI::Option* planted =
      command.add_option("--planted", flags->planted, "rank of a model to plant: all of it is stored");
  command.add_option("--noise", flags->noise, "noise on planted values relative to their root mean square")
      ->needs(planted);
  command.add_option("--truth", flags->truth, "directory for the planted model")->needs(planted);
  command.add_option("--to", flags->write.dialect, "dialect to write (default: by the ending of OUT)");
  command.add_option("--output-base", flags->output_base, "0 or 1: base of the indices in text")
      ->check(CLI::Range(0, 1));
  return [flags](Session& session) { run(*flags, session); };
}

}  // namespace

const Verb generate_verb = {"generate", "synthetic tensors: the same bytes for the same seed on every machine",
                            "polyad generate x.tns --dims 100x200x300 --nnz 1M --skew 1.1 --seed 7", declare_generate};

}  // namespace polyad::cli
