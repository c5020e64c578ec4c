#include "predictor/workflow/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/rng.h"

namespace mosa::predict {
namespace {

constexpr uint64_t kKB = 1000;
constexpr uint64_t kMB = 1000 * kKB;
constexpr uint64_t kGB = 1000 * kMB;
// Regions are chunks, which are whole pages.
constexpr uint64_t kRegionStep = 4096;
constexpr const char* kShared = "data/shared";

struct Bytes {
  uint64_t in = 0;
  uint64_t middle = 0;
  uint64_t out = 0;
};

// Opportunity Study, Table 2. It has no row for scatter and gather. A region is as large as the
// broadcast file, so that one task reads the same amount in either pattern.
Bytes TableTwo(Pattern pattern, WorkloadSize size) {
  const auto row = static_cast<size_t>(size);
  static constexpr Bytes kPipeline[] = {{100 * kKB, 200 * kKB, 10 * kKB},
                                        {100 * kMB, 200 * kMB, 1 * kMB},
                                        {1 * kGB, 2 * kGB, 10 * kMB}};
  static constexpr Bytes kBroadcast[] = {
      {100 * kKB, 0, 1 * kKB}, {100 * kMB, 0, 1 * kMB}, {1 * kGB, 0, 10 * kMB}};
  static constexpr Bytes kReduce[] = {
      {10 * kKB, 0, 100 * kKB}, {10 * kMB, 0, 200 * kMB}, {100 * kMB, 0, 2 * kGB}};
  switch (pattern) {
    case Pattern::kPipeline:
      return kPipeline[row];
    case Pattern::kReduce:
      return kReduce[row];
    default:
      return kBroadcast[row];
  }
}

uint64_t Scaled(uint64_t bytes, uint64_t millionths) {
  const Wide scaled = static_cast<Wide>(bytes) * millionths / kScaleOne;
  return std::max<uint64_t>(1, static_cast<uint64_t>(scaled));
}

Transfer Whole(std::string path, uint64_t bytes) {
  Transfer transfer;
  transfer.content = path;
  transfer.path = std::move(path);
  transfer.bytes = bytes;
  return transfer;
}

Transfer Of(const char* directory, uint32_t k, uint64_t bytes) {
  return Whole(fmt::format("{}/{}", directory, k), bytes);
}

Transfer InBackend(std::string path, Transfer like) {
  like.path = std::move(path);
  like.in_backend = true;
  return like;
}

class Maker {
 public:
  explicit Maker(const SyntheticOptions& options) : options_(options) {
    const Bytes bytes = TableTwo(options.pattern, options.size);
    in_ = Scaled(bytes.in, options.scale_millionths);
    middle_ = Scaled(bytes.middle, options.scale_millionths);
    out_ = Scaled(bytes.out, options.scale_millionths);
    region_ = (in_ + kRegionStep - 1) / kRegionStep * kRegionStep;
  }

  std::vector<SyntheticPart> Make() {
    switch (options_.pattern) {
      case Pattern::kPipeline:
        Pipeline();
        break;
      case Pattern::kReduce:
        Reduce();
        break;
      case Pattern::kBroadcast:
        Broadcast();
        break;
      case Pattern::kScatter:
        Scatter();
        break;
      case Pattern::kGather:
        Gather();
        break;
    }
    EndPart(Phase::kStages);
    StageOut();
    return std::move(parts_);
  }

 private:
  void Pipeline() {
    for (uint32_t k = 0; k < options_.width; ++k) {
      const Transfer in = In(k);
      SyntheticTask task{{}, {in}, k};
      if (options_.stage_in) task.reads.push_back(InBackend("in", in));
      Add("stage-in", std::move(task));
      OwnHint(in.path, {{"pattern", "pipeline"}});
    }
    EndPart(Phase::kStageIn);
    AddStage(
        "stage-1", [&](uint32_t k) { return In(k); }, "mid-1", middle_);
    AddStage(
        "stage-2", [&](uint32_t k) { return Of("mid-1", k, middle_); }, "mid-2", middle_);
    AddStage(
        "stage-3", [&](uint32_t k) { return Of("mid-2", k, middle_); }, "out", out_);
    for (uint32_t k = 0; k < options_.width; ++k) AddResult(Of("out", k, out_), true);
  }

  template <typename Source>
  void AddStage(const char* stage, Source source, const char* target, uint64_t bytes) {
    for (uint32_t k = 0; k < options_.width; ++k)
      Add(stage, {{source(k)}, {Of(target, k, bytes)}, k});
  }

  void Reduce() {
    const Transfer all = Whole("out/all", out_);
    SyntheticTask reader{{}, {all}, 0};
    for (uint32_t k = 0; k < options_.width; ++k) {
      Add("write", {{}, {Of("parts", k, in_)}, k});
      reader.reads.push_back(Of("parts", k, in_));
    }
    Add("reduce", std::move(reader));
    AddResult(all, true);
  }

  void Broadcast() {
    const Transfer shared = Whole(kShared, in_);
    Add("write", {{}, {shared}, 0});
    if (options_.copies > 0)
      OwnHint(shared.path, {{"pattern", fmt::format("broadcast:{}", options_.copies)}});
    for (uint32_t k = 0; k < options_.width; ++k) {
      Add("read", {{shared}, {Of("out", k, out_)}, k});
      AddResult(Of("out", k, out_), false);
    }
  }

  void Scatter() {
    const Transfer whole = Whole("data/scattered", region_ * options_.width);
    Add("write", {{}, {whole}, 0});
    OwnHint(whole.path, {{"pattern", fmt::format("scatter:{}", region_)}});
    for (uint32_t k = 0; k < options_.width; ++k) Add("read", {{Region(whole, k)}, {}, k});
  }

  void Gather() {
    const Transfer whole = Whole("data/gathered", region_ * options_.width);
    for (uint32_t k = 0; k < options_.width; ++k) Add("write", {{}, {Region(whole, k)}, k});
    OwnHint(whole.path, {{"pattern", fmt::format("gather:{}", region_)}});
    const size_t writers = draft_.tasks.size();
    Add("read", {{whole}, {}, 0});
    for (size_t i = 0; i < writers; ++i) draft_.tasks.back().after.push_back(draft_.tasks[i].id);
  }

  void StageOut() {
    if (!options_.stage_out) return;
    for (size_t i = 0; i < results_.size(); ++i) {
      const Transfer& result = results_[i];
      std::string name = result.path;
      std::replace(name.begin(), name.end(), '/', '-');
      Add("stage-out", {{result}, {InBackend(name, result)}, static_cast<uint32_t>(i)});
    }
    EndPart(Phase::kStageOut);
  }

  // All pipelines start from copies of one file.
  Transfer In(uint32_t k) const {
    Transfer in = Of("in", k, in_);
    in.content = "in";
    return in;
  }

  Transfer Region(const Transfer& whole, uint32_t k) const {
    Transfer region = whole;
    region.begin = k * region_;
    region.bytes = region_;
    region.is_region = true;
    return region;
  }

  void Add(const std::string& stage, SyntheticTask task) {
    TaskDraft draft;
    draft.id = fmt::format("{}-{}", stage, task.lane);
    draft.stage = stage;
    draft.command = {"mosa", "bench", "work"};
    for (const Transfer& read : task.reads) {
      if (!read.in_backend) draft.inputs.push_back(read.path);
    }
    for (const Transfer& write : task.writes) {
      if (write.in_backend) continue;
      (write.is_region ? draft.inputs : draft.outputs).push_back(write.path);
      if (!write.is_region) sizes_[write.path] = write.bytes;
    }
    draft_.tasks.push_back(std::move(draft));
    tasks_.push_back(std::move(task));
  }

  void AddResult(Transfer result, bool local) {
    if (local) OwnHint(result.path, {{"placement", "local"}});
    results_.push_back(std::move(result));
  }

  void EndPart(Phase phase) {
    draft_.name =
        fmt::format("{}-{}-{}", ToText(options_.pattern), ToText(options_.size), ToText(phase));
    for (const auto& [path, bytes] : sizes_) {
      FileDraft file;
      file.path = path;
      file.size_bytes = bytes;
      draft_.files.push_back(std::move(file));
    }
    BuildResult built = BuildWorkflow(draft_);
    MOSA_CHECK(tasks_.empty() || built.faults.empty());
    // Drafts accept no hints for files that no task writes.
    for (WorkflowFile& file : built.workflow.files) {
      if (const auto own = hints_.find(file.path); own != hints_.end()) file.hints = own->second;
    }
    if (!tasks_.empty())
      parts_.push_back({phase, std::move(built.workflow), std::move(tasks_), options_.compute,
                        options_.make_ns_per_byte});
    draft_ = {};
    tasks_.clear();
    sizes_.clear();
    hints_.clear();
  }

  void OwnHint(const std::string& path, HintMap hints) { hints_[path] = std::move(hints); }

  const SyntheticOptions options_;
  uint64_t in_ = 0, middle_ = 0, out_ = 0, region_ = 0;
  // The part under construction:
  WorkflowDraft draft_;
  std::map<std::string, uint64_t> sizes_;
  std::map<std::string, HintMap> hints_;
  std::vector<SyntheticTask> tasks_;

  std::vector<Transfer> results_;
  std::vector<SyntheticPart> parts_;
};

constexpr const char* kPatterns[] = {"pipeline", "reduce", "broadcast", "scatter", "gather"};
constexpr const char* kSizes[] = {"small", "medium", "large"};
constexpr const char* kPhases[] = {"stage-in", "stages", "stage-out"};

template <typename Value, size_t count>
std::optional<Value> Parse(const char* const (&names)[count], std::string_view text) {
  const auto found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Value>(found - std::begin(names));
}

constexpr double kScaleMax = 100;
constexpr double kComputeMax = 1'000'000;

// Returns a negative value if the text is not a number.
double ParseNumber(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

// "scale=0.1", "width=4" or "copies=2".
Status SetOption(std::string_view word, SyntheticOptions& options) {
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const double number = equals == word.npos ? -1 : ParseNumber(word.substr(equals + 1));
  const bool is_count = number == std::floor(number) && number >= 1 && number <= kSyntheticWidthMax;
  const double millionths = std::round(number * static_cast<double>(kScaleOne));
  if (name == "scale" && millionths >= 1 && number <= kScaleMax) {
    options.scale_millionths = static_cast<uint64_t>(millionths);
  } else if (name == "width" && is_count) {
    options.width = static_cast<uint32_t>(number);
  } else if (name == "copies" && is_count) {
    options.copies = static_cast<uint32_t>(number);
  } else if (name == "compute" && number >= 0 && number <= kComputeMax) {
    options.compute = Nanoseconds(std::llround(number * 1e9));
  } else if (name == "make" && number >= 0 && number <= kMakeNsPerByteMax) {
    options.make_ns_per_byte = number;  // Seconds per GB are nanoseconds per byte.
  } else {
    return InvalidArgumentError(
        fmt::format("'{}' is not an option of a synthetic workflow: after pattern and size, write "
                    "scale=SHARE (0.000001 to {}), width=N or copies=N (1 to {}), compute=SECONDS "
                    "(0 to {}), or make=SECONDS for each GB written (0 to {})",
                    word, kScaleMax, kSyntheticWidthMax, kComputeMax, kMakeNsPerByteMax));
  }
  return OkStatus();
}

}  // namespace

Result<SyntheticOptions> ParseSynthetic(std::string_view text) {
  SyntheticOptions options;
  options.width = 0;
  std::vector<std::string_view> words;
  for (std::string_view rest = text; !rest.empty();) {
    words.push_back(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(words.back().size() + 1, rest.size()));
  }
  const auto pattern = words.empty() ? std::nullopt : ParsePattern(words[0]);
  const auto size = words.size() < 2 ? std::nullopt : ParseWorkloadSize(words[1]);
  if (!pattern || !size)
    return InvalidArgumentError(
        fmt::format("'{}' is not a synthetic workflow: write pipeline, reduce, broadcast, scatter "
                    "or gather, a comma, and small, medium or large",
                    text));
  options.pattern = *pattern;
  options.size = *size;
  for (size_t i = 2; i < words.size(); ++i) MOSA_RETURN_IF_ERROR(SetOption(words[i], options));
  if (options.copies > 0 && options.pattern != Pattern::kBroadcast)
    return InvalidArgumentError(
        fmt::format("'{}': copies are of what is broadcast, and {} broadcasts nothing", text,
                    ToText(options.pattern)));
  return options;
}

Duration ComputingOf(const SyntheticPart& part, TaskIndex task) {
  uint64_t bytes = 0;
  for (const Transfer& write : part.tasks[task.value].writes) bytes += write.bytes;
  return part.compute +
         Nanoseconds(std::llround(part.make_ns_per_byte * static_cast<double>(bytes)));
}

bool HasRegions(const SyntheticPart& part) {
  const auto is_region = [](const Transfer& transfer) { return transfer.is_region; };
  return std::any_of(part.tasks.begin(), part.tasks.end(), [&](const SyntheticTask& task) {
    return std::any_of(task.reads.begin(), task.reads.end(), is_region) ||
           std::any_of(task.writes.begin(), task.writes.end(), is_region);
  });
}

const char* ToText(Pattern pattern) { return kPatterns[static_cast<size_t>(pattern)]; }
const char* ToText(WorkloadSize size) { return kSizes[static_cast<size_t>(size)]; }
const char* ToText(Phase phase) { return kPhases[static_cast<size_t>(phase)]; }

std::optional<Pattern> ParsePattern(std::string_view text) {
  return Parse<Pattern>(kPatterns, text);
}

std::optional<WorkloadSize> ParseWorkloadSize(std::string_view text) {
  return Parse<WorkloadSize>(kSizes, text);
}

std::vector<SyntheticPart> MakeSynthetic(const SyntheticOptions& options) {
  MOSA_CHECK(options.width >= 1 && options.width <= kSyntheticWidthMax);
  return Maker(options).Make();
}

uint64_t StoredBytes(const std::vector<SyntheticPart>& parts, uint32_t copies) {
  uint64_t bytes = 0;
  for (const SyntheticPart& part : parts) {
    for (const SyntheticTask& task : part.tasks) {
      for (const Transfer& write : task.writes) {
        if (write.in_backend) continue;
        bytes += write.bytes * (write.path == kShared ? std::max<uint64_t>(1, copies) : 1);
      }
    }
  }
  return bytes;
}

}  // namespace mosa::predict
