// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <polyad/polyad.hpp>

int main() {
  auto x = polyad::read("ratings.tns");
  auto result = polyad::cp_als(x, {.rank = 16, .seed = 1});
  fmt::print("fit {:.4f}\n", result.fit);
  polyad::write(result.model, "model/");
}
