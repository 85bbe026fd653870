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
  std::string_view fill;
  std::string_view text;
};
constexpr std::array<Colour, 8> colours = {{{"#0072b2", "#ffffff"},
                                            {"#e69f00", "#1a1a1a"},
                                            {"#009e73", "#ffffff"},
                                            {"#cc79a7", "#1a1a1a"},
                                            {"#56b4e9", "#1a1a1a"},
                                            {"#d55e00", "#ffffff"},
                                            {"#f0e442", "#1a1a1a"},
                                            {"#7f7f7f", "#ffffff"}}};
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

double width_of(std::string_view text) { return letter * static_cast<double>(text.size()); }

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

/// The beginning of a picture: its size, a white ground, two lines of text.
std::string picture(double width, double height, std::string_view title, const std::string& subtitle) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" font-size=\"13\" fill=\"#1a1a1a\">\n"
      "<title>{2}</title>\n",
      width, height, escaped(title));
  svg += rectangle(0, 0, width, height, "#ffffff");
  svg += text_at(24, 36, "font-size=\"20\" font-weight=\"bold\"", title);
  svg += text_at(24, 60, "fill=\"#555555\"", cut_to(subtitle, width - 48));
  return svg;
}

/// Vertical lines at round numbers from 0 to `top`, and the numbers below.
std::string ticks(double left, double upper, double bottom, double top, double scale) {
  std::string svg;
  if (top <= 0) return svg;
  const double step = tick_step(top, 8);
  for (int k = 0; step * k <= top * (1 + 1e-9); ++k) {
    const double at = left + step * k * scale;
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\"/>\n", at,
                       upper, bottom, k == 0 ? "#555555" : "#dddddd");
    svg += text_at(at, bottom + 18, "text-anchor=\"middle\" fill=\"#555555\"", fmt::format("{:g}", step * k));
  }
  return svg;
}

}  // namespace

std::string svg_of(const LaneChart& chart) {
  constexpr double width = 1200;
  constexpr double lane_height = 26;
  constexpr double pitch = 36;
  std::vector<std::string> lanes;
  std::vector<std::string> labels;
  double top = 0;
  double names = 60;
  const auto place_of = [](std::vector<std::string>& in, const std::string& name) {
    const auto found = std::ranges::find(in, name);
    if (found != in.end()) return static_cast<std::size_t>(found - in.begin());
    in.push_back(name);
    return in.size() - 1;
  };
  for (const LaneChart::Span& s : chart.spans) {
    place_of(lanes, s.lane);
    place_of(labels, s.label);
    top = std::max(top, s.end);
    names = std::max(names, width_of(s.lane));
  }
  std::ranges::sort(lanes);
  const double left = 24 + std::min(names, 320.0) + 12;
  const double scale = top > 0 ? (width - 30 - left) / top : 0;
  const double first = 112;
  const double bottom = first + pitch * static_cast<double>(lanes.size());
  std::string svg = picture(width, bottom + 62, chart.title, chart.subtitle);
  double x = left;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    svg += rectangle(x, 81, 12, 12, colours[k % colours.size()].fill);
    svg += text_at(x + 18, 92, "", labels[k]);
    x += 34 + width_of(labels[k]);
  }
  svg += ticks(left, first - 4, bottom, 1e3 * top, scale / 1e3);
  svg += text_at((left + width - 30) / 2, bottom + 44, "text-anchor=\"middle\" fill=\"#555555\"", "milliseconds");
  for (std::size_t k = 0; k < lanes.size(); ++k)
    svg +=
        text_at(left - 12, first + pitch * static_cast<double>(k) + 22, "text-anchor=\"end\"", cut_to(lanes[k], names));
  for (const LaneChart::Span& s : chart.spans) {
    const double upper = first + pitch * static_cast<double>(place_of(lanes, s.lane)) + (pitch - lane_height) / 2;
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\"><title>{}: {:.4f} to {:.4f} "
        "ms</title></rect>\n",
        left + s.begin * scale, upper, std::max(0.5, (s.end - s.begin) * scale), lane_height,
        colours[place_of(labels, s.label) % colours.size()].fill, escaped(s.label), 1e3 * s.begin, 1e3 * s.end);
  }
  return svg + "</svg>\n";
}

std::string svg_of(const BarChart& chart) {
  constexpr double width = 960;
  constexpr double bar_height = 24;
  constexpr double pitch = 34;
  double labels = 60;
  double top = 0;
  for (const BarChart::Bar& b : chart.bars) {
    labels = std::max(labels, width_of(b.label));
    top = std::max(top, b.total());
  }
  labels = std::min(labels, 320.0);
  const double left = 24 + labels + 12;
  const double right = width - 90;  // room for the totals
  const double scale = top > 0 ? (right - left) / top : 0;

  std::string legend;
  double x = left;
  double y = 92;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const double need = 18 + width_of(chart.series[s]) + 16;
    if (x + need > width - 24 && x > left) {
      x = left;
      y += 22;
    }
    legend += rectangle(x, y - 11, 12, 12, colours[s % colours.size()].fill);
    legend += text_at(x + 18, y, "", chart.series[s]);
    x += need;
  }
  const double first = y + 20;
  const double bottom = first + pitch * static_cast<double>(chart.bars.size());
  const double height = bottom + 62;

  std::string svg = picture(width, height, chart.title, chart.subtitle);
  svg += legend;

  svg += ticks(left, first - 4, bottom, top, scale);
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
      const Colour& colour = colours[s % colours.size()];
      const double wide = bar.parts[s] * scale;
      svg += rectangle(at, upper, wide, bar_height, colour.fill);
      const std::string value = number(bar.parts[s]);
      if (wide > width_of(value) + 6)
        svg += text_at(at + wide / 2, base,
                       fmt::format("text-anchor=\"middle\" font-size=\"12\" fill=\"{}\"", colour.text), value);
      at += wide;
    }
    svg += text_at(at + 8, base, "font-weight=\"bold\"", number(bar.total()));
  }
  return svg + "</svg>\n";
}

}  // namespace polyad::cli
