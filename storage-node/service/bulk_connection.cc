#include "storage-node/service/bulk_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/model/checksum_blocks.h"
#include "common/model/messages.h"

namespace mosa::node {
namespace {

using Operation = v1::BulkRequest::OperationCase;

// Once a frame has begun, it and its answer must be complete within this time.
constexpr Duration kFrameTime = Seconds(30);
// How long a thread stays with a connection without a request, so that a series of requests needs
// no hand-over.
constexpr Duration kStay = Milliseconds(50);
constexpr Duration kStaySlice = Milliseconds(10);
// Maximum time for which an answer is held.
constexpr Duration kAnswerHoldMax = Seconds(1);
// A larger message's memory is not kept for the next one. Parsed, it may take many times this.
constexpr size_t kMessageKeptBytesMax = 4 << 10;

template <typename Message>
void FreeIfLarge(Message& message) {
  if (message.ByteSizeLong() > kMessageKeptBytesMax) message = Message();
}

ErrorReason ReasonOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return ErrorReason::kNone;
    case StatusCode::kResourceExhausted:
      return ErrorReason::kNoSpace;
    case StatusCode::kDataLoss:
      return ErrorReason::kCorrupt;
    case StatusCode::kPermissionDenied:
      return ErrorReason::kAccessDenied;
    case StatusCode::kInvalidArgument:
      return ErrorReason::kInvalid;
    case StatusCode::kNotFound:
    case StatusCode::kOutOfRange:
      return ErrorReason::kNoEntry;
    case StatusCode::kAborted:
      return ErrorReason::kStale;
    case StatusCode::kUnimplemented:
      return ErrorReason::kUnsupported;
    default:
      return ErrorReason::kBusy;
  }
}

Status CheckRange(uint64_t offset, uint64_t length) {
  if (offset > kFileBytesMax || length > kFileBytesMax - offset) {
    return InvalidArgumentError(
        fmt::format("{} bytes at offset {} exceed the maximum file size of {} bytes", length,
                    offset, kFileBytesMax));
  }
  return OkStatus();
}

// Returns the ranges that a held question waits for.
std::vector<ByteRange> AboutOf(const v1::BulkSums& asked) {
  std::vector<ByteRange> about;
  for (int i = 0; i + 1 < asked.about_ranges_size(); i += 2)
    about.push_back({asked.about_ranges(i), asked.about_ranges(i + 1)});
  return about;
}

Status CheckSums(const v1::BulkSums& asked) {
  if (asked.length_bytes() > kSumsBytesMax) {
    return InvalidArgumentError(
        fmt::format("cannot send checksums of {} bytes at once: at most {} are allowed",
                    asked.length_bytes(), kSumsBytesMax));
  }
  if (asked.about_ranges_size() % 2 != 0 ||
      static_cast<size_t>(asked.about_ranges_size()) > 2 * kAboutRangesMax) {
    return InvalidArgumentError(fmt::format(
        "a query about {} bounds of ranges is invalid: they must come in pairs, at most {}",
        asked.about_ranges_size(), kAboutRangesMax));
  }
  return CheckRange(asked.offset_bytes(), asked.length_bytes());
}

DurationTable::ClassId KindOf(const v1::BulkRequest& request) {
  const bool held = request.has_sums() && request.sums().wait_ms() > 0;
  if (request.has_hello() || request.has_proof())
    return DurationTable::ClassId{static_cast<size_t>(Operation::OPERATION_NOT_SET)};
  return DurationTable::ClassId{held ? kHeldSums : static_cast<size_t>(request.operation_case())};
}

Status DamagedOnTheWay(uint64_t file, uint64_t offset, uint64_t length) {
  return DataLossError(
      fmt::format("the {} bytes for offset {} of file {} arrived damaged: checksum mismatch",
                  length, offset, file));
}

}  // namespace

BulkConnection::BulkConnection(FrameSocket socket, BulkConnectionOptions options,
                               ObjectEngine& engine, const AccessGate& gate, const Copier& copier,
                               RareLog& closings)
    : options_(std::move(options)),
      engine_(engine),
      gate_(gate),
      copier_(copier),
      closings_(closings),
      socket_(std::move(socket)),
      peer_(engine_.residence().requests.PeerOf(options_.peer_host)) {
  shown_.client = options_.client;
}

bool BulkConnection::Serve(std::span<std::byte> scratch, const std::atomic<bool>& others_wait) {
  scratch_ = scratch;
  others_wait_ = &others_wait;
  while (true) {
    const Status status = ServeOne();
    if (!status.ok()) {
      // A peer that closes is normal; one that violates the protocol, or stalls, is logged.
      if (status.code() != StatusCode::kUnavailable)
        closings_.Warning("connection from {} closed: {}", options_.peer, MessageOf(status));
      return false;
    }
    // The next request may be long in coming.
    FreeIfLarge(request_);
    FreeIfLarge(reply_);
    for (Duration stayed; !socket_.HasFrame(kStaySlice); stayed = stayed + kStaySlice)
      if (others_wait || stayed >= kStay) return true;
    if (others_wait) return true;  // The connection queues again.
  }
}

Status BulkConnection::ServeOne() {
  deadline_ = SystemClock().Monotonic() + kFrameTime;
  MOSA_ASSIGN_OR_RETURN(const FramePrefix prefix, socket_.ReceiveStart(request_, deadline_));
  TimedRequest timed(&engine_.residence().requests, KindOf(request_), peer_,
                     {.trace = request_.trace_id(), .span = request_.span_id()});
  timed.set_bytes(request_.has_read() ? request_.read().length_bytes() : prefix.payload_bytes);
  return Answer(prefix.payload_bytes);
}

Status BulkConnection::Answer(uint32_t payload_bytes) {
  reply_.Clear();
  reply_.set_id(request_.id());
  const Result<Capability> capability =
      gate_.Check(request_.capability(), FileId{request_.file_id()}, NeedsWriteRight(), shown_);
  if (!capability.ok()) return Refuse(capability.status(), payload_bytes);
  const Status wrong = CheckRequest(payload_bytes);
  if (!wrong.ok()) return Refuse(wrong, payload_bytes);
  if (NeedsWriteRight()) {
    MOSA_RETURN_IF_ERROR(CheckAsked());
    const Status admitted = engine_.CheckChanger(capability->file, changer());
    if (!admitted.ok()) return Refuse(admitted, payload_bytes);
  }
  switch (request_.operation_case()) {
    case Operation::kRead:
      return AnswerRead();
    case Operation::kWrite:
      return AnswerWrite(payload_bytes);
    case Operation::kOpenLocal:
      return AnswerOpenLocal();
    default:
      return AnswerWith(Simple(*capability));
  }
}

Status BulkConnection::CheckAsked() const {
  if (!socket_.PeerIsGone()) return OkStatus();
  return UnavailableError("the peer has abandoned the request");
}

bool BulkConnection::NeedsWriteRight() const {
  switch (request_.operation_case()) {
    case Operation::kWrite:
    case Operation::kTruncate:
    case Operation::kAllocate:
    case Operation::kFinishLocalWrites:
    case Operation::kNoteWritten:
      return true;
    case Operation::kOpenLocal:
      return request_.open_local().write();
    default:
      return false;
  }
}

Status BulkConnection::CheckRequest(uint32_t payload_bytes) const {
  const Operation operation = request_.operation_case();
  if (payload_bytes > 0 && operation != Operation::kWrite) {
    return InvalidArgumentError(
        fmt::format("a request of kind {} must have no payload, but has {} bytes",
                    static_cast<int>(operation), payload_bytes));
  }
  switch (operation) {
    case Operation::kRead: {
      const v1::BulkRead& read = request_.read();
      MOSA_RETURN_IF_ERROR(CheckRange(read.offset_bytes(), read.length_bytes()));
      const uint64_t blocks = BlocksTouched(read.offset_bytes(), read.length_bytes());
      if (blocks * kChecksumBlockBytes > kFramePayloadBytesMax) {
        return InvalidArgumentError(
            fmt::format("a read of {} bytes at offset {} touches {} blocks; at most {} bytes of "
                        "whole blocks are sent at once",
                        read.length_bytes(), read.offset_bytes(), blocks, kFramePayloadBytesMax));
      }
      return OkStatus();
    }
    case Operation::kWrite: {
      const v1::BulkWrite& write = request_.write();
      MOSA_RETURN_IF_ERROR(CheckRange(write.offset_bytes(), payload_bytes));
      const uint64_t blocks = BlocksTouched(write.offset_bytes(), payload_bytes);
      if (static_cast<uint64_t>(write.crc32c_size()) != blocks) {
        return InvalidArgumentError(fmt::format(
            "a write of {} bytes at offset {} touches {} blocks but carries {} checksums",
            payload_bytes, write.offset_bytes(), blocks, write.crc32c_size()));
      }
      return OkStatus();
    }
    case Operation::kTruncate:
      return CheckRange(request_.truncate().size_bytes(), 0);
    case Operation::kAllocate:
      return CheckRange(request_.allocate().offset_bytes(), request_.allocate().length_bytes());
    case Operation::kSeek:
      return CheckRange(request_.seek().offset_bytes(), 0);
    case Operation::kFinishLocalWrites:
      return CheckRange(request_.finish_local_writes().look_from_bytes(), 0);
    case Operation::kNoteWritten:
      return CheckRange(request_.note_written().offset_bytes(),
                        request_.note_written().length_bytes());
    case Operation::kSums:
      return CheckSums(request_.sums());
    case Operation::kHello:
    case Operation::kProof:
      return InvalidArgumentError("the connection has already completed its hello");
    case Operation::OPERATION_NOT_SET:
      return InvalidArgumentError("the request has an operation that this node does not know");
    default:
      return OkStatus();
  }
}

Status BulkConnection::AnswerWith(const Status& status) {
  if (!status.ok()) {
    reply_.Clear();
    reply_.set_id(request_.id());
    reply_.set_code(static_cast<int>(status.code()));
    reply_.set_reason(static_cast<uint32_t>(ReasonOf(status.code())));
    reply_.set_message(MessageOf(status));
  }
  return socket_.SendFrame(reply_, {}, deadline_);
}

Status BulkConnection::Refuse(const Status& why, uint64_t payload_left) {
  MOSA_RETURN_IF_ERROR(socket_.Discard(payload_left, deadline_));
  return AnswerWith(why);
}

// ---- reading

Status BulkConnection::AnswerRead() {
  Result<ReadPlan> plan = PlanRead();
  if (!plan.ok()) return AnswerWith(plan.status());
  reply_.set_offset_bytes(plan->offset_bytes);
  reply_.mutable_crc32c()->Add(plan->crcs.begin(), plan->crcs.end());
  engine_.CountSent(plan->length_bytes);
  if (plan->length_bytes == 0 || !plan->fd) {
    return socket_.SendFrame(
        reply_, std::span<const std::byte>(plan->buffer.bytes()).first(plan->length_bytes),
        deadline_);
  }
  MOSA_RETURN_IF_ERROR(socket_.SendStart(reply_, plan->length_bytes, /*more=*/true, deadline_));
  return SendPlanned(*plan);
}

Result<ReadPlan> BulkConnection::PlanRead() {
  const TimedRequest timed(&engine_.residence().parts, NodeResidence::kReadObject);
  return engine_.PlanRead({.file = FileId{request_.file_id()},
                           .offset_bytes = request_.read().offset_bytes(),
                           .length_bytes = request_.read().length_bytes(),
                           .verify = request_.read().verify(),
                           .account = options_.account},
                          scratch_);
}

Status BulkConnection::SendPlanned(ReadPlan& plan) {
  uint64_t sent = 0;
  while (sent < plan.length_bytes) {
    MOSA_ASSIGN_OR_RETURN(const size_t n, SendPiece(plan.fd.get(), plan.offset_bytes + sent,
                                                    plan.length_bytes - sent));
    sent += n;
    if (n == 0) {
      MOSA_ASSIGN_OR_RETURN(const ObjectStat stat, engine_.store().Stat(plan.fd.get()));
      // The promised payload cannot be sent. The client repeats the request on a new connection.
      if (stat.size_bytes <= plan.offset_bytes + sent)
        return UnavailableError("the object was truncated while it was being sent");
    }
    if (sent < plan.length_bytes && SystemClock().Monotonic() >= deadline_) {
      return DeadlineExceededError(fmt::format("the peer accepted only {} of {} bytes in {} s",
                                               sent, plan.length_bytes,
                                               kFrameTime.ns / 1'000'000'000));
    }
  }
  return OkStatus();
}

Result<size_t> BulkConnection::SendPiece(int fd, uint64_t offset, uint64_t length) {
  TlsStream* const tls = socket_.tls();
  if (tls == nullptr) return engine_.store().Send(fd, socket_.fd(), offset, length);
  if (tls->kernel_sends()) {
    const ssize_t sent = tls->SendFile(fd, offset, length);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EINTR) return 0;
    return ErrnoStatus(errno, "cannot send a frame");
  }
  const std::span<std::byte> piece = scratch_.first(std::min<uint64_t>(length, scratch_.size()));
  MOSA_ASSIGN_OR_RETURN(const size_t n, engine_.store().Read(fd, offset, piece));
  MOSA_RETURN_IF_ERROR(socket_.SendPayload(piece.first(n), deadline_));
  return n;
}

// ---- writing

Status BulkConnection::AnswerWrite(uint64_t payload_bytes) {
  const Time begin = SystemClock().Monotonic();
  DurationTable& parts = engine_.residence().parts;
  Result<ObjectEngine::Writer> writer = engine_.BeginWrite(
      FileId{request_.file_id()}, changer(), request_.write().offset_bytes(), payload_bytes);
  if (!writer.ok()) return Refuse(writer.status(), payload_bytes);
  object_time_ = SystemClock().Monotonic() - begin;
  uint64_t left = payload_bytes;
  Status connection;
  const Status stored = StoreParts(*writer, left, connection);
  {
    const ObjectEngine::Writer done = *std::move(writer);  // Accounts for what was written now.
  }
  parts.Add(NodeResidence::kWriteObject, DurationTable::kNoPeer, object_time_);
  // Logged as one piece, although the pieces are separated by waits for the network.
  if (parts.is_logged())
    parts.Log(NodeResidence::kWriteObject, DurationTable::kNoPeer,
              {.span = BeginSpan(CurrentSpan()),
               .begin = begin,
               .duration = object_time_,
               .bytes = payload_bytes - left});
  MOSA_RETURN_IF_ERROR(connection);
  return Refuse(stored, left);
}

Status BulkConnection::StoreParts(ObjectEngine::Writer& writer, uint64_t& left,
                                  Status& connection) {
  uint64_t offset = request_.write().offset_bytes();
  std::span<const uint32_t> crcs(request_.write().crc32c().data(),
                                 static_cast<size_t>(request_.write().crc32c_size()));
  while (left > 0) {
    const uint64_t n = std::min(left, kBulkScratchBytes - offset % kChecksumBlockBytes);
    const std::span<std::byte> piece = scratch_.first(n);
    connection = socket_.Receive(piece, deadline_);
    if (connection.ok()) connection = CheckAsked();
    if (!connection.ok()) return connection;
    left -= n;
    const Time begin = SystemClock().Monotonic();
    const uint64_t blocks = BlocksTouched(offset, n);
    if (!std::ranges::equal(BlockChecksums(offset, piece), crcs.first(blocks)))
      return DamagedOnTheWay(request_.file_id(), offset, n);
    MOSA_RETURN_IF_ERROR(writer.WritePiece(offset, piece, crcs.first(blocks)));
    object_time_ = object_time_ + (SystemClock().Monotonic() - begin);
    crcs = crcs.subspan(blocks);
    offset += n;
  }
  return OkStatus();
}

// ---- other requests

Status BulkConnection::AnswerOpenLocal() {
  if (!options_.passes_descriptors) {
    return AnswerWith(
        FailedPreconditionError("descriptors are passed only over the node's Unix socket"));
  }
  const FileId file{request_.file_id()};
  const Result<UniqueFd> fd = request_.open_local().write()
                                  ? engine_.local().OpenToWrite(file, changer())
                                  : engine_.local().OpenToRead(file);
  if (!fd.ok()) return AnswerWith(fd.status());
  return socket_.SendWithDescriptor(reply_, fd->get(), deadline_);
}

Status BulkConnection::Simple(const Capability& capability) {
  const FileId file = capability.file;
  switch (request_.operation_case()) {
    case Operation::kTruncate:
      return engine_.Truncate(file, changer(), request_.truncate().size_bytes());
    case Operation::kAllocate:
      return engine_.Allocate(
          file, changer(), request_.allocate().mode(),
          {request_.allocate().offset_bytes(),
           request_.allocate().offset_bytes() + request_.allocate().length_bytes()});
    case Operation::kFinishLocalWrites:
      return FinishLocalWrites();
    case Operation::kNoteWritten: {
      const v1::BulkNoteWritten& note = request_.note_written();
      return engine_.sums().NoteLocalWrite(
          file, {note.offset_bytes(), note.offset_bytes() + note.length_bytes()});
    }
    case Operation::kSums:
      return Sum();
    case Operation::kSeek: {
      MOSA_ASSIGN_OR_RETURN(const uint64_t at, engine_.Seek(file, request_.seek().offset_bytes(),
                                                            request_.seek().data()));
      reply_.set_offset_bytes(at);
      return OkStatus();
    }
    default: {
      MOSA_ASSIGN_OR_RETURN(const ObjectEngine::Description description, engine_.Describe(file));
      reply_.set_size_bytes(description.stat.size_bytes);
      reply_.set_allocated_bytes(description.stat.allocated_bytes);
      reply_.set_modify_time_ns(description.stat.modify_time.ns);
      reply_.set_sealed(description.sealed);
      return OkStatus();
    }
  }
}

Status BulkConnection::FinishLocalWrites() {
  const FileId file{request_.file_id()};
  const v1::BulkFinishLocalWrites& asked = request_.finish_local_writes();
  if (!asked.look()) return engine_.local().Finish(file, scratch_);
  MOSA_ASSIGN_OR_RETURN(
      const LocalWrites look,
      engine_.local().Look(file, asked.look_from_bytes(), asked.look_while_written(), scratch_));
  v1::BulkLocalWrites& answer = *reply_.mutable_local_writes();
  answer.set_writers_left(look.writers_left);
  answer.set_changed(look.changed);
  answer.set_unknown(look.unknown);
  answer.set_complete(look.complete);
  answer.set_next_bytes(look.next_bytes);
  return OkStatus();
}

// Reads the changes first, then the own order's progress, then the bytes. So a change in between is
// reported by the next answer.
Status BulkConnection::Sum() {
  const FileId file{request_.file_id()};
  const v1::BulkSums& asked = request_.sums();
  const ByteRange range{asked.offset_bytes(), asked.offset_bytes() + asked.length_bytes()};
  if (asked.wait_ms() > 0) {
    engine_.sums().AwaitChange(file, asked.after_change(), AboutOf(asked),
                               std::min(kAnswerHoldMax, Milliseconds(asked.wait_ms())),
                               [this] { return *others_wait_ || socket_.IsStale(); });
  }
  BlockSums sums = engine_.sums().ChangesSince(file, asked.after_change());
  std::vector<bool> settled;
  copier_.DescribeOrder(file, range, sums, settled);
  MOSA_RETURN_IF_ERROR(engine_.sums().SumBlocks(file, range, sums, scratch_));
  reply_.set_size_bytes(sums.object_bytes);
  reply_.set_quiet(sums.quiet);
  reply_.set_absent(sums.absent);
  reply_.set_incarnation(sums.incarnation);
  reply_.set_change(sums.change);
  reply_.set_all_changed(sums.all_changed);
  reply_.set_order(sums.order);
  reply_.set_tail_settled(sums.tail_settled);
  for (const ByteRange& part : sums.changed) {
    reply_.add_changed_ranges(part.begin);
    reply_.add_changed_ranges(part.end);
  }
  for (size_t i = 0; i < sums.blocks.size(); ++i) {
    const BlockSum& block = sums.blocks[i];
    reply_.add_crc32c(block.crc);
    reply_.mutable_blocks()->push_back(static_cast<char>((block.has_data ? kBlockHasData : 0U) |
                                                         (settled[i] ? kBlockSettled : 0U) |
                                                         (block.damaged ? kBlockDamaged : 0U)));
  }
  return OkStatus();
}

}  // namespace mosa::node
