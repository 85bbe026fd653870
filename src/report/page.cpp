// SPDX-License-Identifier: MIT
#include "report/page.hpp"

#include <fmt/format.h>

#include "polyad/error.hpp"
#include "report/markup.hpp"

namespace polyad::report {

namespace {

// What a page holds, so that the largest model stays a few megabytes: about 20 bytes per number with its index.
constexpr std::uint64_t entries_of_a_page = 60'000;        // for the search, spread over components and modes ...
constexpr std::uint64_t fewest_entries = 200;              // ... but so many of each ...
constexpr std::uint64_t most_entries_of_a_page = 200'000;  // ... until there are hundreds of components
constexpr std::uint64_t points_of_a_line = 400;
constexpr std::uint64_t points_of_a_mode = 25'600;  // all lines of a mode together
constexpr std::uint64_t bytes_of_labels = 2'000'000;
constexpr std::uint64_t most_bars = 100;

void check_shape(const CpModel& model) {
  if (model.factors.empty() || model.weights.empty())
    throw usage_error("a model without factors or components cannot be shown");
  for (std::size_t m = 0; m < model.factors.size(); ++m)
    if (model.factors[m].cols != model.rank())
      throw usage_error(fmt::format("the factor of mode {} has {} columns and the model {} weights", m + 1,
                                    model.factors[m].cols, model.rank()));
}

ModeView view_of(const CpModel& model, int mode, std::uint64_t searched) {
  const auto m = static_cast<std::size_t>(mode);
  const Matrix& a = model.factors[m];
  ModeView view;
  view.name = clean_text(mode_name(model, mode), 80);
  view.dim = a.rows;
  view.labelled = m < model.labels.size() && !model.labels[m].empty();
  view.order = mode_order(model, mode);
  view.top = top_entries_of_mode(model, mode, searched);
  for (std::vector<TopEntry>& entries : view.top) {
    std::erase_if(entries, [](const TopEntry& entry) { return entry.value == 0; });
    for (const TopEntry& entry : entries) view.ids.push_back(entry.index);
  }
  if (view.order.ordered) {
    const std::uint64_t points = std::clamp<std::uint64_t>(points_of_a_mode / model.rank(), 64, points_of_a_line);
    view.whole = a.rows <= points;
    view.lines = lines(a, view.order.sequence, points);
    for (const Line& line : view.lines)
      for (const std::uint64_t place : line.places) view.ids.push_back(view.index_at(place));
    for (const std::uint64_t place : axis_places(a.rows)) view.ids.push_back(view.index_at(place));
  }
  std::ranges::sort(view.ids);
  view.ids.erase(std::unique(view.ids.begin(), view.ids.end()), view.ids.end());
  return view;
}

}  // namespace

std::vector<std::uint64_t> axis_places(std::uint64_t dim) {
  constexpr std::uint64_t most = 24;
  std::vector<std::uint64_t> places;
  for (std::uint64_t k = 0; k < std::min(most, dim); ++k)
    places.push_back(dim <= most ? k : k * (dim - 1) / (most - 1));
  return places;
}

Page page_of(const CpModel& model, std::span<const CpIteration> history, const ReportOptions& options) {
  check_shape(model);
  Page page{.model = model, .history = history, .options = options};
  page.bars = std::clamp<std::uint64_t>(options.top, 1, most_bars);
  const std::uint64_t charts = model.rank() * model.factors.size();
  page.searched = std::max(
      page.bars, std::min(std::max(entries_of_a_page / charts, fewest_entries), most_entries_of_a_page / charts));
  for (const double weight : model.weights) page.all_weights += std::abs(weight);
  std::uint64_t labels = 1;
  for (int mode = 0; mode < model.order(); ++mode) {
    page.modes.push_back(view_of(model, mode, page.searched));
    if (page.modes.back().labelled) labels += page.modes.back().ids.size();
  }
  const std::uint64_t limit = std::clamp<std::uint64_t>(bytes_of_labels / labels, 48, 200);
  for (int mode = 0; mode < model.order(); ++mode) {
    ModeView& view = page.modes[static_cast<std::size_t>(mode)];
    if (!view.labelled) continue;
    for (const std::uint64_t index : view.ids) {
      view.texts.push_back(shortened(clean_text(label_of(model, mode, index)), limit));
      if (view.texts.back().empty()) view.texts.back() = "(blank)";
    }
  }
  return page;
}

}  // namespace polyad::report
