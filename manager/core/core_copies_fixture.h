// Fixture for tests of copies: two mounts, and four nodes with their orders and reports.
#ifndef MOSA_MANAGER_CORE_CORE_COPIES_FIXTURE_H_
#define MOSA_MANAGER_CORE_CORE_COPIES_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "manager/core/core_fixture.h"

namespace mosa::manager {

class CoreCopies : public CoreFixture {
 protected:
  CoreCopies() {
    Start(kAnna);
    Start(kBen);
    for (const char* name : {"n1", "n2", "n3", "n4"}) nodes_.push_back(AddNode(name));
  }

  void SetXattr(FileId file, const std::string& name, const std::string& value) {
    Ok<EmptyReply>(kAnna, SetXattrRequest{file, "user.mosa." + name, value, false, false});
  }
  std::string Xattr(FileId file, const std::string& name) {
    return Ok<GetXattrReply>(kAnna, GetXattrRequest{file, "user.mosa." + name}).value;
  }
  // A file made by kAnna on n1, bound and open for writing.
  FileId MakeOpen(const std::string& name, const std::string& replicas,
                  const std::string& replicate = "lazy", const std::string& placement = "local") {
    const FileId f = Make(kAnna, kRootFile, name, FileType::kRegular, true);
    SetXattr(f, "placement", placement);
    SetXattr(f, "replicas", replicas);
    SetXattr(f, "replicate", replicate);
    Ok<BindReply>(kAnna, BindRequest{f, kMiB});
    return f;
  }
  void Commit(FileId f, uint64_t size_bytes = 2 * kMiB, bool close = true) {
    CommitRequest commit{.file = f, .size_bytes = size_bytes};
    for (const NodeId node : core_->GetFileStatus(PathOf(f))->layout.Nodes())
      commit.nodes.push_back({node, size_bytes, 0});
    commit.last_close = close;
    Ok<AttributesReply>(kAnna, commit);
  }
  std::string PathOf(FileId f) {
    for (const auto& item :
         Ok<ListDirectoryReply>(kAnna, ListDirectoryRequest{kRootFile, ""}).items)
      if (item.entry.file == f) return "/" + item.name;
    return "/";
  }
  FileId MakeCommitted(const std::string& name, const std::string& replicas) {
    const FileId f = MakeOpen(name, replicas);
    Commit(f);
    return f;
  }
  void Rewrite(FileId f) {
    Ok<OpenReply>(kAnna, OpenRequest{f, true, ""});
    Commit(f);
  }
  // Returns the copy orders received since the last call, without cancelled ones.
  std::vector<std::pair<NodeId, CopyOrder>> TakeOrders() {
    std::vector<std::pair<NodeId, CopyOrder>> copies;
    for (const auto& [node, order] : std::exchange(orders_, {})) {
      if (const auto* copy = std::get_if<CopyOrder>(&order)) {
        std::erase_if(copies, [&, id = node](const auto& each) {
          return each.first == id && each.second.file == copy->file;
        });
        copies.emplace_back(node, *copy);
      } else if (const auto* cancel = std::get_if<CancelCopyOrder>(&order)) {
        std::erase_if(copies, [&, id = node](const auto& each) {
          return each.first == id && each.second.file == cancel->file;
        });
      }
    }
    return copies;
  }
  static CopyReport ReportOf(const CopyOrder& order) {
    CopyReport report{.file = order.file, .order = order.order, .data_version = order.data_version};
    report.copied_bytes = report.fetched_bytes = report.allocated_bytes = order.size_bytes;
    report.done = !order.follow;
    return report;
  }
  void Done(NodeId node, const CopyOrder& order) {
    Step(NodeCopyReport{node, ReportOf(order)});
    ConfirmAll();
  }
  // Carries out orders until there are none.
  void DoOrders() {
    for (int round = 0; round < 20; ++round)
      for (const auto& [node, order] : TakeOrders())
        if (!order.follow) Done(node, order);
  }
  std::vector<NodeId> Readers(FileId f) {
    return Ok<OpenReply>(kBen, OpenRequest{f, false, ""}).access.layout.segments.at(0).nodes;
  }
  std::vector<NodeId> Others(const std::vector<NodeId>& without) {
    std::vector<NodeId> nodes = nodes_;
    std::erase_if(nodes, [&](NodeId node) {
      return std::find(without.begin(), without.end(), node) != without.end();
    });
    return nodes;
  }
  void Die(NodeId node, Duration silence = Seconds(6)) {
    Step(NodeStreamLost{node});
    AdvanceAlive(silence, {kAnna, kBen}, Others({node}));
    ConfirmAll();
  }
  uint32_t ValidCopies(FileId f) { return core_->GetFileStatus(PathOf(f))->copies_valid; }

  std::vector<NodeId> nodes_;
};

using Orders = std::vector<std::pair<NodeId, CopyOrder>>;

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_CORE_COPIES_FIXTURE_H_
