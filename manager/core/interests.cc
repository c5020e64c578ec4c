#include "manager/core/interests.h"

#include <bit>
#include <cstddef>
#include <iterator>

namespace mosa::manager {
namespace {

constexpr uint32_t kNearSlots = 64;

}  // namespace

void Interests::Add(Session& session, FileId file, Inode& inode) {
  if (session.slot < kNearSlots) {
    const uint64_t bit = uint64_t{1} << session.slot;
    if (!(inode.interest & bit)) ++session.interests;
    inode.interest |= bit;
  } else if (far_[file].insert(session.slot).second) {
    ++session.interests;
  }
}

void Interests::Drop(Session& session, FileId file, Inode& inode) {
  if (session.slot < kNearSlots) {
    const uint64_t bit = uint64_t{1} << session.slot;
    if (inode.interest & bit) --session.interests;
    inode.interest &= ~bit;
    return;
  }
  const auto found = far_.find(file);
  if (found == far_.end()) return;
  if (found->second.erase(session.slot) > 0) --session.interests;
  if (found->second.empty()) far_.erase(found);
}

bool Interests::Has(const Session& session, FileId file, const Inode& inode) const {
  if (session.slot < kNearSlots) return (inode.interest & uint64_t{1} << session.slot) != 0;
  const auto found = far_.find(file);
  return found != far_.end() && found->second.contains(session.slot);
}

std::vector<ClientId> Interests::Of(FileId file, const Inode& inode, ClientId except) const {
  std::vector<ClientId> clients;
  for (uint64_t bits = inode.interest & live_slots_; bits != 0; bits &= bits - 1) {
    const ClientId client = slots_[static_cast<size_t>(std::countr_zero(bits))];
    if (client != except) clients.push_back(client);
  }
  if (far_.empty()) return clients;
  if (const auto far = far_.find(file); far != far_.end()) {
    for (const uint32_t slot : far->second) {
      if (slots_[slot] != except) clients.push_back(slots_[slot]);
    }
  }
  return clients;
}

// Bits of a retired slot may remain in any inode. They are all cleared at once when no clean slot
// is left, that is, after 64 sessions have ended.
uint32_t Interests::TakeSlot(ClientId client, const std::function<void(uint64_t bits)>& clear) {
  const auto first_clean = [this] {
    return static_cast<uint32_t>(std::countr_one(live_slots_ | retired_slots_));
  };
  uint32_t slot = first_clean();
  if (slot >= kNearSlots && retired_slots_ != 0) {
    clear(retired_slots_);
    retired_slots_ = 0;
    slot = first_clean();
  }
  if (slot >= kNearSlots) {
    while (slot < slots_.size() && slots_[slot] != ClientId()) ++slot;
  } else {
    live_slots_ |= uint64_t{1} << slot;
  }
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  slots_[slot] = client;
  return slot;
}

void Interests::RetireSlot(uint32_t slot) {
  slots_[slot] = ClientId();
  if (slot < kNearSlots) {
    live_slots_ &= ~(uint64_t{1} << slot);
    retired_slots_ |= uint64_t{1} << slot;
    return;
  }
  for (auto entry = far_.begin(); entry != far_.end();) {
    entry->second.erase(slot);
    entry = entry->second.empty() ? far_.erase(entry) : std::next(entry);
  }
}

}  // namespace mosa::manager
