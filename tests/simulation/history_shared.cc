#include "tests/simulation/history_shared.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "common/base/sync.h"
#include "tests/simulation/history_bytes.h"

namespace mosa::simulation {

// After a loss nothing would be checked any more.
void SharedFilePrograms::Renew(const Host& host, SharedFile& file, size_t at) {
  file.is_renewed = true;
  const auto removed = calls_.Remove(host, at);
  file.is_renewed = false;
  if (removed.ok() || removed.failure().reason == ErrorReason::kNoEntry) file.Clear();
}

Outcome<Done> SharedFilePrograms::ChangeShared(
    const Host& host, SharedFile& file, size_t at, uint32_t flags,
    const std::function<Outcome<Done>(sai::HandleId)>& change) {
  if (file.may_be_lost && file.writers == 0 && !file.is_renewed) Renew(host, file, at);
  if (file.is_renewed)
    return Failure{StatusCode::kUnavailable, ErrorReason::kNone, "another one removes it"};
  if (!std::exchange(file.is_made, true)) file.wipes = state_.wipes;
  // A node that has lost everything may not be known to have, so this may outdate the good copies.
  if (file.wipes < state_.wipes) file.may_be_lost = true;
  ++file.writers;
  file.has_copies = false;
  auto opener = std::optional(file.openers.insert(host.id));
  const auto opened = [&] {
    if (opener) file.openers.erase(*opener);
    opener.reset();
  };
  const Outcome<Done> done =
      calls_.InOpen(host, at, O_CREAT | O_RDWR | flags, [&](sai::HandleId handle) {
        opened();
        return change(handle);
      });
  opened();
  --file.writers;
  if (!done.ok() || file.writers > 0 || !state_.store.pessimistic) return done;
  file.has_copies = true;
  file.wipes = state_.wipes;
  return done;
}

std::optional<std::string> SharedFilePrograms::ReadShared(const Host& host, const SharedFile& file,
                                                          size_t at) {
  if (file.may_be_lost) return std::nullopt;
  const Time begun = state_.scheduler.now();
  const uint64_t renewals = file.renewals;
  // While a program makes a file, others on its host may not see it, although other hosts do.
  const bool may_be_absent = file.openers.contains(host.id);
  const auto found = calls_.Find(host, at);
  const auto failed = [&](const std::string& how, bool may_fail) -> std::optional<std::string> {
    if (!file.may_be_lost && file.renewals == renewals && !may_fail)
      state_.Problem(fmt::format("h{} cannot read the {}: {}", host.id, NameOf(at), how));
    return std::nullopt;
  };
  const bool may_fail = state_.MayFail(host, begun);
  if (!found.ok()) return failed(found.failure().message, may_fail);
  if (*found == FileId{}) return may_be_absent ? std::nullopt : failed("it is not there", may_fail);
  const auto content = calls_.Read(host, at);
  if (!content.ok())
    return failed(content.failure().message,
                  HistoryCalls::IsLoss(content.failure())
                      ? state_.MayMissNodes(begun) || host.mount->is_killed()
                      : state_.MayFail(host, begun));
  if (file.renewals != renewals || file.is_renewed) return std::nullopt;
  return *content;
}

void SharedFilePrograms::Append(const Host& host, Rng& rng) {
  const std::string record = state_.Fresh(LengthOf(rng));
  Log& log = state_.log;
  const Time begun = state_.scheduler.now();
  const Outcome<Done> done = ChangeShared(host, log, kLog, O_APPEND, [&](sai::HandleId handle) {
    return calls_.Write(host, kLog, handle, 0, record);
  });
  // If the kernel's second request comes 5 s after the first one, others may append in between.
  const bool may_be_torn =
      record.size() > SimulatedKernel::kWriteMax && state_.MayFail(host, begun);
  (done.ok() && !may_be_torn ? log.records : log.attempts).push_back(record);
}

void SharedFilePrograms::WritePart(const Host& host, Rng& rng) {
  const size_t number = rng.Below(state_.grid.parts.size());
  Grid::Part& part = state_.grid.parts[number];
  const MutexLock lock(part.used);
  // What a write that failed has left is overwritten.
  const uint64_t offset = part.certain ? rng.Below(Grid::kPartBytes) : 0;
  const uint64_t length =
      part.certain ? 1 + rng.Below(Grid::kPartBytes - offset) : Grid::kPartBytes;
  const std::string data = state_.Fresh(length);
  const Outcome<Done> done = ChangeShared(host, state_.grid, kGrid, 0, [&](sai::HandleId handle) {
    return calls_.Write(host, kGrid, handle, number * Grid::kPartBytes + offset, data);
  });
  part.certain = done.ok();
  if (!done.ok()) return;
  part.is_written = true;
  part.content.replace(offset, length, data);
}

void SharedFilePrograms::CheckPart(const Host& host, Rng& rng) {
  const size_t number = rng.Below(state_.grid.parts.size());
  const MutexLock lock(state_.grid.parts[number].used);
  if (!state_.grid.parts[number].is_written) return;
  if (const auto content = ReadShared(host, state_.grid, kGrid))
    CheckPartIn(host, *content, number);
}

void SharedFilePrograms::CheckPartIn(const Host& host, const std::string& content, size_t number) {
  const Grid::Part& part = state_.grid.parts[number];
  if (!part.certain) return;
  const uint64_t begin = number * Grid::kPartBytes;
  std::string read = begin < content.size() ? content.substr(begin, Grid::kPartBytes) : "";
  read.resize(Grid::kPartBytes);
  if (read != part.content)
    state_.Problem(fmt::format("h{} reads part {} of the grid: {}", host.id, number,
                               Difference(part.content, read)));
}

// Each record is there once, in one piece.
void SharedFilePrograms::CheckLog(const Host& host) {
  if (state_.log.records.empty()) return;
  const auto content = ReadShared(host, state_.log, kLog);
  if (!content) return;
  for (const std::string& record : state_.log.records) {
    const size_t found = content->find(record);
    if (found == std::string::npos)
      state_.Problem(fmt::format("h{} does not read a record of {} bytes in the log of {}", host.id,
                                 record.size(), content->size()));
    else if (record.size() >= kUniqueBytes && content->find(record, found + 1) != std::string::npos)
      state_.Problem(
          fmt::format("h{} reads a record of {} bytes twice in the log", host.id, record.size()));
  }
  for (const std::string& record : state_.log.attempts) {
    if (record.size() < kUniqueBytes) continue;
    const size_t found = content->find(record);
    if (found != std::string::npos && content->find(record, found + 1) != std::string::npos)
      state_.Problem(fmt::format("h{} reads a failed record of {} bytes twice in the log", host.id,
                                 record.size()));
  }
}

void SharedFilePrograms::CheckAll(const std::vector<Host>& hosts) {
  for (const Host& host : hosts) CheckLog(host);
  bool is_written = false;
  for (const Grid::Part& part : state_.grid.parts) is_written = is_written || part.is_written;
  if (!is_written) return;
  for (const Host& host : hosts)
    if (const auto content = ReadShared(host, state_.grid, kGrid))
      for (size_t i = 0; i < state_.grid.parts.size(); ++i) CheckPartIn(host, *content, i);
}

}  // namespace mosa::simulation
