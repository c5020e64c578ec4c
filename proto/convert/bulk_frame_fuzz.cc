// libFuzzer entry: bytes from a peer are a frame of the bulk plane, or are refused; what parses has
// legal lengths and can be sent again. Replayed by bulk_frame_fuzz_replay.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "mosa/v1/bulk.pb.h"
#include "proto/convert/bulk_frame.h"
#include "proto/convert/bulk_hello.h"
#include "proto/convert/capability.h"

namespace mosa {
namespace {

bool SameLook(const v1::BulkFinishLocalWrites& a, const v1::BulkFinishLocalWrites& b) {
  return a.look() == b.look() && a.look_from_bytes() == b.look_from_bytes() &&
         a.look_while_written() == b.look_while_written();
}

bool SameLook(const v1::BulkLocalWrites& a, const v1::BulkLocalWrites& b) {
  return a.writers_left() == b.writers_left() && a.changed() == b.changed() &&
         a.unknown() == b.unknown() && a.complete() == b.complete() &&
         a.next_bytes() == b.next_bytes();
}

}  // namespace
}  // namespace mosa

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mosa;
  constexpr size_t kInputBytesMax = 16 * 1024;  // Less than a socket buffers.
  if (size > kInputBytesMax) return 0;
  int sockets[2];
  MOSA_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
  FrameSocket peer{UniqueFd(sockets[0])};
  FrameSocket own{UniqueFd(sockets[1])};
  MOSA_CHECK(::send(peer.fd(), data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
  peer = FrameSocket();
  const Time deadline = SystemClock().Monotonic() + Seconds(5);
  while (true) {
    v1::BulkRequest request;
    const auto prefix = own.ReceiveStart(request, deadline);
    if (!prefix.ok()) break;
    MOSA_CHECK(prefix->header_bytes <= kFrameHeaderBytesMax);
    MOSA_CHECK(prefix->payload_bytes <= kFramePayloadBytesMax);
    // Unknown fields make what is sent again no longer than what came.
    MOSA_CHECK(EncodeFrameStart(request, prefix->payload_bytes).size() <=
               kFramePrefixBytes + kFrameHeaderBytesMax);
    // Nobody without the key makes a capability.
    MOSA_CHECK(!OpenCapability(request.capability(), "the key of nobody", Time{0}).ok());
    // Nor does anybody without the key prove anything in a hello, whatever it begins with.
    const std::string key = BulkKeyOf("the key of nobody", ClientId{request.hello().client_id()},
                                      request.hello().era());
    const std::string nonce(kBulkNonceBytes, 'n');
    if (CheckHello(request).ok()) {
      const Greeting greeting = Greet(request.hello(), key, "n1", nonce);
      MOSA_CHECK(greeting.reply.greeting().version() >= kBulkVersionMin &&
                 greeting.reply.greeting().version() <= kBulkVersion);
      MOSA_CHECK(greeting.proof_expected != greeting.reply.greeting().proof());
    }
    const v1::BulkRequest hello = HelloOf({.client = ClientId{7}, .era = 1, .key = key}, nonce);
    const Greeting greeting = Greet(hello.hello(), key, "n1", nonce);
    MOSA_CHECK(!CheckProof(request, greeting.proof_expected).ok());
    v1::BulkReply reply;
    // A look at local writes, and what answers one, say the same when they are sent again.
    v1::BulkRequest again;
    MOSA_CHECK(again.ParseFromString(request.SerializeAsString()));
    MOSA_CHECK(SameLook(again.finish_local_writes(), request.finish_local_writes()));
    if (reply.ParseFromString(request.SerializeAsString())) {
      v1::BulkReply back;
      MOSA_CHECK(back.ParseFromString(reply.SerializeAsString()));
      MOSA_CHECK(SameLook(back.local_writes(), reply.local_writes()));
    }
    if (reply.ParseFromString(request.SerializeAsString()))
      MOSA_CHECK(
          !ProofFor({.client = ClientId{7}, .era = 1, .key = key}, hello.hello(), reply, "n1")
               .ok());
    if (!own.Discard(prefix->payload_bytes, deadline).ok()) break;
  }
  return 0;
}
