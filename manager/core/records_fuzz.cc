// Any bytes as a record of the durable image, as a key, and as a hint: a value or an error, never a
// crash. What is read must come back from its own encoding.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "manager/core/hint_rules.h"
#include "manager/core/hints.h"
#include "manager/core/manager_core.h"
#include "manager/core/records.h"

namespace mosa::manager {
namespace {

template <typename T>
void ReadBack(std::string_view bytes) {
  const auto record = Decode<T>("key", bytes);
  if (!record.ok()) return;
  const auto again = Decode<T>("key", Encode(*record));
  MOSA_CHECK(again.ok() && *again == *record);
}

void ReadAnything(std::string_view bytes) {
  ReadBack<ClusterRecord>(bytes);
  ReadBack<InodeRecord>(bytes);
  ReadBack<NodeRecord>(bytes);
  ReadBack<NodeNotesRecord>(bytes);
  ReadBack<WriterBoundsRecord>(bytes);
  ReadBack<CutRepliesRecord>(bytes);
  ReadBack<SessionRecord>(bytes);
  ReadBack<RepliesRecord>(bytes);
  ReadBack<EntryRecord>(bytes);
  ReadBack<GroupRecord>(bytes);
  ReadBack<RuleRecord>(bytes);
  ReadBack<StagedRecord>(bytes);
  ReadBack<OwnerRecord>(bytes);
  ReadBack<RecoveryRecord>(bytes);

  const size_t split = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % bytes.size();
  ManagerCore core{ManagerOptions{}};
  if (core.LoadRecord(bytes.substr(0, split), bytes.substr(split)).ok())
    core.FinishLoad(Time{1}).IgnoreError();  // A lone record rarely makes a whole image.

  const AttributeName name = ClassifyAttribute(bytes.substr(0, split));
  ParseHint(name.hint, name.alias, bytes.substr(split)).IgnoreError();
  for (const std::string_view hint : {"pattern", "placement", "chunk_size", "lifetime", "ack"}) {
    const auto canonical = ParseHint(hint, false, bytes);
    if (canonical.ok()) MOSA_CHECK(*ParseHint(hint, false, *canonical) == *canonical);
  }
  if (const auto hints = DecodeHints(bytes); hints.ok()) {
    MOSA_CHECK(*DecodeHints(EncodeHints(*hints)) == *hints);
    Evaluate(*hints, {"stripe", 1 << 20, 0});
    Explain(*hints, {"stripe", 1 << 20, 0});
  }

  const auto rule = HintRules::Check(bytes.substr(split), {{"strict", "1"}});
  if (!rule.ok()) return;
  HintRules rules;
  rules.Add(*rule);
  const std::string path = "/" + std::string(bytes.substr(0, split));
  if (!rules.For(path).empty()) MOSA_CHECK(rules.MaySettleIn(path.substr(0, path.rfind('/'))));
}

}  // namespace
}  // namespace mosa::manager

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mosa::manager::ReadAnything({reinterpret_cast<const char*>(data), size});
  return 0;
}
