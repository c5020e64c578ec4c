#include "client-sai/api/bulk_node_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "client-sai/api/bulk_transfer.h"
#include "client-sai/api/wait_budget.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/checksum_blocks.h"

namespace mosa::sai {
namespace {

v1::BulkRequest RequestFor(const ObjectTarget& target) {
  v1::BulkRequest request;
  request.set_file_id(target.file.value);
  request.set_capability(std::string(target.capability));
  return request;
}

// Sends the thread's current span with the request.
void SetSpan(v1::BulkRequest& request) {
  const SpanContext span = CurrentSpan();
  if (span.trace == 0) return;
  request.set_trace_id(span.trace);
  request.set_span_id(span.span);
}

Status CheckRange(uint64_t offset, uint64_t length) {
  if (offset <= kFileBytesMax && length <= kFileBytesMax - offset) return OkStatus();
  return InvalidArgumentError(
      fmt::format("{} bytes at offset {} exceed the maximum file size of {} bytes", length, offset,
                  kFileBytesMax));
}

}  // namespace

BulkNodeApi::BulkNodeApi(BulkNodeApiOptions options) : options_(std::move(options)) {
  MOSA_CHECK(options_.frame_bytes > 0 && options_.frame_bytes % kChecksumBlockBytes == 0 &&
             options_.frame_bytes <= kFramePayloadBytesMax && options_.frames_under_way > 0);
}

void BulkNodeApi::SetNodes(const std::vector<NodeAddress>& nodes) {
  const SystemMutexLock lock(mutex_);
  std::map<NodeId, ChannelRef> channels;
  for (const NodeAddress& node : nodes) {
    const auto found = channels_.find(node.node);
    if (found != channels_.end() && found->second->SameEndpoint(node)) {
      found->second->SetState(node.state);
      channels.insert(*found);
    } else {
      channels.emplace(node.node, std::make_shared<NodeChannel>(node, identity_, options_.channel,
                                                                options_.residence));
    }
  }
  // Ends calls in progress to addresses that are gone.
  for (const auto& [node, channel] : channels_) {
    const auto kept = channels.find(node);
    if (kept == channels.end() || kept->second != channel) channel->SetState(NodeState::kLost);
  }
  channels_ = std::move(channels);
}

void BulkNodeApi::SetIdentity(const BulkIdentity& identity) {
  const SystemMutexLock lock(mutex_);
  identity_ = identity;
  for (const auto& [node, channel] : channels_) channel->SetIdentity(identity);
}

Result<BulkNodeApi::ChannelRef> BulkNodeApi::Find(NodeId node) const {
  const SystemMutexLock lock(mutex_);
  const auto found = channels_.find(node);
  if (found == channels_.end())
    return UnavailableError(fmt::format("node {} is not known to this client", node.value));
  return found->second;
}

Time BulkNodeApi::Deadline() const {
  return SystemClock().Monotonic() + std::min(options_.call_wait, WaitBudget::ForTransfer());
}

Status BulkNodeApi::Run(NodeChannel& channel, const NodeChannel::Exchange& exchange,
                        const NodeChannel::Terms& terms) {
  const Status status = channel.Run(exchange, terms);
  if (status.ok()) WaitBudget::NoteAnswer();
  return status;
}

TimedRequest BulkNodeApi::Measure(size_t kind, const NodeChannel& channel) const {
  DurationTable* const table = options_.residence;
  return {table, DurationTable::ClassId{kind},
          table == nullptr ? DurationTable::kNoPeer : table->PeerOf(channel.node_name())};
}

Status BulkNodeApi::Read(const ObjectTarget& target, uint64_t offset, std::span<std::byte> out) {
  MOSA_RETURN_IF_ERROR(CheckRange(offset, out.size()));
  MOSA_ASSIGN_OR_RETURN(const ChannelRef channel, Find(target.node));
  TimedRequest timed = Measure(v1::BulkRequest::kRead, *channel);
  timed.set_bytes(out.size());
  Transfer transfer{.request = RequestFor(target),
                    .node_name = channel->Name(),
                    .frame_bytes = options_.frame_bytes,
                    .frames_under_way = options_.frames_under_way,
                    .deadline = Deadline()};
  SetSpan(transfer.request);
  Status answer;
  const auto exchange = [&](FrameSocket& socket) {
    answer = OkStatus();
    return TransferRead(transfer, socket, offset, out, answer);
  };
  MOSA_RETURN_IF_ERROR(
      Run(*channel, exchange, {.repeatable = true, .deadline = transfer.deadline}));
  return answer;
}

Status BulkNodeApi::Write(const ObjectTarget& target, uint64_t offset,
                          std::span<const std::byte> data) {
  MOSA_RETURN_IF_ERROR(CheckRange(offset, data.size()));
  MOSA_ASSIGN_OR_RETURN(const ChannelRef channel, Find(target.node));
  TimedRequest timed = Measure(v1::BulkRequest::kWrite, *channel);
  timed.set_bytes(data.size());
  Transfer transfer{.request = RequestFor(target),
                    .node_name = channel->Name(),
                    .frame_bytes = options_.frame_bytes,
                    .frames_under_way = options_.frames_under_way,
                    .deadline = Deadline()};
  SetSpan(transfer.request);
  Status answer;
  const auto exchange = [&](FrameSocket& socket) {
    answer = OkStatus();
    return TransferWrite(transfer, socket, offset, data, answer);
  };
  MOSA_RETURN_IF_ERROR(
      Run(*channel, exchange, {.repeatable = true, .deadline = transfer.deadline}));
  return answer;
}

Result<v1::BulkReply> BulkNodeApi::Call(const ObjectTarget& target, v1::BulkRequest request,
                                        Duration longer) {
  MOSA_ASSIGN_OR_RETURN(const ChannelRef channel, Find(target.node));
  const bool held = longer > Duration{};
  const TimedRequest timed =
      Measure(held ? kHeldSums : static_cast<size_t>(request.operation_case()), *channel);
  SetSpan(request);
  request.set_id(1);
  const Time deadline = Deadline() + longer;
  v1::BulkReply reply;
  const auto exchange = [&](FrameSocket& socket) {
    MOSA_RETURN_IF_ERROR(socket.SendFrame(request, {}, deadline));
    return ReceiveReply(socket, request.id(), reply, deadline).status();
  };
  MOSA_RETURN_IF_ERROR(Run(*channel, exchange, {.repeatable = true, .deadline = deadline}));
  MOSA_RETURN_IF_ERROR(StatusOf(reply, channel->Name()));
  return reply;
}

Status BulkNodeApi::Truncate(const ObjectTarget& target, uint64_t size_bytes) {
  v1::BulkRequest request = RequestFor(target);
  request.mutable_truncate()->set_size_bytes(size_bytes);
  return Call(target, std::move(request)).status();
}

Status BulkNodeApi::Allocate(const ObjectTarget& target, int mode, uint64_t offset,
                             uint64_t length) {
  v1::BulkRequest request = RequestFor(target);
  request.mutable_allocate()->set_mode(mode);
  request.mutable_allocate()->set_offset_bytes(offset);
  request.mutable_allocate()->set_length_bytes(length);
  return Call(target, std::move(request)).status();
}

Result<ObjectStatus> BulkNodeApi::Stat(const ObjectTarget& target) {
  v1::BulkRequest request = RequestFor(target);
  request.mutable_stat();
  MOSA_ASSIGN_OR_RETURN(const v1::BulkReply reply, Call(target, std::move(request)));
  return ObjectStatus{.size_bytes = reply.size_bytes(),
                      .allocated_bytes = reply.allocated_bytes(),
                      .modify_time = Time{reply.modify_time_ns()},
                      .sealed = reply.sealed()};
}

Result<uint64_t> BulkNodeApi::Seek(const ObjectTarget& target, uint64_t offset, bool data) {
  v1::BulkRequest request = RequestFor(target);
  request.mutable_seek()->set_offset_bytes(offset);
  request.mutable_seek()->set_data(data);
  MOSA_ASSIGN_OR_RETURN(const v1::BulkReply reply, Call(target, std::move(request)));
  return reply.offset_bytes();
}

// ---- for copying nodes

Status BulkNodeApi::NoteWritten(const ObjectTarget& target, uint64_t offset, uint64_t length) {
  v1::BulkRequest request = RequestFor(target);
  request.mutable_note_written()->set_offset_bytes(offset);
  request.mutable_note_written()->set_length_bytes(length);
  return Call(target, std::move(request)).status();
}

Result<BlockSums> BulkNodeApi::Sums(const ObjectTarget& target, const SumsQuestion& question) {
  v1::BulkRequest request = RequestFor(target);
  request.mutable_sums()->set_offset_bytes(question.range.begin);
  request.mutable_sums()->set_length_bytes(question.range.size());
  request.mutable_sums()->set_after_change(question.after_change);
  request.mutable_sums()->set_wait_ms(static_cast<uint32_t>(question.wait.ns / 1'000'000));
  for (const ByteRange& range : question.about) {
    request.mutable_sums()->add_about_ranges(range.begin);
    request.mutable_sums()->add_about_ranges(range.end);
  }
  MOSA_ASSIGN_OR_RETURN(const v1::BulkReply reply, Call(target, std::move(request), question.wait));
  const uint64_t blocks = BlocksTouched(question.range.begin, question.range.size());
  if (reply.blocks().size() != blocks || static_cast<uint64_t>(reply.crc32c_size()) != blocks ||
      reply.changed_ranges_size() % 2 != 0) {
    return InternalError(fmt::format("node {}: requested {} blocks, received {} with {} checksums",
                                     target.node.value, blocks, reply.blocks().size(),
                                     reply.crc32c_size()));
  }
  BlockSums sums{.object_bytes = reply.size_bytes(),
                 .blocks = {},
                 .quiet = reply.quiet(),
                 .incarnation = reply.incarnation(),
                 .change = reply.change(),
                 .all_changed = reply.all_changed(),
                 .changed = {},
                 .order = reply.order(),
                 .tail_settled = reply.tail_settled(),
                 .absent = reply.absent()};
  for (int i = 0; i < reply.changed_ranges_size(); i += 2) {
    const ByteRange range{reply.changed_ranges(i), reply.changed_ranges(i + 1)};
    MOSA_RETURN_IF_ERROR(CheckRange(range.begin, range.empty() ? 0 : range.size()));
    sums.changed.push_back(range);
  }
  for (uint64_t i = 0; i < blocks; ++i) {
    const auto bits = static_cast<unsigned char>(reply.blocks()[i]);
    sums.blocks.push_back({.crc = reply.crc32c(static_cast<int>(i)),
                           .has_data = (bits & kBlockHasData) != 0,
                           .settled = (bits & kBlockSettled) != 0,
                           .damaged = (bits & kBlockDamaged) != 0});
  }
  return sums;
}

// ---- descriptors

bool BulkNodeApi::IsLocal(NodeId node) const {
  const auto channel = Find(node);
  return channel.ok() && !options_.host_identity.empty() &&
         (*channel)->HasIdentity(options_.host_identity) && (*channel)->CanReachSocket();
}

Result<UniqueFd> BulkNodeApi::OpenLocal(const ObjectTarget& target, bool write) {
  MOSA_ASSIGN_OR_RETURN(const ChannelRef channel, Find(target.node));
  if (options_.host_identity.empty() || !channel->HasIdentity(options_.host_identity)) {
    return FailedPreconditionError(
        fmt::format("{} does not run on this host in this network namespace", channel->Name()));
  }
  const TimedRequest timed = Measure(v1::BulkRequest::kOpenLocal, *channel);
  v1::BulkRequest request = RequestFor(target);
  request.mutable_open_local()->set_write(write);
  SetSpan(request);
  request.set_id(1);
  const Time deadline = Deadline();
  v1::BulkReply reply;
  UniqueFd descriptor;
  const auto exchange = [&](FrameSocket& socket) {
    descriptor.reset();
    MOSA_RETURN_IF_ERROR(socket.SendFrame(request, {}, deadline));
    MOSA_RETURN_IF_ERROR(ReceiveReply(socket, request.id(), reply, deadline, &descriptor).status());
    return descriptor ? channel->CheckDescriptor(descriptor.get(), socket, write) : OkStatus();
  };
  MOSA_RETURN_IF_ERROR(
      Run(*channel, exchange,
          {.kind = NodeChannel::Kind::kUnix, .repeatable = true, .deadline = deadline}));
  MOSA_RETURN_IF_ERROR(StatusOf(reply, channel->Name()));
  if (!descriptor)
    return InternalError(fmt::format("{} replied without a file descriptor", channel->Name()));
  return descriptor;
}

Status BulkNodeApi::FinishLocalWrites(const ObjectTarget& target) {
  v1::BulkRequest request = RequestFor(target);
  request.mutable_finish_local_writes();
  return Call(target, std::move(request)).status();
}

Result<LocalWrites> BulkNodeApi::LookAtLocalWrites(const ObjectTarget& target,
                                                   const LookQuestion& question) {
  MOSA_ASSIGN_OR_RETURN(const ChannelRef channel, Find(target.node));
  const TimedRequest timed = Measure(v1::BulkRequest::kFinishLocalWrites, *channel);
  v1::BulkRequest request = RequestFor(target);
  v1::BulkFinishLocalWrites& look = *request.mutable_finish_local_writes();
  look.set_look(true);
  look.set_look_from_bytes(question.from_bytes);
  look.set_look_while_written(question.while_written);
  SetSpan(request);
  request.set_id(1);
  const Time deadline = Deadline();
  v1::BulkReply reply;
  const auto exchange = [&](FrameSocket& socket) {
    MOSA_RETURN_IF_ERROR(socket.SendFrame(request, {}, deadline));
    return ReceiveReply(socket, request.id(), reply, deadline).status();
  };
  // Not repeatable: the node remembers its previous answer.
  MOSA_RETURN_IF_ERROR(Run(*channel, exchange, {.repeatable = false, .deadline = deadline}));
  MOSA_RETURN_IF_ERROR(StatusOf(reply, channel->Name()));
  const v1::BulkLocalWrites& answer = reply.local_writes();
  if (!answer.complete() && answer.next_bytes() <= question.from_bytes)
    return InternalError(
        fmt::format("{} scanned file {} from offset {} but got no further than offset {}",
                    channel->Name(), target.file.value, question.from_bytes, answer.next_bytes()));
  return LocalWrites{.writers_left = answer.writers_left(),
                     .changed = answer.changed(),
                     .unknown = answer.unknown(),
                     .complete = answer.complete(),
                     .next_bytes = answer.next_bytes()};
}

}  // namespace mosa::sai
