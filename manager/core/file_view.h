// What a client learns of a file: its attributes, layout and capability, and its status.
#ifndef MOSA_MANAGER_CORE_FILE_VIEW_H_
#define MOSA_MANAGER_CORE_FILE_VIEW_H_

#include <string>
#include <string_view>

#include "manager/core/cluster.h"
#include "manager/core/copy_planner.h"
#include "manager/core/copy_view.h"
#include "manager/core/delegations.h"
#include "manager/core/file_hints.h"
#include "manager/core/file_table.h"
#include "manager/core/generations.h"
#include "manager/core/interests.h"
#include "manager/core/limits.h"
#include "manager/core/node_table.h"
#include "manager/core/session_table.h"
#include "manager/core/state_types.h"
#include "manager/core/step.h"
#include "manager/core/text_pool.h"
#include "manager/core/writer_fences.h"

namespace mosa::manager {

class FileView {
 public:
  FileView(Step& step, Cluster& cluster, FileTable& files, NodeTable& nodes,
           const SessionTable& sessions, WriterFences& fences, Interests& interests,
           Delegations& delegations, TextPool& texts, FileHints& hints, Limits& limits,
           CopyView& copy_view, Generations& generations, CopyPlanner& copy_planner)
      : step_(step),
        cluster_(cluster),
        files_(files),
        nodes_(nodes),
        sessions_(sessions),
        fences_(fences),
        interests_(interests),
        delegations_(delegations),
        texts_(texts),
        hints_(hints),
        limits_(limits),
        copy_view_(copy_view),
        generations_(generations),
        copy_planner_(copy_planner) {}

  DataAccess AccessTo(FileId file, const Inode& inode, bool may_write);
  Attributes AttributesOf(FileId file, const Inode& inode) const;
  // The actor is told of the file's changes from now on, and of its names. False: it is not,
  // because it is a shared directory, in which nobody gets interest any more.
  bool Watch(FileId file);
  // Watches the file.
  Entry EntryWithInterest(FileId file);
  FileStatus StatusOf(FileId file, const Inode& inode, std::string path) const;
  Result<FileStatus> GetFileStatus(std::string_view path) const;

 private:
  StreamState StreamOf(FileId file, const Inode& inode) const;

  Step& step_;
  Cluster& cluster_;
  FileTable& files_;
  NodeTable& nodes_;
  const SessionTable& sessions_;
  WriterFences& fences_;
  Interests& interests_;
  Delegations& delegations_;
  TextPool& texts_;
  FileHints& hints_;
  Limits& limits_;
  CopyView& copy_view_;
  Generations& generations_;
  CopyPlanner& copy_planner_;
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_FILE_VIEW_H_
