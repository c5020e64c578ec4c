// What a run needs to know and do about files on a host's mount.
#ifndef MOSA_TOOLS_HOSTS_FILES_H_
#define MOSA_TOOLS_HOSTS_FILES_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "common/base/status.h"
#include "predictor/workflow/workflow.h"
#include "tools/hosts/hosts.h"

namespace mosa::cli {

struct FileFacts {
  uint64_t size_bytes = 0;
  int64_t mtime_ns = 0;
  // What each node could serve of it; nothing on a file system that does not say.
  std::map<std::string, uint64_t> bytes_by_node;
  uint64_t chunk_bytes = 0;  // 0: not known, or it has none.
  std::string checksum;      // Tells its content; empty: not asked for, or there is none.
};

// Whether both have the same content, as far as this can be told: by their checksums, or without
// one by the times at which they were written.
bool HasSameBytes(const FileFacts& a, const FileFacts& b);

// How many bytes of a file of that size each node has a copy of, from its `user.mosa.layout`.
std::map<std::string, uint64_t> BytesByNode(const nlohmann::json& layout, uint64_t size_bytes);

// Size, time and place of the file at `path`; of a directory, if the path has a slash at its end,
// those of all regular files in it together (the latest time, also of its directories), else its
// own. `with_checksum`: what tells the content, too, if the file system says. NotFound if there is
// none.
Result<FileFacts> Locate(const std::string& path, bool with_checksum = false);

// Whether the bytes can be had: it can be opened, and a byte read of each piece of its stripe; of a
// directory, all files in it. DataLoss if they cannot, NotFound if there is no such file.
Status CheckReadable(const std::string& path);

// Makes a directory, takes back the hints that an earlier run gave it, and has it carry these for
// what is made in it: true if it does. False if somebody else has put something there: then it is
// left as it is.
Result<bool> SettleDirectory(const std::string& path, const predict::HintMap& hints);

// Readies the place of an output: the directory that it goes to exists, nothing of an earlier
// attempt is left, and with hints an empty file carries them, marked so that CheckWritten() can
// tell. A path with a slash at its end is a directory: it goes with all that is in it, and an empty
// directory carries the hints. A directory at a path without one is left: FailedPrecondition.
Status PrepareOutput(const std::string& directory, const std::string& path,
                     const predict::HintMap& hints);

// Gives hints to a file that is written already; to all regular files in a directory, if the path
// has a slash at its end.
Status GiveHints(const std::string& path, const predict::HintMap& hints);

// Whether a task has written the output since PrepareOutput(), as what its path says: a regular
// file, or a directory. FailedPrecondition says what is there instead.
Status CheckWritten(const std::string& directory, const std::string& path);

// Whether the mount takes these hints: tried on a file of our own, which is removed again.
Status TryHints(const std::string& directory, const predict::HintMap& hints);

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_HOSTS_FILES_H_
