#include "common/model/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "common/base/crc32c.h"

namespace mosa {
namespace {

constexpr std::string_view kMagic = "mosa-trace ";
constexpr std::string_view kFootName = "mosa-trace-end\n";
constexpr size_t kRecordHeadBytes = 4;
constexpr size_t kFields = 11;

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

bool TakeVarint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Wraps around instead of overflowing, because a damaged file may contain anything.
int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t Minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

void PutFixed(std::string& out, size_t value) {
  const auto number = static_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(number >> shift);
}

uint32_t FixedAt(std::string_view in, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number |= uint32_t{static_cast<uint8_t>(in[at + i])} << (8 * i);
  return number;
}

// Lines "key=value" after `name`, padded to `bytes` with newlines.
std::string Page(std::string name, const std::vector<std::pair<const char*, std::string>>& lines,
                 size_t bytes) {
  std::string text = std::move(name);
  for (const auto& [key, value] : lines) {
    std::string line = fmt::format("{}={}", key, value);
    std::replace(line.begin(), line.end(), '\n', '?');
    text += line.substr(0, 1100) + '\n';
  }
  text.resize(bytes, '\n');
  text.back() = '\n';
  return text;
}

std::string_view ValueOf(std::string_view page, std::string_view key) {
  const std::string wanted = fmt::format("\n{}=", key);
  const size_t at = page.find(wanted);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = page.substr(at + wanted.size());
  return rest.substr(0, rest.find('\n'));
}

uint64_t NumberOf(std::string_view page, std::string_view key) {
  const std::string_view text = ValueOf(page, key);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// Returns false if the payload is not exactly `count` records.
bool ParsePayload(std::string_view in, uint32_t count, std::vector<TraceRecord>& records) {
  int64_t last_start_ns = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (in.size() < kRecordHeadBytes) return false;
    const auto kind = static_cast<uint8_t>(in[0]);
    const auto flags = static_cast<uint8_t>(in[1]);
    const uint32_t mask = static_cast<uint8_t>(in[2]) | uint32_t{static_cast<uint8_t>(in[3])} << 8;
    if (kind == 0 || kind > kTraceKinds || mask >> kFields != 0) return false;
    in.remove_prefix(kRecordHeadBytes);
    std::array<uint64_t, kFields> fields{};
    for (size_t field = 0; field < kFields; ++field)
      if ((mask >> field & 1) != 0 && !TakeVarint(in, fields[field])) return false;
    const uint64_t text_bytes = fields[10];
    if (text_bytes > in.size()) return false;
    TraceRecord& record = records.emplace_back();
    record.kind = static_cast<TraceKind>(kind);
    record.flags = flags;
    record.file = FileId{fields[0]};
    record.handle = fields[1];
    record.offset = fields[2];
    record.size_bytes = fields[3];
    record.start.ns = Plus(last_start_ns, UnZigZag(fields[4]));
    record.end.ns = Plus(record.start.ns, UnZigZag(fields[5]));
    record.parent = FileId{fields[6]};
    record.target = FileId{fields[7]};
    record.pid = static_cast<uint32_t>(fields[8]);
    record.process_start = fields[9];
    record.text = in.substr(0, text_bytes);
    in.remove_prefix(text_bytes);
    last_start_ns = record.start.ns;
  }
  return in.empty();
}

std::string FaultOf(const TraceFile& file, bool damaged, size_t whole_bytes) {
  const size_t records = file.records.size();
  if (damaged && file.foot && file.foot->bytes > whole_bytes)
    return fmt::format("is cut short or damaged after record {} of {}", records,
                       file.foot->records);
  if (damaged) return fmt::format("is cut short or damaged after record {}", records);
  if (!file.foot)
    return fmt::format(
        "has no end: the mount is still tracing or was killed; the file holds {} whole records",
        records);
  if (records < file.foot->records)
    return fmt::format("is cut short after record {} of {}", records, file.foot->records);
  if (file.foot->reason != kTraceStopped)
    return fmt::format("ends after record {}: {}", records, file.foot->reason);
  if (file.foot->dropped > 0)
    return fmt::format(
        "lacks {} records that arrived faster than they could be written; it holds {}",
        file.foot->dropped, records);
  return {};
}

}  // namespace

std::string EncodeTraceHead(const TraceHead& head) {
  return Page(fmt::format("{}{}\n", kMagic, kTraceVersion),
              {{"host", head.host.substr(0, 256)},
               {"light", head.light ? "1" : "0"},
               {"begun_ns", fmt::format("{}", head.begun.ns)},
               {"mount", head.mount_point}},
              kTraceHeadBytes);
}

std::string EncodeTraceFoot(const TraceFoot& foot) {
  return Page(std::string(kFootName),
              {{"reason", foot.reason.substr(0, 300)},
               {"records", fmt::format("{}", foot.records)},
               {"dropped", fmt::format("{}", foot.dropped)},
               {"bytes", fmt::format("{}", foot.bytes)},
               {"stats", fmt::format("{}", foot.stats)},
               {"lookups", fmt::format("{}", foot.lookups)}},
              kTraceFootBytes);
}

void TraceBlock::Add(const TraceRecord& record) {
  const int64_t start_delta = Minus(record.start.ns, records_ == 0 ? 0 : last_start_ns_);
  last_start_ns_ = record.start.ns;
  const std::array<uint64_t, kFields> fields = {
      record.file.value,    record.handle,       record.offset,
      record.size_bytes,    ZigZag(start_delta), ZigZag(Minus(record.end.ns, record.start.ns)),
      record.parent.value,  record.target.value, record.pid,
      record.process_start, record.text.size()};
  uint32_t mask = 0;
  for (size_t field = 0; field < kFields; ++field) mask |= (fields[field] != 0 ? 1U : 0U) << field;
  payload_ += static_cast<char>(record.kind);
  payload_ += static_cast<char>(record.flags);
  payload_ += static_cast<char>(mask & 0xff);
  payload_ += static_cast<char>(mask >> 8);
  for (const uint64_t field : fields)
    if (field != 0) PutVarint(payload_, field);
  payload_ += record.text;
  ++records_;
}

std::string TraceBlock::Take() {
  std::string block;
  block.reserve(kTraceBlockHeadBytes + payload_.size());
  PutFixed(block, payload_.size());
  PutFixed(block, records_);
  PutFixed(block, Crc32c(payload_.data(), payload_.size()));
  block += payload_;
  payload_.clear();
  records_ = 0;
  return block;
}

Result<TraceFile> ParseTrace(std::string_view bytes, size_t records_max) {
  if (!bytes.starts_with(kMagic)) return InvalidArgumentError("it is not a trace of a Mosa mount");
  const std::string_view version = bytes.substr(kMagic.size(), 16);
  const std::string_view number = version.substr(0, version.find('\n'));
  if (number != std::to_string(kTraceVersion))
    return InvalidArgumentError(
        fmt::format("it is a trace of version {}, but this program reads only version {}",
                    std::string(number), kTraceVersion));
  const std::string_view head = bytes.substr(0, kTraceHeadBytes);
  TraceFile file;
  file.head.host = ValueOf(head, "host");
  file.head.light = ValueOf(head, "light") == "1";
  file.head.begun.ns = static_cast<int64_t>(NumberOf(head, "begun_ns"));
  file.head.mount_point = ValueOf(head, "mount");
  if (bytes.size() < kTraceHeadBytes + kTraceFootBytes) {
    file.fault = "is cut short before its first record";
    return file;
  }
  const std::string_view foot = bytes.substr(kTraceHeadBytes, kTraceFootBytes);
  if (foot.starts_with(kFootName)) {
    file.foot = TraceFoot{std::string(ValueOf(foot, "reason")),
                          NumberOf(foot, "records"),
                          NumberOf(foot, "dropped"),
                          NumberOf(foot, "bytes"),
                          NumberOf(foot, "stats"),
                          NumberOf(foot, "lookups")};
  }
  size_t at = kTraceHeadBytes + kTraceFootBytes;
  bool damaged = false;
  while (at < bytes.size() && !damaged) {
    damaged = true;
    if (bytes.size() - at < kTraceBlockHeadBytes) break;
    const uint32_t payload_bytes = FixedAt(bytes, at);
    const uint32_t count = FixedAt(bytes, at + 4);
    if (payload_bytes > kTraceBlockBytesMax ||
        payload_bytes > bytes.size() - at - kTraceBlockHeadBytes ||
        count > payload_bytes / kRecordHeadBytes)
      break;
    const std::string_view payload = bytes.substr(at + kTraceBlockHeadBytes, payload_bytes);
    if (Crc32c(payload.data(), payload.size()) != FixedAt(bytes, at + 8)) break;
    const size_t before = file.records.size();
    if (count > records_max - before) {
      file.fault = fmt::format("is read only up to record {}: at most {} records are supported{}",
                               before, records_max,
                               file.foot ? fmt::format(", and it has {}", file.foot->records) : "");
      return file;
    }
    if (!ParsePayload(payload, count, file.records)) {
      file.records.resize(before);
      break;
    }
    damaged = false;
    at += kTraceBlockHeadBytes + payload_bytes;
  }
  file.fault = FaultOf(file, damaged, at);
  return file;
}

}  // namespace mosa
