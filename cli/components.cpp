// SPDX-License-Identifier: MIT
#include "components.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace polyad::cli {

namespace {

constexpr std::size_t line_width = 100;
/// Entries below this share of the largest of their column are not shown.
constexpr double negligible = 0.01;

/// Bytes that begin a character of UTF-8: what a terminal shows one column for, near enough.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Without control characters, and not longer than a line can take.
std::string shown(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  constexpr std::size_t most = 40;
  if (width_of(text) <= most) return text;
  std::size_t end = 0;
  for (std::size_t characters = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U && ++characters > most - 3) break;
  return text.substr(0, end) + "...";
}

}  // namespace

std::string components_text(const CpModel& model, std::uint64_t top) {
  const double sum = std::accumulate(model.weights.begin(), model.weights.end(), 0.0);
  std::size_t name_width = 0;
  for (int m = 0; m < model.order(); ++m) name_width = std::max(name_width, width_of(mode_name(model, m)));
  name_width = std::min<std::size_t>(name_width, 20);
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
      const std::vector<TopEntry> entries = top_entries(model, r, m, top);
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
