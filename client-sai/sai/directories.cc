#include "client-sai/sai/directories.h"

#include <algorithm>

#include "client-sai/sai/failures.h"
#include "common/base/sync.h"

namespace mosa::sai {

Outcome<HandleId> Directories::Open(FileId directory) {
  auto listing = std::make_shared<Listing>();
  listing->id = handles_.NewId();
  listing->inode = inodes_.Get(directory);
  handles_.AddListing(listing);
  return listing->id;
}

Outcome<DirectoryPage> Directories::Read(HandleId handle, uint64_t offset, size_t items_max) {
  const ListingPtr listing = handles_.FindListing(handle);
  if (!listing)
    return Fail(StatusCode::kInvalidArgument, ErrorReason::kInvalid,
                "the directory is no longer open");
  const MutexLock lock(listing->mutex);
  const std::vector<DirectoryItem>& items = listing->items;
  if (offset == 0 || !listing->begun) MOSA_RETURN_IF_FAILED(BeginListing(*listing));
  while (!listing->complete && offset >= items.back().next_offset)
    MOSA_RETURN_IF_FAILED(ContinueListing(*listing));
  DirectoryPage page;
  for (auto item = std::upper_bound(
           items.begin(), items.end(), offset,
           [](uint64_t at, const DirectoryItem&each) { return at < each.next_offset; });
       item != items.end() && page.items.size() < items_max; ++item)
    page.items.push_back(*item);
  return page;
}

EntryResult Directories::Remember(HandleId handle, const DirectoryItem& item) {
  const ListingPtr listing = handles_.FindListing(handle);
  if (!listing) return {};
  // The listing may be old. Only an entry that is known to be current gets a lookup.
  if (name_cache_.Find(*listing->inode, item.name) != item.entry.file) return {};
  const InodePtr inode = inodes_.Find(item.entry.file);
  if (!inode) return {};
  {
    const MutexLock lock(inode->mutex);
    if (!inode->known.received ||
        (inode->making.state == MakeState::kSent && !attributes_.AreValid(*inode)))
      return {};
  }
  // The kernel assigns the epoch to a listing's names when it receives the reply, not when it asks.
  // An epoch that began in between would not invalidate them, so the names may not be cached.
  return attributes_.EntryOf(*inode, false);
}

Outcome<Done> Directories::BeginListing(Listing& listing) {
  if (listing.begun) {  // Else the last attempt failed, before its names had their offsets.
    for (DirectoryItem& item : listing.items) {
      listing.offsets_end = std::max(listing.offsets_end, item.next_offset);
      listing.next_offsets[std::move(item.name)] = item.next_offset;
    }
  }
  listing.items.clear();
  listing.begun = false;
  listing.last_name.clear();
  listing.complete = false;
  Entry self{listing.inode->file, {}};
  self.attributes.type = FileType::kDirectory;
  // Nobody reads the inode of ".." from a listing, so the directory's own number stands for it.
  listing.items.push_back({".", self, 1});
  listing.items.push_back({"..", self, 2});
  if (!ListFromCache(listing)) {
    listing.items.resize(2);
    MOSA_RETURN_IF_FAILED(commits_.EnsureAllMade(*listing.inode));
    do {
      MOSA_RETURN_IF_FAILED(ContinueListing(listing));
    } while (!listing.complete && !listing.next_offsets.empty());
  }
  listing.begun = true;
  KeepOffsets(listing);
  return Done{};
}

// Gives names of the earlier listing the offsets that they had. Precondition: it is complete, or
// the first one.
void Directories::KeepOffsets(Listing& listing) {
  if (listing.next_offsets.empty()) return;
  for (DirectoryItem& item : listing.items) {
    const auto had = listing.next_offsets.find(item.name);
    item.next_offset = had != listing.next_offsets.end() ? had->second : ++listing.offsets_end;
  }
  std::sort(
      listing.items.begin(), listing.items.end(),
      [](const DirectoryItem& a, const DirectoryItem& b) { return a.next_offset < b.next_offset; });
  listing.next_offsets = {};
}

Outcome<Done> Directories::ContinueListing(Listing& listing) {
  Inode& directory = *listing.inode;
  const bool first = listing.last_name.empty();
  const Mark mark = recalls_.Now();
  if (first) {
    listing.shared = false;
    listing.begun_log = mark.log;
    listing.begun_era = mark.era;
  }
  auto reply =
      calls_.Ask<ListDirectoryReply>(ListDirectoryRequest{directory.file, listing.last_name});
  if (!reply.ok()) return reply.failure();
  for (ListDirectoryReply::Item& item : reply->items) {
    const InodePtr inode = inodes_.Get(item.entry.file);
    attributes_.Store(*inode, item.entry.attributes, mark, false);
    if (!reply->shared) name_cache_.Store(directory, item.name, item.entry.file, mark, false);
    listing.last_name = item.name;
    listing.items.push_back({std::move(item.name), item.entry, listing.items.size() + 1});
  }
  listing.complete = !reply->more;
  listing.shared = listing.shared || reply->shared;
  if (listing.complete && !listing.shared && listing.begun_era == mark.era) {
    const MutexLock lock(directory.mutex);
    if (!recalls_.Happened(listing.begun_log, directory.file)) {
      if (directory.names.era != mark.era) name_cache_.Clear(directory);
      directory.names.era = mark.era;
      // Complete only if no name was evicted for lack of room.
      size_t present = 0;
      for (const auto& [name, file] : directory.names.entries) present += file.value != 0 ? 1 : 0;
      directory.names.complete = present + 2 == listing.items.size();
    }
  }
  return Done{};
}

// Succeeds without a call if all names are known. The caller must hold the listing's mutex.
bool Directories::ListFromCache(Listing& listing) {
  Inode& directory = *listing.inode;
  std::vector<std::pair<std::string, FileId>> names;
  {
    const MutexLock lock(directory.mutex);
    const uint64_t era = lease_.ValidEra();
    if (era == 0 || directory.names.era != era || !directory.names.complete) return false;
    for (const auto& [name, file] : directory.names.entries)
      if (file.value != 0) names.emplace_back(name, file);
  }
  std::sort(names.begin(), names.end());
  for (auto& [name, file] : names) {
    const InodePtr inode = inodes_.Find(file);
    if (!inode) return false;
    const MutexLock lock(inode->mutex);
    if (!inode->known.received) return false;
    listing.items.push_back(
        {std::move(name), {file, AttributeCache::View(*inode)}, listing.items.size() + 1});
  }
  listing.complete = true;
  return true;
}

}  // namespace mosa::sai
