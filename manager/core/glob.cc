#include "manager/core/glob.h"

#include <fmt/format.h>

#include <optional>
#include <tuple>

namespace mosa::manager {
namespace {

constexpr size_t kGlobBytesMax = 4096;
constexpr size_t kGlobNamesMax = 256;
constexpr std::string_view kDeep = "**";

// Splits a path or glob into names. A "/" always separates, even within brackets.
std::vector<std::string_view> Names(std::string_view path) {
  std::vector<std::string_view> names;
  for (size_t at = 1; at <= path.size() && path.size() > 1;) {
    const size_t end = std::min(path.find('/', at), path.size());
    names.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// One element of a glob's name, matched against one byte.
struct Item {
  size_t size = 1;  // Its length in the glob.
  bool many = false;
  bool literal = false;
  bool accepts = false;  // The given byte matches.
};

// Reads the bracket class that begins at `at`; absent if it is not closed.
std::optional<Item> ReadClass(std::string_view glob, size_t at, char byte) {
  Item item;
  size_t next = at + 1;
  const bool negated = next < glob.size() && glob[next] == '!';
  if (negated) ++next;
  bool within = false;
  for (bool first = true; next < glob.size() && (first || glob[next] != ']'); first = false) {
    auto low = static_cast<unsigned char>(glob[next]);
    unsigned char high = low;
    if (next + 2 < glob.size() && glob[next + 1] == '-' && glob[next + 2] != ']') {
      high = static_cast<unsigned char>(glob[next + 2]);
      next += 2;
    }
    const auto asked = static_cast<unsigned char>(byte);
    within = within || (low <= asked && asked <= high);
    ++next;
  }
  if (next >= glob.size()) return std::nullopt;
  item.size = next + 1 - at;
  item.accepts = within != negated;
  return item;
}

// Absent for an open bracket, or a "\" at the end.
std::optional<Item> ReadItem(std::string_view glob, size_t at, char byte) {
  switch (glob[at]) {
    case '*':
      return Item{1, true, false, true};
    case '?':
      return Item{1, false, false, true};
    case '[':
      return ReadClass(glob, at, byte);
    case '\\':
      if (at + 1 >= glob.size()) return std::nullopt;
      return Item{2, false, true, glob[at + 1] == byte};
    default:
      return Item{1, false, true, glob[at] == byte};
  }
}

bool NameMatches(std::string_view glob, std::string_view name) {
  size_t at = 0, read = 0;
  // Where to resume if what follows the last star does not match.
  std::optional<size_t> star;
  size_t star_read = 0;
  while (read < name.size() || at < glob.size()) {
    if (at < glob.size()) {
      const Item item = *ReadItem(glob, at, read < name.size() ? name[read] : '\0');
      if (item.many) {
        star = ++at;
        star_read = read;
        continue;
      }
      if (read < name.size() && item.accepts) {
        at += item.size;
        ++read;
        continue;
      }
    }
    if (!star || star_read >= name.size()) return false;
    at = *star;
    read = ++star_read;
  }
  return true;
}

// Returns the name that a glob's name without wildcards stands for; absent if it has some.
std::optional<std::string> Literal(std::string_view name) {
  std::string literal;
  for (size_t at = 0; at < name.size();) {
    const Item item = *ReadItem(name, at, '\0');
    if (!item.literal) return std::nullopt;
    literal += name[at + item.size - 1];
    at += item.size;
  }
  return literal;
}

Status CheckName(std::string_view name) {
  if (name.empty() || name == "." || name == "..")
    return InvalidArgumentError("it has an empty name, '.' or '..'");
  for (size_t at = 0; at < name.size();) {
    const auto item = ReadItem(name, at, '\0');
    if (!item)
      return InvalidArgumentError(
          fmt::format("its name '{}' ends within a '[' or after a '\\'", name.substr(0, 256)));
    at += item->size;
  }
  return OkStatus();
}

}  // namespace

std::string QuotedForGlob(std::string_view bytes) {
  std::string quoted;
  for (const char c : bytes) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

Result<Glob> Glob::Parse(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return InvalidArgumentError(fmt::format("'{}' is not a glob: {}", text.substr(0, 256), why));
  };
  if (text.size() > kGlobBytesMax)
    return wrong(
        fmt::format("it has {} bytes, at most {} are allowed", text.size(), kGlobBytesMax));
  if (!text.starts_with('/') || text.size() < 2)
    return wrong("it must begin with '/', the root of the store, and name something below it");
  if (text.find('\0') != std::string_view::npos) return wrong("it contains a NUL");
  const auto names = Names(text);
  if (names.size() > kGlobNamesMax)
    return wrong(
        fmt::format("it has {} names, at most {} are allowed", names.size(), kGlobNamesMax));
  Glob glob;
  glob.is_exact_ = true;
  for (const std::string_view name : names) {
    if (const Status good = CheckName(name); !good.ok()) return wrong(MessageOf(good));
    const auto literal = Literal(name);
    if (name == kDeep) ++glob.deep_;
    if (!literal) glob.is_exact_ = false;
    if (glob.is_exact_) glob.literal_directory_ += "/" + *literal;
    for (size_t at = 0; at < name.size();) {
      const Item item = *ReadItem(name, at, '\0');
      if (item.literal) ++glob.literal_bytes_;
      at += item.size;
    }
    glob.names_.emplace_back(name);
  }
  if (glob.names_.back() == kDeep) glob.names_.emplace_back("*");
  return glob;
}

// A "**" may match no name at all.
void Glob::Skip(std::vector<bool>& positions) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (positions[i] && names_[i] == kDeep) positions[i + 1] = true;
  }
}

std::vector<bool> Glob::After(std::string_view path) const {
  std::vector<bool> positions(names_.size() + 1);
  positions[0] = true;
  Skip(positions);
  for (const std::string_view name : Names(path)) {
    std::vector<bool> next(names_.size() + 1);
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!positions[i]) continue;
      if (names_[i] == kDeep) {
        next[i] = true;
      } else if (NameMatches(names_[i], name)) {
        next[i + 1] = true;
      }
    }
    Skip(next);
    positions = std::move(next);
  }
  return positions;
}

bool Glob::Matches(std::string_view path) const {
  if (is_exact_) return path == literal_directory_;
  return After(path).back();
}

bool Glob::MayMatchIn(std::string_view directory) const {
  return After(directory)[names_.size() - 1];
}

bool Glob::MoreSpecificThan(const Glob& other) const {
  return std::tuple(is_exact_, literal_bytes_, other.deep_) >
         std::tuple(other.is_exact_, other.literal_bytes_, deep_);
}

}  // namespace mosa::manager
