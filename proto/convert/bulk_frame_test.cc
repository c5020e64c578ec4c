#include "proto/convert/bulk_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "mosa/v1/bulk.pb.h"
#include "tests/support/random_message.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;

Time In(Duration duration) { return SystemClock().Monotonic() + duration; }

struct Pair {
  FrameSocket a;
  FrameSocket b;
};
Pair Connect() {
  int sockets[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  return {FrameSocket(UniqueFd(sockets[0])), FrameSocket(UniqueFd(sockets[1]))};
}

v1::BulkRequest ARequest() {
  v1::BulkRequest request;
  request.set_id(7);
  request.set_capability(std::string("\0\xff sealed", 9));
  request.mutable_write()->set_offset_bytes(1 << 20);
  request.mutable_write()->add_crc32c(0xdeadbeef);
  return request;
}

TEST(BulkFrame, CarriesHeaderAndPayload) {
  Pair pair = Connect();
  const std::string payload(3'000'000, 'p');
  std::thread sender([&] {
    EXPECT_TRUE(
        pair.a.SendFrame(ARequest(), std::as_bytes(std::span(payload)), In(Seconds(5))).ok());
    EXPECT_TRUE(pair.a.SendFrame(ARequest(), {}, In(Seconds(5))).ok());
  });
  EXPECT_TRUE(pair.b.HasFrame(Seconds(5)));
  v1::BulkRequest got;
  const auto prefix = pair.b.ReceiveStart(got, In(Seconds(5)));
  ASSERT_TRUE(prefix.ok()) << MessageOf(prefix.status());
  EXPECT_EQ(got.SerializeAsString(), ARequest().SerializeAsString());
  ASSERT_EQ(prefix->payload_bytes, payload.size());
  std::string head(1'000'000, '\0');
  ASSERT_TRUE(pair.b.Receive(std::as_writable_bytes(std::span(head)), In(Seconds(5))).ok());
  EXPECT_EQ(head, payload.substr(0, head.size()));
  ASSERT_TRUE(pair.b.Discard(2'000'000, In(Seconds(5))).ok());
  EXPECT_EQ(pair.b.ReceiveStart(got, In(Seconds(5)))->payload_bytes, 0U);
  sender.join();
}

TEST(BulkFrame, CarriesADescriptor) {
  Pair pair = Connect();
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const UniqueFd read_end(pipe_ends[0]);
  UniqueFd write_end(pipe_ends[1]);
  v1::BulkReply reply;
  reply.set_id(3);
  ASSERT_TRUE(pair.a.SendWithDescriptor(reply, write_end.get(), In(Seconds(5))).ok());
  ASSERT_TRUE(pair.a.SendWithDescriptor(reply, write_end.get(), In(Seconds(5))).ok());
  write_end.reset();
  UniqueFd got;
  ASSERT_TRUE(pair.b.ReceiveStart(reply, In(Seconds(5)), &got).ok());
  ASSERT_TRUE(pair.b.ReceiveStart(reply, In(Seconds(5))).ok());  // Closes the second one.
  ASSERT_EQ(::write(got.get(), "x", 1), 1);
  got.reset();
  char bytes[2];
  EXPECT_EQ(::read(read_end.get(), bytes, 2), 1);
  EXPECT_EQ(::read(read_end.get(), bytes, 2), 0);  // No writer is left.
}

// Run one seed with MOSA_SEED.
TEST(BulkFrame, CarriesEveryFieldOfALookAtLocalWrites) {
  const char* const given = std::getenv("MOSA_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  Pair pair = Connect();
  for (uint64_t seed = first; seed < first + 200; ++seed) {
    SCOPED_TRACE("MOSA_SEED=" + std::to_string(seed));
    Rng rng(seed);
    testing::MessageFiller filler(rng);
    v1::BulkRequest request, got_request;
    filler.Fill(*request.mutable_finish_local_writes());
    v1::BulkReply reply, got_reply;
    filler.Fill(*reply.mutable_local_writes());
    ASSERT_TRUE(pair.a.SendFrame(request, {}, In(Seconds(5))).ok());
    ASSERT_TRUE(pair.b.ReceiveStart(got_request, In(Seconds(5))).ok());
    EXPECT_EQ(got_request.DebugString(), request.DebugString());
    ASSERT_TRUE(pair.b.SendFrame(reply, {}, In(Seconds(5))).ok());
    ASSERT_TRUE(pair.a.ReceiveStart(got_reply, In(Seconds(5))).ok());
    EXPECT_EQ(got_reply.DebugString(), reply.DebugString());
  }
}

TEST(BulkFrame, LengthsHaveMaxima) {
  const struct {
    std::array<uint8_t, 8> bytes;
    bool ok;
  } rows[] = {{{0, 0, 0, 0, 0, 0, 0, 0}, true},          {{0, 0, 1, 0, 0, 0, 0x80, 0}, true},
              {{1, 0, 1, 0, 0, 0, 0, 0}, false},         {{0, 0, 0, 0, 1, 0, 0x80, 0}, false},
              {{255, 255, 255, 255, 0, 0, 0, 0}, false}, {{0, 0, 0, 0, 255, 255, 255, 255}, false}};
  for (const auto& row : rows) {
    const auto prefix = DecodeFramePrefix(std::as_bytes(std::span(row.bytes)));
    EXPECT_EQ(prefix.ok(), row.ok);
    EXPECT_EQ(prefix.status().code(), row.ok ? StatusCode::kOk : StatusCode::kInvalidArgument);
  }
}

TEST(BulkFrame, WaitsNoLongerThanAsked) {
  Pair pair = Connect();
  v1::BulkReply reply;
  ASSERT_EQ(::send(pair.a.fd(), "abc", 3, 0), 3);  // The beginning of a prefix.
  const auto got = pair.b.ReceiveStart(reply, In(Milliseconds(300)));
  EXPECT_EQ(got.status().code(), StatusCode::kDeadlineExceeded);
  const std::string endless(kFramePayloadBytesMax, 'x');  // More than a socket buffers.
  const Status sent =
      pair.a.SendFrame(reply, std::as_bytes(std::span(endless)), In(Milliseconds(300)));
  EXPECT_EQ(sent.code(), StatusCode::kDeadlineExceeded);
}

TEST(BulkFrame, NoticesThatThePeerIsGone) {
  Pair pair = Connect();
  EXPECT_FALSE(pair.a.IsStale());
  pair.b = FrameSocket();
  EXPECT_TRUE(pair.a.IsStale());
  EXPECT_TRUE(pair.a.HasFrame(Seconds(5)));  // At once: there is an end to receive.
  v1::BulkReply reply;
  EXPECT_EQ(pair.a.ReceiveStart(reply, In(Seconds(5))).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(pair.a.SendFrame(reply, {}, In(Seconds(5))).code(), StatusCode::kUnavailable);
}

// Run one seed with MOSA_SEED.
TEST(BulkFrame, RandomBytesAreRefusedOrAFrame) {
  const char* const given = std::getenv("MOSA_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  int frames = 0;
  for (uint64_t seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE("MOSA_SEED=" + std::to_string(seed));
    Rng rng(seed);
    std::string bytes = EncodeFrameStart(ARequest(), 0);
    for (uint64_t i = rng.Below(4); i > 0; --i)
      bytes[rng.Below(bytes.size())] = static_cast<char>(rng.Next());
    bytes.resize(rng.Below(bytes.size() + 1) + (rng.Chance(700) ? bytes.size() : 0));
    Pair pair = Connect();
    ASSERT_EQ(::send(pair.a.fd(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    pair.a = FrameSocket();
    v1::BulkRequest request;
    const auto prefix = pair.b.ReceiveStart(request, In(Seconds(5)));
    if (prefix.ok()) {
      ++frames;
      EXPECT_LE(prefix->payload_bytes, kFramePayloadBytesMax);
    } else {
      EXPECT_TRUE(prefix.status().code() == StatusCode::kInvalidArgument ||
                  prefix.status().code() == StatusCode::kUnavailable)
          << MessageOf(prefix.status());
    }
  }
  EXPECT_GT(frames, 10);
}

}  // namespace
}  // namespace mosa
