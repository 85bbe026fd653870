// SPDX-License-Identifier: MIT
/// \file Names of a mode and of its indices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace polyad {

/// The name of a mode ("book") and the label of each of its indices ("Genesis", ...). Text in one pool.
class ModeLabels {
 public:
  ModeLabels() = default;
  explicit ModeLabels(std::string name) : name_(std::move(name)) {}

  /// Name of the mode; empty when unknown.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Gives the mode a name.
  void set_name(std::string name) { name_ = std::move(name); }

  /// Number of labels: 0 (none known) or the dim of the mode.
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }
  /// No labels are known.
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }
  /// Label of the 0-based index i.
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  /// Adds the label of the next index.
  void push_back(std::string_view label) {
    text_.append(label);
    ends_.push_back(text_.size());
  }
  /// Keeps the first n labels.
  void truncate(std::size_t n) {
    if (n >= ends_.size()) return;
    ends_.resize(n);
    text_.resize(n == 0 ? 0 : ends_.back());
  }
  /// All labels one after the other, and the end of each in it: how `.ptn` stores them.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] const std::vector<std::uint64_t>& ends() const noexcept { return ends_; }

  friend bool operator==(const ModeLabels&, const ModeLabels&) = default;

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint64_t> ends_;
};

}  // namespace polyad
