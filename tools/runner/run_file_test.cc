// The parser of records: what it takes, what it refuses, and with which words.
#include "tools/runner/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mosa::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json Good() {
  return json::parse(
      R"({"version": 1, "versions": {"mosa": "3"}, "system": "dss", "rules": "r.yaml",
    "workflow": {"name": "w", "path": "w.yaml"}, "outcome": "done", "start": 100.5, "end": 103,
    "turnaround_seconds": 2.5, "hosts_lost": ["b"],
    "hosts": [{"name": "a", "slots": 2, "mount": "/m", "link_bytes_per_second": 9}],
    "tasks": [{"id": "t", "stage": "s", "state": "done", "kept": false, "digest": "d",
      "command": ["x"], "inputs": [{"path": "i"}],
      "outputs": [{"path": "o", "size_bytes": 5, "mtime_ns": -1, "nodes": {"a": 5},
                   "chunk_bytes": 4, "hints": {"pattern": "local"}}],
      "host": "a", "start": 101, "end": 102, "exit_code": 0, "input_bytes_local": 3,
      "input_bytes_remote": 4,
      "attempts": [{"host": "a", "start": 101, "end": 102, "exit_code": 0, "processor_s": 0.25,
        "placed": "p", "input_bytes_local": 3, "input_bytes_remote": 4, "stdout": "1",
        "stderr": "2"}]}],
    "machines": [{"hosts": ["a"], "runner": true, "manager": false, "processors": 2,
      "seconds": 3.0, "busy_s": 1.0, "stolen_s": 0.0, "daemons_s": 0.0, "tasks_s": 0.5,
      "others_s": 0.25}],
    "residence": {"cluster": "c", "rows_left_out": 7, "daemons": [{"component": "mount",
      "host": "a", "totals": {"bytes_read_remote": 6},
      "requests": [{"class": "read", "peer": "", "count": 2, "sum_ns": 8}]}]}})");
}

Result<RunFile> Parse(const json& record, CutFiles cut = CutFiles::kRefuse) {
  return ParseRunFile(record.dump(), "r.json", cut);
}

TEST(RunFile, IsWrittenAsItIsRead) {
  const Result<RunFile> run = Parse(Good());
  ASSERT_TRUE(run.ok()) << MessageOf(run.status());
  EXPECT_EQ(ToJson(*run), Good());
  EXPECT_EQ(run->tasks[0].attempts[0].processor, Milliseconds(250));
  EXPECT_FALSE(run->tasks[0].inputs[0].facts);
  EXPECT_EQ(run->daemons[0].bytes_read_remote, 6U);
  EXPECT_EQ(run->daemons[0].requests[0].sum_ns, 8U);
  EXPECT_EQ(run->rows_left_out, 7U);
}

struct Row {
  const char* at;      // A JSON pointer into Good().
  const char* value;   // Put there; null: the field is removed.
  const char* expect;  // In the error.
};
constexpr char kMissing[] = "is missing", kList[] = "is not a list", kText[] = "is not a text";
constexpr char kWhole[] = "is not a possible whole number", kObject[] = "is not an object";
constexpr char kNumber[] = "is not a number", kFlag[] = "is neither true nor false";

class FaultyRecord : public testing::TestWithParam<Row> {};

TEST_P(FaultyRecord, IsRefusedByFileAndField) {
  json record = Good();
  const json::json_pointer at(GetParam().at);
  if (GetParam().value != nullptr)
    record[at] = json::parse(GetParam().value);
  else
    record[at.parent_pointer()].erase(at.back());
  const Result<RunFile> run = Parse(record);
  EXPECT_EQ(run.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(run.status()), HasSubstr("r.json"));
  EXPECT_THAT(MessageOf(run.status()), HasSubstr(GetParam().expect));
}

INSTANTIATE_TEST_SUITE_P(
    , FaultyRecord,
    testing::Values(
        Row{"/version", nullptr, "'version' is missing"},
        Row{"/version", "7", "is a record of version 7, but this program reads only version 1"},
        Row{"/version", "\"1\"", "'version' is not a possible whole number"},
        Row{"/version", "4294967297", "'version' is not a possible whole number"},
        Row{"/workflow", nullptr, kMissing}, Row{"/workflow", "3", kObject},
        Row{"/workflow/path", "3", "'workflow.path' is not a text"},
        Row{"/system", nullptr, kMissing}, Row{"/system", "\"nfs\"", "neither 'wass' nor 'dss'"},
        Row{"/start", nullptr, kMissing}, Row{"/start", "\"now\"", "'start' is not a number of"},
        Row{"/hosts", nullptr, kMissing}, Row{"/hosts", "[]", "the run has no hosts"},
        Row{"/hosts/0/name", nullptr, "'hosts[0].name' is missing"},
        Row{"/hosts/0/slots", "-1", kWhole}, Row{"/hosts/0/slots", "4294967296", kWhole},
        Row{"/versions", "{\"mosa\": 1}", "has a value of another type"},
        Row{"/outcome", "null", kText}, Row{"/end", "{}", "'end' is not"},
        Row{"/rules", "1", kText}, Row{"/turnaround_seconds", "\"long\"", kNumber},
        Row{"/hosts_lost", "3", "'hosts_lost' is not a list of texts"},
        Row{"/tasks", nullptr, kMissing}, Row{"/tasks", "5", kList},
        Row{"/tasks/0", "null", "'tasks[0]' is not an object"},
        Row{"/tasks/0/id", nullptr, "'tasks[0].id' is missing"}, Row{"/tasks/0/id", "5", kText},
        Row{"/tasks/0/stage", nullptr, kMissing}, Row{"/tasks/0/state", nullptr, kMissing},
        Row{"/tasks/0/digest", nullptr, kMissing}, Row{"/tasks/0/kept", "1", kFlag},
        Row{"/tasks/0/command", nullptr, kMissing}, Row{"/tasks/0/command", "[1]", kList},
        Row{"/tasks/0/inputs", nullptr, kMissing}, Row{"/tasks/0/outputs", "{}", kList},
        Row{"/tasks/0/inputs/0/path", nullptr, "'tasks[0].inputs[0].path' is missing"},
        Row{"/tasks/0/attempts", "\"x\"", kList}, Row{"/tasks/0/attempts", nullptr, kMissing},
        Row{"/tasks/0/attempts/0/host", nullptr, kMissing},
        Row{"/tasks/0/attempts/0/start", nullptr, "'tasks[0].attempts[0].start' is missing"},
        Row{"/tasks/0/attempts/0/end", nullptr, kMissing},
        Row{"/tasks/0/attempts/0/exit_code", "\"0\"", "is not a possible whole number"},
        Row{"/tasks/0/attempts/0/processor_s", "-1", "is not a possible number of seconds"},
        Row{"/machines", "{}", kList}, Row{"/machines/0/seconds", nullptr, kMissing},
        Row{"/machines/0/hosts", "\"a\"", kList}, Row{"/machines/0/processors", "-2", kWhole},
        Row{"/residence", "[]", kObject}, Row{"/residence/daemons", "1", kList},
        Row{"/residence/daemons/0/host", nullptr, "'residence.daemons[0].host' is missing"}));

// A few impossible numbers cost what they concern, not the record.
TEST(RunFile, KeepsTheRestWhereNumbersAreImpossible) {
  for (const char* value : {"-1", "\"many\"", "1152921504606846977"}) {
    json record = Good();
    record["/tasks/0/outputs/0/size_bytes"_json_pointer] = json::parse(value);
    record["/residence/daemons/0/requests/0/count"_json_pointer] = json::parse(value);
    record["/residence/daemons/0/totals/bytes_read_remote"_json_pointer] = json::parse(value);
    const Result<RunFile> run = Parse(record);
    ASSERT_TRUE(run.ok()) << MessageOf(run.status());
    EXPECT_FALSE(run->tasks[0].outputs[0].is_possible || run->tasks[0].outputs[0].facts);
    EXPECT_FALSE(run->daemons[0].is_possible || run->daemons[0].bytes_read_remote);
  }
}

TEST(RunFile, IsReadAsFarAsItGoesIfAsked) {
  json record = Good();
  record["tasks"].push_back(json{{"id", 3}});
  record["tasks"].push_back(nullptr);
  record["outcome"] = 5;
  const Result<RunFile> faulty = Parse(record, CutFiles::kReadAsFarAsTheyGo);
  ASSERT_TRUE(faulty.ok());
  EXPECT_EQ(faulty->tasks.size(), 2U);
  EXPECT_THAT(MessageOf(CheckFaults(*faulty)),
              HasSubstr("'outcome' is not a text (9 more faults)"));
  const std::string text = record.dump(1);
  const std::string cut = text.substr(0, text.rfind("\"id\""));
  EXPECT_THAT(MessageOf(ParseRunFile(cut, "r.json", CutFiles::kRefuse).status()),
              HasSubstr("r.json is not a complete record of a run: "));
  const auto rest = ParseRunFile(cut, "r.json", CutFiles::kReadAsFarAsTheyGo);
  ASSERT_TRUE(rest.ok()) << MessageOf(rest.status());
  EXPECT_TRUE(rest->is_cut);
  EXPECT_EQ(rest->tasks.size(), 1U);
  for (const char* none : {"", "{}", "[]", "7", "{\"hosts\": [{\"na"})
    EXPECT_EQ(ParseRunFile(none, "", CutFiles::kReadAsFarAsTheyGo).status().code(),
              StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mosa::cli
