#include "predictor/run/simulated_files.h"

#include <algorithm>
#include <utility>

namespace mosa::predict {

bool SimulatedFiles::MayAnswer(FileId file) const {
  if (file == FileId{}) return true;
  const auto known = files_.find(file);
  return known != files_.end() && (known->second.unsent || known->second.attributes_known ||
                                   loop_.now() < known->second.shown_until);
}

bool SimulatedFiles::HoldsAllHere(const Layout& layout) const {
  if (!layout.bound()) return false;
  const std::vector<NodeId>& nodes = layout.segments.front().nodes;
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](NodeId node) { return IsLocal(node) && layout.HoldsAll(node); });
}

void SimulatedFiles::NoteAttributes(FileId file, const Attributes& attributes, SimulatedMark mark) {
  SimulatedFile& state = files_[file];
  state.attributes = attributes;
  const bool certain = !RecalledSince(mark, file);
  state.attributes_known = certain && !attributes.shared;
  state.shown_until = certain && attributes.shared ? mark.at + sai::kSharedAttributesFor : Time{};
}

void SimulatedFiles::NoteSent(FileId file, const MakeReply& made, SimulatedMark mark) {
  SimulatedFile& state = files_[file];
  state.manager_counts_open = true;
  state.counts_readers = made.counts_readers;
  NoteAttributes(file, made.entry.attributes, mark);
  if (made.parent_attributes.shared) NoteAttributes(state.made_in, made.parent_attributes, mark);
  if (made.access) state.access = *made.access;
  state.right_known = state.attributes_known;
}

des::Activity<sai::Outcome<sai::Done>> SimulatedFiles::EnsureMade(FileId file) {
  SimulatedFile& state = files_[file];
  if (!state.unsent) co_return Done{};
  const SimulatedMark mark = this->mark();
  Request request = *std::exchange(state.unsent, std::nullopt);
  const Outcome<MakeReply> made = co_await Ask<MakeReply>(std::move(request));
  if (!made.ok()) co_return made.failure();
  NoteSent(file, *made, mark);
  co_return Done{};
}

des::Activity<sai::Outcome<sai::Done>> SimulatedFiles::EnsureRight(FileId file, bool write,
                                                                   bool with_attributes,
                                                                   const std::string& task) {
  SimulatedFile& state = files_[file];
  const sai::CachedRight cached{.is_current = state.right_known,
                                .has_attributes = state.attributes_known,
                                .serves = state.access.may_write || !write,
                                .bound = state.access.layout.bound(),
                                .expires = state.access.expires};
  if (state.unsent || sai::MayUseCached(cached, with_attributes, loop_.now())) co_return Done{};
  const SimulatedMark mark = this->mark();
  OpenRequest open;
  open.file = file;
  open.write = write;
  open.task = task;
  Request request = open;
  Outcome<OpenReply> reply = co_await Ask<OpenReply>(std::move(request));
  for (int again = 0; !reply.ok() && sai::OpenIsRepeated(reply.failure(), again); ++again) {
    request = open;
    reply = co_await Ask<OpenReply>(std::move(request));
  }
  if (!reply.ok()) co_return reply.failure();
  state.access = reply->access;
  state.counts_readers = reply->counts_readers;
  state.right_known = !RecalledSince(mark, file);
  NoteAttributes(file, reply->attributes, mark);
  state.manager_counts_open = state.manager_counts_open || write;
  co_return Done{};
}

void SimulatedFiles::EndHandle(FileId file) {
  SimulatedFile& state = files_[file];
  if (--state.handles > 0) return;
  state.pages.Clear();
  state.allocated.clear();
  state.room_version.reset();
  blocks_.DropFile(file);
}

}  // namespace mosa::predict
