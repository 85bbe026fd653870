// SPDX-License-Identifier: MIT
/// \file Signals: Ctrl-C and SIGTERM ask to stop; SIGBUS says which mapped file became shorter; SIGPIPE is noted.
#pragma once

namespace polyad::cli {

/// Installs the handlers. A second Ctrl-C ends the program at once.
void install_signal_handlers();

/// Occupies standard input, output or error where it is closed: else a tensor could become "standard error".
void fill_standard_descriptors();

/// SIGINT or SIGTERM if one came, else 0.
[[nodiscard]] int caught_signal() noexcept;

/// True when somebody closed a pipe that was written to.
[[nodiscard]] bool pipe_was_closed() noexcept;

}  // namespace polyad::cli
