#include "proto/convert/protocol_version.h"

#include <charconv>

#include "fmt/format.h"

namespace mosa {
namespace {

constexpr std::string_view kProduct = "mosa/";

std::string ForPeople(std::optional<ProtocolVersions> versions) {
  if (!versions) return "none that it would name";
  if (versions->oldest == versions->newest) return fmt::format("{}", versions->newest);
  return fmt::format("{} to {}", versions->oldest, versions->newest);
}

// A number from 1 on at the beginning of `text`, which then begins behind it.
std::optional<uint32_t> TakeNumber(std::string_view& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number == 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string ToText(ProtocolVersions versions) {
  return fmt::format("{}-{}", versions.oldest, versions.newest);
}

std::optional<ProtocolVersions> ParseProtocolVersions(std::string_view text) {
  const std::optional<uint32_t> oldest = TakeNumber(text);
  if (!oldest || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const std::optional<uint32_t> newest = TakeNumber(text);
  if (!newest || !text.empty() || *oldest > *newest) return std::nullopt;
  return ProtocolVersions{*oldest, *newest};
}

std::string UserAgentOf(ProtocolVersions versions) {
  return std::string(kProduct) + ToText(versions);
}

std::optional<ProtocolVersions> VersionsOfUserAgent(std::string_view user_agent) {
  if (!user_agent.starts_with(kProduct)) return std::nullopt;
  user_agent.remove_prefix(kProduct.size());
  return ParseProtocolVersions(user_agent.substr(0, user_agent.find(' ')));
}

Status CheckProtocol(ProtocolPeers peers, ProtocolVersions ours,
                     std::optional<ProtocolVersions> theirs) {
  if (theirs && theirs->newest >= ours.oldest && theirs->oldest <= ours.newest) return OkStatus();
  const bool peer_is_older = !theirs || theirs->newest < ours.oldest;
  return UnimplementedError(
      fmt::format("the {} speaks version {} of Mosa's protocol, the {} version {}: upgrade the {} "
                  "first",
                  peers.own, ForPeople(ours), peers.peer, ForPeople(theirs),
                  peer_is_older ? peers.peer : peers.own));
}

Status CheckManagerOf(const grpc::ClientContext& context, std::string_view own) {
  const auto& answered = context.GetServerInitialMetadata();
  const auto found = answered.find(kProtocolKey);
  std::optional<ProtocolVersions> versions;
  if (found != answered.end())
    versions = ParseProtocolVersions({found->second.data(), found->second.size()});
  return CheckProtocol({.own = own, .peer = "manager"}, kProtocolVersions, versions);
}

}  // namespace mosa
