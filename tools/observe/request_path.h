// Reconstructs the path of one request through the daemons of a cluster from their request logs
// (common/observe/request_log.h): what it caused, where and when, and which component accounts for
// each part of its time. Pure.
//
// Daemons' clocks may disagree. A request to another daemon is placed within the call that caused
// it and moved as little as possible; moves of more than 2 ms are reported. Work may outlast its
// caller if nobody waits for it: writes behind and reads ahead continue on their own.
#ifndef MOSA_TOOLS_OBSERVE_REQUEST_PATH_H_
#define MOSA_TOOLS_OBSERVE_REQUEST_PATH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/observe/request_log_file.h"

namespace mosa::cli {

// One request of the path. A path has its parts in the order in which they were requested.
struct PathPart {
  size_t depth = 0;
  std::string component;
  std::string host;
  std::string name;
  std::string peer;
  uint64_t bytes = 0;
  Duration at;  // Since the start of the path, by the clock of its first daemon.
  Duration took;
  Duration own;        // Time that none of its parts accounts for.
  std::string own_is;  // What that time was spent on.
  std::vector<std::string> notes;
};

struct RequestPath {
  uint64_t trace = 0;
  Time begin;  // Time of day on the path's first host.
  std::vector<PathPart> parts;
  // Time by component. Work done at the same time counts once for each.
  std::map<std::string, Duration> shares;
  std::vector<std::string> notes;  // What is missing, and which clocks disagree.
};

class RequestPaths {
 public:
  explicit RequestPaths(std::vector<RequestLogFile> files);

  // Requests without a logged parent, of this class (empty: any class of a mount) and on this host
  // (empty: any), slowest first.
  struct Root {
    const RequestLogFile* file;
    const LoggedRequest* request;
  };
  std::vector<Root> RootsOf(const std::string& name, const std::string& host) const;
  // The request with this trace, or null.
  const Root* RootOf(uint64_t trace) const;
  RequestPath PathOf(const Root& root) const;

 private:
  friend class PathBuilder;

  const std::vector<RequestLogFile> files_;
  std::vector<Root> all_;
  std::map<uint64_t, size_t> by_span_;                // Index in all_.
  std::map<uint64_t, std::vector<size_t>> parts_of_;  // By parent.
  std::map<uint64_t, size_t> by_trace_;               // Roots only.
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REQUEST_PATH_H_
