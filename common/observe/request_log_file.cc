#include "common/observe/request_log_file.h"

#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>

#include "common/base/crc32c.h"
#include "fmt/format.h"

namespace mosa {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kBlockBytesMax = 64 << 20;
constexpr size_t kTablesMax = 64;

struct BlockHead {
  uint32_t kind = 0;
  uint32_t bytes = 0;
  uint32_t crc32c = 0;
};

template <typename T>
void Put(std::string& out, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PutText(std::string& out, std::string_view text) {
  Put(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

// Reads values from the front. Missing values, and all after them, are zero or empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  std::optional<T> Take() {
    if (left_.size() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }
  std::optional<std::string_view> Take(size_t bytes) {
    if (left_.size() < bytes) return std::nullopt;
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  std::optional<std::string> TakeText() {
    const auto bytes = Take<uint32_t>();
    const auto text = bytes ? Take(*bytes) : std::nullopt;
    return text ? std::optional<std::string>(*text) : std::nullopt;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

// Collects the contents of the blocks.
class Assembly {
 public:
  // Returns false if the block is not valid for its kind.
  bool Add(RequestLogBlock kind, Reader payload) {
    switch (kind) {
      case RequestLogBlock::kWriter:
        return AddWriter(payload);
      case RequestLogBlock::kClasses:
        return AddClasses(payload);
      case RequestLogBlock::kPeer:
        return AddPeer(payload);
      case RequestLogBlock::kRecords:
        return AddRecords(payload);
      case RequestLogBlock::kEnd:
        return AddEnd(payload);
    }
    return false;
  }
  bool has_ended() const { return has_ended_; }
  RequestLogFile& file() { return file_; }

 private:
  bool AddWriter(Reader& payload) {
    const auto component = payload.TakeText();
    const auto host = payload.TakeText();
    const auto process = payload.Take<uint32_t>();
    if (!component || !host || !process) return false;
    file_.component = *component;
    file_.host = *host;
    file_.process = *process;
    return true;
  }

  bool AddClasses(Reader& payload) {
    if (names_.size() >= kTablesMax) return false;
    RequestLogNames& names = names_.emplace_back();
    while (!payload.empty()) {
      const auto name = payload.TakeText();
      if (!name) return false;
      names.classes.push_back(*name);
    }
    return true;
  }

  bool AddPeer(Reader& payload) {
    const auto table = payload.Take<uint32_t>();
    const auto name = payload.TakeText();
    if (!table || !name || *table >= names_.size()) return false;
    names_[*table].peers.push_back(*name);
    return true;
  }

  bool AddRecords(Reader& payload) {
    const auto to_wall_ns = payload.Take<int64_t>();
    if (!to_wall_ns) return false;
    while (!payload.empty()) {
      const auto record = payload.Take<RequestRecord>();
      if (!record || record->table >= names_.size()) return false;
      const RequestLogNames& names = names_[record->table];
      if (record->kind >= names.classes.size()) return false;
      const bool is_known = record->peer > 0 && record->peer <= names.peers.size();
      file_.requests.push_back({.record = *record,
                                .begin = Time{record->begin_ns} + Duration{*to_wall_ns},
                                .name = names.classes[record->kind],
                                .peer = is_known           ? names.peers[record->peer - 1]
                                        : record->peer > 0 ? "others"
                                                           : ""});
    }
    return true;
  }

  bool AddEnd(Reader& payload) {
    const auto records = payload.Take<uint64_t>();
    const auto dropped = payload.Take<uint64_t>();
    if (!records || !dropped) return false;
    file_.dropped = *dropped;
    has_ended_ = true;
    return *records == file_.requests.size();
  }

  RequestLogFile file_;
  std::vector<RequestLogNames> names_;
  bool has_ended_ = false;
};

}  // namespace

std::string EncodeBlock(RequestLogBlock kind, std::string_view payload) {
  std::string block;
  Put(block, BlockHead{.kind = static_cast<uint32_t>(kind),
                       .bytes = static_cast<uint32_t>(payload.size()),
                       .crc32c = Crc32c(payload.data(), payload.size())});
  return block.append(payload);
}

std::string EncodeWriter(std::string_view component, std::string_view host, uint32_t process) {
  std::string payload;
  PutText(payload, component);
  PutText(payload, host);
  Put(payload, process);
  return payload;
}

std::string EncodeClasses(const RequestLogNames& names) {
  std::string payload;
  for (const std::string& name : names.classes) PutText(payload, name);
  return payload;
}

std::string EncodePeer(uint32_t table, std::string_view name) {
  std::string payload;
  Put(payload, table);
  PutText(payload, name);
  return payload;
}

std::string EncodeRecords(Duration to_wall, const std::vector<RequestRecord>& records) {
  std::string payload;
  payload.reserve(sizeof to_wall.ns + records.size() * sizeof(RequestRecord));
  Put(payload, to_wall.ns);
  payload.append(reinterpret_cast<const char*>(records.data()),
                 records.size() * sizeof(RequestRecord));
  return payload;
}

std::string EncodeEnd(uint64_t records, uint64_t dropped) {
  std::string payload;
  Put(payload, records);
  Put(payload, dropped);
  return payload;
}

Result<RequestLogFile> ReadRequestLog(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.Take(kRequestLogTitle.size()) != kRequestLogTitle) {
    return InvalidArgumentError(
        "this is not a request log that 'mosa log on' of this version of Mosa wrote");
  }
  Assembly assembly;
  const char* fault = nullptr;
  while (fault == nullptr && !assembly.has_ended()) {
    if (reader.empty()) {
      fault = "it has no end: its daemon was killed or is still writing it";
      break;
    }
    const auto head = reader.Take<BlockHead>();
    const auto payload = head ? reader.Take(head->bytes) : std::nullopt;
    if (!payload) {
      fault = "it ends within a block: its daemon was killed or the file was cut short";
    } else if (head->bytes > kBlockBytesMax ||
               Crc32c(payload->data(), payload->size()) != head->crc32c) {
      fault = "a block is damaged, so the rest is not read";
    } else if (!assembly.Add(static_cast<RequestLogBlock>(head->kind), Reader(*payload))) {
      fault = "a block has an unknown format, so the rest is not read";
    }
  }
  RequestLogFile file = std::move(assembly.file());
  if (fault != nullptr)
    file.fault =
        fmt::format("{}; the {} requests before that point were read", fault, file.requests.size());
  return file;
}

}  // namespace mosa
