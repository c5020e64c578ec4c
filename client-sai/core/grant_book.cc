#include "client-sai/core/grant_book.h"

#include <algorithm>
#include <utility>

#include "client-sai/core/rules.h"

namespace mosa::sai {
namespace {

constexpr Duration kIdleAfter = Seconds(5);
constexpr Duration kKnownFor = Seconds(1);

uint64_t Sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// An attempt is refused after this many grants that were smaller than it wanted and were gone again
// at its next look. Otherwise two mounts that both want more room than there is would take it from
// each other forever.
constexpr uint32_t kFruitlessMax = 8;

// The manager answered with nothing, and nobody else's answer has brought more; or what it granted
// was gone again too often.
bool GotNothing(GrantBook::Attempt& attempt, uint64_t held) {
  if (!attempt.asked || attempt.wanted_bytes == 0 || held > attempt.held_before) return false;
  if (attempt.granted_bytes >= attempt.wanted_bytes) return false;
  return attempt.granted_bytes == 0 || ++attempt.fruitless >= kFruitlessMax;
}

// By the time of that answer, an earlier one to this attempt is outdated.
GrantBook::Step AwaitAnswer(GrantBook::Attempt& attempt) {
  attempt = {.fruitless = attempt.fruitless};
  return {GrantBook::Next::kWait};
}

}  // namespace

GrantRequest GrantBook::Ask(NodeId node, Room& room, uint64_t bytes) {
  room.asking = true;
  return {node, bytes, std::exchange(room.unreported, 0), 0};
}

GrantBook::Step GrantBook::AskFor(NodeId node, Room& room, uint64_t bytes, Attempt& attempt) {
  attempt = {.asked = true,
             .wanted_bytes = bytes,
             .held_before = room.held,
             .fruitless = attempt.fruitless};
  return {Next::kAsk, Ask(node, room, bytes)};
}

bool GrantBook::TakeHeld(NodeId node, uint64_t bytes, Time now,
                         std::optional<GrantRequest>& ahead) {
  if (bytes == 0) return true;
  Room& room = rooms_[node];
  room.last_used = now;
  if (room.held < bytes) return false;
  room.held -= bytes;
  room.unreported += bytes;
  if (!room.asking && GrantIsLow(room.held, room.last_wish)) {
    room.last_wish = GrantWish(0, room.last_wish);
    ahead = Ask(node, room, room.last_wish);
  }
  return true;
}

GrantBook::Step GrantBook::Take(NodeId node, uint64_t bytes, Attempt& attempt, Time now) {
  Step step;
  if (TakeHeld(node, bytes, now, step.request)) return step;
  Room& room = rooms_[node];
  if (GotNothing(attempt, room.held)) return {Next::kRefused};
  if (room.asking) return AwaitAnswer(attempt);
  room.last_wish = GrantWish(bytes - room.held, room.last_wish);
  return AskFor(node, room, room.last_wish, attempt);
}

GrantBook::Step GrantBook::Reserve(NodeId node, uint64_t bytes, Attempt& attempt, Time now) {
  Room& room = rooms_[node];
  if (attempt.failed || GotNothing(attempt, room.held)) return {Next::kRefused};
  if (room.asking) return AwaitAnswer(attempt);
  room.last_used = now;
  if (room.heard && now - *room.heard <= kKnownFor) {
    const uint64_t available = Sum(room.held, room.free_bytes);
    if (available < bytes || !PassthroughWriteAllowed(available - bytes, room.limit_bytes))
      return {Next::kRefused};
    if (room.held >= bytes) {
      room.held -= bytes;
      room.reserved += bytes;
      return {};
    }
  }
  // The manager limits one grant: the caller asks until there is enough or nothing comes.
  return AskFor(node, room, bytes > room.held ? bytes - room.held : 0, attempt);
}

void GrantBook::Settle(NodeId node, const GrantReply* reply, Time now, Attempt* attempt) {
  Room& room = rooms_[node];
  if (!std::exchange(room.asking, false)) return;
  if (attempt != nullptr) attempt->failed = reply == nullptr;
  if (reply == nullptr) return;
  if (attempt != nullptr) attempt->granted_bytes = reply->granted_bytes;
  room.held = Sum(room.held, reply->granted_bytes);
  room.heard = now;
  room.free_bytes = reply->free_bytes;
  room.limit_bytes = reply->limit_bytes;
}

void GrantBook::PutBack(NodeId node, uint64_t bytes) {
  Room& room = rooms_[node];
  const uint64_t known = std::min(bytes, room.unreported);
  room.unreported -= known;
  room.held += known;
}

void GrantBook::Charge(NodeId node, uint64_t used_bytes, uint64_t reserved_bytes, Time now) {
  Room& room = rooms_[node];
  const uint64_t reserved = std::min({reserved_bytes, used_bytes, room.reserved});
  const uint64_t from_held = std::min(used_bytes - reserved, room.held);
  room.reserved -= reserved;
  room.held -= from_held;
  room.unreported += reserved + from_held;
  room.last_used = now;
}

void GrantBook::Unreserve(NodeId node, uint64_t bytes) {
  Room& room = rooms_[node];
  const uint64_t reserved = std::min(bytes, room.reserved);
  room.reserved -= reserved;
  room.held += reserved;
}

uint64_t GrantBook::TakeUnreported(NodeId node) {
  return std::exchange(rooms_[node].unreported, 0);
}

std::optional<GrantRequest> GrantBook::GiveBack(NodeId node) {
  Room& room = rooms_[node];
  if (room.held == 0 && room.unreported == 0) return std::nullopt;
  room.last_wish = 0;
  return GrantRequest{node, 0, std::exchange(room.unreported, 0), std::exchange(room.held, 0)};
}

std::vector<NodeId> GrantBook::Idle(Time now) const {
  std::vector<NodeId> idle;
  for (const auto& [node, room] : rooms_)
    if (room.held + room.unreported > 0 && now - room.last_used >= kIdleAfter) idle.push_back(node);
  return idle;
}

std::vector<NodeId> GrantBook::Nodes() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, room] : rooms_) nodes.push_back(node);
  return nodes;
}

std::vector<HeldGrant> GrantBook::Held() const {
  std::vector<HeldGrant> held;
  for (const auto& [node, room] : rooms_)
    if (room.held + room.reserved > 0) held.push_back({node, room.held + room.reserved});
  return held;
}

void GrantBook::ForgetUnreported() {
  for (auto& [node, room] : rooms_) room.unreported = 0;
}

}  // namespace mosa::sai
