// Whatever the bytes, a trace is read or refused. A trace that was read becomes a workload that
// Mosa's readers accept. An input that does not begin like a trace is taken for a trace's blocks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/model/trace.h"
#include "predictor/trace/workload.h"
#include "predictor/workflow/operations.h"
#include "predictor/workflow/read.h"

namespace {

constexpr size_t kBlocks = mosa::kTraceHeadBytes + mosa::kTraceFootBytes;

// Makes checksums valid, so that records are read, too.
std::string WithChecksums(std::string bytes) {
  size_t at = kBlocks;
  while (at + mosa::kTraceBlockHeadBytes <= bytes.size()) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
    const size_t payload = at + mosa::kTraceBlockHeadBytes;
    if (size > bytes.size() - payload) break;
    const uint32_t sum = mosa::Crc32c(bytes.data() + payload, size);
    for (size_t i = 0; i < 4; ++i) bytes[at + 8 + i] = static_cast<char>(sum >> (8 * i));
    at = payload + size;
  }
  return bytes;
}

void Use(const mosa::TraceFile& file) {
  const mosa::predict::TracedRun run = mosa::predict::MergeTraces({file, file});
  mosa::predict::Summarize(run);
  const auto workload = mosa::predict::WorkloadOf(run, "fuzz", {{"sort", mosa::Seconds(9), ""}});
  const std::string operations = mosa::predict::ToOperationsText(workload);
  for (const auto version : {mosa::predict::WfFormat::k1_5, mosa::predict::WfFormat::k1_6}) {
    const std::string text = mosa::predict::ToWfFormat(workload, version);
    if (workload.tasks.empty()) return;
    auto read = mosa::predict::ReadWorkflow(text, "fuzz");
    MOSA_CHECK(read.faults.empty());
    MOSA_CHECK(read.workflow.tasks.size() == workload.tasks.size());
    MOSA_CHECK(mosa::predict::AddOperations(operations, read.workflow).empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (!bytes.starts_with("mosa-trace")) {
    mosa::TraceHead head;
    head.host = "h1";
    head.light = bytes.ends_with('L');
    mosa::TraceFoot foot;
    foot.reason = mosa::kTraceStopped;
    bytes = mosa::EncodeTraceHead(head) + mosa::EncodeTraceFoot(foot) + bytes;
  }
  for (const std::string& input : {bytes, WithChecksums(bytes)}) {
    const auto file = mosa::ParseTrace(input);
    if (file.ok()) Use(*file);
  }
  return 0;
}
