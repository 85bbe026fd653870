// SPDX-License-Identifier: MIT
#include <iostream>
#include <polyad/polyad.hpp>

int main() {
  try {
    const polyad::CooTensor x = polyad::read("data/kjv-words/kjv-words.tns.gz");
    const polyad::TensorStatistics s = polyad::statistics(x);
    std::cout << "order " << x.order() << ", nnz " << x.nnz() << ", norm " << s.norm << '\n';
    for (int mode = 0; mode < x.order(); ++mode) {
      const polyad::ModeStatistics& m = s.modes[mode];
      std::cout << x.mode_name(mode) << ": " << m.dim << " long, at most " << m.slices.max << " nonzeros in a slice\n";
    }
    polyad::write(x, "kjv-words.ptn");
  } catch (const polyad::Error& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
