// Questions and orders of users and schedulers to the manager, one call each. Thread-safe. A call
// blocks for at most kWaitMax unless it says otherwise. Unavailable if the manager cannot be
// reached; other errors come from the manager. A question that ends with Unavailable is repeated
// for up to three seconds, so that a restart of the manager does not fail it.
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
  // `address` is the manager's host:port. Connects at the first call.
  AdminClient(const std::string& address, const std::optional<ClusterSecret>& secret);
  ~AdminClient();

  Result<ClusterStatus> GetClusterStatus();
  // `path` is absolute in the store. NotFound names the first missing component.
  Result<FileStatus> GetFileStatus(const std::string& path);
  // Returns at most `files_max` (1 to 10,000) files, ascending by id.
  Result<std::vector<FileStatus>> ListLostFiles(uint32_t files_max);

  // Returns where the bytes of the files are, in the order of `paths`.
  // `with_chunks` adds the location of each range of chunks.
  Result<std::vector<FileLocation>> ListLocations(const std::vector<std::string>& paths,
                                                  bool with_chunks);
  // Predicts how long each host would take to read each set of files. Any number of sets is
  // accepted; they are split into calls. InvalidArgument if one set is too large for a call;
  // FailedPrecondition if the manager has no forecasts.
  Result<ReadCostAnswer> PredictReads(const ReadCostQuery& query);
  // Explains the hints of the file at this path, or of a file that would be created there now.
  Result<HintExplanation> ExplainHints(const std::string& path);
  // The next calls wait until every mount with a delegation has given it up. Aborted if one has not
  // after kWaitMax.
  Status SetHint(const std::string& path, const HintValue& hint);
  // Drains the named node, or, without `drain`, lets it take files again.
  Status DrainNode(const std::string& name, bool drain);
  Result<uint64_t> AddHintRule(const std::string& glob, const std::vector<HintValue>& hints);
  Result<std::vector<HintRule>> ListHintRules();
  Status RemoveHintRule(uint64_t rule);

  // A runner's reports about its tasks, whose names begin with "RUN/" (manager_service.proto).
  Status BeginWorkflow(const std::string& run);
  Status EndTask(const std::string& task, bool succeeded);
  // Returns how many temporary files are still open; they are removed when closed. Waits up to two
  // seconds for mounts to report that they have none open.
  Result<uint64_t> EndWorkflow(const std::string& run);

  // Marks these versions of files as copied out. Returns one outcome per file, in order. Waits some
  // seconds until every mount that knows the files has said whether it writes them, and until
  // writers have closed them; kBusy for files not settled by then. Survives a restart of the
  // manager.
  Result<std::vector<StageOutcome>> MarkStaged(const std::vector<StagedFile>& files);
  // Returns files with lifetime=keep whose current version has not been copied out: at most
  // `files_max` (up to 10,000) paths, ascending by id, with ids greater than `after`. Waits like
  // SetHint, and survives a restart of the manager.
  Result<UnstagedFiles> ListUnstaged(uint32_t files_max, FileId after = FileId());

  // Returns files of which nodes have put something aside: at most `files_max` (1 to 10,000),
  // ascending by id, with ids greater than `after`.
  Result<std::vector<AsideFile>> ListAside(uint32_t files_max, FileId after = FileId());
  // Turns put-aside objects (of at most 10,000 files) into files below /lost+found, or deletes them
  // if `discard`. Uses /lost+found.N if /lost+found is not a directory that only root may enter.
  // Returns one outcome per file. Survives a restart of the manager.
  Result<std::vector<AdoptOutcome>> AdoptFiles(const std::vector<FileId>& files, bool discard);

  // Returns the residence times of one daemon since its start, after carrying out the request-log
  // order in `query`, if any. Unavailable or DeadlineExceeded if the daemon does not answer the
  // manager.
  Result<ResidenceSnapshot> GetResidence(const ResidenceSource& source,
                                         const ResidenceQuery& query = {});

 private:
  struct Stub;
  std::unique_ptr<Stub> stub_;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_API_ADMIN_CLIENT_H_
