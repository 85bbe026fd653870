// SPDX-License-Identifier: MIT
#include "svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace polyad::cli {

namespace {

/// Colours that colour-blind readers can tell apart (Okabe and Ito), each with the text that is readable on it.
struct Colour {
  std::string fill;
  std::string_view text;
};
constexpr std::array<std::uint32_t, 8> hues = {0x0072b2, 0xe69f00, 0x009e73, 0xcc79a7,
                                               0x56b4e9, 0xd55e00, 0xf0e442, 0x7f7f7f};

/// The colour of a series. Beyond these hues come lighter and darker ones, so that none comes twice.
Colour colour_of(std::size_t series) {
  const std::size_t shade = series / hues.size();
  // To white, to black, further to white, ...
  const double share = shade == 0 ? 0 : 1 - 1 / (1.0 + static_cast<double>((shade + 1) / 2));
  const double towards = shade % 2 == 1 ? 255 : 0;
  std::array<int, 3> rgb = {};
  for (std::size_t k = 0; k < 3; ++k) {
    const auto part = static_cast<double>(hues[series % hues.size()] >> (16 - 8 * k) & 255U);
    rgb[k] = static_cast<int>(part + share * (towards - part) + 0.5);
  }
  const double light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return {fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]), light > 140 ? "#1a1a1a" : "#ffffff"};
}
constexpr double letter = 7.2;  // width of a letter at 13 px, a little generous

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (static_cast<unsigned char>(c) < 32) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

double drawn_width(std::string_view text) { return letter * static_cast<double>(text.size()); }

std::string cut_to(std::string text, double width) {
  const auto most = static_cast<std::size_t>(std::max(4.0, width / letter));
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

std::string number(double v) { return fmt::format("{:.{}f}", v, v >= 100 ? 0 : v >= 10 ? 1 : v >= 1 ? 2 : 3); }

/// A step of 1, 2 or 5 times a power of ten that gives at most `most` ticks.
double tick_step(double top, int most) {
  const double raw = top / most;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power * (1 + 1e-9)) return factor * power;
  return 10 * power;
}

std::string text_at(double x, double y, std::string_view attributes, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes, escaped(text));
}

std::string rectangle(double x, double y, double width, double height, std::string_view fill) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                     height, fill);
}

/// The beginning of a picture: its size, its title and what stands below it.
std::string head_of(double width, double height, const std::string& title, const std::string& subtitle) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" font-size=\"13\" fill=\"#1a1a1a\">\n"
      "<title>{2}</title>\n",
      width, height, escaped(title));
  svg += rectangle(0, 0, width, height, "#ffffff");
  svg += text_at(24, 36, "font-size=\"20\" font-weight=\"bold\"", title);
  return svg + text_at(24, 60, "fill=\"#555555\"", cut_to(subtitle, width - 48));
}

/// Names of series with their colours from `left` on; `y` is the line they begin on and becomes that of the last.
std::string legend_of(const std::vector<std::string>& series, double left, double width, double& y) {
  std::string legend;
  double x = left;
  for (std::size_t s = 0; s < series.size(); ++s) {
    const double need = 18 + drawn_width(series[s]) + 16;
    if (x + need > width - 24 && x > left) {
      x = left;
      y += 22;
    }
    legend += rectangle(x, y - 11, 12, 12, colour_of(s).fill);
    legend += text_at(x + 18, y, "", series[s]);
    x += need;
  }
  return legend;
}

/// Lines at round numbers from 0 to `top` between two heights, and the numbers below.
std::string ticks_of(double top, double left, double scale, double upper, double lower) {
  std::string svg;
  if (top <= 0) return svg;
  const double step = tick_step(top, 8);
  for (int k = 0; step * k <= top * (1 + 1e-9); ++k) {
    const double at = left + step * k * scale;
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n", at,
                       upper, lower, k == 0 ? "#555555" : "#dddddd");
    svg += text_at(at, lower + 18, "text-anchor=\"middle\" fill=\"#555555\"", fmt::format("{:g}", step * k));
  }
  return svg;
}

}  // namespace

std::string svg_of(const BarChart& chart) {
  constexpr double width = 960;
  constexpr double bar_height = 24;
  constexpr double pitch = 34;
  double labels = 60;
  double top = 0;
  for (const BarChart::Bar& b : chart.bars) {
    labels = std::max(labels, drawn_width(b.label));
    top = std::max(top, b.total());
  }
  labels = std::min(labels, 320.0);
  const double left = 24 + labels + 12;
  const double right = width - 90;  // room for the totals
  const double scale = top > 0 ? (right - left) / top : 0;

  double y = 92;
  const std::string legend = legend_of(chart.series, left, width, y);
  const double first = y + 20;
  const double bottom = first + pitch * static_cast<double>(chart.bars.size());
  const double height = bottom + 62;

  std::string svg = head_of(width, height, chart.title, chart.subtitle);
  svg += legend;

  svg += ticks_of(top, left, scale, first - 4, bottom);
  svg += text_at((left + right) / 2, bottom + 44, "text-anchor=\"middle\" fill=\"#555555\"", chart.axis);

  for (std::size_t b = 0; b < chart.bars.size(); ++b) {
    const BarChart::Bar& bar = chart.bars[b];
    const double upper = first + pitch * static_cast<double>(b) + (pitch - bar_height) / 2;
    const double base = upper + bar_height / 2 + 5;  // of the text
    svg += text_at(left - 12, base, "text-anchor=\"end\"", cut_to(bar.label, labels));
    if (!bar.remark.empty()) {
      svg += text_at(left + 6, base, "fill=\"#555555\" font-style=\"italic\"", cut_to(bar.remark, width - left - 30));
      continue;
    }
    double at = left;
    for (std::size_t s = 0; s < bar.parts.size(); ++s) {
      const Colour colour = colour_of(s);
      const double wide = bar.parts[s] * scale;
      svg += rectangle(at, upper, wide, bar_height, colour.fill);
      const std::string value = number(bar.parts[s]);
      if (wide > drawn_width(value) + 6)
        svg += text_at(at + wide / 2, base,
                       fmt::format("text-anchor=\"middle\" font-size=\"12\" fill=\"{}\"", colour.text), value);
      at += wide;
    }
    svg += text_at(at + 8, base, "font-weight=\"bold\"", number(bar.total()));
  }
  return svg + "</svg>\n";
}

std::string svg_of(const TimelineChart& chart) {
  constexpr double width = 1200;
  constexpr double pitch = 34;
  constexpr double bar_height = 26;
  constexpr std::size_t most = 20000;  // boxes; more are narrower than a pixel and slow to draw
  std::vector<std::string> lanes;
  std::vector<std::string> labels;
  double last = 0;
  for (const TimelineSpan& s : chart.spans) {
    if (lanes.empty() || lanes.back() != s.lane) lanes.push_back(s.lane);
    if (std::find(labels.begin(), labels.end(), s.label) == labels.end()) labels.push_back(s.label);
    last = std::max(last, s.end);
  }
  // Of very many boxes those that begin first, in every lane alike.
  double until = last;
  if (chart.spans.size() > most) {
    std::vector<double> begins;
    for (const TimelineSpan& s : chart.spans) begins.push_back(s.begin);
    std::ranges::nth_element(begins, begins.begin() + static_cast<std::ptrdiff_t>(most));
    until = begins[most];
    last = until;
  }
  double names = 60;
  for (const std::string& l : lanes) names = std::max(names, drawn_width(l));
  const double left = 24 + std::min(names, 320.0) + 12;
  const double right = width - 24;
  const double top = last * 1e3;  // milliseconds
  const double scale = top > 0 ? (right - left) / top : 0;
  double y = 92;
  const std::string legend = legend_of(labels, left, width, y);
  const double first = y + 20;
  const double bottom = first + pitch * static_cast<double>(lanes.size());

  std::string svg = head_of(width, bottom + 62, chart.title, chart.subtitle);
  svg += legend;
  svg += ticks_of(top, left, scale, first - 4, bottom);
  svg += text_at((left + right) / 2, bottom + 44, "text-anchor=\"middle\" fill=\"#555555\"",
                 chart.spans.size() > most
                     ? fmt::format("milliseconds: the first {} of {} commands", most, chart.spans.size())
                     : "milliseconds");
  for (std::size_t l = 0; l < lanes.size(); ++l)
    svg += text_at(left - 12, first + pitch * (static_cast<double>(l) + 0.5) + 5, "text-anchor=\"end\"",
                   cut_to(lanes[l], 320));
  std::size_t lane = 0;
  for (const TimelineSpan& s : chart.spans) {
    while (lanes[lane] != s.lane) ++lane;
    if (chart.spans.size() > most && s.begin >= until) continue;
    const auto colour = static_cast<std::size_t>(std::find(labels.begin(), labels.end(), s.label) - labels.begin());
    const double upper = first + pitch * static_cast<double>(lane) + (pitch - bar_height) / 2;
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\">"
        "<title>{}: {:.3f} ms from {:.3f} ms on</title></rect>\n",
        left + s.begin * 1e3 * scale, upper, std::max(0.4, (s.end - s.begin) * 1e3 * scale), bar_height,
        colour_of(colour).fill, escaped(s.label), (s.end - s.begin) * 1e3, s.begin * 1e3);
  }
  return svg + "</svg>\n";
}

}  // namespace polyad::cli
