// SPDX-License-Identifier: MIT
/// \file Uses a little of everything in the public headers: reads argv[1], looks at it, writes argv[2], reads it back.
#include <cstdlib>
#include <iostream>
#include <polyad/polyad.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    polyad::Context context;
    context.threads = 2;
    polyad::CooTensor x = polyad::read(argv[1], {}, context);
    const polyad::TensorStatistics s = polyad::statistics(x, context);
    polyad::write(x, argv[2], {}, context);
    const polyad::CooTensor y = polyad::read(argv[2], {}, context);
    if (!polyad::same_nonzeros(x, y)) return 1;
    const bool lists = !polyad::dialects().empty() && !polyad::formats().empty() && !polyad::presets().empty();
    if (!lists) return 1;
    try {
      (void)polyad::read("no such file.tns");
      return 1;
    } catch (const polyad::Error&) {  // crosses the border of the shared library as what it is
    }
    std::cout << "polyad " << polyad::version << ": order " << x.order() << ", nnz " << x.nnz() << ", sum " << s.sum
              << '\n';
    return 0;
  } catch (const polyad::Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
