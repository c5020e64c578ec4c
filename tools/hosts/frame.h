// How the runner's processes talk over a socket or a pipe: a message is its length and a
// MessagePack value, which holds bytes that are no text as they are. Pure.
#ifndef MOSA_TOOLS_HOSTS_FRAME_H_
#define MOSA_TOOLS_HOSTS_FRAME_H_

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace mosa::cli {

inline std::string PackFrame(const nlohmann::json& value) {
  std::string text;
  nlohmann::json::to_msgpack(value, text);
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

// Takes the first message off, if it is whole.
inline std::optional<nlohmann::json> UnpackFrame(std::string& received) {
  uint64_t size = 0;
  if (received.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, received.data(), sizeof size);
  if (received.size() - sizeof size < size) return std::nullopt;
  std::optional<nlohmann::json> value;
  value.emplace(nlohmann::json::from_msgpack(received.substr(sizeof size, size), true, false));
  received.erase(0, sizeof size + size);
  return value;
}

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_FRAME_H_
