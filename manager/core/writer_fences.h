// WriterFences: which writers may still commit what they stored under an older layout, and which
// writers are absent.
//
// A writer whose session expires may have stored bytes without committing them. While it is
// *absent*, no other client's view of the file depends on these bytes. The file is *fenced* as soon
// as another client opens it for writing, is granted a lock on it, or its bytes go elsewhere: its
// layout generation rises, and what was stored under older generations no longer counts. Writers
// whose sessions never expired are not affected; for them the class keeps the oldest generation
// that still counts.
//
// The bounds of single writers are durable (TakeChanged); absences are not. After a restart of the
// manager, a client whose session had expired before is not recorded as absent; the caller then has
// to fence the files that it declares as open. Not thread-safe.
#ifndef MOSA_MANAGER_CORE_WRITER_FENCES_H_
#define MOSA_MANAGER_CORE_WRITER_FENCES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/model/ids.h"

namespace mosa::manager {

class WriterFences {
 public:
  // Maximum number of remembered files with absent writers. Beyond it the caller fences the oldest.
  static constexpr size_t kFilesMax = 65'536;

  // Call when the session of `client` expires while it has `file` open for writing.
  void NoteAbsent(FileId file, ClientId client);
  // Call when `client` has the file open again. Returns false if it was not absent, or if the file
  // was fenced meanwhile.
  bool TakeBack(FileId file, ClientId client);
  bool HasAbsent(FileId file) const { return absent_.contains(file); }
  // Returns all files with absent writers; the caller chooses which to fence.
  std::vector<FileId> FilesWithAbsent() const;
  // If too many files have absent writers, returns the one that has had them longest.
  std::optional<FileId> Surplus() const;

  // Fences the file; it has no absent writers afterwards. For each `live` writer the previous bound
  // remains; `kept_since_before` is the previous bound of writers without one of their own.
  void Fence(FileId file, const std::set<ClientId>& live, uint64_t kept_since_before);
  // Returns the oldest generation whose stores by `client` count. `kept_since`: the file's, for all
  // other writers.
  uint64_t KeptSince(FileId file, ClientId client, uint64_t kept_since) const;

  // Call when `client` no longer has the file open for writing.
  void NoteClosed(FileId file, ClientId client);
  void ForgetClient(ClientId client);  // The session has ended.
  // Call when `client` was away so long that the caller fences every file it declares as open.
  void ForgetAbsent(ClientId client);
  void ForgetFile(FileId file);

  // ---- the durable part: live writers with their own bound
  using Bounds = std::map<ClientId, uint64_t>;
  void Load(FileId file, Bounds bounds) { kept_[file] = std::move(bounds); }
  Bounds BoundsOf(FileId file) const;
  // Returns the files whose bounds have changed since the last call.
  std::set<FileId> TakeChanged() { return std::exchange(changed_, {}); }

 private:
  struct Absent {
    std::set<ClientId> writers;
    uint64_t order = 0;  // As in `by_age_`.
  };
  using AbsentFiles = std::map<FileId, Absent>;
  AbsentFiles::iterator EraseAbsent(AbsentFiles::iterator entry);

  AbsentFiles absent_;
  std::map<uint64_t, FileId> by_age_;  // The files of `absent_`, oldest first.
  uint64_t last_order_ = 0;
  std::map<FileId, Bounds> kept_;
  std::set<FileId> changed_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_WRITER_FENCES_H_
