#include "proto/convert/node.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "fmt/format.h"
#include "proto/convert/fields.h"

namespace mosa {

namespace {

// Calls `use(page, is_last)` for consecutive parts of `files`, at least once.
template <typename Use>
void ForEachPage(std::span<const FileId> files, const Use& use) {
  do {
    const std::span<const FileId> page = files.first(std::min(files.size(), kObjectsPerPage));
    files = files.subspan(page.size());
    use(page, files.empty());
  } while (!files.empty());
}

void Put(const NodeRegistered& value, std::vector<wire::ManagerToNode>& out) {
  wire::NodeRegistered* const item = out.emplace_back().mutable_registered();
  item->set_node_id(value.node.value);
  item->set_cluster_name(value.cluster_name);
  item->set_capability_key(value.capability_key);
  item->set_now_ns(value.now.ns);
  item->set_epoch(value.epoch);
  item->set_bulk_tls(value.bulk_tls);
}
void Put(const DropObjectsOrder& value, std::vector<wire::ManagerToNode>& out) {
  ForEachPage(value.files, [&](std::span<const FileId> page, bool is_last) {
    wire::DropObjectsOrder* const item = out.emplace_back().mutable_drop_objects();
    for (const FileId file : page) {
      item->add_file_ids(file.value);
      const auto at = value.generations.find(file);
      if (at == value.generations.end()) continue;
      wire::DroppedGeneration* const dropped = item->add_generations();
      dropped->set_file_id(file.value);
      dropped->set_generation(at->second);
    }
    // The order is carried out when its last page is.
    if (is_last) item->set_number(value.number);
  });
}
DropObjectsOrder Read(const wire::DropObjectsOrder& in, FieldChecker& check) {
  DropObjectsOrder order{
      .files = ReadIds<FileId>("drop_objects.file_ids", in.file_ids(), kObjectsPerPage, check),
      .number = in.number()};
  if (in.generations().empty()) return order;
  const std::set<FileId> dropped(order.files.begin(), order.files.end());
  for (const wire::DroppedGeneration& each : in.generations()) {
    const FileId file{each.file_id()};
    if (!dropped.contains(file) || !order.generations.emplace(file, each.generation()).second)
      check.Wrong("drop_objects.generations", "names a file that is not dropped, or one twice");
  }
  return order;
}
void Put(const CopyOrder& value, std::vector<wire::ManagerToNode>& out) {
  wire::CopyOrder* const item = out.emplace_back().mutable_copy();
  item->set_file_id(value.file.value);
  item->set_order(value.order);
  item->set_data_version(value.data_version);
  item->set_size_bytes(value.size_bytes);
  item->set_follow(value.follow);
  Write(value.sources, item->mutable_sources());
  WriteList(value.nodes, item->mutable_nodes());
  for (const CopyRelay& relay : value.relays) {
    wire::CopyRelay* const out_relay = item->add_relays();
    out_relay->set_node_id(relay.node.value);
    out_relay->set_order(relay.order);
  }
  item->set_epoch(value.epoch);
  WriteIds(value.empty_sources, item->mutable_empty_source_ids());
  item->set_generation(value.generation);
}
CopyOrder Read(const wire::CopyOrder& in, FieldChecker& check) {
  check.Present("copy.sources", in.has_sources());
  std::vector<CopyRelay> relays;
  if (check.Count("copy.relays", in.relays_size(), kNodesMax))
    for (const wire::CopyRelay& relay : in.relays())
      relays.push_back({NodeId{relay.node_id()}, relay.order()});
  return {.file = FileId{in.file_id()},
          .order = in.order(),
          .data_version = in.data_version(),
          .size_bytes = check.Number("copy.size_bytes", in.size_bytes(), kFileBytesMax),
          .follow = in.follow(),
          .sources = Read(in.sources(), check),
          .nodes = ReadList<NodeAddress>("copy.nodes", in.nodes(), kNodesMax, check),
          .relays = std::move(relays),
          .epoch = in.epoch(),
          .empty_sources =
              ReadIds<NodeId>("copy.empty_source_ids", in.empty_source_ids(), kNodesMax, check),
          .generation = in.generation()};
}
void Put(const CancelCopyOrder& value, std::vector<wire::ManagerToNode>& out) {
  out.emplace_back().mutable_cancel_copy()->set_file_id(value.file.value);
}
void Put(const AsideOrder& value, std::vector<wire::ManagerToNode>& out) {
  ForEachPage(value.files, [&](std::span<const FileId> page, bool) {
    wire::AsideOrder* const item = out.emplace_back().mutable_aside();
    item->set_action(static_cast<wire::AsideAction>(value.action));  // In the same order.
    for (const FileId file : page) item->add_file_ids(file.value);
  });
}
void Put(const NodeOrder& value, std::vector<wire::ManagerToNode>& out) {
  std::visit([&out](const auto& order) { Put(order, out); }, value);
}
void Put(const Failure& value, std::vector<wire::ManagerToNode>& out) {
  Write(value, out.emplace_back().mutable_refused());
}
void Put(const ResidenceQuery& value, std::vector<wire::ManagerToNode>& out) {
  Write(value, out.emplace_back().mutable_residence_query());
}

NodeRegistration Read(const wire::NodeRegistration& in, FieldChecker& check) {
  if (in.name().empty()) check.Wrong("registration.name", "is empty");
  if (in.address().empty()) check.Wrong("registration.address", "is empty");
  return {
      .name = check.Name("registration.name", in.name()),
      .cluster_name = check.Name("registration.cluster_name", in.cluster_name()),
      .incarnation = in.incarnation(),
      .address = check.Bytes("registration.address", in.address(), kPathBytesMax),
      .socket_path = check.Bytes("registration.socket_path", in.socket_path(), kPathBytesMax),
      .host_identity = check.Bytes("registration.host_identity", in.host_identity(), kPathBytesMax),
      .limit_bytes = check.Number("registration.limit_bytes", in.limit_bytes()),
      .used_bytes = check.Number("registration.used_bytes", in.used_bytes()),
      .objects = {},
      .sizes = {},
      .aside = {}};
}

NodeObjectsPage Read(const wire::NodeObjects& in, FieldChecker& check) {
  NodeObjectsPage page{
      .files = ReadIds<FileId>("objects.file_ids", in.file_ids(), kObjectsPerPage, check),
      .sizes = {},
      .last = in.last()};
  const int count = in.size_bytes_size();
  if (count != in.allocated_bytes_size() || count != in.modify_time_ns_size() ||
      (count != 0 && count != in.file_ids_size())) {
    check.Wrong("objects.size_bytes", "must have one entry for each object");
    return page;
  }
  for (int i = 0; i < count; ++i)
    page.sizes.push_back(
        {.size_bytes = check.Number("objects.size_bytes", in.size_bytes(i), kFileBytesMax),
         .allocated_bytes = check.Number("objects.allocated_bytes", in.allocated_bytes(i)),
         .modified = {static_cast<int64_t>(in.modify_time_ns(i))}});
  return page;
}

DataRuns ReadRuns(const wire::DataRuns& in, uint64_t& ranges, FieldChecker& check) {
  const DataRuns runs{.begin = check.Number("aside.data.begin", in.begin(), kFileBytesMax),
                      .length = check.Number("aside.data.length", in.length(), kFileBytesMax),
                      .stride = check.Number("aside.data.stride", in.stride(), kFileBytesMax),
                      .count = check.Number("aside.data.count", in.count(), kDataRangesMax)};
  ranges += runs.count;
  if (runs.length == 0 || runs.count == 0) check.Wrong("aside.data", "has an empty range");
  if (runs.count > 1 && runs.stride < runs.length) check.Wrong("aside.data", "overlaps itself");
  if (runs.count > 1 && runs.stride > kFileBytesMax / runs.count)
    check.Wrong("aside.data", "ends beyond the largest file");
  if (ranges > kDataRangesMax) check.Wrong("aside.data", "has too many ranges");
  return runs;
}

AsideObject Read(const wire::AsideObject& in, FieldChecker& check) {
  AsideObject object{.file = FileId{in.file_id()},
                     .size_bytes = check.Number("aside.size_bytes", in.size_bytes(), kFileBytesMax),
                     .allocated_bytes = check.Number("aside.allocated_bytes", in.allocated_bytes()),
                     .modified = {in.modify_time_ns()},
                     .data = {}};
  if (!check.Count("aside.data", in.data_size(), kDataRunsMax)) return object;
  uint64_t ranges = 0;
  for (const wire::DataRuns& runs : in.data()) {
    object.data.push_back(ReadRuns(runs, ranges, check));
    if (!check.ok()) return object;
  }
  return object;
}

NodeAsidePage Read(const wire::NodeAside& in, FieldChecker& check) {
  NodeAsidePage page{.objects = {}, .last = in.last()};
  if (!check.Count("aside.objects", in.objects_size(), kAsidePerPage)) return page;
  for (const wire::AsideObject& object : in.objects()) {
    page.objects.push_back(Read(object, check));
    if (!check.ok()) break;
  }
  return page;
}

CopyReport Read(const wire::CopyReport& in, FieldChecker& check) {
  CopyReport report{
      .file = FileId{in.file_id()},
      .order = in.order(),
      .data_version = in.data_version(),
      .copied_bytes = check.Number("copy_report.copied_bytes", in.copied_bytes()),
      .fetched_bytes = check.Number("copy_report.fetched_bytes", in.fetched_bytes()),
      .allocated_bytes = check.Number("copy_report.allocated_bytes", in.allocated_bytes()),
      .done = in.done(),
      .failure = std::nullopt};
  if (in.has_failure()) report.failure = Read(in.failure(), check);
  return report;
}

NodeMessage ReadMessage(const wire::NodeMessage& in, FieldChecker& check) {
  switch (in.message_case()) {
    case wire::NodeMessage::kRegistration:
      return Read(in.registration(), check);
    case wire::NodeMessage::kObjects:
      return Read(in.objects(), check);
    case wire::NodeMessage::kHeartbeat:
      return Read(in.heartbeat(), check);
    case wire::NodeMessage::kCopyReport:
      return Read(in.copy_report(), check);
    case wire::NodeMessage::kResidence:
      return Read(in.residence(), check);
    case wire::NodeMessage::kAside:
      return Read(in.aside(), check);
    case wire::NodeMessage::MESSAGE_NOT_SET:
      break;
  }
  check.Wrong("message", "is of a kind that this version does not know");
  return {};
}

ManagerToNode ReadMessage(const wire::ManagerToNode& in, FieldChecker& check) {
  switch (in.message_case()) {
    case wire::ManagerToNode::kRegistered:
      return NodeRegistered{
          .node = NodeId{in.registered().node_id()},
          .cluster_name = check.Name("registered.cluster_name", in.registered().cluster_name()),
          .capability_key = check.Bytes("registered.capability_key",
                                        in.registered().capability_key(), kOpaqueBytesMax),
          .now = {in.registered().now_ns()},
          .epoch = in.registered().epoch(),
          .bulk_tls = in.registered().bulk_tls()};
    case wire::ManagerToNode::kRefused:
      return Read(in.refused(), check);
    case wire::ManagerToNode::kDropObjects:
      return Read(in.drop_objects(), check);
    case wire::ManagerToNode::kCopy:
      return Read(in.copy(), check);
    case wire::ManagerToNode::kCancelCopy:
      return CancelCopyOrder{FileId{in.cancel_copy().file_id()}};
    case wire::ManagerToNode::kResidenceQuery:
      return Read(in.residence_query(), check);
    case wire::ManagerToNode::kAside:
      return AsideOrder{.action = check.Enum("aside.action", static_cast<int>(in.aside().action()),
                                             AsideAction::kSetAside, AsideAction::kDiscard),
                        .files = ReadIds<FileId>("aside.file_ids", in.aside().file_ids(),
                                                 kObjectsPerPage, check)};
    case wire::ManagerToNode::MESSAGE_NOT_SET:
      break;
  }
  check.Wrong("message", "is of a kind that this version does not know");
  return {};
}

}  // namespace

std::vector<v1::NodeMessage> ToProto(const NodeRegistration& registration) {
  std::vector<v1::NodeMessage> messages;
  v1::NodeRegistration* const head = messages.emplace_back().mutable_registration();
  head->set_name(registration.name);
  head->set_cluster_name(registration.cluster_name);
  head->set_incarnation(registration.incarnation);
  head->set_address(registration.address);
  head->set_socket_path(registration.socket_path);
  head->set_host_identity(registration.host_identity);
  head->set_limit_bytes(registration.limit_bytes);
  head->set_used_bytes(registration.used_bytes);
  if (!registration.aside.empty())
    for (v1::NodeMessage& page : ToProto(NodeAside{registration.aside}))
      messages.push_back(std::move(page));
  const bool has_sizes = registration.sizes.size() == registration.objects.size();
  size_t next = 0;
  ForEachPage(registration.objects, [&](std::span<const FileId> page, bool last) {
    v1::NodeObjects* const item = messages.emplace_back().mutable_objects();
    for (const FileId file : page) item->add_file_ids(file.value);
    for (size_t i = 0; has_sizes && i < page.size(); ++i, ++next) {
      const HeldSize& size = registration.sizes[next];
      item->add_size_bytes(size.size_bytes);
      item->add_allocated_bytes(size.allocated_bytes);
      item->add_modify_time_ns(static_cast<uint64_t>(size.modified.ns));
    }
    item->set_last(last);
  });
  return messages;
}

std::vector<v1::NodeMessage> ToProto(const NodeAside& aside) {
  std::vector<v1::NodeMessage> messages;
  size_t next = 0;
  do {
    v1::NodeAside* const page = messages.emplace_back().mutable_aside();
    for (size_t i = 0; i < kAsidePerPage && next < aside.objects.size(); ++i, ++next) {
      const AsideObject& object = aside.objects[next];
      v1::AsideObject* const item = page->add_objects();
      item->set_file_id(object.file.value);
      item->set_size_bytes(object.size_bytes);
      item->set_allocated_bytes(object.allocated_bytes);
      item->set_modify_time_ns(object.modified.ns);
      for (const DataRuns& runs : object.data) {
        v1::DataRuns* const out = item->add_data();
        out->set_begin(runs.begin);
        out->set_length(runs.length);
        out->set_stride(runs.stride);
        out->set_count(runs.count);
      }
    }
    page->set_last(next == aside.objects.size());
  } while (next < aside.objects.size());
  return messages;
}

std::vector<v1::ManagerToNode> ToProto(const ManagerToNode& message) {
  std::vector<v1::ManagerToNode> messages;
  std::visit([&messages](const auto& value) { Put(value, messages); }, message);
  return messages;
}

void ToProto(const NodeHeartbeat& heartbeat, v1::NodeMessage* out) {
  Write(heartbeat, out->mutable_heartbeat());
}

void ToProto(const CopyReport& report, v1::NodeMessage* out) {
  wire::CopyReport* const item = out->mutable_copy_report();
  item->set_file_id(report.file.value);
  item->set_order(report.order);
  item->set_data_version(report.data_version);
  item->set_copied_bytes(report.copied_bytes);
  item->set_fetched_bytes(report.fetched_bytes);
  item->set_allocated_bytes(report.allocated_bytes);
  item->set_done(report.done);
  if (report.failure) Write(*report.failure, item->mutable_failure());
}

void ToProto(const ResidenceReport& report, v1::NodeMessage* out) {
  Write(report, out->mutable_residence());
}

Result<NodeMessage> FromProto(const v1::NodeMessage& message) {
  FieldChecker check;
  NodeMessage value = ReadMessage(message, check);
  if (!check.ok()) return check.status();
  return value;
}

Result<ManagerToNode> FromProto(const v1::ManagerToNode& message) {
  FieldChecker check;
  ManagerToNode value = ReadMessage(message, check);
  if (!check.ok()) return check.status();
  return value;
}

Status AppendPage(const NodeObjectsPage& page, NodeRegistration& registration) {
  const size_t count = registration.objects.size() + page.files.size();
  if (count > kObjectsPerNodeMax) {
    return InvalidArgumentError(
        fmt::format("node {} reports more than {} objects", registration.name, kObjectsPerNodeMax));
  }
  // Either every page has sizes, or they say nothing.
  if (registration.sizes.size() == registration.objects.size())
    registration.sizes.insert(registration.sizes.end(), page.sizes.begin(), page.sizes.end());
  registration.objects.insert(registration.objects.end(), page.files.begin(), page.files.end());
  if (page.last && registration.sizes.size() != count) registration.sizes.clear();
  return OkStatus();
}

Status AppendPage(NodeAsidePage page, std::vector<AsideObject>& objects) {
  if (objects.size() + page.objects.size() > kAsidePerNodeMax) {
    return InvalidArgumentError(
        fmt::format("a node has put aside more than {} objects", kAsidePerNodeMax));
  }
  std::move(page.objects.begin(), page.objects.end(), std::back_inserter(objects));
  return OkStatus();
}

}  // namespace mosa
