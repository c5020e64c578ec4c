// Globs over absolute paths of the store. Bytewise: "*", "?", "[a-z]" and "[!a-z]" match within one
// name. "**" as a whole name matches any number of names (at the end: at least one). "\" quotes the
// next byte. Pure.
#ifndef MOSA_MANAGER_CORE_GLOB_H_
#define MOSA_MANAGER_CORE_GLOB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace mosa::manager {

// Returns a glob that matches exactly these bytes.
std::string QuotedForGlob(std::string_view bytes);

class Glob {
 public:
  // InvalidArgument quotes the text and states the fault.
  static Result<Glob> Parse(std::string_view text);

  // Precondition: `path` is absolute and has no empty names, "." or "..".
  bool Matches(std::string_view path) const;
  // Returns true if some name directly in `directory` could match.
  bool MayMatchIn(std::string_view directory) const;

  bool is_exact() const { return is_exact_; }
  // The only path that an exact glob matches.
  const std::string& exact_path() const { return literal_directory_; }
  // The directory below which all matches lie, at any depth: "/a" for "/a/*/b", "" for the root.
  // Precondition: not exact.
  const std::string& literal_directory() const { return literal_directory_; }

  // Orders globs by how specific they are: exact ones first, then by more literal bytes, then by
  // fewer "**".
  bool MoreSpecificThan(const Glob& other) const;

 private:
  // Returns the positions in `names_` that may match next after the names of `path`.
  std::vector<bool> After(std::string_view path) const;
  void Skip(std::vector<bool>& positions) const;

  std::vector<std::string> names_;  // "**" is never the last.
  std::string literal_directory_;
  bool is_exact_ = false;
  uint32_t literal_bytes_ = 0;
  uint32_t deep_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_GLOB_H_
