// SPDX-License-Identifier: MIT
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "session.hpp"
#include "text.hpp"
#include "verb.hpp"

namespace polyad::cli {

namespace {

struct ScoreOptions {
  std::string a;
  std::string b;
};

std::vector<std::uint64_t> dims_of(const CpModel& model) {
  std::vector<std::uint64_t> dims;
  for (const Matrix& factor : model.factors) dims.push_back(factor.rows);
  return dims;
}

/// Error (usage) when the JSON would take the place of a model, or of a file in its directory.
void keep_model(const std::string& model, const std::string& json) {
  namespace fs = std::filesystem;
  if (json.empty() || json == "-" || model == "-") return;
  std::error_code ignored;
  const fs::path target(json);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string name = target.filename().string();
  const bool is_part = name == "model.ktensor" || name == "lambda.mat" || name == "summary.json" ||
                       (name.starts_with("mode") && (name.ends_with(".mat") || name.ends_with(".labels")));
  if (fs::equivalent(model, json, ignored) ||
      (is_part && fs::is_directory(model, ignored) && fs::equivalent(model, folder, ignored)))
    throw usage_error(fmt::format("--json would overwrite {}", fs::is_directory(model, ignored) ? json : model));
}

void print_table(const ScoreOptions& o, const CpModel& a, const CpModel& b, const ModelScore& result,
                 Session& session) {
  const std::vector<std::uint64_t> dims = dims_of(a);
  session.print("A {}, rank {}\nB {}, rank {}\norder {}, {}\n\n", o.a, a.rank(), o.b, b.rank(), a.order(),
                readable_dims(dims));
  std::vector<std::string> heads;
  std::vector<std::size_t> widths;
  for (int m = 0; m < a.order(); ++m) {
    const auto k = static_cast<std::size_t>(m);
    const bool has_name = k < a.labels.size() && !a.labels[k].name().empty();
    heads.push_back(cli::shown(mode_name(has_name ? a : b, m), 16));
    widths.push_back(std::max<std::size_t>(9, width_of(heads.back())));
  }
  std::string line =
      fmt::format("{:>14} {:>14} {:>9} {:>10}", "component of A", "component of B", "score", "congruence");
  for (std::size_t m = 0; m < heads.size(); ++m)
    line += fmt::format(" {:>{}}{}", "", widths[m] - width_of(heads[m]), heads[m]);
  session.print("{}\n", line);
  for (const ComponentMatch& match : result.matches) {
    line = fmt::format("{:>14} {:>14} {:>9.6f} {:>10.6f}", match.a + 1, match.b + 1, match.score, match.congruence);
    for (std::size_t m = 0; m < heads.size(); ++m) line += fmt::format(" {:>{}.6f}", match.cosines[m], widths[m]);
    session.print("{}\n", line);
  }
  if (a.rank() != b.rank())
    session.print("\nwithout a partner: {} of {}\n", std::max(a.rank(), b.rank()) - result.matches.size(),
                  a.rank() > b.rank() ? "A" : "B");
  session.print("\nfactor match score {:.6f}\n", result.score);
}

void run(const ScoreOptions& o, Session& session) {
  if (o.a == "-" && o.b == "-") throw usage_error("only one of the models can come from standard input");
  keep_model(o.a, session.options().json);
  keep_model(o.b, session.options().json);
  std::pair models = session.timed(
      "load", [&] { return std::pair(read_model(o.a, session.context()), read_model(o.b, session.context())); });
  const CpModel& a = models.first;
  std::uint64_t missing = 0;
  for (int m = 0; m < static_cast<int>(a.labels.size()); ++m)
    missing += align(models.second, m, a.labels[static_cast<std::size_t>(m)]);
  if (missing > 0) session.note(fmt::format("{} labels of A are not in B: their rows in B count as 0", missing));
  const CpModel& b = models.second;
  const std::vector<std::uint64_t> dims = dims_of(a);
  if (dims_of(b) != dims)
    throw file_error(o.b == "-" ? "standard input" : o.b, 0,
                     fmt::format("found a model of {}, expected {} as {} has", fmt::join(dims_of(b), " x "),
                                 fmt::join(dims, " x "), o.a == "-" ? "standard input" : o.a));
  const ModelScore result = session.timed("score", [&] { return score(a, b); });
  print_table(o, a, b, result, session);

  Json matches = Json::array();
  for (const ComponentMatch& match : result.matches)
    matches.push_back({{"a", match.a + 1},
                       {"b", match.b + 1},
                       {"score", match.score},
                       {"congruence", match.congruence},
                       {"cosines", match.cosines}});
  session.json() = {{"score", result.score}, {"matches", matches}, {"rank_a", a.rank()},
                    {"rank_b", b.rank()},    {"order", a.order()}, {"dims", dims}};
}

std::function<void(Session&)> declare_score(CLI::App& command) {
  auto o = std::make_shared<ScoreOptions>();
  command.add_option("A", o->a, "model: a directory, .ktensor, .npz or .json")->required();
  command.add_option("B", o->b, "model to compare it with, of the same dims; its rank may differ")->required();
  return [o](Session& session) { run(*o, session); };
}

}  // namespace

const Verb score_verb = {"score", "how well the components of two models agree (factor match score)",
                         "polyad score truth model --json -", declare_score};

}  // namespace polyad::cli
