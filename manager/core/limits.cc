#include "manager/core/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace mosa::manager {
namespace {

uint32_t Saturate(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX));
}

}  // namespace

Charge Limits::ChargeOf(FileId file, const Inode& inode) const {
  Charge charge;
  charge.uid = inode.uid;
  // A file without a name exists as long as a client has it open.
  charge.names = inode.type == FileType::kDirectory ? 1 : std::max<uint32_t>(inode.link_count, 1);
  if (inode.bytes && inode.bytes->is_inline)
    charge.inline_bytes = Saturate(inode.bytes->inline_valid_bytes);
  if (inode.type == FileType::kSymlink) charge.attribute_bytes = Saturate(inode.size_bytes);
  if (files_.xattrs.empty()) return charge;
  if (const auto found = files_.xattrs.find(file); found != files_.xattrs.end())
    charge.attribute_bytes = Saturate(charge.attribute_bytes + found->second.charged_bytes());
  return charge;
}

void Limits::ChargeForChanges() {
  for (const FileId file : step_.recharges) {
    if (Inode* inode = files_.Find(file)) quotas_.Recharge(inode->charged, ChargeOf(file, *inode));
  }
  step_.recharges.clear();
}

void Limits::ChargeForAll() {
  for (auto& [file, inode] : files_.inodes)
    quotas_.Recharge(inode->charged, ChargeOf(file, *inode));
}

uint64_t Limits::InlineBytesMaxOf(const Inode& inode) const {
  const uint64_t kept = inode.bytes && inode.bytes->is_inline ? inode.bytes->inline_valid_bytes : 0;
  const uint64_t bytes_max = cluster_.options.inline_bytes_max;
  if (kept >= bytes_max) return bytes_max;
  return quotas_.Check(inode.uid, {.inline_bytes = bytes_max - kept}) ? kept : bytes_max;
}

// FailedPrecondition makes the client give the file objects instead.
std::optional<Failure> Limits::CheckInlineGrowth(const Inode& inode, uint64_t bytes) const {
  const uint64_t kept = inode.bytes && inode.bytes->is_inline ? inode.bytes->inline_valid_bytes : 0;
  if (bytes <= kept) return std::nullopt;
  auto failure = quotas_.Check(inode.uid, {.inline_bytes = bytes - kept});
  if (failure) failure->code = StatusCode::kFailedPrecondition;
  return failure;
}

std::optional<Failure> Limits::CheckAttributeGrowth(FileId file, const Inode& inode,
                                                    std::string_view name,
                                                    uint64_t value_bytes) const {
  static const FileAttributes kNone;
  const auto found = files_.xattrs.find(file);
  const FileAttributes& before = found == files_.xattrs.end() ? kNone : found->second;
  const uint64_t after_bytes = before.BytesWith(name, value_bytes);
  if (after_bytes > kAttributeBytesPerFileMax && after_bytes > before.bytes())
    return Refuse(StatusCode::kResourceExhausted, ErrorReason::kNoSpace,
                  fmt::format("the attributes of file {}, with their names, would have {} bytes, "
                              "and the maximum is {}",
                              file.value, after_bytes, kAttributeBytesPerFileMax));
  const bool is_new = !before.values().contains(name);
  const uint64_t charged_after =
      after_bytes + (before.values().size() + (is_new ? 1 : 0)) * kAttributeOverheadBytes;
  if (charged_after <= before.charged_bytes()) return std::nullopt;
  return quotas_.Check(inode.uid, {.attribute_bytes = charged_after - before.charged_bytes()});
}

// Refuses at the user's share (kQuota), and for everybody once the pool is full (kNoSpace).
std::optional<Failure> Limits::CheckTextGrowth(uint32_t uid) const {
  if (texts_.HasRoomFor(uid)) return std::nullopt;
  return Refuse(StatusCode::kResourceExhausted,
                texts_.is_full() ? ErrorReason::kNoSpace : ErrorReason::kQuota,
                texts_.WhyFull(uid));
}

}  // namespace mosa::manager
