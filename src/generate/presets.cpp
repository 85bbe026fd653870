// SPDX-License-Identifier: MIT
#include "polyad/generate.hpp"

#include <utility>

namespace polyad {

namespace {

Preset preset(std::string_view name, std::string_view summary, std::uint64_t nnz, std::vector<std::uint64_t> dims,
              std::vector<double> skew, double burst, std::vector<double> widths) {
  GenerateOptions options;
  options.dims = std::move(dims);
  options.nnz = nnz;
  options.skew = std::move(skew);
  options.burst = burst;
  options.widths = std::move(widths);
  return {name, summary, nnz, std::move(options)};
}

}  // namespace

// Orders, dims and nnz are those of FROSTT (frostt.io); skew, burst and widths were chosen so that slices and fibres
// have about the lengths of the originals.
const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      preset("uber", "date x hour x latitude x longitude of pickups in New York", 3309490, {183, 24, 1140, 1717},
             {0.1, 0.4, 0.6, 0.6}, 6, {1, 3, 3, 3}),
      preset("nell2", "entity x relation x entity of NELL, the smaller cut", 76879419, {12092, 9184, 28818},
             {0.6, 0.5, 0.7}, 60, {3, 3, 30}),
      preset("deli", "user x item x tag of Delicious", 140126181, {532924, 17262471, 2480308}, {0.7, 0.5, 0.6}, 3,
             {1, 1, 4}),
      preset("vast", "five modes of the VAST 2015 challenge, two of them short", 26021945, {165427, 11374, 2, 100, 89},
             {0.3, 0.4, 0.2, 0.3, 0.3}, 6, {1, 1, 2, 6, 6}),
      preset("enron", "sender x receiver x word x date of mails", 54202099, {6066, 5699, 244268, 1176},
             {0.7, 0.7, 0.7, 0.5}, 40, {1, 1.5, 80, 1}),
      preset("darpa", "source x destination x time of network traffic, hypersparse", 28436042, {22476, 22476, 23776223},
             {0.8, 0.8, 0.4}, 30, {1, 1, 40}),
      preset("random", "no structure at all: the hardest case for every cache", 10000000, {30000, 40000, 50000},
             {0, 0, 0}, 1, {1, 1, 1}),
  };
  return all;
}

}  // namespace polyad
