#include "tools/observe/request_path.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/format.h"

namespace mosa::cli {

namespace {

// Daemons never nest requests deeper than this.
constexpr size_t kDepthMax = 16;
// Smaller differences of clocks are not reported, because clocks are read one after another.
constexpr Duration kClockStep = Milliseconds(2);

std::string OwnOf(const RequestLogFile& file, const LoggedRequest& request, bool has_parts) {
  if (file.component == "manager") {
    if (request.name == "log") return "the manager's database";
    if (request.name.ends_with(".core")) return "the manager's decisions";
    return "the manager's loop, and waits for other mounts";
  }
  if (file.component == "storage") {
    if (request.name.ends_with(".object")) return fmt::format("objects of {}", file.host);
    if (request.name.starts_with("copy.")) return fmt::format("the network to {}", request.peer);
    return fmt::format("sending and receiving at {}", file.host);
  }
  if (request.name.starts_with("manager."))
    return has_parts ? "the network to the manager, and its queue"
                     : "the manager and the network to it";
  if (request.name.starts_with("node."))
    return has_parts ? fmt::format("the network to {}, and connections", request.peer)
                     : fmt::format("{} and the network to it", request.peer);
  if (request.name == "wait.fetch" && request.record.link != request.record.parent)
    return "waiting for what was asked for before";
  return fmt::format("the mount of {}", file.host);
}

// Length of the part of [begin, end) that no interval covers.
Duration Uncovered(int64_t begin, int64_t end, std::vector<std::pair<int64_t, int64_t>> intervals) {
  std::erase_if(intervals,
                [begin, end](const auto& one) { return one.second <= begin || one.first >= end; });
  std::ranges::sort(intervals);
  int64_t uncovered = 0;
  int64_t at = begin;
  for (const auto& [from, to] : intervals) {
    if (from > at) uncovered += std::min(from, end) - at;
    at = std::clamp(to, at, end);
  }
  return {uncovered + (end - at)};
}

}  // namespace

// Walks the tree of requests from the root down.
class PathBuilder {
 public:
  PathBuilder(const RequestPaths& paths, RequestPath& path) : paths_(paths), path_(path) {}

  void Add(const RequestPaths::Root& root) {
    path_.trace = root.request->record.trace;
    path_.begin = root.request->begin;
    begin_ns_ = root.request->begin.ns;
    Visit(root, 0, begin_ns_, {});
    for (const auto& [key, ns] : clocks_)
      path_.notes.push_back(fmt::format("the clock of {} is at least {:.3f} ms {} that of {}",
                                        key.first, static_cast<double>(std::abs(ns)) / 1e6,
                                        ns > 0 ? "behind" : "ahead of", key.second) +
                            (ns > 0 ? "" : ", or it worked that long after its answer"));
  }

 private:
  // `begin_ns`: by the clock of the path's first daemon. Parts of another request that this one
  // waited for are visited with `is_linked_` set.
  void Visit(const RequestPaths::Root& one, size_t depth, int64_t begin_ns,
             std::vector<std::string> notes) {
    const RequestRecord& record = one.request->record;
    if (depth > kDepthMax || !seen_.insert(record.span).second) return;
    const int64_t end_ns = begin_ns + record.duration_ns;
    const size_t place = path_.parts.size();
    path_.parts.push_back({.depth = depth,
                           .component = one.file->component,
                           .host = one.file->host,
                           .name = one.request->name,
                           .peer = one.request->peer,
                           .bytes = record.bytes,
                           .at = {begin_ns - begin_ns_},
                           .took = {record.duration_ns},
                           .own = {},
                           .own_is = {},
                           .notes = std::move(notes)});
    std::vector<std::pair<int64_t, int64_t>> covered;
    for (const size_t i : PartsOf(record.span)) {
      const RequestPaths::Root& part = paths_.all_[i];
      const int64_t part_begin_ns = Placed(one, begin_ns, end_ns, part);
      const int64_t part_end_ns = part_begin_ns + part.request->record.duration_ns;
      covered.emplace_back(part_begin_ns, part_end_ns);
      std::vector<std::string> part_notes;
      if (part_end_ns > end_ns && one.file == part.file)
        part_notes.push_back("its end was not waited for");
      Visit(part, depth + 1, part_begin_ns, std::move(part_notes));
    }
    if (record.link != 0 && record.link == record.parent) {
      // It waits for its own fetches, which are siblings of this part.
      for (const size_t i : PartsOf(record.link)) {
        const int64_t part_begin_ns = begin_ns + Between(one, paths_.all_[i]);
        if (paths_.all_[i].request->record.span != record.span)
          covered.emplace_back(part_begin_ns,
                               part_begin_ns + paths_.all_[i].request->record.duration_ns);
      }
    } else {
      AddLinked(one, depth, begin_ns, end_ns);
    }
    PathPart& own = path_.parts[place];
    own.own = Uncovered(begin_ns, end_ns, covered);
    own.own_is = OwnOf(*one.file, *one.request, !covered.empty());
    // Only time within the path counts.
    const int64_t from_ns = std::max(begin_ns, begin_ns_);
    const int64_t to_ns = std::min(end_ns, begin_ns_ + path_.parts[0].took.ns);
    if (from_ns < to_ns && !is_linked_)
      path_.shares[own.own_is] =
          path_.shares[own.own_is] + Uncovered(from_ns, to_ns, std::move(covered));
  }

  std::vector<size_t> PartsOf(uint64_t span) const {
    const auto found = paths_.parts_of_.find(span);
    return found == paths_.parts_of_.end() ? std::vector<size_t>() : found->second;
  }

  // Begin of a part: the logged time within one daemon. Otherwise moved into the caller's interval,
  // which the part may outlast only if it took longer.
  int64_t Placed(const RequestPaths::Root& whole, int64_t begin_ns, int64_t end_ns,
                 const RequestPaths::Root& part) {
    const int64_t said_ns = begin_ns + Between(whole, part);
    if (whole.file == part.file) return said_ns;
    const int64_t latest_ns = std::max(begin_ns, end_ns - part.request->record.duration_ns);
    const int64_t placed_ns = std::clamp(said_ns, begin_ns, latest_ns);
    const int64_t moved_ns = placed_ns - said_ns;
    if (std::abs(moved_ns) > kClockStep.ns) {
      int64_t& most_ns = clocks_[{part.file->host.empty() ? part.file->component : part.file->host,
                                  whole.file->host}];
      if (std::abs(moved_ns) > std::abs(most_ns)) most_ns = moved_ns;
    }
    return placed_ns;
  }

  // Time from one's begin to the other's. Within one daemon, by its monotonic clock.
  static int64_t Between(const RequestPaths::Root& one, const RequestPaths::Root& other) {
    return one.file == other.file ? other.request->record.begin_ns - one.request->record.begin_ns
                                  : other.request->begin.ns - one.request->begin.ns;
  }

  // Adds parts of another request that this one waited for.
  void AddLinked(const RequestPaths::Root& one, size_t depth, int64_t begin_ns, int64_t end_ns) {
    const uint64_t link = one.request->record.link;
    if (link == 0 || is_linked_) return;
    const auto asked = paths_.by_span_.find(link);
    if (asked == paths_.by_span_.end()) return;
    is_linked_ = true;
    for (const size_t i : PartsOf(link)) {
      const RequestPaths::Root& part = paths_.all_[i];
      const int64_t part_begin_ns = begin_ns + Between(one, part);
      const int64_t part_end_ns = part_begin_ns + part.request->record.duration_ns;
      if (part_end_ns <= begin_ns || part_begin_ns >= end_ns) continue;
      Visit(
          part, depth + 1, part_begin_ns,
          {fmt::format("requested by {:016x}", paths_.all_[asked->second].request->record.trace)});
    }
    is_linked_ = false;
  }

  const RequestPaths& paths_;
  RequestPath& path_;
  int64_t begin_ns_ = 0;
  bool is_linked_ = false;  // The visited parts belong to another request's time.
  std::set<uint64_t> seen_;
  std::map<std::pair<std::string, std::string>, int64_t> clocks_;  // Largest moves.
};

RequestPaths::RequestPaths(std::vector<RequestLogFile> files) : files_(std::move(files)) {
  for (const RequestLogFile& file : files_)
    for (const LoggedRequest& request : file.requests) all_.push_back({&file, &request});
  std::ranges::stable_sort(
      all_, [](const Root& a, const Root& b) { return a.request->begin < b.request->begin; });
  for (size_t i = 0; i < all_.size(); ++i) {
    const RequestRecord& record = all_[i].request->record;
    by_span_.emplace(record.span, i);
    if (record.parent != 0) {
      parts_of_[record.parent].push_back(i);
    } else {
      by_trace_.emplace(record.trace, i);
    }
  }
}

std::vector<RequestPaths::Root> RequestPaths::RootsOf(const std::string& name,
                                                      const std::string& host) const {
  std::vector<Root> roots;
  for (const auto& [trace, i] : by_trace_) {
    const Root& root = all_[i];
    const bool is_meant =
        name.empty() ? root.file->component == "mount" : root.request->name == name;
    if (is_meant && (host.empty() || root.file->host == host)) roots.push_back(root);
  }
  std::ranges::stable_sort(roots, [](const Root& a, const Root& b) {
    return a.request->record.duration_ns > b.request->record.duration_ns;
  });
  return roots;
}

const RequestPaths::Root* RequestPaths::RootOf(uint64_t trace) const {
  const auto found = by_trace_.find(trace);
  return found == by_trace_.end() ? nullptr : &all_[found->second];
}

RequestPath RequestPaths::PathOf(const Root& root) const {
  RequestPath path;
  PathBuilder(*this, path).Add(root);
  return path;
}

}  // namespace mosa::cli
