#include "predictor/run/simulated_operations.h"

#include <algorithm>

#include "predictor/des/waiting.h"

namespace mosa::predict {

using Kind = TaskOperation::Kind;

namespace {

// More threads than this are simulated as so many that compute for longer.
constexpr uint32_t kThreadsMax = 64;

des::Activity<void> ComputeOnOne(Machines& machines, MachineIndex machine, Duration seconds,
                                 des::Group& threads) {
  co_await machines.Work(machine, seconds, WorkOf::kTask);
  threads.End();
}

}  // namespace

des::Activity<void> Compute(des::EventLoop& loop, Machines& machines, MachineIndex machine,
                            Duration duration, uint32_t cores, uint32_t threads) {
  const uint32_t count = std::clamp(std::min(cores, threads), 1U, kThreadsMax);
  const Duration share = duration * int64_t{cores} / int64_t{count};
  if (count == 1) co_return co_await machines.Work(machine, share, WorkOf::kTask);
  des::Group running(loop);
  for (uint32_t i = 0; i < count; ++i) {
    running.Begin();
    des::Spawn(loop, ComputeOnOne(machines, machine, share, running));
  }
  while (running.under_way() > 0) co_await running.changed().Wait();
}

des::Activity<sai::Outcome<sai::Done>> SimulatedOperations::Play() {
  last_ = loop_.now();
  for (const TaskOperation& operation : operations_)
    if (operation.kind == Kind::kRead || operation.kind == Kind::kWrite)
      ++files_[operation.file].left;
  for (const TaskOperation& operation : operations_) {
    if (operation.before.ns > 0) {
      const Time begin = loop_.now();
      co_await Compute(loop_, machines_, client_.machine(), operation.before, task_.needs.cores,
                       slots_);
      predicted_.computes.push_back({begin, loop_.now()});
      predicted_.computing = predicted_.computing + Lap();
    }
    if (operation.kind == Kind::kCompute || !IsOnTheStore(workflow_.at(operation.file))) continue;
    Used& used = files_[operation.file];
    Done done = sai::Done{};
    if (operation.kind == Kind::kRemove) {
      done = co_await client_.Remove(workflow_.at(operation.file).path);
    } else if (operation.kind == Kind::kRead) {
      done = co_await Read(used, operation);
    } else {
      done = co_await Write(used, operation);
    }
    if (done.ok() && operation.kind != Kind::kRemove && --used.left == 0)
      done = co_await Close(used);
    Duration& spent = operation.kind == Kind::kRead ? predicted_.reading : predicted_.writing;
    spent = spent + Lap();
    if (!done.ok()) {
      co_await Abandon();
      co_return done;
    }
  }
  const Done rest = co_await WriteTheRest();
  predicted_.writing = predicted_.writing + Lap();
  co_return rest;
}

des::Activity<SimulatedOperations::Done> SimulatedOperations::Read(Used& used,
                                                                   const TaskOperation& operation) {
  const bool is_own =
      std::find(task_.outputs.begin(), task_.outputs.end(), operation.file) != task_.outputs.end();
  if (!used.reading) used.reading_since = loop_.now();
  if (is_own && !used.reading) {
    const Done opened = co_await OpenToWrite(used, operation.file);
    if (!opened.ok()) co_return opened;
    used.reading = co_await client_.ReadBack(*used.writing);
  } else if (!used.reading) {
    const std::string& path = workflow_.at(operation.file).path;
    if (const auto file = being_read_.find(path); file != being_read_.end())
      co_await file->second->Wait();
    auto opened = co_await client_.OpenToRead(path, name_);
    if (!opened.ok()) co_return opened.failure();
    used.reading = *std::move(opened);
  }
  ByteRange range{operation.offset, operation.offset + operation.size_bytes};
  const bool to_the_end = range.end >= workflow_.at(operation.file).size_bytes.value_or(0);
  if (used.reading->is_stream && used.left == 1 && to_the_end) range.end = UINT64_MAX;
  co_await client_.ReadPart(*used.reading, range);
  co_return sai::Done{};
}

des::Activity<SimulatedOperations::Done> SimulatedOperations::Write(
    Used& used, const TaskOperation& operation) {
  co_await CloseRead(used);  // It may not know of bytes that are written now.
  const Done opened = co_await OpenToWrite(used, operation.file);
  if (!opened.ok()) co_return opened;
  const Done written = co_await client_.WritePart(*used.writing, operation.size_bytes);
  if (written.ok()) predicted_.written += operation.size_bytes;
  co_return written;
}

des::Activity<SimulatedOperations::Done> SimulatedOperations::OpenToWrite(Used& used,
                                                                          PathIndex path) {
  if (used.writing) co_return sai::Done{};
  const WorkflowFile& file = workflow_.at(path);
  used.writing_since = loop_.now();
  auto opened = co_await client_.OpenToWrite(file.path, {0, *file.size_bytes},
                                             SimulatedClient::Content::kReplaced, name_);
  if (!opened.ok()) co_return opened.failure();
  used.writing = *std::move(opened);
  used.was_written = true;
  co_return sai::Done{};
}

des::Activity<void> SimulatedOperations::CloseRead(Used& used) {
  const auto reading = std::exchange(used.reading, nullptr);
  if (!reading) co_return;
  const BytesRead read = co_await client_.CloseRead(*reading);
  predicted_.read_local += read.local;
  predicted_.read_remote += read.remote;
  predicted_.read_cached += read.cached;
  predicted_.reads.push_back({used.reading_since, loop_.now()});
}

des::Activity<SimulatedOperations::Done> SimulatedOperations::Close(Used& used) {
  co_await CloseRead(used);
  const auto writing = std::exchange(used.writing, nullptr);
  if (!writing) co_return sai::Done{};
  const Done closed = co_await client_.CloseWrite(*writing);
  predicted_.writes.push_back({used.writing_since, loop_.now()});
  co_return closed;
}

des::Activity<void> SimulatedOperations::Abandon() {
  for (auto& [file, used] : files_) {
    co_await CloseRead(used);
    if (const auto writing = std::exchange(used.writing, nullptr))
      co_await client_.AbandonWrite(*writing);
  }
}

des::Activity<SimulatedOperations::Done> SimulatedOperations::WriteTheRest() {
  for (const PathIndex output : task_.outputs) {
    const WorkflowFile& file = workflow_.at(output);
    if (!IsOnTheStore(file) || files_[output].was_written) continue;
    const Time making = loop_.now();
    const Done written = co_await client_.WriteFile(file.path, *file.size_bytes, name_);
    if (!written.ok()) co_return written;
    predicted_.writes.push_back({making, loop_.now()});
    predicted_.written += *file.size_bytes;
  }
  co_return sai::Done{};
}

}  // namespace mosa::predict
