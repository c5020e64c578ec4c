// Which writers may still commit what they stored by an older layout, and which ones are away.
//
// A writer whose session expires may have stored bytes that it has not committed. While it is away
// (*absent*) nobody else's view of the file rests on them. As soon as somebody else opens the file
// for writing, is granted a lock on it, or its bytes go elsewhere, the file is *fenced*: its layout
// generation rises, and what was stored by an older one no longer counts. Writers that were heard
// all the time are not concerned; for them the class keeps the oldest generation that counts.
//
// Not durable. After a restart of the manager a client whose session had expired before is absent
// from no file; the caller then has to fence what it declares as open. One owner, one thread.
#ifndef MOSA_MANAGER_CORE_WRITER_FENCES_H_
#define MOSA_MANAGER_CORE_WRITER_FENCES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "common/model/ids.h"

namespace mosa::manager {

class WriterFences {
 public:
  // Files with absent writers that are remembered; beyond that the caller fences the first ones.
  static constexpr size_t kFilesMax = 65'536;

  // The session of `client` has expired while it had `file` open for writing.
  void NoteAbsent(FileId file, ClientId client);
  // `client` has the file open again. False: it was not absent, or the file was fenced meanwhile.
  bool TakeBack(FileId file, ClientId client);
  bool HasAbsent(FileId file) const { return absent_.contains(file); }
  // Files with absent writers that name a condition, for the caller to fence.
  const std::map<FileId, std::set<ClientId>>& absent() const { return absent_; }
  // A file to be fenced because too many have absent writers.
  std::optional<FileId> Surplus() const;

  // The file is fenced: nobody is absent from it any more. For the `live` writers, what counted
  // until now goes on to count; for others `kept_since` of the file did until now.
  void Fence(FileId file, const std::set<ClientId>& live, uint64_t kept_since_before);
  // The oldest generation whose stores count for `client`; `kept_since`: for everybody else.
  uint64_t KeptSince(FileId file, ClientId client, uint64_t kept_since) const;

  // `client` has the file no longer open for writing.
  void NoteClosed(FileId file, ClientId client);
  void ForgetClient(ClientId client);  // Its session is over.
  void ForgetFile(FileId file);

 private:
  std::map<FileId, std::set<ClientId>> absent_;
  std::map<FileId, std::map<ClientId, uint64_t>> kept_;  // Live writers with a bound of their own.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_WRITER_FENCES_H_
