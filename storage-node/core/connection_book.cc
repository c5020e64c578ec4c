#include "storage-node/core/connection_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace mosa::node {

ConnectionBook::Entry& ConnectionBook::At(ConnectionId id) {
  const auto found = entries_.find(id);
  MOSA_CHECK(found != entries_.end());
  return found->second;
}

void ConnectionBook::Forget(std::deque<ConnectionId>& queue, ConnectionId id) {
  queue.erase(std::remove(queue.begin(), queue.end(), id), queue.end());
}

ConnectionId ConnectionBook::Accept(const std::string& host, Time now,
                                    std::optional<ConnectionId>& displaced) {
  displaced.reset();
  const ConnectionId id{++last_id_};
  const Time until = now + limits_.proof_wait;
  entries_[id] = {.phase = Phase::kUnproven, .owner = host, .until = until};
  unproven_of_[host].insert(id);
  expiries_.insert({until, id});
  ++unproven_count_;
  if (unproven_count_ <= limits_.unproven_max) return id;
  // The newcomer counts for its host, and as the newest: the host's oldest is displaced.
  const auto most =
      std::max_element(unproven_of_.begin(), unproven_of_.end(), [](const auto& a, const auto& b) {
        // Among equal hosts, the one with the oldest connection.
        if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
        return *a.second.begin() > *b.second.begin();
      });
  displaced = *most->second.begin();
  ++turned_away_;
  Remove(*displaced);
  return id;
}

Status ConnectionBook::Prove(ConnectionId id, const std::string& client,
                             std::vector<ConnectionId>& parting, Time now) {
  Entry& entry = At(id);
  MOSA_CHECK(entry.phase == Phase::kUnproven);
  const auto known = clients_.find(client);
  const size_t own = known == clients_.end() ? 0 : known->second.connections;
  if (own >= limits_.per_client_max) {
    if (known->second.idle.empty()) {
      return ResourceExhaustedError(
          fmt::format("the client already has {} connections to this node, its limit is {}, and "
                      "all are in use: wait for one of them",
                      own, limits_.per_client_max));
    }
    parting.push_back(known->second.idle.begin()->second);
    Part(parting.back(), now);
  } else if (proven_count_ >= limits_.proven_max) {
    const auto longest = LongestIdle();
    if (!longest) {
      return UnavailableError(fmt::format(
          "the node already serves {} connections, its limit is {}, and all are in use: try again",
          proven_count_, limits_.proven_max));
    }
    parting.push_back(*longest);
    Part(*longest, now);
  }
  Leave(id, entry);
  entry.phase = Phase::kIdle;
  entry.owner = client;
  entry.idle_since = ++idle_count_;
  Client& owner = clients_[client];
  ++owner.connections;
  ++proven_count_;
  owner.idle.insert({entry.idle_since, id});
  idle_.insert({entry.idle_since, id});
  return OkStatus();
}

void ConnectionBook::Queue(ConnectionId id) {
  Entry& entry = At(id);
  if (entry.phase != Phase::kIdle) return;
  Client& client = clients_.at(entry.owner);
  client.idle.erase({entry.idle_since, id});
  idle_.erase({entry.idle_since, id});
  entry.phase = Phase::kQueued;
  queue_.push_back(id);
}

std::optional<ConnectionId> ConnectionBook::Next() {
  while (served_count_ < limits_.threads_max && !queue_.empty()) {
    const ConnectionId id = queue_.front();
    queue_.pop_front();
    Entry& entry = At(id);
    Client& client = clients_.at(entry.owner);
    if (client.served >= limits_.threads_per_client_max) {
      client.waiting.push_back(id);
      continue;
    }
    ++client.served;
    ++served_count_;
    entry.phase = Phase::kServed;
    return id;
  }
  return std::nullopt;
}

void ConnectionBook::Idle(ConnectionId id) {
  Entry& entry = At(id);
  MOSA_CHECK(entry.phase == Phase::kServed);
  Client& client = clients_.at(entry.owner);
  --client.served;
  --served_count_;
  if (!client.waiting.empty()) {
    queue_.push_back(client.waiting.front());
    client.waiting.pop_front();
  }
  entry.phase = Phase::kIdle;
  entry.idle_since = ++idle_count_;
  client.idle.insert({entry.idle_since, id});
  idle_.insert({entry.idle_since, id});
}

void ConnectionBook::Leave(ConnectionId id, Entry& entry) {
  switch (entry.phase) {
    case Phase::kUnproven: {
      const auto host = unproven_of_.find(entry.owner);
      host->second.erase(id);
      if (host->second.empty()) unproven_of_.erase(host);
      expiries_.erase({entry.until, id});
      --unproven_count_;
      return;
    }
    case Phase::kParting:
      expiries_.erase({entry.until, id});
      parting_.erase({entry.until, id});
      return;
    default:
      break;
  }
  Client& client = clients_.at(entry.owner);
  if (entry.phase == Phase::kIdle) {
    client.idle.erase({entry.idle_since, id});
    idle_.erase({entry.idle_since, id});
  } else if (entry.phase == Phase::kQueued) {
    Forget(queue_, id);
    Forget(client.waiting, id);
  } else {
    --client.served;
    --served_count_;
    if (!client.waiting.empty()) {
      queue_.push_back(client.waiting.front());
      client.waiting.pop_front();
    }
  }
  --proven_count_;
  LeaveClient(entry.owner, client);
}

void ConnectionBook::LeaveClient(const std::string& name, Client& client) {
  if (--client.connections == 0) clients_.erase(name);
}

void ConnectionBook::Remove(ConnectionId id) {
  Leave(id, At(id));
  entries_.erase(id);
}

void ConnectionBook::Part(ConnectionId id, Time now) {
  Entry& entry = At(id);
  if (entry.phase == Phase::kParting) return;
  MOSA_CHECK(entry.phase == Phase::kUnproven || entry.phase == Phase::kIdle);
  if (entry.phase == Phase::kIdle) ++turned_away_;
  Leave(id, entry);
  entry.phase = Phase::kParting;
  entry.until = now + limits_.parting_wait;
  expiries_.insert({entry.until, id});
  parting_.insert({entry.until, id});
}

std::optional<ConnectionId> ConnectionBook::LongestIdle() const {
  if (idle_.empty()) return std::nullopt;
  return idle_.begin()->second;
}

std::optional<ConnectionId> ConnectionBook::Spare() {
  ++turned_away_;
  if (!expiries_.empty()) return expiries_.begin()->second;
  return LongestIdle();
}

std::vector<ConnectionId> ConnectionBook::Expired(Time now) const {
  std::vector<ConnectionId> expired;
  for (const auto& [until, id] : expiries_) {
    if (until > now) break;
    expired.push_back(id);
  }
  size_t surplus = parting_.size() - std::min(parting_.size(), limits_.unproven_max);
  for (auto it = parting_.begin(); surplus > 0; ++it, --surplus)
    if (it->first > now) expired.push_back(it->second);
  return expired;
}

std::optional<Time> ConnectionBook::next_expiry() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

bool ConnectionBook::IsParting(ConnectionId id) const {
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.phase == Phase::kParting;
}

}  // namespace mosa::node
