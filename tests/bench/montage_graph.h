// Montage as a graph, with the shape of tools/workflows/montage.py: tiles in a square that overlap
// with their neighbours, corners included.
#ifndef MOSA_TESTS_BENCH_MONTAGE_GRAPH_H_
#define MOSA_TESTS_BENCH_MONTAGE_GRAPH_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "predictor/run/prediction_fixture.h"

namespace mosa::predict {

struct MontageOverlap {
  uint32_t first;
  uint32_t second;
  bool at_corner;
};

// The last row may be shorter.
inline std::vector<MontageOverlap> MontageOverlaps(uint32_t tiles) {
  const auto columns = static_cast<uint32_t>(std::ceil(std::sqrt(tiles)));
  std::vector<MontageOverlap> overlaps;
  for (uint32_t tile = 0; tile < tiles; ++tile) {
    const uint32_t below = tile + columns;
    const bool has_left = tile % columns > 0;
    const bool has_right = tile % columns + 1 < columns;
    if (has_right && tile + 1 < tiles) overlaps.push_back({tile, tile + 1, false});
    if (has_left && below - 1 < tiles) overlaps.push_back({tile, below - 1, true});
    if (below < tiles) overlaps.push_back({tile, below, false});
    if (has_right && below + 1 < tiles) overlaps.push_back({tile, below + 1, true});
  }
  return overlaps;
}

// `image_bytes` of a tile; its projection, the areas of that, and the corrected tile are as large.
inline Workflow MontageGraph(uint32_t tiles, uint64_t image_bytes) {
  constexpr uint64_t kTableRowBytes = 200;
  const uint64_t table_bytes = kTableRowBytes * tiles;
  // Neighbours share 15 % of their width and height; the mosaic's pixels have eight bytes.
  const uint64_t mosaic_bytes = image_bytes * tiles * 2 * 17 * 17 / (20 * 20);
  const auto image = [](const std::string& name) {
    return std::vector<std::string>{name + ".fits", name + "_area.fits"};
  };
  WorkflowMaker maker;
  const auto add_images = [&maker](const std::vector<std::string>& paths, uint64_t bytes) {
    for (const std::string& path : paths) maker.File(path, bytes);
    return paths;
  };
  maker.File("region.hdr", 800);
  std::vector<std::string> projected{"region.hdr"};
  std::vector<std::string> corrected{"images.tbl", "region.hdr"};
  for (uint32_t i = 0; i < tiles; ++i) {
    const std::string n = std::to_string(i);
    maker.File("raw/" + n + ".fits", image_bytes);
    maker.Task("stageIn_" + n, {}, {"raw/" + n + ".fits"}, Milliseconds(100));
    maker.Task("mProject_" + n, {"raw/" + n + ".fits", "region.hdr"},
               add_images(image("projected/" + n), image_bytes), Seconds(2));
    projected.push_back("projected/" + n + ".fits");
  }
  maker.File("images.tbl", table_bytes).File("diffs.tbl", 2 * table_bytes);
  maker.Task("mImgtbl", projected, {"images.tbl"}, Seconds(1));
  maker.Task("mOverlaps", {"images.tbl"}, {"diffs.tbl"}, Seconds(1));
  std::vector<std::string> fits{"diffs.tbl"};
  for (const MontageOverlap& overlap : MontageOverlaps(tiles)) {
    const std::string first = std::to_string(overlap.first);
    const std::string second = std::to_string(overlap.second);
    const std::string n = first + "-" + second;
    std::vector<std::string> inputs = image("projected/" + first);
    for (const std::string& path : image("projected/" + second)) inputs.push_back(path);
    inputs.insert(inputs.end(), {"region.hdr", "diffs.tbl"});
    const uint64_t shared_bytes = image_bytes * (overlap.at_corner ? 2 : 15) / 100;
    maker.Task("mDiff_" + n, inputs, add_images(image("diffs/" + n), shared_bytes),
               Milliseconds(200));
    maker.File("fits/" + n + ".txt", 300);
    maker.Task("mFitplane_" + n, {"diffs/" + n + ".fits"}, {"fits/" + n + ".txt"},
               Milliseconds(50));
    fits.push_back("fits/" + n + ".txt");
  }
  maker.File("fits.tbl", 4 * table_bytes).File("corrections.tbl", table_bytes);
  maker.Task("mConcatFit", fits, {"fits.tbl"}, Seconds(1));
  maker.Task("mBgModel", {"images.tbl", "fits.tbl"}, {"corrections.tbl"}, Seconds(10));
  for (uint32_t i = 0; i < tiles; ++i) {
    const std::string n = std::to_string(i);
    std::vector<std::string> inputs = image("projected/" + n);
    inputs.insert(inputs.end(), {"images.tbl", "corrections.tbl"});
    maker.Task("mBackground_" + n, inputs, add_images(image("corrected/" + n), image_bytes),
               Milliseconds(200));
    for (const std::string& path : image("corrected/" + n)) corrected.push_back(path);
  }
  maker.Task("mAdd", corrected, add_images(image("mosaic"), mosaic_bytes), Seconds(30));
  maker.File("small.fits", mosaic_bytes / 25).File("mosaic.png", mosaic_bytes / 100);
  maker.Task("mJPEG_shrink", {"mosaic.fits"}, {"small.fits"}, Seconds(5));
  maker.Task("mJPEG_view", {"small.fits"}, {"mosaic.png"}, Seconds(1));
  return maker.Build();
}

}  // namespace mosa::predict

#endif  // MOSA_TESTS_BENCH_MONTAGE_GRAPH_H_
