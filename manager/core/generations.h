// Versions of a file's bytes, and generations of its layout: which stores count, and which copies
// are equal to the last commit.
//
// A file's layout generation rises whenever its bytes go to other nodes, or when a writer that was
// away must not continue unnoticed. Each commit names the generation under which its bytes were
// stored.
#ifndef MOSA_MANAGER_CORE_GENERATIONS_H_
#define MOSA_MANAGER_CORE_GENERATIONS_H_

#include <optional>
#include <set>

#include "manager/core/cluster.h"
#include "manager/core/copy_queue.h"
#include "manager/core/copy_view.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/lifetimes.h"
#include "manager/core/node_table.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {

class Generations {
 public:
  Generations(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes,
              SessionTable& sessions, CopyWork& copy, WriterFences& fences, FileHints& hints,
              CopyView& copy_view, Lifetimes& lifetimes, CopyQueue& copy_queue)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        copy_(copy),
        fences_(fences),
        hints_(hints),
        copy_view_(copy_view),
        lifetimes_(lifetimes),
        copy_queue_(copy_queue) {}

  void CloseWrite(Session& session, FileId file);
  // Streams (StreamState): a session opens the file for writing; no session has it open any more;
  // one that had it open is gone.
  void NoteStreamOpened(FileId file);
  void EndStream(FileId file);
  void NoteWriterGone(FileId file);
  // After a restart, once the sessions have declared what they have open.
  void EndAbandonedStreams(bool all_are_back);
  void CommitTo(FileId file);
  void RaiseVersion(FileId file, Inode& inode, bool committed);
  // Must be called before any client is given the right to store in the file.
  void MarkMayDiffer(FileId file);
  // A client that had the file open for writing is gone, or its commit was rejected.
  void EndUncommitted(FileId file);
  // After a restart: the sessions have declared what they have open. Files that others may have
  // stored into get a new version.
  void EndMarkedOpens(bool all_are_back);
  void NoteDamage(NodeId node, FileId file);
  void NoteHealed(NodeId node, FileId file);
  // As RaiseGeneration, but what writers without a session stored no longer counts.
  void BeginGeneration(FileId file, Inode& inode);
  // As RaiseGeneration, but what writers outside `live` stored by earlier layouts no longer counts.
  void FenceWriters(FileId file, Inode& inode, const std::set<ClientId>& live);
  // Another client now relies on the file's content: fences writers whose sessions have expired.
  void FenceAbsentWriters(FileId file);
  void NoteReturned(FileId file, ClientId client, bool was_known);
  std::optional<Failure> CheckGeneration(const CommitRequest& request, const Inode& inode) const;
  void WriteWriterBounds(FileId file);
  void LoseObjectsOf(NodeId node, const std::set<FileId>& present, Time listed_after);
  void LoseUncommittedOf(const Node& node);
  void LoseStoresOnEmptyNodes(FileId file, Inode& inode);
  void TakeUntold(const Node& node, FileId file);

 private:
  void SetStream(FileId file, Inode& inode, StreamPhase phase);
  void EndMark(FileId file);
  // Call when the places of a file's bytes change. What was stored by earlier layouts still counts.
  void RaiseGeneration(FileId file, Inode& inode);
  void LoseUncommittedHole(NodeId id, FileId file, Inode& inode);
  void LoseStoresOn(NodeId node, FileId file, Inode& inode);

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  SessionTable& sessions_;
  CopyWork& copy_;
  WriterFences& fences_;
  FileHints& hints_;
  CopyView& copy_view_;
  Lifetimes& lifetimes_;
  CopyQueue& copy_queue_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_GENERATIONS_H_
