#include "tools/stage/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "common/base/unique_fd.h"
#include "tools/stage/copy.h"

namespace mosa::cli {
namespace {

namespace fs = std::filesystem;

// Names in a directory, without the two that every one has.
Result<std::vector<std::string>> NamesIn(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return Cannot("read directory", path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  if (errno != 0) return Cannot("read directory", path);
  return names;
}

}  // namespace

Result<std::vector<std::string>> MakeDirectories(const std::string& path) {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path at = path; !fs::exists(at, error) && at.has_relative_path(); at = at.parent_path())
    missing.push_back(at);
  std::vector<std::string> fresh;
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    if (mkdir(at->c_str(), 0777) != 0 && errno != EEXIST) return Cannot("create directory", *at);
    fresh.push_back(at->parent_path());
  }
  if (!fs::is_directory(path, error))
    return FailedPreconditionError(
        fmt::format("{} is not a directory: name a directory to stage to", path));
  return fresh;
}

void StageTree::Open(const std::string& target, const std::vector<std::string>& fresh) {
  directories_.insert(fresh.begin(), fresh.end());
  directories_.insert(target);
  if (fresh.empty()) untouched_ = target;
  RemoveLeftovers(target);
}

void StageTree::RemoveLeftovers(const std::string& directory) {
  const auto names = NamesIn(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names)
    if (name.starts_with(run_prefix_) && !name.starts_with(own_prefix_))
      unlink((directory + "/" + name).c_str());
}

bool StageTree::MakeDirectory(const std::string& source, const std::string& target) {
  if (made_.contains(target)) return true;
  struct stat from {
  }, to{};
  if (stat(source.c_str(), &from) != 0) return Fail(source, Cannot("read", source)), false;
  if (from.st_dev == forbidden_) {
    Fail(source, InvalidArgumentError(fmt::format(
                     "{} is on the mount that is staged to: name a source outside of it", source)));
    return false;
  }
  if (target == untouched_) return true;
  const bool is_new = mkdir(target.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) return Fail(target, Cannot("create directory", target)), false;
  if (!is_new) {
    if (lstat(target.c_str(), &to) != 0 || !S_ISDIR(to.st_mode)) {
      Fail(target, FailedPreconditionError(
                       fmt::format("{} is not a directory, but {} is: remove it or name another "
                                   "target",
                                   target, source)));
      return false;
    }
    // Only for as long as files are put there: FinishDirectories sets the mode of the source.
    if (geteuid() != 0 && (to.st_mode & 0700) != 0700) chmod(target.c_str(), to.st_mode | 0700);
    RemoveLeftovers(target);
  }
  made_[target] = {from, is_new};
  directories_.insert(target);
  if (is_new) directories_.insert(fs::path(target).parent_path());
  return true;
}

void StageTree::Add(const std::string& source, const std::string& target) {
  std::vector<std::pair<std::string, std::string>> open = {{source, target}};
  while (!open.empty()) {
    const auto [from, to] = std::move(open.back());
    open.pop_back();
    struct stat status {};
    if (lstat(from.c_str(), &status) != 0) {
      Fail(from, Cannot("read", from));
    } else if (!S_ISDIR(status.st_mode) && !targets_.insert(to).second) {
      Fail(from,
           InvalidArgumentError(fmt::format(
               "{} and another source would both become {}: stage them to different directories",
               from, to)));
    } else if (!S_ISDIR(status.st_mode)) {
      directories_.insert(fs::path(to).parent_path());
      files_.push_back({from, to, static_cast<uint64_t>(status.st_size), S_ISREG(status.st_mode)});
    } else if (MakeDirectory(from, to)) {
      AddEntries(from, to, open);
    }
  }
}

void StageTree::AddEntries(const std::string& source, const std::string& target,
                           std::vector<std::pair<std::string, std::string>>& open) {
  const auto names = NamesIn(source);
  if (!names.ok()) return Fail(source, names.status());
  for (const std::string& name : *names)
    if (name.starts_with(kStagePrefix))
      passed_over_.push_back(source + "/" + name);
    else
      open.emplace_back(source + "/" + name, target + "/" + name);
}

void StageTree::AddBelow(const std::string& source_root, const std::string& target_root,
                         const std::string& path) {
  fs::path below;
  const fs::path relative = fs::path(path).relative_path();
  for (const fs::path& name : relative.parent_path()) {
    below /= name;
    if (!MakeDirectory(source_root + "/" + below.string(), target_root + "/" + below.string()))
      return;
  }
  Add(source_root + "/" + relative.string(), target_root + "/" + relative.string());
}

void StageTree::FinishDirectories() {
  // What lies deeper has a greater name than what it lies in.
  for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
    const auto& [path, directory] = *made;
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    Status taken = fd ? TakeOver(fd.get(), path, directory.source) : Cannot("open", path);
    // One that was there before may be somebody else's.
    if (!taken.ok() && (directory.is_new || taken.code() != StatusCode::kPermissionDenied))
      Fail(path, std::move(taken));
  }
}

}  // namespace mosa::cli
