// Storage nodes in this process: objects are sparse files in real directories, with a byte limit
// and faults on demand. For tests of what lies above NodeApi.
#ifndef MOSA_TESTS_SUPPORT_LOCAL_NODES_H_
#define MOSA_TESTS_SUPPORT_LOCAL_NODES_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client-sai/api/node_api.h"
#include "common/base/mutex.h"
#include "common/model/ranges.h"
#include "tests/support/local_manager.h"

namespace mosa::testing {

// One node. Thread-safe.
class LocalNode {
 public:
  LocalNode(std::string name, uint64_t limit_bytes);
  ~LocalNode();
  NodeRegistration Registration() const;
  void Execute(const NodeOrder& order);
  NodeHeartbeat Report() const;

  // As a storage node: who can write is asked of the kernel, bytes are compared whole.
  Result<sai::LocalWrites> LookAtLocalWrites(FileId file, const sai::LookQuestion& question);
  // Remembers what the bytes are: somebody can write them from here on.
  void NoteLent(FileId file);
  // All of that is told, unless somebody can still write them.
  void ForgetLent(FileId file);

  // What a restart on an emptied RAM disk does.
  void LoseAll();
  // It is about to register: drop orders are counted anew.
  void ForgetOrders() { drops_done_ = 0; }

  std::string PathOf(FileId file) const;
  const std::string& name() const { return name_; }
  uint64_t UsedBytes() const;
  // ResourceExhausted if the limit would be passed.
  Status Admit(FileId file, uint64_t offset, uint64_t size_bytes);

  std::atomic<bool> reachable{true};
  std::function<void()> before_read;  // Runs before others read its objects; set while idle.
  // As above before others cut its objects; an error is the answer.
  std::function<Status()> before_cut;
  std::function<void(sai::LocalWrites&)> after_look;  // May change its answer; set while idle.
  SystemMutex mutex;                                  // Held by operations that change an object.

 private:
  const std::string name_;
  const uint64_t limit_bytes_;
  std::string directory_;
  std::atomic<uint64_t> incarnation_{1};
  std::map<FileId, std::string> told_;  // Guarded by mutex: content at the last look.
  mutable std::atomic<uint64_t> measurements_{0};
  std::atomic<uint64_t> drops_done_{0};
};

// The nodes of a cluster.
class LocalNodes {
 public:
  explicit LocalNodes(LocalManager& manager) : manager_(manager) {}
  NodeId Add(const std::string& name, uint64_t limit_bytes);
  // The node returns under its name with a new incarnation and no object.
  void RestartEmpty(NodeId node);
  // A silent node registers again with its objects.
  void Return(NodeId node) { Register(&Get(node)); }
  LocalNode& Get(NodeId node) { return *nodes_.at(node); }
  LocalNode* Find(NodeId node) {
    const auto it = nodes_.find(node);
    return it == nodes_.end() ? nullptr : it->second.get();
  }
  // As seen from the host `node_name`: that node's objects can be had by descriptor.
  std::unique_ptr<sai::NodeApi> ViewFrom(const std::string& node_name);

  // Counting from now on, the operation with this number fails with `code`, and so do the
  // `repeats` after it; 0: none does.
  void FailOperation(uint64_t number, uint64_t repeats, StatusCode code = StatusCode::kDataLoss);
  // Every operation whose number is a multiple of `period` fails; 0: none does.
  void FailEvery(uint64_t period, StatusCode code);
  uint64_t operations() const { return operations_; }

  // If set, it is given the function that makes a copy, and calls it later; otherwise the copy is
  // made at once. Set while nothing runs.
  std::function<void(std::function<void()>)> copy_later;

  // Sees these requests of the mount on a host, unless it uses a descriptor. Called on any thread;
  // set while nothing runs. A range is empty where it does not matter.
  enum class Access : uint8_t { kRead, kWrite, kCut, kStat };
  std::function<void(const std::string& host, Access, const sai::ObjectTarget&, ByteRange)>
      on_access;
  // OK, or the fault that is due.
  Status CountOperation();

 private:
  NodeId Register(LocalNode* node);
  // Fetches all that is ordered at once; nothing is followed.
  void Copy(LocalNode& node, const CopyOrder& order);

  LocalManager& manager_;
  std::map<NodeId, std::unique_ptr<LocalNode>> nodes_;  // Constant once clients run.
  std::atomic<uint64_t> operations_{0};
  std::atomic<uint64_t> failing_first_{0};
  std::atomic<uint64_t> failing_count_{0};
  std::atomic<uint64_t> failing_period_{0};
  std::atomic<StatusCode> failing_code_{StatusCode::kDataLoss};
};

}  // namespace mosa::testing

#endif  // MOSA_TESTS_SUPPORT_LOCAL_NODES_H_
