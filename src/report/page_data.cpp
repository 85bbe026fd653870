// SPDX-License-Identifier: MIT
/// \file The block of JSON that page.js draws from. Numbers are most of a page, so arrays of them lie side by side.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "report/markup.hpp"
#include "report/page.hpp"

namespace polyad::report {

namespace {

constexpr std::uint64_t points_of_the_history = 1'000;

template <class Range, class Put>
void append_list(std::string& out, std::string_view key, const Range& range, const Put& put) {
  fmt::format_to(std::back_inserter(out), "\"{}\":[", key);
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += ',';
    first = false;
    put(item);
  }
  out += ']';
}

void append_integers(std::string& out, std::string_view key, std::span<const std::uint64_t> values) {
  append_list(out, key, values, [&](std::uint64_t v) { fmt::format_to(std::back_inserter(out), "{}", v); });
}

void append_numbers(std::string& out, std::string_view key, std::span<const double> values) {
  append_list(out, key, values, [&](double v) { append_json(out, v); });
}

void append_mode(std::string& out, const ModeView& view) {
  out += "{\"name\":";
  append_json(out, view.name);
  fmt::format_to(std::back_inserter(out), ",\"dim\":{},\"line\":{},\"numbers\":{},\"whole\":{}", view.dim,
                 view.order.ordered, view.order.numbers, view.whole);
  if (view.order.ordered) {
    const std::vector<std::uint64_t> places = axis_places(view.dim);
    out += ',';
    append_integers(out, "ticks", places);
    if (!view.order.sequence.empty()) {
      std::vector<std::uint64_t> indices;
      for (const std::uint64_t place : places) indices.push_back(view.index_at(place));
      out += ',';
      append_integers(out, "tickIds", indices);
      if (view.whole) {
        out += ',';
        append_integers(out, "sequence", view.order.sequence);
      }
    }
  }
  if (view.labelled) {
    if (view.ids.size() != view.dim) {
      out += ',';
      append_integers(out, "ids", view.ids);
    }
    out += ',';
    append_list(out, "labels", view.texts, [&](const std::string& text) { append_json(out, text); });
  }
  out += '}';
}

/// Column r of a mode: `i`, `v` the largest entries (not needed beside a whole line), `p`, `y` the line, and `n` its
/// indices where they are not its places.
void append_column(std::string& out, const ModeView& view, std::uint64_t r) {
  out += '{';
  if (!view.whole) {
    append_list(out, "i", view.top[r],
                [&](const TopEntry& e) { fmt::format_to(std::back_inserter(out), "{}", e.index); });
    out += ',';
    append_list(out, "v", view.top[r], [&](const TopEntry& e) { append_json(out, e.value); });
  }
  if (view.order.ordered) {
    const Line& line = view.lines[r];
    if (!view.whole) {
      out += ',';
      append_integers(out, "p", line.places);
      out += ',';
      if (!view.order.sequence.empty()) {
        std::vector<std::uint64_t> indices;
        for (const std::uint64_t place : line.places) indices.push_back(view.index_at(place));
        append_integers(out, "n", indices);
        out += ',';
      }
    }
    append_numbers(out, "y", line.values);
  }
  out += '}';
}

void append_history(std::string& out, std::span<const CpIteration> history) {
  const std::uint64_t step = history.size() / points_of_the_history + 1;
  std::vector<std::uint64_t> iterations;
  std::vector<double> fits;
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i < history.size(); ++i) {
    if (i % step != 0 && i + 1 != history.size()) continue;
    iterations.push_back(history[i].iteration);
    fits.push_back(history[i].fit);
    seconds.push_back(history[i].seconds);
  }
  out += "\"history\":{";
  append_integers(out, "iteration", iterations);
  out += ',';
  append_numbers(out, "fit", fits);
  out += ',';
  append_numbers(out, "seconds", seconds);
  out += '}';
}

}  // namespace

std::string data_of(const Page& page) {
  std::string out;
  fmt::format_to(std::back_inserter(out), "{{\"top\":{},", page.bars);
  append_history(out, page.history);
  out += ",\n";
  append_numbers(out, "weights", page.model.weights);
  std::vector<double> shares;
  for (std::uint64_t r = 0; r < page.model.rank(); ++r) shares.push_back(page.share(r));
  out += ',';
  append_numbers(out, "shares", shares);
  out += ",\n";
  append_list(out, "modes", page.modes, [&](const ModeView& view) { append_mode(out, view); });
  out += ",\n\"components\":[";
  for (std::uint64_t r = 0; r < page.model.rank(); ++r) {
    out += r == 0 ? "\n[" : ",\n[";
    for (std::size_t m = 0; m < page.modes.size(); ++m) {
      if (m > 0) out += ',';
      append_column(out, page.modes[m], r);
    }
    out += ']';
  }
  out += "]}";
  return out;
}

}  // namespace polyad::report
