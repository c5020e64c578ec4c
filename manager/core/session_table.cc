#include "manager/core/session_table.h"

namespace mosa::manager {

Session* SessionTable::Find(ClientId client) {
  const auto found = by_client.find(client);
  return found == by_client.end() ? nullptr : &found->second;
}

std::set<NodeId> SessionTable::WritersOf(FileId file) const {
  std::set<NodeId> nodes;
  const auto opens = write_opens.find(file);
  if (opens == write_opens.end()) return nodes;
  for (const ClientId client : opens->second)
    if (const auto session = by_client.find(client); session != by_client.end())
      nodes.insert(nodes_.NodeOfSession(session->second));
  return nodes;
}

CapabilityTerms SessionTable::TermsFor(ClientId client) const {
  const auto session = by_client.find(client);
  return {.era = session == by_client.end() ? 0 : session->second.era,
          .epoch = cluster_.counters.epoch};
}

void SessionTable::PushNodes() {
  if (by_client.empty()) return;
  NodesPush push;
  push.nodes.reserve(nodes_.by_id.size());
  for (const auto& [id, node] : nodes_.by_id) push.nodes.push_back(node.address);
  for (const auto& [client, session] : by_client) {
    if (!session.awaited) step_.effects.to_clients.push_back({client, Push(push)});
  }
}

bool SessionTable::IsOpenForWritingElsewhere(FileId file) const {
  const auto opens = write_opens.find(file);
  if (opens == write_opens.end()) return false;
  return !step_.actor || opens->second.size() > 1 ||
         !opens->second.contains(step_.actor->start.client);
}

}  // namespace mosa::manager
