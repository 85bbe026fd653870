// SPDX-License-Identifier: MIT
#include "io/ptn.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "io/dialect.hpp"
#include "io/mapped_file.hpp"
#include "io/ptn_arrays.hpp"
#include "polyad/buffer.hpp"
#include "polyad/error.hpp"

namespace polyad::io {

using ptn::Chunk;
using ptn::Kind;
using ptn::NumberArray;
using ptn::Section;

/// What a pass over the file does with the chunks of a section.
struct PtnFile::Task {
  Section section;
  bool hash = false;                   // compare with the checksum
  std::optional<std::uint64_t> limit;  // indices: must be below
  bool finite = false;                 // values: must be finite
  std::byte* to = nullptr;             // convert into this array ...
  std::uint32_t to_width = 0;          // ... of this element width
};

namespace {

/// The rest of the stream, which cannot be mapped. Memory grows with the data, not with what the header claims.
std::shared_ptr<Buffer<std::byte>> read_whole(InputStream& input, const Context& context) {
  const std::string_view head = input.peek(sizeof(ptn::FixedHead));
  const std::uint64_t claimed = ptn::check_beginning(std::as_bytes(std::span(head)), input.name()).file_bytes;
  constexpr std::uint64_t least_step = std::uint64_t{4} << 20U;
  const auto purpose = fmt::format("the content of {}", input.name());
  auto bytes = std::make_shared<Buffer<std::byte>>();
  *bytes = Buffer<std::byte>(context, 0, purpose);
  std::uint64_t got = 0;
  while (got < claimed) {
    const std::uint64_t step = std::min(claimed - got, std::max(least_step, got / 2));
    bytes->resize(got + step, purpose);
    const std::size_t n = input.read(bytes->data() + got, step);
    got += n;
    context.report({"reading", input.consumed(), input.file_bytes().value_or(0), "bytes"});
    if (n < step) break;
  }
  bytes->resize(got, purpose);
  if (got == claimed && !input.peek(1).empty())
    throw file_error(input.name(), 0, fmt::format("continues after its end: it should have {} bytes", claimed));
  return bytes;
}

template <class T>
Buffer<T> view_of(const std::shared_ptr<const void>& owner, std::byte* data, std::uint64_t count, bool mapped) {
  return Buffer<T>::view(owner, reinterpret_cast<T*>(data), count, mapped);
}

}  // namespace

PtnFile::PtnFile(InputStream& input, const Context& context) : name_(input.name()) {
  // Files of length 0 may be those of /proc, which have content all the same.
  if (input.path() != "-" && input.compression().empty() && input.file_bytes().value_or(0) > 0) {
    const auto file = std::make_shared<MappedFile>(input.path());
    bytes_ = {file->data(), file->size()};
    owner_ = file;
    mapped_ = true;
    const std::uint64_t limit = context.memory ? context.memory->limit() : 0;
    larger_than_memory_ = limit > 0 && file->size() > limit;
  } else {
    const auto buffer = read_whole(input, context);
    bytes_ = buffer->span();
    owner_ = buffer;
  }
  head_ = ptn::parse_head(bytes_, name_);
}

void PtnFile::refuse(std::string_view sentence) const { throw file_error(name_, 0, sentence); }

void PtnFile::release(const std::byte* data, std::uint64_t bytes) const {
  if (!larger_than_memory_) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(data + bytes) / page * page;
  // Nobody has changed them yet, so they are the file's and come back when somebody looks.
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void PtnFile::check_padding() const {
  std::uint64_t end = head_.head_bytes;
  for (const Section& s : head_.sections) {
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(end);
    const auto stop = bytes_.begin() + static_cast<std::ptrdiff_t>(s.offset);
    const auto found = std::find_if(begin, stop, [](std::byte b) { return b != std::byte{0}; });
    if (found != stop)
      refuse(fmt::format("is damaged: byte {} before {} is not zero", found - bytes_.begin(), s.name()));
    end = s.offset + s.bytes;
  }
}

void PtnFile::check_known(const Context& context) const {
  if (head_.sorted_by.empty()) return;
  std::vector<NumberArray> modes;
  for (const int m : head_.sorted_by) {
    const Section& s = *head_.find(Kind::indices, m);
    modes.push_back({data_of(s), s.width});
  }
  const bool strictly = head_.duplicates_merged && modes.size() == head_.dims.size();
  // In parts when pages have to be let go, each from the last nonzero of the one before on.
  const std::uint64_t part = larger_than_memory_ ? std::uint64_t{1} << 20U : std::max<std::uint64_t>(1, head_.nnz);
  for (std::uint64_t begin = 0; begin < head_.nnz; begin += part) {
    const std::uint64_t from = begin == 0 ? 0 : begin - 1;
    const std::uint64_t end = std::min(head_.nnz, begin + part);
    std::vector<NumberArray> some;
    for (const NumberArray& m : modes) some.push_back(m.from(from));
    if (const auto k = ptn::first_out_of_order(some, end - from, strictly, context.thread_count()))
      refuse(fmt::format("says that its nonzeros are sorted{} but nonzero {} does not come after the one before it",
                         strictly ? " without duplicates" : "", from + *k + 1));
    for (const NumberArray& m : some) release(m.data, (end - from) * m.width);
  }
}

void PtnFile::run(std::span<const Task> tasks, std::string_view phase, const Context& context) const {
  std::vector<Section> sections;
  for (const Task& t : tasks) sections.push_back(t.section);
  ptn::for_each_chunk(sections, phase, context, [&](const Chunk& chunk, std::vector<std::byte>&) {
    const Task& task = tasks[chunk.section];
    const Section& s = task.section;
    const std::byte* data = data_of(s) + chunk.offset;
    if (task.hash && ptn::checksum(data, chunk.bytes) != head_.checksums[s.first_checksum + chunk.number])
      refuse(fmt::format(
          "is damaged: the checksum of {} is wrong in the {} bytes from byte {} of the file on (chunk {} of {})",
          s.name(), chunk.bytes, s.offset + chunk.offset, chunk.number + 1, s.chunks()));
    if (s.kind != Kind::indices && s.kind != Kind::values) return;  // the width of an unknown kind may be anything
    const std::uint64_t first = chunk.offset / s.width;
    const std::size_t n = chunk.bytes / s.width;
    if (task.limit) {
      if (const auto i = ptn::first_not_below({data, s.width}, n, *task.limit))
        refuse(fmt::format("nonzero {} has index {} (from 0) in mode {}, which has length {}", first + *i + 1,
                           NumberArray{data, s.width}[*i], s.mode + 1, *task.limit));
    }
    if (task.finite) {
      if (const auto i = ptn::first_not_finite(data, s.width, n))
        refuse(fmt::format("the value of nonzero {} is not a finite number", first + *i + 1));
    }
    if (task.to == nullptr) return release(data, chunk.bytes);
    std::byte* to = task.to + first * task.to_width;
    if (s.kind == Kind::indices) {
      ptn::convert_numbers({data, s.width}, n, to, task.to_width);
    } else if (const auto i = ptn::convert_values(data, s.width, n, to)) {
      double value = 0;
      std::memcpy(&value, data + *i * sizeof(double), sizeof(double));
      refuse(fmt::format("the value {} of nonzero {} does not fit f32: read it as f64", value, first + *i + 1));
    }
  });
}

void PtnFile::for_each_label(int mode, const std::function<void(std::string_view)>& use) const {
  const Section* ends = head_.find(Kind::label_ends, mode);
  if (ends == nullptr) return;
  const Section& text = *head_.find(Kind::label_text, mode);
  const std::string_view all(reinterpret_cast<const char*>(data_of(text)), text.bytes);
  const NumberArray numbers{data_of(*ends), ends->width};
  const std::uint64_t count = ends->bytes / ends->width;
  std::uint64_t begin = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t end = numbers[i];
    if (end < begin || end > all.size())
      refuse(fmt::format("label {} of mode {} goes from byte {} to byte {} of {} bytes of text", i + 1, mode + 1, begin,
                         end, all.size()));
    use(all.substr(begin, end - begin));
    begin = end;
  }
  if (begin != all.size())
    refuse(fmt::format("the labels of mode {} end at byte {} of {} bytes of text", mode + 1, begin, all.size()));
}

std::vector<ModeLabels> PtnFile::labels(std::span<const std::uint64_t> dims, std::vector<std::string>& notes) const {
  std::vector<ModeLabels> result;
  for (int m = 0; m < head_.order(); ++m) {
    const Section* name = head_.find(Kind::mode_name, m);
    const Section* ends = head_.find(Kind::label_ends, m);
    if (name == nullptr && ends == nullptr) continue;
    result.resize(dims.size());
    const auto mode = static_cast<std::size_t>(m);
    ModeLabels& labels = result[mode];
    if (name != nullptr) labels.set_name({reinterpret_cast<const char*>(data_of(*name)), name->bytes});
    if (ends == nullptr) continue;
    for_each_label(m, [&](std::string_view label) { labels.push_back(label); });
    labels.truncate(dims[mode]);
    if (labels.size() == dims[mode]) continue;
    // Asked for longer than stored: the new indices have empty labels, as long as that takes no memory to speak of.
    constexpr std::uint64_t most_added = std::uint64_t{1} << 24U;
    const std::uint64_t added = dims[mode] - labels.size();
    if (added > most_added) {
      labels.truncate(0);
      notes.push_back(fmt::format("left out the {} labels of mode {}, which was asked to have length {}",
                                  head_.dims[mode], m + 1, dims[mode]));
      continue;
    }
    for (std::uint64_t i = 0; i < added; ++i) labels.push_back({});
  }
  return result;
}

CooTensor PtnFile::tensor(const ReadOptions& options, const Context& context, ReadReport& report) const {
  if (options.index_base == 1)
    throw usage_error(fmt::format("{}: index base 1 was asked for, but .ptn files are always 0-based", name_));
  if (!options.dims.empty() && options.dims.size() != head_.dims.size())
    throw file_error(name_, 0,
                     fmt::format("has {} modes but {} dims were given", head_.dims.size(), options.dims.size()));
  CooTensor x;
  x.dims = options.dims.empty() ? head_.dims : options.dims;
  x.sorted_by = head_.sorted_by;
  x.duplicates_merged = head_.duplicates_merged;

  if (options.verify) check_padding();
  const IndexWidth width = width_for(x.dims);
  std::vector<Task> tasks;
  std::vector<IndexBuffer> indices(x.dims.size());
  std::uint64_t skipped = 0;
  for (const Section& s : head_.sections) {
    Task task;
    task.section = s;
    task.hash = options.verify;
    std::byte* const data = bytes_.data() + s.offset;
    switch (s.kind) {
      case Kind::indices: {
        const auto mode = static_cast<std::size_t>(s.mode);
        const bool same = s.width == bytes_of(width);
        // What the caller relies on without verification: asked dims hold, and no index is cut when it becomes
        // narrower.
        if (options.verify || x.dims[mode] < head_.dims[mode] || s.width > bytes_of(width))
          task.limit = std::min(x.dims[mode], head_.dims[mode]);
        const auto take = [&]<class T>(T) {
          if (same) {
            indices[mode] = view_of<T>(owner_, data, head_.nnz, mapped_);
            return;
          }
          Buffer<T> fresh(context, head_.nnz, fmt::format("the index array of mode {}", s.mode + 1));
          task.to = reinterpret_cast<std::byte*>(fresh.data());
          task.to_width = sizeof(T);
          indices[mode] = std::move(fresh);
        };
        width == IndexWidth::u32 ? take(std::uint32_t{}) : take(std::uint64_t{});
        break;
      }
      case Kind::values: {
        task.finite = options.verify;
        const auto take = [&]<class T>(T) {
          if (s.width == sizeof(T)) {
            x.values = view_of<T>(owner_, data, head_.nnz, mapped_);
            return;
          }
          Buffer<T> fresh(context, head_.nnz, "the array of values");
          task.to = reinterpret_cast<std::byte*>(fresh.data());
          task.to_width = sizeof(T);
          x.values = std::move(fresh);
        };
        options.precision == Precision::f32 ? take(float{}) : take(double{});
        break;
      }
      case Kind::mode_name:
      case Kind::label_ends:
      case Kind::label_text:
        task.hash = true;
        break;
      default:
        ++skipped;
        break;
    }
    if (task.hash || task.limit || task.to != nullptr) tasks.push_back(task);
  }
  run(tasks, options.verify ? "verifying" : "reading", context);
  if (options.verify) check_known(context);
  x.indices = std::move(indices);
  x.labels = labels(x.dims, report.notes);

  report.index_base = 0;
  if (skipped > 0)
    report.notes.push_back(fmt::format("left out {} section{} that a later polyad wrote (file version {}.{})", skipped,
                                       skipped == 1 ? "" : "s", ptn::major_version, head_.minor));
  return x;
}

std::uint64_t PtnFile::verify(const Context& context) const {
  check_padding();
  std::vector<Task> tasks;
  for (const Section& s : head_.sections) {
    Task task;
    task.section = s;
    task.hash = true;
    if (s.kind == Kind::indices) task.limit = head_.dims[static_cast<std::size_t>(s.mode)];
    task.finite = s.kind == Kind::values;
    tasks.push_back(task);
  }
  run(tasks, "verifying", context);
  check_known(context);
  for (int m = 0; m < head_.order(); ++m) for_each_label(m, [](std::string_view) {});
  return bytes_.size();
}

std::uint64_t verify_ptn(const std::string& path, const Context& context) {
  InputStream input(path, context.cancelled);
  return PtnFile(input, context).verify(context);
}

namespace {

// Four bytes of the magic are enough to be sure, and then read() can say what happened to the rest.
bool detect(std::string_view head, std::string_view extension) {
  return head.starts_with(ptn::magic.substr(0, 4)) || extension == ".ptn";
}

CooTensor read(InputStream& input, const ReadOptions& options, const Context& context, ReadReport& report) {
  return PtnFile(input, context).tensor(options, context, report);
}

}  // namespace

const Dialect ptn_dialect = {
    .name = "ptn",
    .summary = "polyad's own binary file: checksummed, with labels, opens at once by mapping",
    .extensions = {".ptn"},
    .is_text = false,
    .holds_labels = true,
    .holds_dims = true,
    .detect = detect,
    .read = read,
    .write = write_ptn,
};

}  // namespace polyad::io
