// SPDX-License-Identifier: MIT
#include "components.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text.hpp"

namespace polyad::cli {

namespace {

constexpr std::size_t line_width = 100;
/// Entries below this share of the largest of their column are not shown.
constexpr double negligible = 0.01;
/// Longer labels are cut.
std::string shown(const std::string& label) { return cli::shown(label, 40, "..."); }

}  // namespace

std::string components_text(const CpModel& model, std::uint64_t top, const Context& context) {
  const double sum = std::accumulate(model.weights.begin(), model.weights.end(), 0.0);
  std::size_t name_width = 0;
  for (int m = 0; m < model.order(); ++m) name_width = std::max(name_width, width_of(mode_name(model, m)));
  name_width = std::min<std::size_t>(name_width, 20);
  std::vector<std::vector<std::vector<TopEntry>>> top_of_mode;
  for (int m = 0; m < model.order(); ++m) top_of_mode.push_back(top_entries_of_mode(model, m, top, context));
  std::string text;
  for (std::uint64_t r = 0; r < model.rank(); ++r) {
    text += fmt::format("\ncomponent {}: weight {:.4g}, {:.1f} % of all weights\n", r + 1, model.weights[r],
                        sum > 0 ? 100 * model.weights[r] / sum : 0);
    if (model.weights[r] == 0) continue;
    for (int m = 0; m < model.order(); ++m) {
      const std::string name = shown(mode_name(model, m));
      std::string line = fmt::format("  {}{:>{}}", name, "", name_width - std::min(name_width, width_of(name)) + 2);
      const std::size_t indent = width_of(line);
      bool first = true;
      const std::vector<TopEntry>& entries = top_of_mode[static_cast<std::size_t>(m)][r];
      for (const TopEntry& e : entries) {
        if (std::abs(e.value) < negligible * std::abs(entries[0].value) || e.value == 0) break;
        const std::string entry = fmt::format("{} {:.3f}", shown(label_of(model, m, e.index)), e.value);
        if (!first && width_of(line) + width_of(entry) + 2 > line_width) {
          text += line + ",\n";
          line = std::string(indent, ' ') + entry;
        } else {
          line += (first ? "" : ", ") + entry;
        }
        first = false;
      }
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace polyad::cli
