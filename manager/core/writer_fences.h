// Which writers may still commit what they stored by an older layout, and which ones are away.
//
// A writer whose session expires may have stored bytes that it has not committed. While it is away
// (*absent*) nobody else's view of the file rests on them. As soon as somebody else opens the file
// for writing, is granted a lock on it, or its bytes go elsewhere, the file is *fenced*: its layout
// generation rises, and what was stored by an older one no longer counts. Writers that were heard
// all the time are not concerned; for them the class keeps the oldest generation that counts.
//
// The generations of single writers are durable (TakeChanged); absences are not. After a
// restart of the manager a client whose session had expired before is absent from no file; the
// caller then has to fence what it declares as open. One owner, one thread.
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
  // Files with absent writers that are remembered; beyond that the caller fences the oldest ones.
  static constexpr size_t kFilesMax = 65'536;

  // The session of `client` has expired while it had `file` open for writing.
  void NoteAbsent(FileId file, ClientId client);
  // `client` has the file open again. False: it was not absent, or the file was fenced meanwhile.
  bool TakeBack(FileId file, ClientId client);
  bool HasAbsent(FileId file) const { return absent_.contains(file); }
  // All files with absent writers; the caller chooses which to fence.
  std::vector<FileId> FilesWithAbsent() const;
  // A file to be fenced because too many have absent writers: the one that has had some longest.
  std::optional<FileId> Surplus() const;

  // The file is fenced: nobody is absent from it any more. For the `live` writers, what counted
  // until now goes on to count; for others `kept_since` of the file did until now.
  void Fence(FileId file, const std::set<ClientId>& live, uint64_t kept_since_before);
  // The oldest generation whose stores count for `client`; `kept_since`: for everybody else.
  uint64_t KeptSince(FileId file, ClientId client, uint64_t kept_since) const;

  // `client` has the file no longer open for writing.
  void NoteClosed(FileId file, ClientId client);
  void ForgetClient(ClientId client);  // Its session is over.
  // `client` has been away for so long that the caller fences whatever it declares as open.
  void ForgetAbsent(ClientId client);
  void ForgetFile(FileId file);

  // ---- the durable part: live writers with a bound of their own
  using Bounds = std::map<ClientId, uint64_t>;
  void Load(FileId file, Bounds bounds) { kept_[file] = std::move(bounds); }
  Bounds BoundsOf(FileId file) const;
  // Files whose bounds have changed since the last call.
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
