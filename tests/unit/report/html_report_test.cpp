// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "polyad/error.hpp"
#include "polyad/report.hpp"
#include "report/columns.hpp"
#include "report/embedded.hpp"
#include "report/markup.hpp"
#include "report/mode_order.hpp"

namespace polyad {
namespace {

using Labels = std::vector<std::string>;

ModeLabels mode_labels(const std::string& name, const Labels& labels) {
  ModeLabels out(name);
  for (const std::string& label : labels) out.push_back(label);
  return out;
}

Labels numbered(const std::string& prefix, std::uint64_t count, std::uint64_t first = 1) {
  Labels out;
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(prefix + std::to_string(first + i));
  return out;
}

/// Entry (i, r) of every mode is different from all others, and sorted by no column.
CpModel model_of(const std::vector<std::uint64_t>& dims, std::uint64_t rank) {
  CpModel model;
  for (std::uint64_t r = 0; r < rank; ++r) model.weights.push_back(static_cast<double>(rank - r));
  for (const std::uint64_t dim : dims) {
    Matrix& a = model.factors.emplace_back(dim, rank);
    for (std::uint64_t k = 0; k < a.values.size(); ++k)
      a.values[k] = static_cast<double>((k * 2654435761U) % 1000003 + 1) / 1000003;
  }
  return model;
}

const std::vector<CpIteration> three = {{1, 0.25, 0.25, 0.5, 9}, {2, 0.5, 0.25, 1, 4}, {3, 0.625, 0.125, 1.5, 3}};

std::string page_of(const CpModel& model, const ReportOptions& options = {.title = "t"}) {
  return html_report(model, three, options);
}

/// What stands between two texts, from the first place on where the first stands.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t a = text.find(begin);
  if (a == std::string::npos) return "";
  const std::size_t b = text.find(end, a + begin.size());
  return text.substr(a + begin.size(), b - a - begin.size());
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const std::string data_begin = "<script type=\"application/json\" id=\"data\">";

nlohmann::json data_of(const std::string& page) {
  return nlohmann::json::parse(between(page, data_begin, "</script>"));
}

/// The page without its style, its data and its scripts.
std::string markup_of(const std::string& page) {
  return page.substr(0, page.find("<style")) + between(page, "</style>", data_begin);
}

report::ModeOrder order_of(const std::string& name, const Labels& labels) {
  CpModel model = model_of({labels.size()}, 1);
  model.labels = {mode_labels(name, labels)};
  return report::mode_order(model, 0);
}

// ---- text

TEST(ReportMarkup, CleanTextIsUtf8InOneLine) {
  EXPECT_EQ(report::clean_text("plain"), "plain");
  EXPECT_EQ(report::clean_text("\u00e9 \u20ac \U0001f600"), "\u00e9 \u20ac \U0001f600");
  EXPECT_EQ(report::clean_text(" a\t\n\r  b\x01\x1b\x7f "), "a b");
  EXPECT_EQ(report::clean_text("a\u2028b\u2029c\u0085d"), "a b c d");
  EXPECT_EQ(report::clean_text("a\u202eb\u2066c"), "a\ufffdb\ufffdc");
  EXPECT_EQ(report::clean_text("\xff"), "\ufffd");
  EXPECT_EQ(report::clean_text("a\xc3"), "a\ufffd");  // cut short
  EXPECT_EQ(report::clean_text("\xc3("
                               "b"),
            "\ufffd(b");  // the next byte is its own
  EXPECT_EQ(report::clean_text("\xc0\xbc"
                               "b"),
            "\ufffd\ufffdb");                                                // '<' in two bytes
  EXPECT_EQ(report::clean_text("\xe0\x80\xbc"), "\ufffd\ufffd\ufffd");       // and in three
  EXPECT_EQ(report::clean_text("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");       // a surrogate
  EXPECT_EQ(report::clean_text("\xf4\x90\x80\x80").substr(0, 3), "\ufffd");  // above U+10FFFF
  EXPECT_EQ(report::clean_text(std::string("a\0b", 3)), "a b");
  EXPECT_EQ(report::clean_text("abcdef", 6), "abcdef");
  EXPECT_EQ(report::clean_text("abcdefg", 6), "abcdef\u2026");
  EXPECT_EQ(report::clean_text("\u00e9\u00e9\u00e9", 2), "\u00e9\u00e9\u2026");
  EXPECT_EQ(report::clean_text("ab   ", 2), "ab");
  EXPECT_EQ(report::clean_text(""), "");
}

TEST(ReportMarkup, ShortenedKeepsWhatTellsApart) {
  EXPECT_EQ(report::shortened("United Arab Emirates", 11), "United Ara\u2026");
  EXPECT_EQ(report::shortened("https://a.org/long/1", 11), "https\u2026ong/1");
  EXPECT_EQ(report::shortened("\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9", 5), "\u00e9\u00e9\u2026\u00e9\u00e9");
  EXPECT_EQ(report::shortened("short", 5), "short");
}

TEST(ReportMarkup, HtmlAndJsonCannotBeLeft) {
  EXPECT_EQ(report::html("<b a=\"x\" b='y'>&amp;"), "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  std::string json;
  report::append_json(json, std::string_view("</script><!--\"\\&'"));
  EXPECT_EQ(json.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(json), "</script><!--\"\\&'");
}

TEST(ReportMarkup, Numbers) {
  const auto json = [](double value) {
    std::string out;
    report::append_json(out, value);
    return out;
  };
  EXPECT_EQ(json(0.123456789), "0.123457");
  EXPECT_EQ(json(-1234567), "-1.23457e+06");
  EXPECT_EQ(json(1e-300), "1e-300");
  EXPECT_EQ(json(-0.0), "0");
  EXPECT_EQ(json(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(json(-std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(report::shown(0.123456), "0.1235");
  EXPECT_EQ(report::shown(-12.5), "\u221212.5");
  EXPECT_EQ(report::shown(999.94), "999.9");
  EXPECT_EQ(report::shown(999.96), "1,000");
  EXPECT_EQ(report::shown(1234567.8), "1,234,568");
  EXPECT_EQ(report::shown(0), "0");
  EXPECT_EQ(report::grouped(999), "999");
  EXPECT_EQ(report::grouped(1000), "1,000");
  EXPECT_EQ(report::grouped(12762000), "12,762,000");
  EXPECT_EQ(report::duration(0.0042), "4.2 ms");
  EXPECT_EQ(report::duration(0.441), "0.44 s");
  EXPECT_EQ(report::duration(12.34), "12.3 s");
  EXPECT_EQ(report::duration(303), "5 min 03 s");
  EXPECT_EQ(report::duration(7500), "2 h 05 min");
}

// ---- which modes are lines

TEST(ReportModeOrder, Ordered) {
  const std::vector<std::pair<std::string, Labels>> ordered = {
      {"", {"1994", "1995", "1997"}},
      {"hours", numbered("", 24, 0)},
      {"x", {"-74.929", "-74.2", "-73.25"}},
      {"", {"2014-04-01", "2014-04-02", "2014-05-01"}},
      {"", {"2014/04/01", "2014/04/02", "2014/05/01"}},
      {"", {"2014-04", "2014-05", "2015-01"}},
      {"", {"2014-04-01T13:30", "2014-04-01T13:31", "2014-04-01T13:31:05Z"}},
      {"", {"2014-04-01 09:30", "2014-04-01 10:30", "2014-04-02 08:00"}},
      {"", {"2014-Q1", "2014-Q2", "2015-Q1"}},
      {"", {"2014-W51", "2014-W52", "2015-W01"}},
      {"", {"00:00", "00:30", "13:05:30.5"}},
      {"", {"9:00", "10:00", "11:00"}},
      {"", {"week 1", "week 2", "week 10"}},
      {"", {"Q1", "Q2", "Q3", "Q4"}},
      {"", {"Jan", "Feb", "Mar"}},
      {"", {"october", "november", "december", "january", "february"}},
      {"", {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}},
      {"", {"Mon", "Tues", "Wed.", "Thurs"}},
  };
  for (const auto& [name, labels] : ordered) {
    const report::ModeOrder order = order_of(name, labels);
    EXPECT_TRUE(order.ordered) << labels[0];
    EXPECT_TRUE(order.sequence.empty()) << labels[0];
  }
}

TEST(ReportModeOrder, NotOrdered) {
  const std::vector<std::pair<std::string, Labels>> others = {
      {"", {"Genesis", "Exodus", "Leviticus"}},
      {"", {"1994", "1995", "unknown"}},
      {"", {"1", "2"}},                     // two points make no line
      {"", {"4711", "12", "99000", "35"}},  // numbers that are names
      {"user_id", {"1", "2", "3"}},         // and say so
      {"customerId", {"1", "2", "3"}},
      {"zip", {"10001", "10002", "10003"}},
      {"", {"1", "01", "001"}},  // one number thrice
      {"", {"inf", "nan", "1"}},
      {"", {"2014-13-01", "2014-01-01", "2014-02-01"}},
      {"", {"Jan", "Feb", "Mon"}},
      {"", {"Jan", "January", "Feb"}},
      {"", {"ju", "fe", "ma"}},
      {"", {"user1", "user2", "user3"}},
      {"", {"", "", ""}},
      {"year", {"early", "middle", "late"}},
      {"", {}},
  };
  for (const auto& [name, labels] : others)
    EXPECT_FALSE(order_of(name, labels).ordered) << name << " " << (labels.empty() ? "" : labels[0]);
}

TEST(ReportModeOrder, NaturalOrderOfLabelsInAnother) {
  using Sequence = std::vector<std::uint64_t>;
  EXPECT_EQ(order_of("", {"Apr", "Feb", "Jan", "Mar"}).sequence, (Sequence{2, 1, 3, 0}));
  EXPECT_EQ(order_of("", {"Fri", "Mon", "Thu", "Tue", "Wed"}).sequence, (Sequence{1, 3, 4, 2, 0}));
  EXPECT_EQ(order_of("", {"2003", "2002", "2001"}).sequence, (Sequence{2, 1, 0}));
  EXPECT_EQ(order_of("", {"3", "1", "2", "5"}).sequence, (Sequence{1, 2, 0, 3}));  // hardly any left out
  EXPECT_EQ(order_of("year", {"1900", "2020", "1950"}).sequence, (Sequence{0, 2, 1}));
  EXPECT_EQ(order_of("", {"2014-05-01", "2013-05-01", "2014-04-30"}).sequence, (Sequence{1, 2, 0}));
  EXPECT_EQ(order_of("", {"week 10", "week 2", "week 1"}).sequence, (Sequence{2, 1, 0}));
}

TEST(ReportModeOrder, AxisOfNumbersWhereDistancesAreEven) {
  EXPECT_TRUE(order_of("", {"1994", "1995", "1997"}).numbers);
  EXPECT_FALSE(order_of("", {"1", "2", "3", "4", "1000000"}).numbers);
  EXPECT_TRUE(order_of("", {"1", "2", "3", "4", "1000000"}).ordered);
  EXPECT_FALSE(order_of("", {"2014-04-01", "2014-04-02", "2014-05-01"}).numbers);
}

TEST(ReportModeOrder, WithoutLabelsTheNameDecides) {
  CpModel model = model_of({30}, 2);
  EXPECT_FALSE(report::mode_order(model, 0).ordered);
  for (const char* name : {"time", "day", "Hours", "year", "pickup_month", "weekOfYear", "DATE", "chapter", "time.2"}) {
    model.labels = {ModeLabels(name)};
    EXPECT_TRUE(report::mode_order(model, 0).ordered) << name;
    EXPECT_TRUE(report::mode_order(model, 0).numbers) << name;
  }
  for (const char* name : {"word", "sometimes", "update", "mode 1", "dayton", ""}) {
    model.labels = {ModeLabels(name)};
    EXPECT_FALSE(report::mode_order(model, 0).ordered) << name;
  }
}

// ---- columns

TEST(ReportColumns, LinesOfShortColumnsAreWhole) {
  const CpModel model = model_of({5}, 2);
  const std::vector<std::uint64_t> sequence = {4, 3, 2, 0, 1};
  const std::vector<report::Line> lines = report::lines(model.factors[0], sequence, 5);
  ASSERT_EQ(lines.size(), 2U);
  for (std::uint64_t r = 0; r < 2; ++r)
    for (std::uint64_t p = 0; p < 5; ++p) {
      EXPECT_EQ(lines[r].places[p], p);
      EXPECT_EQ(lines[r].values[p], model.factors[0](sequence[p], r));
    }
}

TEST(ReportColumns, LinesOfLongColumnsLoseNoPeak) {
  Matrix a(100'003, 3);
  for (std::uint64_t i = 0; i < a.rows; ++i) a(i, 0) = std::sin(static_cast<double>(i) * 0.1);
  a(12'345, 1) = 5;
  a(99'999, 1) = -7;
  a(0, 2) = a(100'002, 2) = 1;
  for (const bool reversed : {false, true}) {
    std::vector<std::uint64_t> sequence;
    if (reversed)
      for (std::uint64_t i = a.rows; i-- > 0;) sequence.push_back(i);
    const std::vector<report::Line> lines = report::lines(a, sequence, 400);
    for (std::uint64_t r = 0; r < a.cols; ++r) {
      const report::Line& line = lines[r];
      ASSERT_EQ(line.places.size(), line.values.size());
      EXPECT_LE(line.places.size(), 402U);
      EXPECT_GE(line.places.size(), 200U);
      EXPECT_EQ(line.places.front(), 0U);
      EXPECT_EQ(line.places.back(), a.rows - 1);
      for (std::size_t k = 0; k < line.places.size(); ++k) {
        if (k > 0) {
          EXPECT_LT(line.places[k - 1], line.places[k]);
        }
        EXPECT_EQ(line.values[k], a(reversed ? sequence[line.places[k]] : line.places[k], r));
      }
    }
    EXPECT_EQ(std::ranges::max(lines[1].values), 5);
    EXPECT_EQ(std::ranges::min(lines[1].values), -7);
    EXPECT_EQ(lines[2].values.front(), 1);
    EXPECT_EQ(lines[2].values.back(), 1);
  }
}

TEST(ReportColumns, EmptyColumns) { EXPECT_TRUE(report::lines(Matrix(0, 2), {}, 400)[1].values.empty()); }

// ---- the page

TEST(HtmlReport, APanelPerComponentAndAChartPerMode) {
  CpModel model = model_of({20, 24, 3}, 5);
  model.labels = {mode_labels("book", numbered("b", 20)), mode_labels("hour", numbered("", 24, 0)), ModeLabels()};
  const std::string page = page_of(model, {.title = "The <title>", .facts = {{"rank", "5"}}, .notes = {"Look here."}});
  const std::string markup = markup_of(page);
  EXPECT_EQ(count_of(markup, "class=\"component\""), 5U);
  for (int k = 1; k <= 5; ++k) EXPECT_EQ(count_of(markup, fmt::format("id=\"component-{}\"", k)), 1U);
  EXPECT_EQ(count_of(markup, "<canvas"), 2U + 5 * 3);
  EXPECT_EQ(count_of(markup, "role=\"img\""), 2U + 5 * 3);
  EXPECT_EQ(count_of(markup, "aria-label=\"Line chart of hour"), 5U);
  EXPECT_EQ(count_of(markup, "aria-label=\"Bar chart of book"), 5U);
  EXPECT_NE(markup.find("<h1>The &lt;title&gt;</h1>"), std::string::npos);
  EXPECT_NE(markup.find("fit 0.6250 after 3 iterations in 1.50 s"), std::string::npos);
  EXPECT_NE(markup.find("20 \u00d7 24 \u00d7 3 (book \u00d7 hour \u00d7 mode 3)"), std::string::npos);
  EXPECT_LT(markup.find("Look here."), markup.find("Convergence"));
  EXPECT_NE(markup.find("<th scope=\"row\">rank</th><td>5</td>"), std::string::npos);
  EXPECT_NE(markup.find("33.3\u00a0% of all weights"), std::string::npos);  // 5 of 15

  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data["weights"], (std::vector<double>{5, 4, 3, 2, 1}));
  EXPECT_EQ(data["history"]["fit"], (std::vector<double>{0.25, 0.5, 0.625}));
  ASSERT_EQ(data["components"].size(), 5U);
  for (std::uint64_t r = 0; r < 5; ++r) {
    const nlohmann::json& columns = data["components"][r];
    ASSERT_EQ(columns.size(), 3U);
    EXPECT_EQ(columns[0]["i"].size(), 20U);
    const std::vector<TopEntry> top = top_entries(model, r, 0, 20);
    for (std::size_t k = 0; k < 20; ++k) {
      EXPECT_EQ(columns[0]["i"][k], top[k].index);
      EXPECT_NEAR(columns[0]["v"][k].get<double>(), top[k].value, 1e-6);
    }
    ASSERT_EQ(columns[1]["y"].size(), 24U);
    for (std::size_t k = 0; k < 24; ++k) EXPECT_NEAR(columns[1]["y"][k].get<double>(), model.factors[1](k, r), 1e-6);
  }
  EXPECT_EQ(data["modes"][0]["labels"][4], "b5");
  EXPECT_EQ(data["modes"][1]["line"], true);
  EXPECT_EQ(data["modes"][1]["numbers"], true);
  EXPECT_EQ(data["modes"][2]["line"], false);
  EXPECT_FALSE(data["modes"][2].contains("labels"));
  EXPECT_EQ(page, page_of(model, {.title = "The <title>", .facts = {{"rank", "5"}}, .notes = {"Look here."}}));
}

TEST(HtmlReport, LongOrderedModesKeepTheirLabels) {
  CpModel model = model_of({5000, 4}, 2);
  Labels days;
  for (int i = 0; i < 5000; ++i)
    days.push_back(fmt::format("{}-{:02}-{:02}", 2000 + i / 336, i / 28 % 12 + 1, i % 28 + 1));
  std::ranges::reverse(days);
  model.labels = {mode_labels("date", days), ModeLabels()};
  const nlohmann::json data = data_of(page_of(model));
  const nlohmann::json& mode = data["modes"][0];
  EXPECT_EQ(mode["line"], true);
  EXPECT_EQ(mode["whole"], false);
  const auto label = [&](std::uint64_t index) -> std::string {
    if (!mode.contains("ids")) return mode["labels"][index];
    const std::vector<std::uint64_t> ids = mode["ids"];
    const auto at = std::ranges::find(ids, index);
    return at == ids.end() ? "?" : mode["labels"][static_cast<std::size_t>(at - ids.begin())].get<std::string>();
  };
  for (const nlohmann::json& columns : data["components"]) {
    const nlohmann::json& column = columns[0];
    EXPECT_LE(column["y"].size(), 402U);
    for (std::size_t k = 0; k < column["y"].size(); ++k) {
      const std::uint64_t index = column["n"][k];
      EXPECT_EQ(index, 4999 - column["p"][k].get<std::uint64_t>());
      EXPECT_EQ(label(index), days[index]);
    }
    for (const nlohmann::json& index : column["i"]) EXPECT_EQ(label(index), days[index]);
  }
  for (const nlohmann::json& index : mode["tickIds"]) EXPECT_EQ(label(index), days[index]);
}

TEST(HtmlReport, HostileTextIsText) {
  const Labels hostile = {"</script><script>alert(1)</script>",
                          "<img src=x onerror=alert(1)>",
                          "\"><svg onload=alert(1)>",
                          "' onmouseover='alert(1)",
                          "<!--",
                          "]]>",
                          "\xff\xfe<b>",
                          "a\u2028b",
                          "\\u003cb\\u003e",
                          std::string("nul\0byte", 8),
                          "${alert(1)} {{alert(1)}}",
                          "javascript:alert(1)"};
  CpModel model = model_of({hostile.size(), 3}, 2);
  model.labels = {mode_labels(hostile[0], hostile), mode_labels(hostile[1], {"x", "y", "z"})};
  ReportOptions options{.title = hostile[2]};
  for (const std::string& text : hostile) {
    options.notes.push_back(text);
    options.facts.emplace_back(text, text);
  }
  const std::string page = page_of(model, options);
  EXPECT_EQ(count_of(page, "<script"), 3U);
  EXPECT_EQ(count_of(page, "</script"), 3U);
  const std::string markup = markup_of(page);
  for (const char* part : {"<img", "<svg onload", "<b>\ufffd", "onmouseover='", "\xff", "<script>"})
    EXPECT_EQ(markup.find(part), std::string::npos) << part;
  EXPECT_EQ(count_of(markup, "<!--"), 0U);
  // All that looks like a tag is one of ours.
  for (std::size_t at = markup.find('<'); at != std::string::npos; at = markup.find('<', at + 1)) {
    const std::string tag = markup.substr(at + 1, markup.find_first_of(" >\n", at) - at - 1);
    EXPECT_NE(
        std::string(" !DOCTYPE html head meta title link body a header h1 h2 h3 h4 p ul li dl div dt dd label input "
                    "main section canvas details summary nav ol svg rect/ rect span b figure noscript table tr th td "
                    "footer ")
            .find(" " + tag.substr(tag.starts_with('/') ? 1 : 0) + " "),
        std::string::npos)
        << tag;
  }
  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data["modes"][0]["name"], hostile[0]);
  for (std::size_t i = 0; i < hostile.size(); ++i)
    EXPECT_EQ(data["modes"][0]["labels"][i], report::clean_text(hostile[i])) << i;
}

TEST(HtmlReport, NeedsNoNetwork) {
  CpModel model = model_of({6, 4}, 2);
  model.labels = {mode_labels("w", numbered("http://example.org/", 6)), ModeLabels()};
  const std::string page = page_of(model);
  const std::string markup = markup_of(page);
  EXPECT_NE(markup.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(markup.find(" src="), std::string::npos);
  EXPECT_EQ(markup.find("url("), std::string::npos);
  for (std::size_t at = markup.find("href=\""); at != std::string::npos; at = markup.find("href=\"", at + 1)) {
    const std::string target = markup.substr(at + 6, markup.find('"', at + 6) - at - 6);
    EXPECT_TRUE(target.starts_with('#') || target == "data:,") << target;
  }
  EXPECT_EQ(report::page_css.find("url("), std::string_view::npos);
  EXPECT_EQ(report::page_css.find("@import"), std::string_view::npos);
}

TEST(HtmlReport, EmbeddedFilesFitIntoAPage) {
  for (const std::string_view text : {report::chart_js, report::page_css, report::page_js})
    for (const char* part : {"</script", "<!--", "</style"}) EXPECT_EQ(text.find(part), std::string_view::npos) << part;
  EXPECT_NE(report::chart_js.find("Chart.js v3"), std::string_view::npos);
  EXPECT_NE(report::chart_js.find("Released under the MIT License"), std::string_view::npos);
  for (const char* part : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("})
    EXPECT_EQ(report::page_js.find(part), std::string_view::npos) << part;
}

TEST(HtmlReport, SearchKnowsTheTop200OfManyComponentsInFewMegabytes) {
  constexpr std::uint64_t rank = 64;
  CpModel model = model_of({20'000, 20'000, 5'000}, rank);
  Labels names;
  for (std::uint64_t i = 0; i < 20'000; ++i) names.push_back(fmt::format("a-name-of-usual-length-{}", i));
  Labels addresses;
  for (std::uint64_t i = 0; i < 20'000; ++i) addresses.push_back(std::string(1000, 'x') + std::to_string(i));
  model.labels = {mode_labels("name", names), mode_labels("address", addresses), ModeLabels("time")};
  const std::string page = page_of(model);
  EXPECT_LT(page.size(), 5'000'000U);
  const nlohmann::json data = data_of(page);
  for (const nlohmann::json& columns : data["components"])
    for (std::size_t m = 0; m < 3; ++m) ASSERT_GE(columns[m]["i"].size(), 200U);
  const std::vector<std::uint64_t> ids = data["modes"][0]["ids"];
  ASSERT_EQ(ids.size(), data["modes"][0]["labels"].size());
  for (std::size_t k = 0; k < ids.size(); ++k) ASSERT_EQ(data["modes"][0]["labels"][k], names[ids[k]]);
  for (std::uint64_t r = 0; r < rank; r += 21)
    for (const TopEntry& entry : top_entries(model, r, 0, 200))
      EXPECT_TRUE(std::ranges::binary_search(ids, entry.index));
  // Long labels are cut, and still tell each other apart.
  const std::string address = data["modes"][1]["labels"][0];
  EXPECT_LT(address.size(), 210U);
  EXPECT_TRUE(address.ends_with(std::to_string(data["modes"][1]["ids"][0].get<int>())));
}

TEST(HtmlReport, HundredsOfComponents) {
  const std::string page = page_of(model_of({900, 900}, 1000));
  EXPECT_LT(page.size(), 8'000'000U);
  EXPECT_EQ(count_of(markup_of(page), "class=\"component\""), 1000U);
  const nlohmann::json data = data_of(page);
  for (const nlohmann::json& columns : data["components"]) ASSERT_EQ(columns[0]["i"].size(), 100U);
}

TEST(HtmlReport, AwkwardModels) {
  // Rank 1, one mode, one entry, no history, no title.
  CpModel tiny = model_of({1}, 1);
  const std::string page = html_report(tiny, {}, {});
  EXPECT_NE(page.find("<h1>CP decomposition</h1>"), std::string::npos);
  EXPECT_NE(page.find("There is no history"), std::string::npos);
  EXPECT_EQ(data_of(page)["components"].size(), 1U);
  EXPECT_EQ(markup_of(page).find("id=\"run\""), std::string::npos);

  // More components than indices, columns of zeros, a weight of zero, a mode without indices.
  CpModel model = model_of({2, 30, 0}, 4);
  model.labels = {ModeLabels(), ModeLabels("day"), ModeLabels()};
  model.weights[3] = 0;
  for (int m = 0; m < 2; ++m)
    for (std::uint64_t i = 0; i < model.factors[static_cast<std::size_t>(m)].rows; ++i)
      model.factors[static_cast<std::size_t>(m)](i, 3) = 0;
  const std::string markup = markup_of(page_of(model));
  EXPECT_EQ(count_of(markup, "All entries are zero."), 2U + 4);
  EXPECT_EQ(count_of(markup, "<canvas"), 2U + 3 * 2);
  EXPECT_NE(markup.find("0.0\u00a0% of all weights"), std::string::npos);

  // All weights zero; not numbers; negative entries.
  model = model_of({4, 30}, 2);
  model.labels = {ModeLabels("w"), ModeLabels("day")};
  model.weights = {0, 0};
  model.factors[0](0, 0) = std::numeric_limits<double>::quiet_NaN();
  model.factors[1](3, 0) = std::numeric_limits<double>::infinity();
  model.factors[0](1, 1) = -9;
  const nlohmann::json data = data_of(page_of(model));
  EXPECT_EQ(data["shares"], (std::vector<double>{0, 0}));
  EXPECT_TRUE(data["components"][0][1]["y"][3].is_null());
  EXPECT_EQ(data["components"][1][0]["v"][0], -9);
  EXPECT_NE(markup_of(page_of(model)).find("<b>w</b> \u22122"), std::string::npos);  // minus the label "2"
}

TEST(HtmlReport, TheGistLeavesOutWhatIsSmall) {
  CpModel model = model_of({4, 24}, 1);
  model.labels = {mode_labels("w", {"small", "large", "negative", "tiny"}), ModeLabels("hour")};
  model.factors[0].values = {0.079, 0.8, -0.5, 1e-9};
  model.factors[1](6, 0) = -3;
  EXPECT_EQ(between(page_of(model), "<p class=\"gist\">", "</p>"),
            "<span><b>w</b> large, \u2212negative</span> <span><b>hour</b> trough at 7</span> ");
}

TEST(HtmlReport, BlankAndMissingLabels) {
  CpModel model = model_of({4, 3}, 1);
  model.labels = {mode_labels("w", {"", " \t", "x", "y"}), mode_labels("v", {"a", "b"})};  // one label too few
  const nlohmann::json data = data_of(page_of(model));
  EXPECT_EQ(data["modes"][0]["labels"], (Labels{"1", "(blank)", "x", "y"}));
  EXPECT_EQ(data["modes"][1]["labels"], (Labels{"a", "b", "3"}));
}

TEST(HtmlReport, TopEntriesShown) {
  const CpModel model = model_of({300}, 1);
  const auto shown = [&](std::uint64_t top) {
    return count_of(between(page_of(model, {.title = "t", .top = top}), "<noscript>", "</noscript>"), "<li>");
  };
  EXPECT_EQ(shown(12), 12U);
  EXPECT_EQ(shown(0), 1U);
  EXPECT_EQ(shown(50), 50U);
  EXPECT_EQ(shown(1'000'000), 100U);
}

TEST(HtmlReport, LongHistoriesKeepTheirEnds) {
  std::vector<CpIteration> history;
  for (std::uint64_t i = 1; i <= 12'345; ++i) history.push_back({i, 1 - 1.0 / static_cast<double>(i), 0, 1, 0});
  const nlohmann::json data = data_of(html_report(model_of({3, 3}, 1), history, {.title = "t"}));
  EXPECT_LE(data["history"]["fit"].size(), 1001U);
  EXPECT_EQ(data["history"]["iteration"].front(), 1);
  EXPECT_EQ(data["history"]["iteration"].back(), 12'345);
}

TEST(HtmlReport, RefusesWhatDoesNotFitTogether) {
  CpModel model = model_of({3, 3}, 2);
  model.weights.push_back(1);
  EXPECT_THROW(static_cast<void>(page_of(model)), Error);
  EXPECT_THROW(static_cast<void>(page_of(CpModel{})), Error);
  EXPECT_THROW(static_cast<void>(page_of(model_of({3, 3}, 0))), Error);
}

}  // namespace
}  // namespace polyad
