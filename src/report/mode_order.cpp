// SPDX-License-Identifier: MIT
#include "report/mode_order.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polyad::report {

namespace {

constexpr std::uint64_t fewest = 3;  // two points make no line

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// "day", "hour" and so on, also in the plural.
bool is_word_of(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::any_of(words, [&](std::string_view w) {
    return word == w || (word.size() == w.size() + 1 && word.back() == 's' && word.starts_with(w));
  });
}

constexpr std::array<std::string_view, 17> time_words = {
    "time",   "timestamp", "date",    "day",  "weekday", "hour",    "minute", "second", "year",
    "season", "month",     "quarter", "week", "decade",  "chapter", "period", "epoch"};
constexpr std::array<std::string_view, 12> name_words = {"id",   "code",    "zip",  "postcode", "user", "customer",
                                                         "item", "product", "node", "account",  "isbn", "person"};
constexpr std::array<std::string_view, 12> months = {"january",   "february", "march",    "april",
                                                     "may",       "june",     "july",     "august",
                                                     "september", "october",  "november", "december"};
constexpr std::array<std::string_view, 7> weekdays = {"monday", "tuesday",  "wednesday", "thursday",
                                                      "friday", "saturday", "sunday"};

/// Does one of the words of a mode's name ("pickup_hour", "pickupHour") stand in the list?
bool names(std::string_view name, std::span<const std::string_view> words) {
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool letter = i < name.size() && is_letter(name[i]);
    const bool begins = letter && name[i] != lower(name[i]) && i > 0 && name[i - 1] == lower(name[i - 1]);
    if (!letter || begins) {
      if (is_word_of(words, word)) return true;
      word.clear();
    }
    if (letter) word += lower(name[i]);
  }
  return false;
}

using Key = std::optional<double>;

Key number_key(std::string_view text) {
  double value = 0;
  const std::from_chars_result end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// "week 12", "Q3", "day-7"
Key counted_key(std::string_view text) {
  std::size_t letters = 0;
  while (letters < text.size() && is_letter(text[letters])) ++letters;
  const std::string word = lowered(text.substr(0, letters));
  if (!is_word_of(time_words, word) && word != "q" && word != "w" && word != "h") return std::nullopt;
  text.remove_prefix(letters);
  if (!text.empty() && (text[0] == ' ' || text[0] == '-' || text[0] == '_')) text.remove_prefix(1);
  return !text.empty() && is_digit(text[0]) ? number_key(text) : std::nullopt;
}

/// Takes exactly `digits` digits off the front, or nothing.
Key take_digits(std::string_view& text, std::size_t digits) {
  double value = 0;
  if (text.size() < digits) return std::nullopt;
  for (std::size_t i = 0; i < digits; ++i) {
    if (!is_digit(text[i])) return std::nullopt;
    value = 10 * value + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view one_of) {
  if (text.empty() || one_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

/// 13:30, 13:30:05.25; seconds since midnight.
Key clock_key(std::string_view text) {
  const Key hour = take_digits(text, text.size() > 1 && text[1] == ':' ? 1 : 2);
  if (!hour || *hour > 24 || !take(text, ":")) return std::nullopt;
  const Key minute = take_digits(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  double second = 0;
  if (take(text, ":")) {
    const Key rest = number_key(text);
    if (!rest || *rest < 0 || *rest >= 61) return std::nullopt;
    second = *rest;
    text = {};
  }
  return text.empty() ? Key(3600 * *hour + 60 * *minute + second) : std::nullopt;
}

/// 2014-04, 2014-04-01, 2014/04/01, 2014-04-01T13:30, 2014-Q2, 2014-W05
Key date_key(std::string_view text) {
  const Key year = take_digits(text, 4);
  if (!year) return std::nullopt;
  const bool separated = take(text, "-/.");
  if (take(text, "Qq")) {
    const Key quarter = take_digits(text, 1);
    return quarter && text.empty() ? Key(4 * *year + *quarter) : std::nullopt;
  }
  if (take(text, "Ww")) {
    const Key week = take_digits(text, 2);
    return week && text.empty() ? Key(60 * *year + *week) : std::nullopt;
  }
  const Key month = separated ? take_digits(text, 2) : std::nullopt;
  if (!month || *month < 1 || *month > 12) return std::nullopt;
  double day = 0;
  if (take(text, "-/.")) {
    const Key d = take_digits(text, 2);
    if (!d || *d < 1 || *d > 31) return std::nullopt;
    day = *d;
  }
  double seconds = 0;
  if (take(text, "T ")) {
    if (text.ends_with('Z')) text.remove_suffix(1);
    const Key clock = clock_key(text);
    if (!clock) return std::nullopt;
    seconds = *clock;
    text = {};
  }
  return text.empty() ? Key(((*year * 12 + *month) * 32 + day) * 86400 + seconds) : std::nullopt;
}

/// The place of a name in a list; three letters are enough ("Sept", "thu.").
Key name_key(std::string_view text, std::span<const std::string_view> list) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.size() < 3) return std::nullopt;
  const std::string word = lowered(text);
  const auto found = std::ranges::find_if(list, [&](std::string_view name) { return name.starts_with(word); });
  return found == list.end() ? Key() : Key(static_cast<double>(found - list.begin()));
}
Key month_key(std::string_view text) { return name_key(text, months); }
Key weekday_key(std::string_view text) { return name_key(text, weekdays); }

/// The keys of all labels when every label has one.
template <class KeyOf>
std::vector<double> keys_of(const ModeLabels& labels, const KeyOf& key_of) {
  std::vector<double> keys;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Key key = key_of(trimmed(labels[i]));
    if (!key) return {};
    keys.push_back(*key);
  }
  return keys;
}

std::vector<std::uint64_t> by_key(const std::vector<double>& keys) {
  std::vector<std::uint64_t> sequence(keys.size());
  std::iota(sequence.begin(), sequence.end(), std::uint64_t{0});
  std::ranges::stable_sort(sequence, {}, [&](std::uint64_t i) { return keys[i]; });
  return sequence;
}

/// Are distances so even that an axis of numbers does not squeeze most points into a corner?
bool fairly_even(const std::vector<double>& keys, const std::vector<std::uint64_t>& sequence) {
  std::vector<double> gaps;
  for (std::size_t p = 1; p < keys.size(); ++p) {
    const auto at = [&](std::size_t q) { return keys[sequence.empty() ? q : sequence[q]]; };
    gaps.push_back(at(p) - at(p - 1));
  }
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  const double mean = std::accumulate(gaps.begin(), gaps.end(), 0.0) / static_cast<double>(gaps.size());
  std::ranges::nth_element(gaps, middle);
  return mean <= 3 * *middle;
}

/// Labels with a size: ordered when they are sorted, or can be without guessing.
ModeOrder order_by_size(const std::vector<double>& keys, bool trusted) {
  ModeOrder order;
  if (std::ranges::adjacent_find(keys, std::greater_equal()) != keys.end()) {
    order.sequence = by_key(keys);
    const auto key = [&](std::uint64_t i) { return keys[i]; };
    if (std::ranges::adjacent_find(order.sequence, std::greater_equal(), key) != order.sequence.end()) return {};
    // Numbers in no order may be anything, unless hardly any is left out between them.
    const bool falling = std::ranges::adjacent_find(keys, std::less_equal()) == keys.end();
    const double range = keys[order.sequence.back()] - keys[order.sequence.front()];
    if (!trusted && !falling && range > 2 * static_cast<double>(keys.size())) return {};
  }
  order.ordered = true;
  return order;
}

/// Names of months or weekdays: as they stand when they go round at most once (a year may begin in October), else from
/// the first on.
ModeOrder order_by_name(const std::vector<double>& keys) {
  ModeOrder order;
  order.ordered = true;
  std::size_t falls = keys.back() >= keys.front() ? 1 : 0;
  for (std::size_t i = 1; i < keys.size(); ++i) falls += keys[i] <= keys[i - 1] ? 1 : 0;
  if (falls <= 1) return order;
  order.sequence = by_key(keys);
  const auto key = [&](std::uint64_t i) { return keys[i]; };
  if (std::ranges::adjacent_find(order.sequence, std::greater_equal(), key) != order.sequence.end()) return {};
  return order;
}

}  // namespace

ModeOrder mode_order(const CpModel& model, int mode) {
  const auto m = static_cast<std::size_t>(mode);
  if (model.factors[m].rows < fewest) return {};
  const std::string name = mode_name(model, mode);
  if (model.labels.size() <= m || model.labels[m].empty()) {
    ModeOrder order;
    order.ordered = order.numbers = names(name, time_words);
    return order;
  }
  const ModeLabels& labels = model.labels[m];
  if (labels.size() != model.factors[m].rows) return {};
  if (const std::vector<double> keys = keys_of(labels, number_key); !keys.empty()) {
    if (names(name, name_words)) return {};
    ModeOrder order = order_by_size(keys, names(name, time_words));
    order.numbers = order.ordered && fairly_even(keys, order.sequence);
    return order;
  }
  for (const auto key_of : {date_key, clock_key, counted_key})
    if (const std::vector<double> keys = keys_of(labels, key_of); !keys.empty()) return order_by_size(keys, true);
  for (const auto key_of : {month_key, weekday_key})
    if (const std::vector<double> keys = keys_of(labels, key_of); !keys.empty()) return order_by_name(keys);
  return {};
}

}  // namespace polyad::report
