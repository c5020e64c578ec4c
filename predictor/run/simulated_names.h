// Internal to predictor/run: the names of a simulated mount, as it and its kernel know them, and
// how they are looked up, made and removed.
//
// Runs on one loop. Paths must outlive the call.
#ifndef MOSA_PREDICTOR_RUN_SIMULATED_NAMES_H_
#define MOSA_PREDICTOR_RUN_SIMULATED_NAMES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client-sai/core/shared_names.h"
#include "predictor/run/mount_part.h"
#include "predictor/run/simulated_files.h"

namespace mosa::predict {

class SimulatedNames : private MountPart {
 public:
  struct Place {
    FileId parent;
    std::string_view name;
  };

  // `files` must outlive this.
  SimulatedNames(const MountPart& mount, SimulatedFiles& files, const FileIdRangeReply& file_ids)
      : MountPart(mount), files_(files), file_ids_(file_ids) {}

  // FileId{}: there is none.
  des::Activity<Outcome<FileId>> Lookup(FileId parent, std::string_view name);
  des::Activity<Outcome<Place>> PlaceOf(const std::string& path, bool make_directories);
  // Creates a file and opens it for writing. A deferred file is known only here until it is bound
  // or closed.
  des::Activity<Outcome<FileId>> Create(FileId parent, std::string_view name,
                                        const std::string& task);
  // Succeeds if there is none.
  des::Activity<Outcome<Done>> Remove(const std::string& path);
  // A hint was set here: what is known of where new files go is out of date.
  void NoteHintsChanged() { ++hints_generation_; }
  // Another mount wants to look into the directory. Returns its files that only this mount knows,
  // to be sent; what is known stays.
  std::vector<FileId> EndDelegation(FileId directory);
  // Another mount changes the directory. Returns its files that only this mount knows. Once they
  // are sent, call ForgetSent.
  std::vector<FileId> Forget(FileId directory);
  void ForgetSent(FileId directory, const std::vector<FileId>& sent);

 private:
  struct Directory {
    bool delegated = false;
    bool complete = false;  // All its names are known.
    uint64_t inline_bytes_max = 0;
    uint64_t hints_generation = 0;  // `inline_bytes_max` is of this one.
    struct Name {
      FileId file;           // 0: known to be absent.
      uint64_t told_in = 0;  // The epoch in which the kernel was told it; 0: it may not keep it.
      // It is in a shared directory, and was learned then: it is known as long as nobody else has
      // changed the file.
      std::optional<SimulatedMark> seen = {};
    };
    std::map<std::string, Name, std::less<>> names;
    sai::SharedNames shared;
    uint64_t told_in = 0;  // The last epoch in which the kernel was told one.
  };

  bool IsStillSeen(const Directory::Name& name);
  // The epoch in which the kernel may keep the directory's names; 0: it may not.
  uint64_t TellKernel(Directory& directory);
  // Whether a create may be told of later if its name is this mount's alone.
  bool MayMakeUnasked(const Directory& directory) const;
  // Keeps what an answer says of a directory, and whether it is shared.
  void NoteDirectory(FileId directory, const Attributes& attributes, SimulatedMark mark);
  void NoteMade(FileId parent, std::string_view name, const MakeReply& reply, SimulatedMark mark,
                Directory::Name known, uint64_t hints_before);
  des::Activity<Outcome<FileId>> NewFileId();
  des::Activity<Outcome<FileId>> MakeChildDirectory(FileId parent, std::string_view name);

  SimulatedFiles& files_;
  FileIdRangeReply file_ids_;
  std::map<FileId, Directory> directories_;
  uint64_t hints_generation_ = 0;
};

}  // namespace mosa::predict

#endif  // MOSA_PREDICTOR_RUN_SIMULATED_NAMES_H_
