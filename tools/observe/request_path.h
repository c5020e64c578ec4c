// The path of one request through the daemons of a cluster, out of their logs of requests
// (common/observe/request_log.h): what it caused, where, when, and whose each part of its time was.
// Pure.
//
// Daemons' clocks need not agree: what one asked of another is laid within the question, moved by
// as little as that takes; by how much is said if it is more than 2 ms. Below an answer that nobody
// waited for more is no contradiction: writes behind and fetches ahead go on by themselves.
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

// One request of the path, in the order in which they were asked for.
struct PathPart {
  size_t depth = 0;
  std::string component;
  std::string host;
  std::string name;
  std::string peer;
  uint64_t bytes = 0;
  Duration at;  // Since the path's begin, by the clock of its first daemon.
  Duration took;
  Duration own;        // What no part of it accounts for, and
  std::string own_is;  // what that is.
  std::vector<std::string> notes;
};

struct RequestPath {
  uint64_t trace = 0;
  Time begin;  // Time of day, where it began.
  std::vector<PathPart> parts;
  // Whose its time was; what went on at once counts for each.
  std::map<std::string, Duration> shares;
  std::vector<std::string> notes;  // What is missing, and which clocks disagree.
};

class RequestPaths {
 public:
  explicit RequestPaths(std::vector<RequestLogFile> files);

  // Requests that nobody logged asked for, of this class (empty: any of a mount), on this
  // host (empty: any), the longest first.
  struct Root {
    const RequestLogFile* file;
    const LoggedRequest* request;
  };
  std::vector<Root> RootsOf(const std::string& name, const std::string& host) const;
  // With this trace; nothing if there is none.
  const Root* RootOf(uint64_t trace) const;
  RequestPath PathOf(const Root& root) const;

 private:
  friend class PathBuilder;

  const std::vector<RequestLogFile> files_;
  std::vector<Root> all_;
  std::map<uint64_t, size_t> by_span_;                // Place in all_.
  std::map<uint64_t, std::vector<size_t>> parts_of_;  // By parent.
  std::map<uint64_t, size_t> by_trace_;               // The roots.
};

}  // namespace mosa::cli

#endif  // MOSA_TOOLS_OBSERVE_REQUEST_PATH_H_
