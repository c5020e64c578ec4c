#include "tools/mosa/command.h"

#include <absl/strings/escaping.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "common/base/utf8.h"

namespace mosa::cli {
namespace {

std::string Dump(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void PrintJson(const nlohmann::json& value) { fmt::print("{}\n", Dump(value, 2)); }

void PutBytes(nlohmann::json& object, const std::string& key, const std::string& bytes) {
  object[key] = bytes;
  if (!IsUtf8(bytes)) object[key + "_b64"] = absl::Base64Escape(bytes);
}

void PutBytes(nlohmann::json& object, const std::string& key,
              const std::vector<std::string>& several) {
  object[key] = several;
  if (std::all_of(several.begin(), several.end(), IsUtf8)) return;
  nlohmann::json& encoded = object[key + "_b64"] = nlohmann::json::array();
  for (const std::string& bytes : several) encoded.push_back(absl::Base64Escape(bytes));
}

void Table::Print() const {
  const bool aligned = isatty(STDOUT_FILENO) == 1;
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string text;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += aligned ? "  " : "\t";
      const bool last = i + 1 == row.size();
      text += aligned && !last ? fmt::format("{:<{}}", row[i], widths[i]) : row[i];
    }
    fmt::print("{}\n", text);
  }
}

}  // namespace mosa::cli
