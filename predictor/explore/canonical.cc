#include "predictor/explore/canonical.h"

#include <algorithm>

#include "client-sai/core/rules.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kChunkWithoutEnd = uint64_t{1} << 30;

}  // namespace

Canonical::Canonical(const Workflow& workflow, const Platform& platform)
    : platform_(platform),
      tasks_(std::max<uint32_t>(1, static_cast<uint32_t>(workflow.tasks.size()))) {
  for (const WorkflowFile& file : workflow.files)
    file_bytes_max_ = std::max(file_bytes_max_, file.size_bytes.value_or(0));
}

Point Canonical::Of(const Point& point) const {
  Point canonical = point;
  Configuration& c = canonical.configuration;
  c.slots = std::min(SlotsOf(platform_, c), tasks_);
  if (c.stripe_width == NodesOf(c)) c.stripe_width = 0;
  std::erase_if(c.class_placements, [&c](const auto& of_class) {
    return c.system == System::kDss || of_class.second == kPlacementByDefault;
  });
  if (c.store_bytes == platform_.host.store_bytes) c.store_bytes = 0;
  // Bytes are never split into pieces larger than this.
  if (c.chunk_bytes > file_bytes_max_ && c.chunk_bytes >= sai::kSpreadBytesMin)
    c.chunk_bytes = kChunkWithoutEnd;
  return canonical;
}

}  // namespace mosa::predict
