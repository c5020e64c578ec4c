#include "storage-node/engine/verifier.h"

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/crc32c.h"
#include "common/base/log.h"
#include "common/model/checksum_blocks.h"

namespace mosa::node {
namespace {

// Number of blocks verified per hold of the object's lock.
constexpr size_t kComparedAtOnce = 64;
// Then a waiter for the lock gets this time to wake up: mutexes are not fair.
constexpr std::chrono::microseconds kPause{50};

}  // namespace

void Verifier::Verify(Object& object, int fd, std::span<const KnownSum> sums,
                      std::span<std::byte> scratch) {
  for (const KnownSum& sum : sums) {
    if (object.checksums.CorruptIn(sum.block, BlockIndex{sum.block.value + 1})) continue;
    const auto bytes = scratch.first(ExtentOf(sum.block, object.size_bytes));
    const Result<size_t> got = store_.Read(fd, BeginOf(sum.block), bytes);
    if (got.ok() && *got == bytes.size() && Crc32c(bytes.data(), bytes.size()) == sum.crc) continue;
    ledger_.NoteCorrupt(object, sum.block);
    LogError(
        "block {} of the object of file {} is not what was recorded before the machine "
        "crashed",
        sum.block.value, object.file.value);
  }
}

void Verifier::VerifyNext(Object& object, int fd, size_t blocks_max, std::span<std::byte> scratch) {
  const std::vector<KnownSum> sums = object.checksums.ListKnown(object.compared_end, blocks_max);
  Verify(object, fd, sums, scratch);
  if (sums.size() == blocks_max) {
    object.compared_end = BlockIndex{sums.back().block.value + 1};
    return;
  }
  object.unverified = false;
  if (--records_.unverified_count > 0) return;
  const Status marked = store_.MarkRun(RunState::kVerified);
  if (!marked.ok()) LogWarning("{}", MessageOf(marked));
  LogInfo("all objects have been verified against their checksums");
}

void Verifier::VerifyRest(Object& object, int fd) {
  if (!object.unverified) return;
  std::vector<std::byte> scratch(kChecksumBlockBytes);
  VerifyNext(object, fd, SIZE_MAX, scratch);
}

void Verifier::VerifyAll(const ObjectRef& object, std::span<std::byte> scratch) {
  UniqueFd fd;
  std::vector<std::byte> own_scratch;
  while (records_.unverified_count > 0) {
    {
      const SystemMutexLock lock(object->mutex);
      if (sealing_.stopped() || object->dropped || !object->unverified) return;
      if (!fd) {
        Result<UniqueFd> opened = store_.Open(object->file, OpenMode::kRead);
        if (!opened.ok() || ledger_.MayHaveWriters(*object, opened->get())) return;
        fd = *std::move(opened);
        if (scratch.empty()) own_scratch.resize(kChecksumBlockBytes);
        if (scratch.empty()) scratch = own_scratch;
      }
      VerifyNext(*object, fd.get(), kComparedAtOnce, scratch);
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace mosa::node
