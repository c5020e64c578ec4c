#include "tools/cluster/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/unique_fd.h"
#include "proto/convert/certificates.h"

namespace mosa::cluster {

namespace {

constexpr Role kDaemonRoles[] = {Role::kManager, Role::kNode, Role::kMount, Role::kAdmin};
constexpr int kUserDays = 366;

std::string Authorities(const std::string& directory) { return directory + "/ca.pem"; }
std::string NextAuthority(const std::string& directory) { return directory + "/next.pem"; }

int DaysOf(Role role) { return role == Role::kUser ? kUserDays : kDaysMax; }

// `replace`: replaces a file of that name, which has either the old text or the new one throughout.
Status WriteFile(const std::string& path, const std::string& text, bool replace) {
  const std::string target = replace ? path + ".new" : path;
  if (replace) unlink(target.c_str());
  const UniqueFd file(open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) {
    if (errno == EEXIST) {
      return AlreadyExistsError(
          fmt::format("{} exists: remove it first, or name another file", path));
    }
    return FailedPreconditionError(fmt::format("cannot create {}: {}", path, strerror(errno)));
  }
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fsync(file.get()) != 0 || (replace && rename(target.c_str(), path.c_str()) != 0)) {
    const int error = errno;
    unlink(target.c_str());
    return FailedPreconditionError(fmt::format("cannot write {}: {}", path, strerror(error)));
  }
  return OkStatus();
}

// All secrets in the directory, sorted; without authorities.
Result<std::vector<std::string>> ListSecrets(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::string path = at->path();
    if (at->path().extension() == ".pem" && path != Authorities(directory) &&
        path != NextAuthority(directory))
      files.push_back(path);
  }
  if (error)
    return FailedPreconditionError(fmt::format("cannot list {}: {}", directory, error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

struct LoadedSecrets {
  std::vector<ClusterSecret> secrets;
  std::vector<std::string> expired;
};

// All secrets that can still be used. Fails if any other cannot be loaded.
Result<LoadedSecrets> LoadSecrets(const std::string& directory) {
  MOSA_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListSecrets(directory));
  LoadedSecrets loaded;
  for (const std::string& path : files) {
    auto secret = LoadSecret(path);
    if (secret.ok()) {
      loaded.secrets.push_back(*std::move(secret));
    } else if (HasExpired(path)) {
      loaded.expired.push_back(path);
    } else {
      return secret.status();
    }
  }
  return loaded;
}

Status Trust(const std::vector<ClusterSecret>& secrets, const Authority& authority) {
  for (const ClusterSecret& secret : secrets)
    MOSA_RETURN_IF_ERROR(WriteFile(secret.path, WithTrust(secret, authority), /*replace=*/true));
  return OkStatus();
}

Status Begin(const std::string& directory, const std::vector<ClusterSecret>& secrets) {
  MOSA_ASSIGN_OR_RETURN(Authority authority, LoadAuthority(Authorities(directory)));
  auto next = LoadAuthority(NextAuthority(directory));
  if (next.status().code() == StatusCode::kNotFound) {
    if (!authority.also_trusted_pem.empty()) {
      return FailedPreconditionError(fmt::format(
          "the secrets in {} still trust an older authority: end that rotation first", directory));
    }
    next = CreateAuthority();
    MOSA_RETURN_IF_ERROR(next.status());
    next->also_trusted_pem = {authority.certificate_pem};
    MOSA_RETURN_IF_ERROR(WriteFile(NextAuthority(directory), next->ToPem(), /*replace=*/true));
  }
  MOSA_RETURN_IF_ERROR(next.status());
  authority.also_trusted_pem = {next->certificate_pem};
  MOSA_RETURN_IF_ERROR(WriteFile(Authorities(directory), authority.ToPem(), /*replace=*/true));
  return Trust(secrets, authority);
}

Status Switch(const std::string& directory, const std::vector<ClusterSecret>& secrets) {
  const auto next = LoadAuthority(NextAuthority(directory));
  if (next.status().code() == StatusCode::kNotFound) {
    return FailedPreconditionError(
        fmt::format("no rotation of the authority has begun in {}", directory));
  }
  MOSA_RETURN_IF_ERROR(next.status());
  std::vector<std::string> texts;
  for (const ClusterSecret& secret : secrets) {
    MOSA_ASSIGN_OR_RETURN(texts.emplace_back(), ReissueSecret(*next, secret));
  }
  for (size_t i = 0; i < secrets.size(); ++i)
    MOSA_RETURN_IF_ERROR(WriteFile(secrets[i].path, texts[i], /*replace=*/true));
  if (rename(NextAuthority(directory).c_str(), Authorities(directory).c_str()) != 0) {
    return FailedPreconditionError(
        fmt::format("cannot replace {}: {}", Authorities(directory), strerror(errno)));
  }
  return OkStatus();
}

Status End(const std::string& directory, const std::vector<ClusterSecret>& secrets) {
  if (access(NextAuthority(directory).c_str(), F_OK) == 0) {
    return FailedPreconditionError(fmt::format(
        "the secrets in {} are still issued by the old authority: switch first", directory));
  }
  MOSA_ASSIGN_OR_RETURN(Authority authority, LoadAuthority(Authorities(directory)));
  authority.also_trusted_pem.clear();
  MOSA_RETURN_IF_ERROR(Trust(secrets, authority));
  return WriteFile(Authorities(directory), authority.ToPem(), /*replace=*/true);
}

}  // namespace

std::string SecretFile(const std::string& directory, Role role) {
  return fmt::format("{}/{}.pem", directory, NameOf(role));
}

Status CreateSecrets(const std::string& directory) {
  MOSA_ASSIGN_OR_RETURN(const Authority authority, CreateAuthority());
  if (mkdir(directory.c_str(), 0700) != 0) {
    if (errno == EEXIST) {
      return AlreadyExistsError(
          fmt::format("{} exists: remove it first, or name another directory", directory));
    }
    return FailedPreconditionError(fmt::format("cannot create {}: {}", directory, strerror(errno)));
  }
  MOSA_RETURN_IF_ERROR(WriteFile(Authorities(directory), authority.ToPem(), /*replace=*/false));
  for (const Role role : kDaemonRoles) {
    MOSA_ASSIGN_OR_RETURN(const std::string text,
                          IssueSecret(authority, {.role = role, .node = {}, .uid = {}}, kDaysMax));
    MOSA_RETURN_IF_ERROR(WriteFile(SecretFile(directory, role), text, /*replace=*/false));
  }
  return OkStatus();
}

Status IssueSecretFile(const IssueOptions& options) {
  MOSA_ASSIGN_OR_RETURN(const Authority authority, LoadAuthority(Authorities(options.directory)));
  const int days = options.days == 0 ? DaysOf(options.identity.role) : options.days;
  MOSA_ASSIGN_OR_RETURN(const std::string text, IssueSecret(authority, options.identity, days));
  return WriteFile(options.path, text, /*replace=*/false);
}

Result<Rotated> Rotate(const std::string& directory, Rotation step) {
  MOSA_ASSIGN_OR_RETURN(LoadedSecrets loaded, LoadSecrets(directory));
  const std::vector<ClusterSecret>& secrets = loaded.secrets;
  switch (step) {
    case Rotation::kBegin:
      MOSA_RETURN_IF_ERROR(Begin(directory, secrets));
      break;
    case Rotation::kSwitch:
      MOSA_RETURN_IF_ERROR(Switch(directory, secrets));
      break;
    case Rotation::kEnd:
      MOSA_RETURN_IF_ERROR(End(directory, secrets));
      break;
  }
  Rotated rotated{.written = {}, .expired = std::move(loaded.expired)};
  for (const ClusterSecret& secret : secrets) rotated.written.push_back(secret.path);
  return rotated;
}

}  // namespace mosa::cluster
