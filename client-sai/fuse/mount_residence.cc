#include "client-sai/fuse/mount_residence.h"

#include <array>

#include "client-sai/fuse/kernel_protocol.h"
#include "common/model/request_kinds.h"
#include "nlohmann/json.hpp"
#include "proto/convert/bulk_frame.h"
#include "proto/convert/residence.h"

namespace mosa::sai {

namespace {

// Operations without a name here are counted as "fuse.other".
constexpr size_t kOther = 0;
constexpr size_t kOpcodes = kernel::kOpcodeStatx + 1;

constexpr auto kNames = [] {
  std::array<const char*, kOpcodes> names{};
  names[kOther] = "other";
  names[FUSE_LOOKUP] = "lookup";
  names[FUSE_FORGET] = "forget";
  names[FUSE_GETATTR] = "getattr";
  names[FUSE_SETATTR] = "setattr";
  names[FUSE_READLINK] = "readlink";
  names[FUSE_SYMLINK] = "symlink";
  names[FUSE_MKNOD] = "mknod";
  names[FUSE_MKDIR] = "mkdir";
  names[FUSE_UNLINK] = "unlink";
  names[FUSE_RMDIR] = "rmdir";
  names[FUSE_RENAME] = "rename";
  names[FUSE_LINK] = "link";
  names[FUSE_OPEN] = "open";
  names[FUSE_READ] = "read";
  names[FUSE_WRITE] = "write";
  names[FUSE_STATFS] = "statfs";
  names[FUSE_RELEASE] = "release";
  names[FUSE_FSYNC] = "fsync";
  names[FUSE_SETXATTR] = "setxattr";
  names[FUSE_GETXATTR] = "getxattr";
  names[FUSE_LISTXATTR] = "listxattr";
  names[FUSE_REMOVEXATTR] = "removexattr";
  names[FUSE_FLUSH] = "flush";
  names[FUSE_OPENDIR] = "opendir";
  names[FUSE_READDIR] = "readdir";
  names[FUSE_RELEASEDIR] = "releasedir";
  names[FUSE_FSYNCDIR] = "fsyncdir";
  names[FUSE_GETLK] = "getlk";
  names[FUSE_SETLK] = "setlk";
  names[FUSE_SETLKW] = "setlkw";
  names[FUSE_CREATE] = "create";
  names[FUSE_INTERRUPT] = "interrupt";
  names[FUSE_IOCTL] = "ioctl";
  names[FUSE_BATCH_FORGET] = "batch_forget";
  names[FUSE_FALLOCATE] = "fallocate";
  names[FUSE_READDIRPLUS] = "readdirplus";
  names[FUSE_RENAME2] = "rename2";
  names[FUSE_LSEEK] = "lseek";
  names[kernel::kOpcodeStatx] = "statx";
  return names;
}();

}  // namespace

DurationTable::ClassId KernelRequestKind(uint32_t opcode) {
  const bool named = opcode < kOpcodes && kNames[opcode] != nullptr;
  return DurationTable::ClassId{named ? opcode : kOther};
}

std::vector<std::string> KernelRequestNames() {
  std::vector<std::string> names(kOpcodes);
  for (size_t i = 0; i < kOpcodes; ++i)
    if (kNames[i] != nullptr) names[i] = std::string("fuse.") + kNames[i];
  return names;
}

MountResidence::MountResidence()
    : kernel(KernelRequestNames(), 0, &log),
      manager(EnvelopeKindNames("manager."), 0, &log),
      nodes(BulkOperationNames("node."), kNodesMax, &log),
      waits({"wait.fetch"}, 0, &log) {}

ResidenceSnapshot SnapshotOf(const MountResidence& residence, const std::string& stats_json) {
  ResidenceSnapshot snapshot{.component = "mount",
                             .started = residence.started,
                             .taken = SystemClock().Now(),
                             .rows = {},
                             .amounts = {}};
  for (const DurationTable* const table :
       {&residence.kernel, &residence.manager, &residence.nodes, &residence.waits})
    AppendRows(*table, snapshot);
  AppendProcessorUse(ReadProcessorUse(), snapshot);
  const nlohmann::json stats = nlohmann::json::parse(stats_json, nullptr, false);
  if (!stats.is_object()) return snapshot;
  for (const auto& [name, value] : stats.items())
    if (value.is_number_unsigned())
      snapshot.amounts.push_back({name, value.get<uint64_t>(), /*is_total=*/true});
  return snapshot;
}

}  // namespace mosa::sai
