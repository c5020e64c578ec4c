// What people and schedulers ask of the manager, one call each. Thread-safe; a call waits at most
// kWaitMax. Unavailable when the manager cannot be reached, else as the manager says.
#ifndef MOSA_CLIENT_SAI_API_ADMIN_CLIENT_H_
#define MOSA_CLIENT_SAI_API_ADMIN_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/adoption.h"
#include "common/model/hints.h"
#include "common/model/read_cost.h"
#include "common/model/residence.h"
#include "common/model/staging.h"
#include "common/model/status.h"
#include "proto/convert/credentials.h"

namespace mosa::sai {

class AdminClient {
 public:
  // `address` is host:port of the manager. Connects with the first call.
  AdminClient(const std::string& address, const std::optional<ClusterSecret>& secret);
  ~AdminClient();

  Result<ClusterStatus> GetClusterStatus();
  // By absolute path in the store; NotFound names the first missing component.
  Result<FileStatus> GetFileStatus(const std::string& path);
  // At most `files_max` (1 to 10,000), ascending by id.
  Result<std::vector<FileStatus>> ListLostFiles(uint32_t files_max);

  // Where the bytes of these files are, in the order of `paths`; 10,000 of them in one call. With
  // `with_chunks` per range of chunks too.
  Result<std::vector<FileLocation>> ListLocations(const std::vector<std::string>& paths,
                                                  bool with_chunks);
  // How long each host would take to read each set of files, by prediction: any number of sets, in
  // as many calls as they need. InvalidArgument if one set alone asks for too much;
  // FailedPrecondition if the manager was given no platform.
  Result<ReadCostAnswer> PredictReads(const ReadCostQuery& query);
  // What holds for the file at this path, or for one that would be made there now.
  Result<HintExplanation> ExplainHints(const std::string& path);
  // These wait until every mount that made files without asking has let go. Aborted if one has not
  // after kWaitMax.
  Status SetHint(const std::string& path, const HintValue& hint);
  // Moves everything off the node of that name, or, without `drain`, lets it take files again.
  Status DrainNode(const std::string& name, bool drain);
  Result<uint64_t> AddHintRule(const std::string& glob, const std::vector<HintValue>& hints);
  Result<std::vector<HintRule>> ListHintRules();
  Status RemoveHintRule(uint64_t rule);

  // What a runner says of its tasks, whose names begin with "RUN/" (manager_service.proto).
  Status BeginWorkflow(const std::string& run);
  Status EndTask(const std::string& task, bool succeeded);
  // How many temporary files are still open somewhere: they go when they are closed. Waits up to
  // two seconds for mounts to say that they have none of them open.
  Result<uint64_t> EndWorkflow(const std::string& run);

  // Has the manager remember that these files, as of these versions, have been copied out: one
  // outcome for each, in their order. Waits some seconds until every mount that knows them has said
  // whether it writes, and until those that do have closed them; kBusy for files not settled then.
  // Waits for a manager that is being restarted.
  Result<std::vector<StageOutcome>> MarkStaged(const std::vector<StagedFile>& files);
  // Files with lifetime=keep that have not been copied out as they are now, at most `files_max` (up
  // to 10,000) of them by path, ascending by id and greater than `after`. Waits as SetHint, and
  // for a manager that is being restarted.
  Result<UnstagedFiles> ListUnstaged(uint32_t files_max, FileId after = FileId());

  // Files that nodes have put something aside of, at most `files_max` (1 to 10,000), ascending by
  // id and greater than `after`.
  Result<std::vector<AsideFile>> ListAside(uint32_t files_max, FileId after = FileId());
  // Makes files of these (at most 10,000) below /lost+found (or /lost+found.N, where that is not a
  // directory that root alone may enter), or removes what was put aside. One
  // outcome for each. Waits for a manager that is being restarted.
  Result<std::vector<AdoptOutcome>> AdoptFiles(const std::vector<FileId>& files, bool discard);

  // How long requests have stayed in one daemon since it started. Unavailable or DeadlineExceeded
  // if that one does not answer the manager.
  // With an order to its log of requests, if `query` has one.
  Result<ResidenceSnapshot> GetResidence(const ResidenceSource& source,
                                         const ResidenceQuery& query = {});

 private:
  struct Stub;
  std::unique_ptr<Stub> stub_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_ADMIN_CLIENT_H_
