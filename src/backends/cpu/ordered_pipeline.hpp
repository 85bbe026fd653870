// SPDX-License-Identifier: MIT
/// \file produce (one at a time, in order) -> work (in parallel) -> commit (one at a time, in the order of produce) ->
/// finish (in parallel). Reading text, decompressing and writing all run through it: while one thread decompresses or
/// writes, the others parse or format. Results and errors are those of a sequential run, whatever the number of
/// threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>

#include "backends/cpu/threads.hpp"

namespace polyad::cpu {

/// \param produce bool(Item&): fills the next item, false at the end
/// \param work void(Item&): called in parallel for different items
/// \param commit void(Item&): called in the order of produce
/// \param finish void(Item&): called after the item's commit, in parallel again
/// Every thread keeps one Item and uses it again. The earliest failure in the order of items is rethrown.
template <class Item, class Produce, class Work, class Commit, class Finish>
void ordered_pipeline(int threads, const Produce& produce, const Work& work, const Commit& commit,
                      const Finish& finish) {
  std::mutex source;
  std::mutex order;
  std::condition_variable turn_changed;
  std::uint64_t produced = 0;  // guarded by source
  bool finished = false;       // guarded by source
  std::uint64_t turn = 0;      // guarded by order
  bool failed = false;         // guarded by order

  run_team(threads, [&](int, int) {
    Item item;
    while (true) {
      std::uint64_t ticket = 0;
      std::exception_ptr failure;
      {
        const std::lock_guard lock(source);
        if (finished) return;
        ticket = produced++;
        try {
          if (!produce(item)) {
            finished = true;
            return;
          }
        } catch (...) {
          failure = std::current_exception();
          finished = true;
        }
      }
      if (!failure) {
        try {
          work(item);
        } catch (...) {
          failure = std::current_exception();
        }
      }
      std::unique_lock lock(order);
      turn_changed.wait(lock, [&] { return turn == ticket || failed; });
      if (failed) return;
      if (!failure) {
        lock.unlock();  // the turn itself keeps the others out
        try {
          commit(item);
        } catch (...) {
          failure = std::current_exception();
        }
        lock.lock();
      }
      failed = failure != nullptr;
      ++turn;
      turn_changed.notify_all();
      if (failure) {
        lock.unlock();
        const std::lock_guard stop(source);
        finished = true;
        std::rethrow_exception(failure);
      }
      lock.unlock();
      finish(item);
    }
  });
}

/// The same without a last stage.
template <class Item, class Produce, class Work, class Commit>
void ordered_pipeline(int threads, const Produce& produce, const Work& work, const Commit& commit) {
  ordered_pipeline<Item>(threads, produce, work, commit, [](Item&) {});
}

}  // namespace polyad::cpu
