#include "proto/convert/read_cost.h"

#include <utility>

#include "fmt/format.h"
#include "proto/convert/fields.h"

namespace mosa {

namespace {

void Write(const HostReadCost& value, wire::HostReadCost* out) {
  out->set_host(value.host);
  out->set_time_ns(value.cost.time.ns);
  out->set_local_bytes(value.cost.local_bytes);
  out->set_remote_bytes(value.cost.remote_bytes);
}
HostReadCost Read(const wire::HostReadCost& in, size_t hosts, FieldChecker& check) {
  if (in.host() >= hosts)
    check.Wrong("sets.hosts.host",
                fmt::format("is {}, but there are only {} hosts", in.host(), hosts));
  return {.host = in.host(),
          .cost = {.time = Nanoseconds(in.time_ns()),
                   .local_bytes = check.Number("sets.hosts.local_bytes", in.local_bytes()),
                   .remote_bytes = check.Number("sets.hosts.remote_bytes", in.remote_bytes())}};
}

}  // namespace

void ToProto(const ReadCostQuery& query, v1::PredictReadsRequest* out) {
  for (const auto& set : query.sets) {
    v1::ReadSet* const item = out->add_sets();
    for (const std::string& path : set) item->add_paths(path);
  }
  for (const std::string& host : query.hosts) out->add_hosts(host);
}

Result<ReadCostQuery> FromProto(const v1::PredictReadsRequest& message) {
  FieldChecker check;
  ReadCostQuery query;
  if (message.sets_size() == 0) check.Wrong("sets", "is empty: name at least one set of files");
  int paths = 0;
  for (const v1::ReadSet& set : message.sets()) paths += set.paths_size();
  if (check.Count("sets", message.sets_size(), kReadSetsMax) &&
      check.Count("sets.paths", paths, kReadPathsMax)) {
    for (const v1::ReadSet& set : message.sets()) {
      auto& into = query.sets.emplace_back();
      for (const std::string& path : set.paths())
        into.push_back(check.Bytes("sets.paths", path, kLongPathBytesMax));
    }
  }
  if (check.Count("hosts", message.hosts_size(), kNodesMax))
    for (const std::string& host : message.hosts())
      query.hosts.push_back(check.Name("hosts", host));
  if (!check.ok()) return check.status();
  return query;
}

void ToProto(const ReadCostAnswer& answer, v1::PredictReadsResponse* out) {
  for (const std::string& host : answer.hosts) out->add_hosts(host);
  for (const ReadSetCost& set : answer.sets) {
    v1::ReadSetCost* const item = out->add_sets();
    if (set.failure) Write(*set.failure, item->mutable_failure());
    for (const HostReadCost& host : set.hosts) Write(host, item->add_hosts());
  }
}

Result<ReadCostAnswer> FromProto(const v1::PredictReadsResponse& message) {
  FieldChecker check;
  ReadCostAnswer answer;
  if (!check.Count("hosts", message.hosts_size(), kNodesMax) ||
      !check.Count("sets", message.sets_size(), kReadSetsMax))
    return check.status();
  for (const std::string& host : message.hosts()) answer.hosts.push_back(check.Name("hosts", host));
  for (const v1::ReadSetCost& set : message.sets()) {
    ReadSetCost& into = answer.sets.emplace_back();
    if (set.has_failure()) into.failure = Read(set.failure(), check);
    if (!check.Count("sets.hosts", set.hosts_size(), answer.hosts.size())) break;
    for (const v1::HostReadCost& host : set.hosts())
      into.hosts.push_back(Read(host, answer.hosts.size(), check));
  }
  if (!check.ok()) return check.status();
  return answer;
}

}  // namespace mosa
