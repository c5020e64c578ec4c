#include "manager/core/adoption.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "manager/core/file_bytes.h"

namespace mosa::manager {
namespace {

constexpr std::string_view kAdoptedName = "lost+found";

// Maximum number of names tried for that directory.
constexpr size_t kAdoptedPlacesMax = 100;

// Maximum number of parts of an adopted file: each is a segment of its layout.
constexpr size_t kPiecesMax = 4096;

// Returns "name", "name.1", "name.2" and so on.
std::string Numbered(std::string_view name, size_t number) {
  return number == 0 ? std::string(name) : fmt::format("{}.{}", name, number);
}

}  // namespace

std::optional<Adoption::AdoptedPlace> Adoption::FindAdoptedPlace() const {
  for (size_t i = 0; i < kAdoptedPlacesMax; ++i) {
    const std::string name = Numbered(kAdoptedName, i);
    const auto known = files_.ChildOf(kRootFile, name);
    if (!known) return AdoptedPlace{name, std::nullopt};
    const Inode* inode = files_.Find(*known);
    if (inode && inode->type == FileType::kDirectory && inode->uid == 0 &&
        (inode->permissions & 077) == 0)
      return AdoptedPlace{name, known};
  }
  return std::nullopt;
}

std::optional<FileId> Adoption::AdoptedDirectory() {
  const auto place = FindAdoptedPlace();
  if (!place) return std::nullopt;
  if (place->directory) return place->directory;
  if (place->name != kAdoptedName)
    step_.effects.log.push_back(
        fmt::format("/{} is not a directory that only root may enter: adopted files go to /{}",
                    kAdoptedName, place->name));
  const FileId directory(cluster_.record.next_file_id++);
  step_.cluster_dirty = true;
  auto inode = std::make_unique<Inode>();
  inode->type = FileType::kDirectory;
  inode->permissions = 0700;
  inode->link_count = 1;
  inode->access_time = inode->modify_time = inode->change_time = inode->birth_time = step_.now;
  files_.inodes.emplace(directory, std::move(inode));
  files_.directories.emplace(directory, std::make_unique<Directory>());
  names_.AddEntry(kRootFile, place->name, directory);
  files_.TouchDirectory(kRootFile, step_.now);
  step_.Touch(directory);
  return directory;
}

// Terminates, since a directory has finitely many names.
std::string Adoption::FreeName(FileId directory, std::string_view name) const {
  size_t number = 0;
  while (files_.ChildOf(directory, Numbered(name, number))) ++number;
  return Numbered(name, number);
}

void Adoption::MakeAdopted(FileId file, FileId directory, const std::string& name,
                           const JoinedParts& joined) {
  auto made = std::make_unique<Inode>();
  Inode& inode = *made;
  const auto parts = cluster_.recovery.PartsOf(file);
  inode.type = FileType::kRegular;
  inode.permissions = 0600;
  inode.link_count = 1;
  inode.size_bytes = joined.size_bytes;
  inode.access_time = inode.change_time = inode.birth_time = step_.now;
  inode.data_version =
      std::max(cluster_.recovery.record().version_floor, FirstAfterRecovery(step_.now));
  inode.hints = texts_.Hold(EncodeHints({}), 0);
  inode.task = texts_.Hold("", 0);
  inode.placement_seed = FileSeed(cluster_.record.cluster_seed, directory, name, file.value);
  FileBytes& bytes = BytesOf(inode);
  bytes.chunk_bytes = joined.layout.chunk_bytes;
  bytes.segments = joined.layout.segments;
  bytes.copies.resize(bytes.segments.size());
  bytes.generation = bytes.kept_since = inode.data_version;
  hints_.SetReason(bytes, "adopted: where the bytes were found");
  for (const NodeId node : joined.layout.Nodes()) {
    const AsideObject& part = *parts.at(node);
    bytes.objects.push_back(
        {.node = node, .allocated_bytes = part.allocated_bytes, .holds = ObjectHolds::kBoth});
    inode.modify_time = std::max(inode.modify_time, std::min(part.modified, step_.now));
  }
  files_.inodes.emplace(file, std::move(made));
  names_.AddEntry(directory, name, file);
  files_.TouchDirectory(directory, step_.now);
  lifetimes_.Follow(file, inode, name);
  step_.Touch(file);
}

AdoptOutcome Adoption::Adopt(FileId file) {
  const auto parts = cluster_.recovery.PartsOf(file);
  if (parts.empty())
    return {"", fmt::format("no node has put aside objects of file {}", file.value)};
  if (file.value <= kRootFile.value || file.value >= cluster_.record.next_file_id)
    return {"", fmt::format("file id {} was never allocated to a file: take the objects from "
                            "lost+found in the nodes' directories, or discard them",
                            file.value)};
  if (files_.Find(file)) {
    const auto parent = files_.Find(file)->named_in;
    return {"", fmt::format("file {} exists in directory '{}/', and its bytes are elsewhere: "
                            "remove that file first, or discard the objects that were put aside",
                            file.value, files_.PathOf(parent))};
  }
  const auto joined = JoinParts(parts, cluster_.options.chunk_bytes, kPiecesMax);
  if (!joined)
    return {"", fmt::format("the bytes of file {} are in more than {} pieces: take the objects "
                            "from lost+found in the nodes' directories",
                            file.value, kPiecesMax)};
  const auto directory = AdoptedDirectory();
  if (!directory)
    return {"", fmt::format("there is no place for adopted files: none of /{0} and /{0}.1 to "
                            "/{0}.{1} is a directory that only root may enter; remove one of them",
                            kAdoptedName, kAdoptedPlacesMax - 1)};
  const std::string name = FreeName(*directory, fmt::format("#{}", file.value));
  MakeAdopted(file, *directory, name, *joined);
  for (const NodeId node : joined->layout.Nodes()) {
    step_.SendOrder(node, AsideOrder{AsideAction::kRestore, {file}});
    cluster_.recovery.Forget(node, file);
  }
  return {fmt::format("{}/{}", files_.PathOf(*directory), name), ""};
}

AdoptOutcome Adoption::Discard(FileId file) {
  const auto parts = cluster_.recovery.PartsOf(file);
  if (parts.empty())
    return {"", fmt::format("no node has put aside objects of file {}", file.value)};
  std::vector<NodeId> nodes;
  for (const auto& [node, object] : parts) nodes.push_back(node);
  for (const NodeId node : nodes) {
    step_.SendOrder(node, AsideOrder{AsideAction::kDiscard, {file}});
    cluster_.recovery.Forget(node, file);
  }
  return {};
}

std::vector<AsideFile> Adoption::ListAside(size_t files_max, FileId after) const {
  std::vector<AsideFile> files;
  for (const FileId file : cluster_.recovery.ListAside(files_max, after)) {
    AsideFile& listed = files.emplace_back(AsideFile{.file = file, .parts = {}});
    for (const auto& [node, object] : cluster_.recovery.PartsOf(file))
      listed.parts.push_back({.node_name = nodes_.NameOf(node),
                              .size_bytes = object->size_bytes,
                              .allocated_bytes = object->allocated_bytes,
                              .modified = object->modified});
  }
  return files;
}

void Adoption::Handle(const AdoptFiles& command) {
  if (cluster_.grace_end) return step_.AnswerAdmin(cluster_.StillRestarting());
  // A client that makes files there without asking would not know of the adopted ones.
  const auto place = FindAdoptedPlace();
  const FileId adopted = place ? place->directory.value_or(kRootFile) : kRootFile;
  for (const FileId directory : {kRootFile, adopted}) {
    if (command.discard || !delegations_.IsHeld(directory)) continue;
    delegations_.RecallToAnswer(directory);
    return step_.AnswerAdmin(AbortedError(fmt::format(
        "a mount must first return its delegation of directory {}: try again in a moment",
        directory.value)));
  }
  AdminReply reply{.status = OkStatus()};
  for (const FileId file : command.files)
    reply.adopted.push_back(command.discard ? Discard(file) : Adopt(file));
  step_.effects.admin_reply = std::move(reply);
}

}  // namespace mosa::manager
