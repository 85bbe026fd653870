// SPDX-License-Identifier: MIT
// Text goes through ordered_pipeline: one thread at a time takes the next block of whole lines (decompressing it), all
// parse blocks in parallel into block-local arrays that stay in the cache, and in order of blocks the arrays are
// appended to the tensor. So a sequential stream, a pipe and a compressed file are read alike, the nonzeros keep the
// order of the file, nothing is parsed twice, and no more than the tensor and a few blocks is held.
#include "io/text_reader.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <variant>

#include "backends/cpu/ordered_pipeline.hpp"
#include "io/line_parser.hpp"
#include "io/line_window.hpp"
#include "io/text_numbers.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18U;  // with its parsed arrays fits a 1 MB L2
constexpr std::size_t longest_line = std::size_t{1} << 20U;

/// A block of whole lines on its way from text to numbers.
struct Block {
  std::unique_ptr<char[]> text;
  std::size_t room = 0;
  std::size_t bytes = 0;
  bool ends_in_long_line = false;
  // results
  std::uint64_t lines = 0;
  std::uint64_t count = 0;
  bool wide = false;              // parsed into 64-bit indices
  std::vector<Problem> problems;  // line numbers relative to the block, from 0
  std::uint64_t problem_count = 0;
  std::vector<std::uint32_t> line_of;       // only when problems are collected
  std::optional<std::uint64_t> first_zero;  // first nonzero with an index 0, while the base is not known
  std::optional<std::uint64_t> first_edge;  // first nonzero with an index equal to its dim, likewise
  std::uint64_t at_file_byte = 0;
  std::uint64_t place = 0;  // of its first nonzero in the tensor
};

/// Cuts the stream into blocks of whole lines.
class LineSource {
 public:
  explicit LineSource(InputStream& input) : input_(input) {}

  bool next(Block& block) {
    if (done_) return false;
    reserve(block, carry_.size() + block_bytes);
    std::memcpy(block.text.get(), carry_.data(), carry_.size());
    std::size_t have = carry_.size();
    carry_.clear();
    block.ends_in_long_line = false;
    while (true) {
      const std::size_t wanted = block.room - text_padding - 1 - have;
      const std::size_t got = input_.read(block.text.get() + have, wanted);
      have += got;
      if (got < wanted) {  // the end
        done_ = true;
        if (have == 0) return false;
        if (block.text[have - 1] != '\n') block.text[have++] = '\n';
        break;
      }
      const void* newline = memrchr(block.text.get(), '\n', have);
      if (newline != nullptr) {
        const auto whole = static_cast<std::size_t>(static_cast<const char*>(newline) - block.text.get()) + 1;
        carry_.assign(block.text.get() + whole, have - whole);
        have = whole;
        break;
      }
      if (have >= longest_line) {
        block.ends_in_long_line = true;
        block.text[have++] = '\n';
        done_ = true;
        break;
      }
      grow(block, have);
    }
    block.bytes = have;
    std::memset(block.text.get() + have, 0, text_padding);
    block.at_file_byte = input_.consumed();
    return true;
  }

 private:
  static void reserve(Block& block, std::size_t bytes) {
    const std::size_t room = bytes + text_padding + 1;
    if (block.room < room) {
      block.text = std::make_unique_for_overwrite<char[]>(room);
      block.room = room;
    }
  }
  static void grow(Block& block, std::size_t have) {
    Block larger;
    reserve(larger, block.room * 2);
    std::memcpy(larger.text.get(), block.text.get(), have);
    std::swap(block.text, larger.text);
    std::swap(block.room, larger.room);
  }

  InputStream& input_;
  std::string carry_;
  bool done_ = false;
};

/// Everything about one read that does not change while it runs.
struct Job {
  TextLayout layout;
  bool collecting = false;
  std::uint64_t most_problems = 0;
  /// What is subtracted from an index as written: 1 unless the base is known to be 0.
  std::uint64_t offset = 1;
  std::uint64_t lowest = 0;                           // smallest index allowed
  std::array<std::uint64_t, max_order> highest = {};  // largest index allowed
};

/// Calls f(line number relative to the block) for every line that gives a nonzero, in order.
template <class Value, class F>
void for_each_data_line(const TextLayout& layout, const Block& block, const F& f) {
  const char* const end = block.text.get() + block.bytes;
  std::array<std::uint64_t, max_order> row;
  Value value = 1;
  std::uint64_t number = 0;
  for (const char* line = block.text.get(); line < end; ++number) {
    const char* line_end = static_cast<const char*>(std::memchr(line, '\n', static_cast<std::size_t>(end - line)));
    const std::string_view text(line, static_cast<std::size_t>(line_end - line));
    if (careful_line(layout, text, row.data(), value).kind == LineKind::nonzero) f(number);
    line = line_end + 1;
  }
}

/// The line, relative to the block, of its nonzero k.
template <class Value>
std::uint64_t line_of_nonzero(const TextLayout& layout, const Block& block, std::uint64_t k) {
  std::uint64_t at = 0;
  std::uint64_t line = 0;
  for_each_data_line<Value>(layout, block, [&](std::uint64_t number) {
    if (at++ == k) line = number;
  });
  return line;
}

/// Parses blocks into arrays of its own, which it uses again for the next block.
template <class Index, class Value>
class BlockParser {
 public:
  /// Parses a block. False: an index does not fit `Index`, nothing was decided.
  bool parse(const Job& job, Block& block) {
    prepare(job, block);
    const int order = job.layout.order;
    const char* const end = block.text.get() + block.bytes;
    std::array<Index*, max_order> out = {};
    for (std::size_t m = 0; m < indices_.size(); ++m) out[m] = indices_[m].get();
    WindowRun<Index, Value> run = {.line = block.text.get(),
                                   .end = end,
                                   .separator = job.layout.separator,
                                   .offset = static_cast<Index>(job.offset),
                                   .indices = out.data(),
                                   .values = values_.get(),
                                   .count = 0,
                                   .low = low.data(),
                                   .high = high.data()};
    std::array<std::uint64_t, max_order> row;
    Value value = 1;
    while (run.line < end) {
      if (job.layout.has_values) {
        const std::uint64_t before = run.count;
        parse_plain_lines(order, run);
        for (std::uint64_t k = before; k < run.count; ++k, ++block.lines)
          if (job.collecting) block.line_of.push_back(static_cast<std::uint32_t>(block.lines));
        if (run.line == end) break;
      }
      const char* next = fast_line(job.layout, run.line, end, row.data(), value);
      LineResult result = {LineKind::nonzero, {}};
      if (next == nullptr) {
        const auto* line_end =
            static_cast<const char*>(std::memchr(run.line, '\n', static_cast<std::size_t>(end - run.line)));
        next = line_end + 1;
        if (block.ends_in_long_line && next == end) {
          result = {LineKind::wrong,
                    fmt::format("found a line of more than {} bytes, expected a line end", longest_line)};
        } else {
          result =
              careful_line(job.layout, {run.line, static_cast<std::size_t>(line_end - run.line)}, row.data(), value);
        }
      }
      run.line = next;
      if (result.kind == LineKind::nonzero) {
        for (std::size_t m = 0; m < indices_.size(); ++m) {
          const std::uint64_t x = row[m];
          if constexpr (sizeof(Index) == 4) {
            if (x >= std::numeric_limits<Index>::max()) return false;
          }
          out[m][run.count] = static_cast<Index>(static_cast<Index>(x) - run.offset);
          low[m] = std::min(low[m], x);
          high[m] = std::max(high[m], x);
        }
        values_[run.count++] = value;
        if (job.collecting) block.line_of.push_back(static_cast<std::uint32_t>(block.lines));
      } else if (result.kind == LineKind::wrong) {
        note(job, block, block.lines, std::move(result.sentence));
        if (!job.collecting) break;
      }
      ++block.lines;
    }
    block.count = run.count;
    check_ranges(job, block);
    return true;
  }

  // Smallest and largest index of the block, as written.
  std::array<std::uint64_t, max_order> low = {};
  std::array<std::uint64_t, max_order> high = {};

  [[nodiscard]] const Index* indices(int mode) const { return indices_[static_cast<std::size_t>(mode)].get(); }
  [[nodiscard]] const Value* values() const { return values_.get(); }

 private:
  void prepare(const Job& job, Block& block) {
    block.lines = 0;
    block.count = 0;
    block.problems.clear();
    block.problem_count = 0;
    block.line_of.clear();
    block.first_zero.reset();
    block.first_edge.reset();
    block.wide = sizeof(Index) == 8;
    low.fill(std::numeric_limits<std::uint64_t>::max());
    high.fill(0);
    // The shortest line: a digit and a separator per number.
    const auto order = static_cast<std::size_t>(job.layout.order);
    const std::size_t most = block.bytes / (2 * (order + (job.layout.has_values ? 1 : 0))) + 1;
    if (capacity_ < most) {
      indices_.resize(order);
      for (auto& a : indices_) a = std::make_unique_for_overwrite<Index[]>(most);
      values_ = std::make_unique_for_overwrite<Value[]>(most);
      capacity_ = most;
    }
  }

  static void note(const Job& job, Block& block, std::uint64_t line, std::string sentence) {
    ++block.problem_count;
    if (!job.collecting || block.problems.size() < job.most_problems)
      block.problems.push_back({true, line, std::move(sentence)});
  }

  [[nodiscard]] std::uint64_t as_written(const Job& job, std::size_t mode, std::size_t k) const {
    return static_cast<Index>(indices_[mode][k] + static_cast<Index>(job.offset));  // a stored -1 is a written 0
  }

  /// Looks at single nonzeros only if the range of a mode asks for it.
  void check_ranges(const Job& job, Block& block) {
    if (block.count == 0) return;
    const TextLayout& layout = job.layout;
    bool out_of_range = false;
    for (std::size_t m = 0; m < indices_.size(); ++m) {
      out_of_range = out_of_range || low[m] < job.lowest || high[m] > job.highest[m];
      if (layout.base) continue;
      if (low[m] == 0) note_first(block.first_zero, first_with(job, m, block.count, 0));
      if (!layout.dims.empty() && high[m] == layout.dims[m])
        note_first(block.first_edge, first_with(job, m, block.count, layout.dims[m]));
    }
    if (out_of_range) drop_out_of_range(job, block);
  }

  [[nodiscard]] std::uint64_t first_with(const Job& job, std::size_t mode, std::uint64_t count,
                                         std::uint64_t index) const {
    std::uint64_t k = 0;
    while (k < count && as_written(job, mode, k) != index) ++k;
    return k;
  }

  static void note_first(std::optional<std::uint64_t>& first, std::uint64_t k) {
    first = std::min(first.value_or(k), k);
  }

  void drop_out_of_range(const Job& job, Block& block) {
    std::size_t kept = 0;
    std::size_t k = 0;
    for_each_data_line<Value>(job.layout, block, [&](std::uint64_t line_number) {
      if (k >= block.count) return;
      std::string wrong;
      for (std::size_t m = 0; m < indices_.size() && wrong.empty(); ++m) {
        const std::uint64_t x = as_written(job, m, k);
        if (x < job.lowest || x > job.highest[m])
          wrong = range_sentence(job.layout, static_cast<int>(m), x, job.lowest, job.highest[m]);
      }
      if (!wrong.empty()) {
        note(job, block, line_number, std::move(wrong));
      } else {
        for (auto& a : indices_) a[kept] = a[k];
        values_[kept] = values_[k];
        if (job.collecting) block.line_of[kept] = block.line_of[k];
        ++kept;
      }
      ++k;
    });
    block.count = kept;
    if (job.collecting) block.line_of.resize(kept);
    std::ranges::stable_sort(block.problems, {}, &Problem::line);
  }

  std::vector<std::unique_ptr<Index[]>> indices_;
  std::unique_ptr<Value[]> values_;
  std::size_t capacity_ = 0;
};

/// The growing tensor and what is known of the indices so far. Used by one thread at a time, in the order of blocks.
template <class Value>
class Collector {
 public:
  Collector(InputStream& input, const Job& job, std::uint64_t first_line, const Context& context,
            ProblemCollector* problems)
      : input_(input), job_(job), context_(context), problems_(problems), next_line_(first_line) {
    for (int m = 0; m < job.layout.order; ++m) indices_.emplace_back(Buffer<std::uint32_t>());
  }

  template <class Index>
  void append(Block& block, const BlockParser<Index, Value>& parsed) {
    if (problems_ == nullptr && !block.problems.empty()) {
      const Problem& p = block.problems.front();
      throw file_error(input_.name(), next_line_ + p.line, p.sentence);
    }
    if (problems_ != nullptr) {
      problems_->errors += block.problem_count;
      for (Problem& p : block.problems) {
        if (problems_->problems.size() >= problems_->most) break;
        p.line += next_line_;
        problems_->problems.push_back(std::move(p));
      }
      for (const std::uint32_t line : block.line_of) problems_->line_of.push_back(next_line_ + line);
    }
    const auto line_of = [&](std::uint64_t k) { return next_line_ + line_of_nonzero<Value>(job_.layout, block, k); };
    if (block.first_zero && !zero_line_) zero_line_ = line_of(*block.first_zero);
    if (block.first_edge && !edge_line_) edge_line_ = line_of(*block.first_edge);
    if (block.count > 0) {
      if (const auto promised = job_.layout.nnz; promised && count_ <= *promised && count_ + block.count > *promised)
        fail(line_of(*promised - count_),
             fmt::format("found more nonzeros than the {} that the header promised", *promised));
      if (sizeof(Index) == 8 || count_ + block.count > capacity_) {
        const std::unique_lock no_copies(arrays_);
        if (sizeof(Index) == 8) widen();
        grow(count_ + block.count, block);
      }
      block.place = count_;
      for (int m = 0; m < job_.layout.order; ++m) {
        const auto i = static_cast<std::size_t>(m);
        high_[i] = std::max(high_[i], parsed.high[i]);
      }
      count_ += block.count;
    }
    next_line_ += block.lines;
    context_.report({"reading", block.at_file_byte, input_.file_bytes().value_or(0), "bytes"});
  }

  /// Copies a block to the place that append() gave it; by many threads at once. Most of it is the kernel's work of
  /// giving fresh pages, which is asked for in one call per array.
  template <class Index>
  void copy(const Block& block, const BlockParser<Index, Value>& parsed) {
    const std::shared_lock arrays_stay(arrays_);
    const auto place = [&](auto* to, const auto* from) {
      to += block.place;
      populate(to, block.count * sizeof(*to));
      copy_elements(from, block.count, to);
    };
    for (int m = 0; m < job_.layout.order; ++m)
      std::visit([&](auto& to) { place(to.data(), parsed.indices(m)); }, indices_[static_cast<std::size_t>(m)]);
    place(values_.data(), parsed.values());
  }

  CooTensor finish(ReadReport& report) {
    const TextLayout& layout = job_.layout;
    if (count_ == 0 && !layout.nnz && (problems_ == nullptr || problems_->errors == 0) && layout.dims.empty())
      throw file_error(input_.name(), 0, "holds no nonzero, expected lines of indices and a value");
    if (layout.nnz && count_ < *layout.nnz && (problems_ == nullptr || problems_->errors == 0)) {
      fail(next_line_ - 1,
           fmt::format("the file ends after {} nonzeros, but its header promised {}", count_, *layout.nnz));
    }
    report.index_base = decide_base(report);
    CooTensor x;
    // Indices were stored as if the base were 1 (a written 0 became the largest index, and adding 1 brings it back).
    const std::uint64_t shift = job_.offset == 1 && report.index_base == 0 ? 1 : 0;
    for (int m = 0; m < layout.order; ++m) {
      const auto i = static_cast<std::size_t>(m);
      const std::uint64_t base = static_cast<std::uint64_t>(report.index_base);
      const std::uint64_t needed = count_ == 0 ? 1 : high_[i] - base + 1;
      x.dims.push_back(!layout.dims.empty() ? layout.dims[i] : needed);
    }
    if (width_for(x.dims) == IndexWidth::u64) {
      widen();
    } else {
      narrow();
    }
    for (IndexBuffer& buffer : indices_) {
      std::visit(
          [&](auto& b) {
            b.resize(count_, "an index array");
            if (shift == 1)
              cpu::parallel_ranges(context_.thread_count(), count_, [&](std::uint64_t begin, std::uint64_t end) {
                for (std::uint64_t k = begin; k < end; ++k) ++b[k];
              });
          },
          buffer);
    }
    values_.resize(count_, "the array of values");
    x.indices = std::move(indices_);
    x.values = std::move(values_);
    return x;
  }

 private:
  int decide_base(ReadReport& report) {
    const TextLayout& layout = job_.layout;
    if (layout.base) return *layout.base;
    if (zero_line_ && edge_line_)
      fail(*zero_line_,
           fmt::format("found an index 0, but line {} has an index equal to its dimension: the file can be "
                       "neither 0-based nor 1-based",
                       *edge_line_));
    if (zero_line_) return 0;
    if (layout.base_is_ambiguous && !edge_line_ && count_ > 0)
      report.notes.push_back(
          "no index is 0 and none equals its dimension: the indices were taken as 1-based "
          "(--index-base 0 if GenTen wrote the file)");
    return 1;
  }

  void fail(std::uint64_t line, std::string sentence) {
    if (problems_ == nullptr) throw file_error(input_.name(), line, sentence);
    ++problems_->errors;
    if (problems_->problems.size() < problems_->most) problems_->problems.push_back({true, line, std::move(sentence)});
  }

  template <class From, class To>
  static void copy_elements(const From* from, std::uint64_t count, To* to) {
    if constexpr (sizeof(From) == sizeof(To)) {
      std::copy_n(from, count, to);
    } else {
      std::transform(from, from + count, to, widened<To, From>);
    }
  }

  /// Asks for the pages of a range at once; where the kernel cannot (before 5.14), they come one by one as they are
  /// touched.
  static void populate(void* begin, std::size_t bytes) {
#if defined(MADV_POPULATE_WRITE)
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
    const auto last = reinterpret_cast<std::uintptr_t>(begin) + bytes;
    madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
#else
    static_cast<void>(begin);
    static_cast<void>(bytes);
#endif
  }

  /// A stored -1 (a written 0 while the base is taken as 1) stays "one before the first".
  template <class To, class From>
  static To widened(From index) {
    return index == std::numeric_limits<From>::max() ? std::numeric_limits<To>::max() : static_cast<To>(index);
  }

  void widen() {
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      if (indices_[i].index() == 1) continue;
      auto& narrow = std::get<0>(indices_[i]);
      Buffer<std::uint64_t> wide(context_, narrow.size(), fmt::format("the index array of mode {}", i + 1),
                                 Paging::plain);
      copy_elements(narrow.data(), count_, wide.data());
      indices_[i] = std::move(wide);
    }
  }

  /// A single index near 2^32 made the arrays wide, and the dims turned out to fit.
  void narrow() {
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      if (indices_[i].index() == 0) continue;
      const auto& wide = std::get<1>(indices_[i]);
      Buffer<std::uint32_t> slim(context_, wide.size(), fmt::format("the index array of mode {}", i + 1),
                                 Paging::plain);
      std::transform(wide.begin(), wide.end(), slim.begin(),
                     [](std::uint64_t x) { return static_cast<std::uint32_t>(x); });
      indices_[i] = std::move(slim);
    }
  }

  /// Grows in steps that follow the share of the file read so far, so that little is mapped in vain.
  void grow(std::uint64_t needed, const Block& block) {
    if (needed <= capacity_) return;
    std::uint64_t guess = needed + needed / 8;
    if (const auto total = input_.file_bytes(); total && block.at_file_byte > 0) {
      const double rate = static_cast<double>(needed) / static_cast<double>(block.at_file_byte);
      guess = std::clamp(static_cast<std::uint64_t>(rate * static_cast<double>(*total) * 1.02), needed, 64 * needed);
    }
    capacity_ = std::max(guess, needed);
    if (const std::uint64_t limit = context_.memory ? context_.memory->limit() : 0; limit != 0) {
      // Near the limit only what is needed is asked for, so that a guess never refuses what would fit.
      const std::uint64_t each =
          static_cast<std::uint64_t>(job_.layout.order) * (indices_[0].index() == 1 ? 8 : 4) + sizeof(Value);
      if (context_.memory->used() + (capacity_ - count_) * each > limit) capacity_ = needed + needed / 64;
    }
    for (int m = 0; m < job_.layout.order; ++m)
      std::visit(
          [&](auto& b) {
            if (b.empty()) b = std::remove_reference_t<decltype(b)>(context_, 0, "", Paging::plain);
            b.resize(capacity_, fmt::format("the index array of mode {}", m + 1));
          },
          indices_[static_cast<std::size_t>(m)]);
    if (values_.empty()) values_ = Buffer<Value>(context_, 0, "", Paging::plain);
    values_.resize(capacity_, "the array of values");
  }

  InputStream& input_;
  const Job& job_;
  const Context& context_;
  ProblemCollector* problems_;
  std::uint64_t next_line_;
  std::uint64_t count_ = 0;
  std::uint64_t capacity_ = 0;
  std::shared_mutex arrays_;  // shared: copying into them; alone: moving them
  std::vector<IndexBuffer> indices_;
  Buffer<Value> values_;
  std::array<std::uint64_t, max_order> high_ = {};
  std::optional<std::uint64_t> zero_line_;
  std::optional<std::uint64_t> edge_line_;
};

template <class Value>
CooTensor run(InputStream& input, const Job& job, std::uint64_t first_line, const Context& context, ReadReport& report,
              ProblemCollector* problems) {
  struct Item {
    Block block;
    BlockParser<std::uint32_t, Value> narrow;
    std::unique_ptr<BlockParser<std::uint64_t, Value>> wide;
  };
  LineSource source(input);
  Collector<Value> collector(input, job, first_line, context, problems);
  // A file of one block is not worth waking a team for.
  const bool small = input.total_bytes().value_or(block_bytes) < block_bytes;
  cpu::ordered_pipeline<Item>(
      small ? 1 : context.thread_count(), [&](Item& item) { return source.next(item.block); },
      [&](Item& item) {
        if (item.wide == nullptr && item.narrow.parse(job, item.block)) return;
        // An index that needs 64 bits: from here on this thread parses into wide arrays.
        if (item.wide == nullptr) item.wide = std::make_unique<BlockParser<std::uint64_t, Value>>();
        item.wide->parse(job, item.block);
      },
      [&](Item& item) {
        if (item.block.wide) {
          collector.append(item.block, *item.wide);
        } else {
          collector.append(item.block, item.narrow);
        }
      },
      [&](Item& item) {
        if (item.block.wide) {
          collector.copy(item.block, *item.wide);
        } else {
          collector.copy(item.block, item.narrow);
        }
      });
  return collector.finish(report);
}

}  // namespace

CooTensor read_text(InputStream& input, const TextHeader& header, const ReadOptions& options, const Context& context,
                    ReadReport& report, ProblemCollector* collector) {
  Job job;
  job.layout = header.layout;
  TextLayout& layout = job.layout;
  if (layout.order < 1 || layout.order > max_order)
    throw file_error(input.name(), header.first_line,
                     fmt::format("found {} modes, expected 1 to {}", layout.order, max_order));
  if (options.index_base) {
    if (*options.index_base != 0 && *options.index_base != 1)
      throw usage_error(fmt::format("found index base {}, expected 0 or 1", *options.index_base));
    layout.base = options.index_base;
  }
  if (std::ranges::find(options.dims, std::uint64_t{0}) != options.dims.end())
    throw usage_error("found a dim of 0, expected 1 or more");
  if (!options.dims.empty()) {
    if (options.dims.size() != static_cast<std::size_t>(layout.order))
      throw file_error(
          input.name(), header.first_line,
          fmt::format("the tensor has {} modes, but {} dims were given", layout.order, options.dims.size()));
    layout.dims = options.dims;
  }
  if (layout.symmetry != Symmetry::none && layout.dims[0] != layout.dims[1])
    throw file_error(
        input.name(), header.first_line,
        fmt::format("a symmetric matrix is square, but this one is {} x {}", layout.dims[0], layout.dims[1]));
  job.collecting = collector != nullptr;
  job.most_problems = collector != nullptr ? collector->most : 1;
  job.offset = layout.base == 0 ? 0 : 1;
  job.lowest = layout.base.value_or(0) == 1 ? 1 : 0;
  for (int m = 0; m < layout.order; ++m) {
    const auto i = static_cast<std::size_t>(m);
    job.highest[i] = std::numeric_limits<std::uint64_t>::max() - 1;
    if (!layout.dims.empty()) job.highest[i] = layout.base == 0 ? layout.dims[i] - 1 : layout.dims[i];
  }

  std::string skipped(header.end, '\0');
  input.read_exactly(skipped.data(), skipped.size(), "its header");
  CooTensor x = options.precision == Precision::f32
                    ? run<float>(input, job, header.first_line, context, report, collector)
                    : run<double>(input, job, header.first_line, context, report, collector);
  if (layout.symmetry != Symmetry::none) mirror(x, layout.symmetry, context);
  return x;
}

}  // namespace polyad::io
