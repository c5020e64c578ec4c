#include "proto/convert/role.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "common/base/check.h"
#include "fmt/format.h"

namespace mosa {

namespace {

constexpr std::string_view kScheme = "mosa:";
constexpr size_t kUriBytesMax = 512;
constexpr Role kRoles[] = {Role::kManager, Role::kNode, Role::kMount, Role::kAdmin, Role::kUser};

// A name that is the same in a URI, a file and a log. Storage nodes may have others, which then
// cannot be bound to a certificate.
bool IsPlain(std::string_view name) {
  return !name.empty() && name.size() <= 255 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::optional<uint32_t> ParseUid(std::string_view text) {
  uint32_t uid = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, uid);
  const bool canonical = error == std::errc() && stop == end && text == std::to_string(uid);
  return canonical ? std::optional(uid) : std::nullopt;
}

}  // namespace

std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kManager:
      return "manager";
    case Role::kNode:
      return "node";
    case Role::kMount:
      return "mount";
    case Role::kAdmin:
      return "admin";
    case Role::kUser:
      break;
  }
  return "user";
}

Result<Role> ParseRole(std::string_view text) {
  for (const Role role : kRoles)
    if (NameOf(role) == text) return role;
  return InvalidArgumentError(fmt::format(
      "unknown role '{}': use manager, node, mount, admin or user", text.substr(0, 64)));
}

std::string Describe(const Identity& identity) {
  if (identity.uid) return fmt::format("{} of uid {}", NameOf(identity.role), *identity.uid);
  if (!identity.node.empty()) return fmt::format("{} '{}'", NameOf(identity.role), identity.node);
  return std::string(NameOf(identity.role));
}

std::string ToUri(const Identity& identity) {
  MOSA_CHECK(identity.uid.has_value() == (identity.role == Role::kUser));
  MOSA_CHECK(identity.node.empty() || identity.role == Role::kNode);
  std::string uri = fmt::format("{}{}", kScheme, NameOf(identity.role));
  if (identity.uid) uri += fmt::format("/{}", *identity.uid);
  if (!identity.node.empty()) uri += "/" + identity.node;
  return uri;
}

Result<Identity> IdentityOfUri(std::string_view uri) {
  const Status wrong = InvalidArgumentError(
      fmt::format("'{}' is not a role such as mosa:mount or mosa:user/1000", uri.substr(0, 128)));
  if (uri.size() > kUriBytesMax || !uri.starts_with(kScheme)) return wrong;
  const std::string_view text = uri.substr(kScheme.size());
  const size_t slash = std::min(text.find('/'), text.size());
  const auto role = ParseRole(text.substr(0, slash));
  if (!role.ok()) return wrong;
  Identity identity{.role = *role, .node = {}, .uid = {}};
  const std::string_view more = slash < text.size() ? text.substr(slash + 1) : std::string_view();
  if (*role == Role::kUser) {
    identity.uid = ParseUid(more);
    if (!identity.uid) return wrong;
  } else if (slash < text.size()) {
    if (*role != Role::kNode || !IsPlain(more)) return wrong;
    identity.node = more;
  }
  return identity;
}

}  // namespace mosa
