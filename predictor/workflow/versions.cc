#include "predictor/workflow/versions.h"

#include <set>
#include <string_view>

namespace mosa::predict {
namespace {

// Numbers start at 2. A file with hints is not a later version, since traces have no hints.
bool IsLaterVersion(const WorkflowFile& file, const std::set<std::string_view>& paths) {
  const std::string_view path = file.path;
  const size_t mark = path.rfind('#');
  if (mark == std::string_view::npos || !file.producer || !file.hints.empty()) return false;
  const std::string_view number = path.substr(mark + 1);
  const bool numbered = number.find_first_not_of("0123456789") == std::string_view::npos;
  return numbered && !number.empty() && number != "1" && number[0] != '0' &&
         paths.contains(path.substr(0, mark));
}

}  // namespace

std::vector<PathIndex> LaterVersionsIn(const Workflow& workflow) {
  std::set<std::string_view> paths;
  for (const WorkflowFile& file : workflow.files) paths.insert(file.path);
  std::vector<PathIndex> later;
  for (uint32_t i = 0; i < workflow.files.size(); ++i)
    if (IsLaterVersion(workflow.files[i], paths)) later.push_back(PathIndex{i});
  return later;
}

}  // namespace mosa::predict
