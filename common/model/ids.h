// Strong ids. No signature takes a bare integer for one of these.
#ifndef MOSA_COMMON_MODEL_IDS_H_
#define MOSA_COMMON_MODEL_IDS_H_

#include <cstdint>

#include "common/base/strong_id.h"

namespace mosa {

// A file, directory or link: its inode number. Never reused in the life of a cluster. The root is
// 1.
using FileId = StrongId<struct FileIdTag, uint64_t>;
// A storage node, numbered by first registration. A node that returns under its name keeps its id.
using NodeId = StrongId<struct NodeIdTag, uint32_t>;
// One run of a mount: a random 64-bit number that the mount chooses.
using ClientId = StrongId<struct ClientIdTag, uint64_t>;
// A chunk of a file, counted from 0.
using ChunkIndex = StrongId<struct ChunkIndexTag, uint64_t>;
// A request of one client, counted up from 1 by that client. (ClientId, RequestId) is never reused.
using RequestId = StrongId<struct RequestIdTag, uint64_t>;
// A recall sent to one client, counted up from 1 by the manager per session.
using RecallId = StrongId<struct RecallIdTag, uint64_t>;

inline constexpr FileId kRootFile{1};
inline constexpr NodeId kNoNode{0};
inline constexpr uint64_t kNameBytesMax = 255;
inline constexpr uint64_t kInlineBytesMax = 16 * 1024;
inline constexpr uint64_t kChecksumBlockBytes = 64 * 1024;
inline constexpr uint64_t kFileBytesMax = uint64_t{1} << 50;

}  // namespace mosa

#endif  // MOSA_COMMON_MODEL_IDS_H_
