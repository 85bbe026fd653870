// SPDX-License-Identifier: MIT
/// \file The page as text: what can be said without a script is HTML here, the charts are drawn by page.js.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "polyad/report.hpp"
#include "polyad/version.hpp"
#include "report/embedded.hpp"
#include "report/markup.hpp"
#include "report/page.hpp"

namespace polyad {

namespace {

using namespace report;

/// The first labels of a column with their values, to be read aloud.
std::string largest_of(const ModeView& view, std::uint64_t r, std::size_t count) {
  std::string text;
  for (std::size_t k = 0; k < std::min(count, view.top[r].size()); ++k) {
    if (k > 0) text += ", ";
    text += fmt::format("{} {}", shortened(view.label(view.top[r][k].index), 60), shown(view.top[r][k].value));
  }
  return text;
}

constexpr const char* times = " \u00d7 ";

std::string sizes_of(const Page& page) {
  std::string text;
  for (const ModeView& view : page.modes) text += (text.empty() ? "" : times) + grouped(view.dim);
  return text;
}

void append_head(std::string& out, const Page& page, std::string_view title, std::string_view nonce) {
  out += fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="polyad {1}">
<title>{2}: CP decomposition of rank {3}</title>
<link rel="icon" href="data:,">
<style nonce="{0}">
)",
                     nonce, version, html(title), page.model.rank());
  out += page_css;
  out += "</style>\n</head>\n";
}

void append_summary(std::string& out, const Page& page, std::string_view title) {
  const auto tile = [&](std::string_view what, std::string_view how_much) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", what, how_much);
  };
  const std::uint64_t rank = page.model.rank();
  out += fmt::format("<header>\n<h1>{}</h1>\n<p class=\"summary\">", html(title));
  out += fmt::format("A CP decomposition of rank {} of a tensor of {} (", rank, sizes_of(page));
  for (std::size_t m = 0; m < page.modes.size(); ++m) {
    if (m > 0) out += times;
    append_html(out, page.modes[m].name);
  }
  out += ')';
  if (!page.history.empty()) {
    const CpIteration& last = page.history.back();
    out += fmt::format(" with fit {:.4f} after {} iteration{} in {}", last.fit, grouped(last.iteration),
                       last.iteration == 1 ? "" : "s", duration(last.seconds));
  }
  out += ".</p>\n";
  if (!page.options.notes.empty()) {
    out += "<ul class=\"notes\" aria-label=\"Notes\">\n";
    for (const std::string& note : page.options.notes) out += fmt::format("<li>{}</li>\n", html(clean_text(note)));
    out += "</ul>\n";
  }
  out += "<dl class=\"tiles\">\n";
  if (!page.history.empty()) tile("Fit", fmt::format("{:.4f}", page.history.back().fit));
  tile("Components", grouped(rank));
  tile("Size", sizes_of(page));
  if (!page.history.empty()) tile("Iterations", grouped(page.history.back().iteration));
  out += "</dl>\n</header>\n";
}

void append_search(std::string& out, const Page& page) {
  out += fmt::format(R"(<div class="search" role="search">
<label for="search">Search</label>
<input id="search" type="search" autocomplete="off" spellcheck="false" placeholder="part of a label"
 aria-describedby="search-status" aria-controls="search-results">
<p id="search-status" role="status" data-searched="{}"></p>
<div id="search-results" hidden></div>
</div>
)",
                     page.searched);
}

void append_overview(std::string& out, const Page& page) {
  out += "<div class=\"overview\">\n<section class=\"card\">\n<h2>Convergence</h2>\n";
  if (page.history.empty()) {
    out += "<p class=\"about\">There is no history of iterations.</p>\n";
  } else {
    const CpIteration& first = page.history.front();
    const CpIteration& last = page.history.back();
    out += fmt::format(R"(<p class="about">The fit over the iterations; 1 is a perfect model.</p>
<div class="chart"><canvas id="convergence" role="img"
 aria-label="Line chart of the fit: {:.4f} after iteration {}, {:.4f} after iteration {}."></canvas></div>
)",
                       first.fit, first.iteration, last.fit, last.iteration);
  }
  const std::vector<double>& weights = page.model.weights;
  out += fmt::format(R"(</section>
<section class="card">
<h2>Weights</h2>
<p class="about">Weight of every component, and its share of the sum of all weights.</p>
<div class="chart"><canvas id="weights" role="img"
 aria-label="Bar chart of the weights of {0} components: {1} of component 1, {2} of component {0}."></canvas></div>
</section>
</div>
<details class="card">
<summary>How to read this page</summary>
<p>The tensor is described as a sum of components. A component has one column of numbers per mode; what is large in its
columns occurs together in the data. The weight of a component is its size; its share is the weight divided by the sum of
all weights. Components may overlap, so a share is not what a component explains by itself.</p>
<p>The fit is 1 &minus; &#8214;X &minus; M&#8214; / &#8214;X&#8214; for the tensor X and the model M: 1 when they are
equal, 0 when the model says nothing. Modes in an order (years, hours, dates, numbers) are lines over all their entries,
other modes are bars of their largest entries. Point at a chart to see labels and values.</p>
</details>
)",
                     weights.size(), shown(weights.front()), shown(weights.back()));
}

/// How much of a mode a chart shows.
std::string about_chart(const ModeView& view, std::uint64_t r, std::uint64_t bars) {
  const std::string dim = grouped(view.dim);
  if (view.order.ordered) return dim + " in order";
  if (bars == view.dim) return "all " + dim;
  return bars == view.top[r].size() ? fmt::format("{} of {}, the others are zero", bars, dim)
                                    : fmt::format("{} largest of {}", bars, dim);
}

void append_chart(std::string& out, const Page& page, std::uint64_t r, std::size_t m) {
  const ModeView& view = page.modes[m];
  const std::vector<TopEntry>& top = view.top[r];
  const std::uint64_t bars = std::min<std::uint64_t>(page.bars, top.size());
  const std::string about = about_chart(view, r, bars);
  out += fmt::format("<figure>\n<h4>{} <span class=\"about\">{}</span></h4>\n", html(view.name),
                     top.empty() ? grouped(view.dim) : about);
  if (top.empty()) {
    out += "<p class=\"about\">All entries are zero.</p>\n</figure>\n";
    return;
  }
  const std::string spoken =
      fmt::format("{} chart of {} in component {}, {}. Largest: {}.", view.order.ordered ? "Line" : "Bar", view.name,
                  r + 1, about, largest_of(view, r, 5));
  out += fmt::format(R"(<div class="chart"><canvas data-component="{}" data-mode="{}" role="img" aria-label="{}">)", r,
                     m, html(spoken));
  out += "</canvas></div>\n<noscript><ol>";
  for (std::uint64_t k = 0; k < bars; ++k)
    out += fmt::format(R"(<li>{} <span class="about">{}</span></li>)", html(view.label(top[k].index)),
                       shown(top[k].value));
  out += "</ol></noscript>\n</figure>\n";
}

/// What a component is about: of every mode the first labels, those of at least a tenth of the largest entry.
void append_gist(std::string& out, const Page& page, std::uint64_t r) {
  out += "<p class=\"gist\">";
  for (const ModeView& view : page.modes) {
    const std::vector<TopEntry>& top = view.top[r];
    if (top.empty()) continue;
    out += fmt::format("<span><b>{}</b> ", html(view.name));
    if (view.order.ordered) out += top[0].value < 0 ? "trough at " : "peak at ";
    const std::size_t most = std::min<std::size_t>(view.order.ordered ? 1 : 3, top.size());
    for (std::size_t k = 0; k < most && std::abs(top[k].value) >= 0.1 * std::abs(top[0].value); ++k) {
      if (k > 0) out += ", ";
      if (top[k].value < 0 && !view.order.ordered) out += "\u2212";
      append_html(out, shortened(view.label(top[k].index), 26));
    }
    out += "</span> ";
  }
  out += "</p>\n";
}

void append_components(std::string& out, const Page& page) {
  const std::uint64_t rank = page.model.rank();
  out += R"(<section id="components" aria-labelledby="components-title">
<h2 id="components-title">Components</h2>
<nav aria-label="Components"><ol>
)";
  for (std::uint64_t r = 1; r <= rank; ++r)
    out += fmt::format("<li><a href=\"#component-{0}\" aria-label=\"Component {0}\">{0}</a></li>\n", r);
  out += "</ol></nav>\n";
  for (std::uint64_t r = 0; r < rank; ++r) {
    out += fmt::format(
        R"(<section class="component" id="component-{0}" aria-labelledby="component-{0}-title" tabindex="-1">
<div class="component-head">
<h3 id="component-{0}-title">Component {0}</h3>
<p class="weight"><span>weight <b>{1}</b></span> <span class="share"><svg viewBox="0 0 100 6" preserveAspectRatio="none"
 aria-hidden="true"><rect class="rail" width="100" height="6"/><rect width="{2:.2f}" height="6"/></svg>
{3} of all weights</span></p>
</div>
)",
        r + 1, shown(page.model.weights[r]), 100 * page.share(r), percent(page.share(r)));
    append_gist(out, page, r);
    out += "<p class=\"found\" hidden></p>\n<div class=\"charts";
    out += page.modes.size() == 4 ? " four\">\n" : "\">\n";  // two and two, not three and one
    for (std::size_t m = 0; m < page.modes.size(); ++m) append_chart(out, page, r, m);
    out += "</div>\n</section>\n";
  }
  out += "</section>\n";
}

void append_run(std::string& out, const Page& page) {
  if (page.options.facts.empty()) return;
  out += R"(<section class="card" id="run" aria-labelledby="run-title">
<h2 id="run-title">The run</h2>
<table>
)";
  for (const auto& [what, how_much] : page.options.facts)
    out += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", html(clean_text(what)),
                       html(clean_text(how_much)));
  out += "</table>\n</section>\n";
}

}  // namespace

std::string html_report(const CpModel& model, std::span<const CpIteration> history, const ReportOptions& options) {
  const Page page = page_of(model, history, options);
  std::string title = clean_text(options.title, 200);
  if (title.empty()) title = "CP decomposition";
  const std::string data = data_of(page);
  // Scripts run by a nonce, and no text inside the page can know a number that depends on all of it.
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  const std::string nonce = fmt::format("{:016x}", hash);

  std::string out;
  append_head(out, page, title, nonce);
  out += "<body>\n<a class=\"skip\" href=\"#components\">Skip to the components</a>\n";
  append_summary(out, page, title);
  append_search(out, page);
  out += "<main>\n";
  append_overview(out, page);
  append_components(out, page);
  append_run(out, page);
  out += fmt::format(R"(</main>
<footer><p>Made by polyad {}. Charts by Chart.js. This page needs no network.</p></footer>
<script type="application/json" id="data">
{}
</script>
<!-- Chart.js, (c) Chart.js Contributors, under the MIT License; its own notice is the first comment of its script. -->
)",
                     version, data);
  for (const std::string_view script : {chart_js, page_js}) {
    out += fmt::format("<script nonce=\"{}\">\n", nonce);
    out += script;
    out += "</script>\n";
  }
  out += "</body>\n</html>\n";
  return out;
}

}  // namespace polyad
