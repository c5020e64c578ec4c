// How commands print: tables and JSON, and files that are replaced as a whole.
#ifndef MOSA_TOOLS_CONSOLE_OUTPUT_H_
#define MOSA_TOOLS_CONSOLE_OUTPUT_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace mosa::cli {

void PrintJson(const nlohmann::json& value);

// Puts a path (or any bytes) under `key`; also under `key`_b64 if it is not UTF-8, which JSON
// cannot hold.
void PutBytes(nlohmann::json& object, const std::string& key, const std::string& bytes);
// Puts a list of these; also a list of all under `key`_b64, if one of them is not UTF-8.
void PutBytes(nlohmann::json& object, const std::string& key,
              const std::vector<std::string>& several);

// "1 file", "2 files"; "1 directory", "2 directories".
std::string Counted(uint64_t count, std::string_view noun);

// Asks on the terminal, and returns whether the answer begins with y. True without a terminal,
// where nobody could answer; false once `given_up`, polled a few times a second, returns true.
bool Confirm(std::string_view question, const std::function<bool()>& given_up);

// Rows under a heading: aligned for a terminal, separated by tabs for a program.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void Print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Replaces the file: readers see either the old one or the new one.
Status WriteWhole(const std::string& path, const std::string& text);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_CONSOLE_OUTPUT_H_
