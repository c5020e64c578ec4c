// Globs over absolute paths of the store, byte by byte: "*", "?" and "[a-z]" or "[!a-z]" stand for
// bytes of one name, "**" as a whole name for any number of names (at the end: at least one), "\"
// takes the next byte as it is. Pure.
#ifndef MOSA_MANAGER_CORE_GLOB_H_
#define MOSA_MANAGER_CORE_GLOB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace mosa::manager {

// A glob's text that stands for these bytes alone.
std::string QuotedForGlob(std::string_view bytes);

class Glob {
 public:
  // InvalidArgument repeats the text and says what is wrong with it.
  static Result<Glob> Parse(std::string_view text);

  // `path` is absolute, without empty names, "." and "..".
  bool Matches(std::string_view path) const;
  // True if some name directly in `directory` makes a path that matches.
  bool MayMatchIn(std::string_view directory) const;

  bool is_exact() const { return is_exact_; }
  // The one path that an exact glob matches.
  const std::string& exact_path() const { return literal_directory_; }
  // The directory that every match lies below, at any depth: "/a" of "/a/*/b", "" for the root.
  // Precondition: not exact.
  const std::string& literal_directory() const { return literal_directory_; }

  // Which of two globs says more of a path: the exact one, then the one with more bytes that are
  // not wild, then the one with fewer "**".
  bool MoreSpecificThan(const Glob& other) const;

 private:
  // Which positions of `names_` may come next after the names of `path`.
  std::vector<bool> After(std::string_view path) const;
  void Skip(std::vector<bool>& positions) const;

  std::vector<std::string> names_;  // A "**" is never the last.
  std::string literal_directory_;
  bool is_exact_ = false;
  uint32_t literal_bytes_ = 0;
  uint32_t deep_ = 0;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_GLOB_H_
