#include "tools/mosa/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace mosa::cli {
namespace {

std::string Dump(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool IsUtf8(const std::string& bytes) {
  // The library's own check: strict, it refuses what it cannot print.
  return nlohmann::json::accept(Dump(nlohmann::json(bytes), -1)) &&
         nlohmann::json::parse(Dump(nlohmann::json(bytes), -1)).get<std::string>() == bytes;
}

}  // namespace

std::string Base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t taken = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < taken ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= taken ? kDigits[(group >> (18 - 6 * k)) & 63] : '=';
    }
  }
  return text;
}

void PrintJson(const nlohmann::json& value) { fmt::print("{}\n", Dump(value, 2)); }

void PutBytes(nlohmann::json& object, const std::string& key, const std::string& bytes) {
  object[key] = bytes;
  if (!IsUtf8(bytes)) object[key + "_b64"] = Base64(bytes);
}

void PutBytes(nlohmann::json& object, const std::string& key,
              const std::vector<std::string>& several) {
  object[key] = several;
  if (std::all_of(several.begin(), several.end(), IsUtf8)) return;
  nlohmann::json& encoded = object[key + "_b64"] = nlohmann::json::array();
  for (const std::string& bytes : several) encoded.push_back(Base64(bytes));
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
