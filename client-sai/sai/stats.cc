#include "client-sai/sai/stats.h"

#include <nlohmann/json.hpp>

namespace mosa::sai {
namespace {

constexpr const char* kNames[] = {
    "bytes_read_local",
    "bytes_read_remote",
    "bytes_read_inline",
    "bytes_written_local",
    "bytes_written_remote",
    "bytes_written_inline",
    "bytes_written_passthrough",
    "opens_passthrough",
    "lookups",
    "lookups_cached",
    "creates",
    "creates_deferred",
    "opens",
    "opens_cached",
    "reads",
    "writes",
    "closes",
    "manager_calls",
    "recalls",
    "spills",
    "errors",
    "closes_without_copies",
    "pages_waits_ended",
    "stores_found",
    "files_unsaved",
};
static_assert(std::size(kNames) == static_cast<size_t>(Counter::kCount));

}  // namespace

std::string Stats::Json(const Files& files) const {
  nlohmann::ordered_json json;
  for (size_t i = 0; i < std::size(kNames); ++i) json[kNames[i]] = Get(static_cast<Counter>(i));
  json["kept"] = files.files_kept;
  json["files"] = {{"kept", files.kept}, {"unsaved", files.unsaved}};
  return json.dump();
}

}  // namespace mosa::sai
