// SPDX-License-Identifier: MIT
#include <array>
#include <iostream>
#include <memory>
#include <polyad/polyad.hpp>

int main() {
  polyad::Context context;
  context.threads = 2;
  context.seed = 7;
  context.memory = std::make_shared<polyad::MemoryBudget>(64 << 20);  // at most 64 MiB of big arrays

  polyad::GenerateOptions options;
  options.dims = {100, 200, 300};
  options.nnz = 50'000;
  options.skew = {1.1};
  polyad::CooTensor x = polyad::generate(options, context);

  const std::array<int, 3> order = {2, 0, 1};  // the last mode first
  polyad::sort_nonzeros(x, order, context);
  std::cout << x.nnz() << " nonzeros, the first in slice " << x.index(2, 0) + 1 << " of mode 3, "
            << context.memory->peak() / 1000 << " kB at most\n";

  options.nnz = 50'000'000;
  try {
    polyad::generate(options, context);
  } catch (const polyad::Error& e) {  // says what was needed, and for what
    std::cout << "refused: " << e.what() << '\n';
  }
}
