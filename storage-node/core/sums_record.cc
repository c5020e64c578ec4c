#include "storage-node/core/sums_record.h"

#include <endian.h>

#include <cstring>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"

namespace mosa::node {
namespace {

constexpr size_t kHeadBytes = 8;
// Special values in the place of a size.
constexpr uint64_t kForgotten = UINT64_MAX;
constexpr uint64_t kDamaged = UINT64_MAX - 1;
constexpr uint64_t kGeneration = UINT64_MAX - 2;
constexpr size_t kBodyBytesMax = 32 + kSumsPerRecordMax * 16;

template <typename Integer>
void Put(std::string& out, Integer value) {
  const uint64_t little = htole64(static_cast<uint64_t>(value));
  out.append(reinterpret_cast<const char*>(&little), sizeof(Integer));
}

// Reads numbers from the front; `ok` becomes false if there are too few bytes.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  template <typename Integer>
  Integer Take() {
    uint64_t little = 0;
    if (rest_.size() < sizeof(Integer)) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&little, rest_.data(), sizeof(Integer));
    rest_.remove_prefix(sizeof(Integer));
    return static_cast<Integer>(le64toh(little));
  }
  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::string Framed(const std::string& body) {
  std::string record;
  Put(record, static_cast<uint32_t>(body.size()));
  Put(record, Crc32c(body.data(), body.size()));
  return record + body;
}

// Reads the body of a record with sums; nothing if it is invalid.
std::optional<SumsRecord> ReadBody(uint64_t size_bytes, Cursor& body) {
  if (size_bytes > kFileBytesMax) return std::nullopt;
  SumsRecord record{.damaged = false, .size_bytes = size_bytes, .sums = {}};
  uint64_t next = 0;
  while (body.left() > 0) {
    const auto first = body.Take<uint64_t>();
    const auto count = body.Take<uint32_t>();
    if (!body.ok() || count == 0 || first < next || first > kFileBytesMax / kChecksumBlockBytes ||
        count > body.left() / sizeof(uint32_t))
      return std::nullopt;
    next = first + count;
    if (BeginOf(BlockIndex{next - 1}) >= size_bytes) return std::nullopt;
    for (uint64_t block = first; block < next; ++block)
      record.sums.push_back({BlockIndex{block}, body.Take<uint32_t>()});
  }
  return record;
}

}  // namespace

std::string EncodeSums(FileId file, const SumsRecord& record) {
  MOSA_CHECK(record.sums.size() <= kSumsPerRecordMax);
  std::string body;
  Put(body, file.value);
  Put(body, record.damaged ? kDamaged : record.size_bytes);
  if (record.damaged) return Framed(body);
  for (size_t i = 0; i < record.sums.size();) {
    size_t end = i + 1;
    while (end < record.sums.size() &&
           record.sums[end].block.value == record.sums[end - 1].block.value + 1)
      ++end;
    Put(body, record.sums[i].block.value);
    Put(body, static_cast<uint32_t>(end - i));
    for (; i < end; ++i) Put(body, record.sums[i].crc);
  }
  return Framed(body);
}

std::string EncodeForgotten(FileId file) {
  std::string body;
  Put(body, file.value);
  Put(body, kForgotten);
  return Framed(body);
}

std::string EncodeGeneration(FileId file, uint64_t generation) {
  std::string body;
  Put(body, file.value);
  Put(body, kGeneration);
  Put(body, generation);
  MOSA_CHECK(kHeadBytes + body.size() == kGenerationRecordBytes);
  return Framed(body);
}

SumsLogEnd ReadSums(std::string_view bytes, SumsFound& found) {
  while (!bytes.empty()) {
    Cursor head(bytes);
    const auto body_bytes = head.Take<uint32_t>();
    const auto crc = head.Take<uint32_t>();
    if (!head.ok()) return SumsLogEnd::kTorn;
    if (body_bytes < 2 * sizeof(uint64_t) || body_bytes > kBodyBytesMax)
      return SumsLogEnd::kDamaged;
    if (head.left() < body_bytes) return SumsLogEnd::kTorn;
    const std::string_view body = bytes.substr(kHeadBytes, body_bytes);
    if (Crc32c(body.data(), body.size()) != crc) return SumsLogEnd::kDamaged;
    Cursor cursor(body);
    const FileId file{cursor.Take<uint64_t>()};
    const auto size_bytes = cursor.Take<uint64_t>();
    if (size_bytes == kForgotten) {
      found.records.erase(file);
    } else if (size_bytes == kGeneration) {
      const auto generation = cursor.Take<uint64_t>();
      if (!cursor.ok()) return SumsLogEnd::kDamaged;
      found.generations[file] = generation;
      if (generation == 0) found.generations.erase(file);
    } else if (size_bytes == kDamaged) {
      found.records.insert_or_assign(file,
                                     SumsRecord{.damaged = true, .size_bytes = 0, .sums = {}});
    } else {
      auto record = ReadBody(size_bytes, cursor);
      if (!record) return SumsLogEnd::kDamaged;
      found.records.insert_or_assign(file, *std::move(record));
    }
    bytes.remove_prefix(kHeadBytes + body_bytes);
  }
  return SumsLogEnd::kWhole;
}

}  // namespace mosa::node
