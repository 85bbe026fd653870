// SPDX-License-Identifier: MIT
/// \file Subnormal numbers (in f32 below 1.2e-38) take a processor of Intel's some 150 cycles each. Entries of factors
/// and their products get there when components settle on a few rows: from its eighth iteration on CP-ALS took ten
/// times as long (10 million nonzeros, f32, rank 16: 12 iterations 5.9 s, with zeros in their place 1.2 s).
#pragma once

namespace polyad::cpu {

/// The bits of a processor's control register that say so; 0 where there are none.
using TinyNumberBits = unsigned long;

/// While it lives, this thread, and the teams it runs (run_team), read and write subnormal numbers as 0. Without effect
/// on processors other than x86-64 and AArch64.
class TinyNumbersAsZero {
 public:
  /// \param wanted false: nothing changes
  explicit TinyNumbersAsZero(bool wanted);
  ~TinyNumbersAsZero();
  TinyNumbersAsZero(const TinyNumbersAsZero&) = delete;
  TinyNumbersAsZero& operator=(const TinyNumbersAsZero&) = delete;

  /// Whether this thread does so now.
  [[nodiscard]] static bool active();

 private:
  TinyNumberBits before_;
  bool outermost_;  // of those of this thread that changed something
};

/// For run_team. A new thread inherits the mode of the one that starts it, and those of OpenMP live on: while this
/// object lives, its thread has the mode it has outside of TinyNumbersAsZero.
class TeamTinyNumbers {
 public:
  TeamTinyNumbers();
  ~TeamTinyNumbers();
  TeamTinyNumbers(const TeamTinyNumbers&) = delete;
  TeamTinyNumbers& operator=(const TeamTinyNumbers&) = delete;

  /// While it lives, a member of the team has the mode that the starting thread had.
  class Member {
   public:
    explicit Member(const TeamTinyNumbers& team);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    TinyNumberBits before_;
  };

 private:
  TinyNumberBits of_team_;
};

}  // namespace polyad::cpu
