#include "tests/support/local_nodes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/errno_status.h"
#include "common/base/mutex.h"
#include "common/model/ranges.h"

namespace mosa::testing {
namespace {

bool HasWriters(int fd) {
  if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return true;
  fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LocalNodeApi final : public sai::NodeApi {
 public:
  LocalNodeApi(LocalNodes& nodes, std::string node_name)
      : nodes_(nodes), node_name_(std::move(node_name)) {}

  void SetNodes(const std::vector<NodeAddress>&) override {}
  void SetIdentity(const BulkIdentity&) override {}

  Status Read(const sai::ObjectTarget& target, uint64_t offset, std::span<std::byte> out) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    NoteAccess(LocalNodes::Access::kRead, target, {offset, offset + out.size()});
    if (node->before_read) node->before_read();
    std::memset(out.data(), 0, out.size());
    const UniqueFd fd(open(node->PathOf(target.file).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return NotFoundError("no object");
    const ssize_t got = pread(fd.get(), out.data(), out.size(), static_cast<off_t>(offset));
    return got < 0 ? ErrnoStatus(errno, "pread") : OkStatus();
  }
  Status Write(const sai::ObjectTarget& target, uint64_t offset,
               std::span<const std::byte> data) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    NoteAccess(LocalNodes::Access::kWrite, target, {offset, offset + data.size()});
    const SystemMutexLock lock(node->mutex);
    MOSA_RETURN_IF_ERROR(node->Admit(target.file, offset, data.size()));
    MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForWrite(*node, target.file));
    const ssize_t put = pwrite(fd.get(), data.data(), data.size(), static_cast<off_t>(offset));
    return put == static_cast<ssize_t>(data.size()) ? OkStatus() : ErrnoStatus(errno, "pwrite");
  }
  Status Truncate(const sai::ObjectTarget& target, uint64_t size_bytes) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    NoteAccess(LocalNodes::Access::kCut, target, {});
    if (node->before_cut) MOSA_RETURN_IF_ERROR(node->before_cut());
    const SystemMutexLock lock(node->mutex);
    struct stat status {};
    const std::string path = node->PathOf(target.file);
    if (stat(path.c_str(), &status) != 0)
      return size_bytes == 0 ? OkStatus() : NotFoundError("no object");
    if (static_cast<uint64_t>(status.st_size) <= size_bytes) return OkStatus();
    return truncate(path.c_str(), static_cast<off_t>(size_bytes)) == 0
               ? OkStatus()
               : ErrnoStatus(errno, "truncate");
  }
  Status Allocate(const sai::ObjectTarget& target, int mode, uint64_t offset,
                  uint64_t length) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    const SystemMutexLock lock(node->mutex);
    const bool punch = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
    if (!punch) MOSA_RETURN_IF_ERROR(node->Admit(target.file, offset, length));
    if (punch && !std::filesystem::exists(node->PathOf(target.file)))
      return NotFoundError("no object");
    MOSA_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForWrite(*node, target.file));
    return fallocate(fd.get(), mode | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(length)) == 0
               ? OkStatus()
               : ErrnoStatus(errno, "fallocate");
  }
  Result<sai::ObjectStatus> Stat(const sai::ObjectTarget& target) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    NoteAccess(LocalNodes::Access::kStat, target, {});
    sai::ObjectStatus result;
    struct stat status {};
    if (stat(node->PathOf(target.file).c_str(), &status) != 0) return NotFoundError("no object");
    result.size_bytes = static_cast<uint64_t>(status.st_size);
    result.allocated_bytes = static_cast<uint64_t>(status.st_blocks) * 512;
    return result;
  }
  Result<uint64_t> Seek(const sai::ObjectTarget& target, uint64_t offset, bool data) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    const UniqueFd fd(open(node->PathOf(target.file).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return NotFoundError("no object");
    const off_t found = lseek(fd.get(), static_cast<off_t>(offset), data ? SEEK_DATA : SEEK_HOLE);
    if (found < 0)
      return errno == ENXIO ? Status(StatusCode::kOutOfRange, "none") : ErrnoStatus(errno, "lseek");
    return static_cast<uint64_t>(found);
  }
  bool IsLocal(NodeId id) const override {
    LocalNode* node = nodes_.Find(id);
    return node != nullptr && node->name() == node_name_;
  }
  Result<UniqueFd> OpenLocal(const sai::ObjectTarget& target, bool write) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    if (write) node->NoteLent(target.file);
    if (write) return OpenForWrite(*node, target.file);
    UniqueFd fd(open(node->PathOf(target.file).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return NotFoundError("no object");
    return fd;
  }
  Result<sai::LocalWrites> LookAtLocalWrites(const sai::ObjectTarget& target,
                                             const sai::LookQuestion& question) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    return node->LookAtLocalWrites(target.file, question);
  }
  Status FinishLocalWrites(const sai::ObjectTarget& target) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    node->ForgetLent(target.file);
    return OkStatus();
  }
  Status NoteWritten(const sai::ObjectTarget& target, uint64_t, uint64_t) override {
    return Reach(target.node).status();
  }
  Result<BlockSums> Sums(const sai::ObjectTarget& target,
                         const sai::SumsQuestion& question) override {
    MOSA_ASSIGN_OR_RETURN(LocalNode * node, Reach(target.node));
    const std::string path = node->PathOf(target.file);
    BlockSums sums;
    sums.absent = !std::filesystem::exists(path);
    const std::string content = ContentOf(path);
    sums.object_bytes = content.size();
    const uint64_t end = std::min<uint64_t>(question.range.end, content.size());
    for (uint64_t at = question.range.begin; at < question.range.end; at += kChecksumBlockBytes) {
      BlockSum& sum = sums.blocks.emplace_back();
      if (at >= end) continue;
      sum.has_data = true;
      sum.crc = Crc32c(content.data() + at, std::min(kChecksumBlockBytes, content.size() - at));
    }
    return sums;
  }

 private:
  void NoteAccess(LocalNodes::Access what, const sai::ObjectTarget& target, ByteRange range) const {
    if (nodes_.on_access) nodes_.on_access(node_name_, what, target, range);
  }
  Result<LocalNode*> Reach(NodeId id) const {
    MOSA_RETURN_IF_ERROR(nodes_.CountOperation());
    LocalNode* node = nodes_.Find(id);
    if (node == nullptr || !node->reachable)
      return UnavailableError(fmt::format("node {} does not answer", id.value));
    return node;
  }
  static Result<UniqueFd> OpenForWrite(LocalNode& node, FileId file) {
    UniqueFd fd(open(node.PathOf(file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd) return ErrnoStatus(errno, "open");
    return fd;
  }

  LocalNodes& nodes_;
  const std::string node_name_;
};

}  // namespace

LocalNode::LocalNode(std::string name, uint64_t limit_bytes)
    : name_(std::move(name)), limit_bytes_(limit_bytes) {
  char directory[] = "/dev/shm/mosa-node-XXXXXX";
  MOSA_CHECK(mkdtemp(directory) != nullptr);
  directory_ = directory;
}

LocalNode::~LocalNode() { std::filesystem::remove_all(directory_); }

NodeRegistration LocalNode::Registration() const {
  NodeRegistration registration;
  registration.name = name_;
  registration.incarnation = incarnation_;
  registration.address = name_;
  registration.host_identity = name_;
  registration.limit_bytes = limit_bytes_;
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    registration.objects.emplace_back(std::stoull(entry.path().filename()));
  std::ranges::sort(registration.objects);
  return registration;
}

std::string LocalNode::PathOf(FileId file) const {
  return fmt::format("{}/{}", directory_, file.value);
}

void LocalNode::Execute(const NodeOrder& order) {
  const SystemMutexLock lock(mutex);
  const auto* drop = std::get_if<DropObjectsOrder>(&order);
  if (drop == nullptr) return;
  for (const FileId file : drop->files) std::filesystem::remove(PathOf(file));
  drops_done_ = drop->number;
}

void LocalNode::LoseAll() {
  const SystemMutexLock lock(mutex);
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    std::filesystem::remove(entry.path());
  ++incarnation_;
}

void LocalNode::NoteLent(FileId file) {
  const SystemMutexLock lock(mutex);
  if (!told_.contains(file)) told_[file] = ContentOf(PathOf(file));
}

void LocalNode::ForgetLent(FileId file) {
  const SystemMutexLock lock(mutex);
  const UniqueFd fd(open(PathOf(file).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd && !HasWriters(fd.get())) told_.erase(file);
}

Result<sai::LocalWrites> LocalNode::LookAtLocalWrites(FileId file,
                                                      const sai::LookQuestion& question) {
  const SystemMutexLock lock(mutex);
  sai::LocalWrites look;
  const UniqueFd fd(open(PathOf(file).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return look;
  look.writers_left = HasWriters(fd.get());
  if (look.writers_left && !question.while_written) return look;
  std::string now = ContentOf(PathOf(file));
  look.changed = told_[file] != now;
  told_[file] = std::move(now);
  if (after_look) after_look(look);
  return look;
}

uint64_t LocalNode::UsedBytes() const {
  uint64_t used = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0)
      used += static_cast<uint64_t>(status.st_blocks) * 512;
  }
  return used;
}

NodeHeartbeat LocalNode::Report() const {
  NodeHeartbeat heartbeat;
  heartbeat.limit_bytes = limit_bytes_;
  heartbeat.used_bytes = UsedBytes();
  heartbeat.measurements = ++measurements_;
  heartbeat.drops_done = drops_done_;
  return heartbeat;
}

Status LocalNode::Admit(FileId file, uint64_t offset, uint64_t size_bytes) {
  struct stat status {};
  uint64_t end = 0;
  if (stat(PathOf(file).c_str(), &status) == 0) end = static_cast<uint64_t>(status.st_size);
  const uint64_t grown = offset + size_bytes > end ? offset + size_bytes - end : 0;
  if (UsedBytes() + std::min(grown, size_bytes) > limit_bytes_)
    return ResourceExhaustedError(fmt::format("node {} is full", name_));
  return OkStatus();
}

NodeId LocalNodes::Add(const std::string& name, uint64_t limit_bytes) {
  auto node = std::make_unique<LocalNode>(name, limit_bytes);
  const NodeId id = Register(node.get());
  nodes_[id] = std::move(node);
  return id;
}

void LocalNodes::RestartEmpty(NodeId node) {
  manager_.SilenceNode(node);
  Get(node).LoseAll();
  Register(&Get(node));
}

NodeId LocalNodes::Register(LocalNode* node) {
  node->ForgetOrders();
  return manager_.AddNode(
      node->Registration(),
      [this, node](const NodeOrder& order) {
        if (const auto* copy = std::get_if<CopyOrder>(&order)) {
          if (!copy_later) return Copy(*node, *copy);
          return copy_later([this, node, order = *copy] { Copy(*node, order); });
        }
        node->Execute(order);
      },
      [node] { return node->Report(); });
}

void LocalNodes::Copy(LocalNode& node, const CopyOrder& order) {
  if (order.follow) return;
  const UniqueFd own(open(node.PathOf(order.file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  MOSA_CHECK(own && ftruncate(own.get(), static_cast<off_t>(order.size_bytes)) == 0);
  for (const Piece& piece : SplitRange(order.sources, {0, order.size_bytes})) {
    LocalNode* const source = Find(piece.nodes.front());
    if (source == nullptr) continue;  // Not this node's to have.
    std::string bytes(piece.range.size(), '\0');
    const UniqueFd from(open(source->PathOf(order.file).c_str(), O_RDONLY | O_CLOEXEC));
    const auto offset = static_cast<off_t>(piece.range.begin);
    MOSA_CHECK(!from || pread(from.get(), bytes.data(), bytes.size(), offset) >= 0);
    MOSA_CHECK(pwrite(own.get(), bytes.data(), bytes.size(), offset) ==
               static_cast<ssize_t>(bytes.size()));
  }
  const auto self =
      std::ranges::find_if(nodes_, [&](const auto& each) { return each.second.get() == &node; });
  manager_.ReportCopy(self->first, {.file = order.file,
                                    .order = order.order,
                                    .data_version = order.data_version,
                                    .copied_bytes = order.size_bytes,
                                    .fetched_bytes = order.size_bytes,
                                    .allocated_bytes = order.size_bytes,
                                    .done = true,
                                    .failure = {}});
}

std::unique_ptr<sai::NodeApi> LocalNodes::ViewFrom(const std::string& node_name) {
  return std::make_unique<LocalNodeApi>(*this, node_name);
}

void LocalNodes::FailOperation(uint64_t number, uint64_t repeats, StatusCode code) {
  operations_ = 0;
  failing_period_ = 0;
  failing_code_ = code;
  failing_first_ = number;
  failing_count_ = number == 0 ? 0 : repeats + 1;
}

void LocalNodes::FailEvery(uint64_t period, StatusCode code) {
  FailOperation(0, 0, code);
  failing_period_ = period;
}

Status LocalNodes::CountOperation() {
  const uint64_t number = ++operations_;
  const uint64_t first = failing_first_;
  const uint64_t period = failing_period_;
  if ((first != 0 && number >= first && number < first + failing_count_) ||
      (period != 0 && number % period == 0))
    return Status(failing_code_, fmt::format("fault: node operation {} fails", number));
  return OkStatus();
}

}  // namespace mosa::testing
