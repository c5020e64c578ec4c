// How commands print: tables and JSON, and files that are written whole.
#ifndef MOSA_TOOLS_CONSOLE_OUTPUT_H_
#define MOSA_TOOLS_CONSOLE_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

void PrintJson(const nlohmann::json& value);

// A path (or any bytes) under `key`; with `key`_b64 too if it is not UTF-8, as JSON cannot hold it.
void PutBytes(nlohmann::json& object, const std::string& key, const std::string& bytes);
// A list of these; with `key`_b64 a list of all too, if one of them is not UTF-8.
void PutBytes(nlohmann::json& object, const std::string& key,
              const std::vector<std::string>& several);

// Rows under a heading: aligned for a terminal, separated by tabs for a program.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void Print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Readers of the file see the old one or the new.
Status WriteWhole(const std::string& path, const std::string& text);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_OUTPUT_H_
