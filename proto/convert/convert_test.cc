// Every message of the wire comes through the model and back unchanged, and whatever is out of
// bounds is refused by the name of its field.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/convert/admin.h"
#include "proto/convert/hints.h"
#include "proto/convert/messages.h"
#include "proto/convert/node.h"
#include "proto/convert/read_cost.h"
#include "proto/convert/residence.h"
#include "proto/convert/session.h"
#include "proto/convert/staging.h"
#include "proto/convert/status.h"
#include "tests/support/random_message.h"

namespace mosa {
namespace {

using ::testing::HasSubstr;

constexpr int kRounds = 2000;

uint64_t Seed() {
  const char* const given = std::getenv("MOSA_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261121;
}

// A random message of the wire becomes a value, the value the same message, and that one the same
// value. `beside` puts into the second what goes beside the value.
template <typename Wire, typename Back, typename Beside>
void RoundTrip(const Back& back, const Beside& beside) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(fmt::format("MOSA_TEST_SEED={}", seed));
  Rng rng(seed);
  for (int round = 0; round < kRounds; ++round) {
    Wire in;
    testing::MessageFiller(rng).Fill(in);
    const auto value = FromProto(in);
    ASSERT_TRUE(value.ok()) << MessageOf(value.status()) << "\n" << in.DebugString();
    Wire out = back(*value);
    beside(in, out);
    ASSERT_TRUE(google::protobuf::util::MessageDifferencer::Equivalent(in, out))
        << in.DebugString() << "became\n"
        << out.DebugString();
    ASSERT_TRUE(*FromProto(out) == *value);
  }
}

template <typename Wire, typename Back>
void RoundTrip(const Back& back) {
  RoundTrip<Wire>(back, [](const Wire&, Wire&) {});
}

TEST(Convert, RequestsComeBackUnchanged) {
  RoundTrip<v1::Request>([](const Request& value) {
    v1::Request out;
    ToProto(value, &out);
    return out;
  });
}

TEST(Convert, RepliesComeBackUnchanged) {
  RoundTrip<v1::Reply>([](const Reply& value) {
    v1::Reply out;
    ToProto(value, &out);
    return out;
  });
}

TEST(Convert, ClientMessagesComeBackUnchanged) {
  RoundTrip<v1::ClientMessage>(
      [](const ClientMessage& value) {
        v1::ClientMessage out;
        ToProto(value, &out);
        return out;
      },
      [](const v1::ClientMessage& in, v1::ClientMessage& out) {
        if (in.has_requests()) SetSpan(SpanOf(in), &out);
      });
}

TEST(Convert, ManagerMessagesComeBackUnchanged) {
  RoundTrip<v1::ManagerMessage>([](const ManagerMessage& value) {
    v1::ManagerMessage out;
    ToProto(value, &out);
    return out;
  });
}

TEST(Convert, NodeOrdersComeBackUnchanged) {
  RoundTrip<v1::ManagerToNode>([](const ManagerToNode& value) { return ToProto(value).at(0); });
}

TEST(Convert, StatusComesBackUnchanged) {
  RoundTrip<v1::GetClusterStatusResponse>([](const ClusterStatus& value) {
    v1::GetClusterStatusResponse out;
    ToProto(value, &out);
    return out;
  });
  RoundTrip<v1::FileStatus>([](const FileStatus& value) {
    v1::FileStatus out;
    ToProto(value, &out);
    return out;
  });
}

TEST(Convert, HintsAndLocationsComeBackUnchanged) {
  const auto one = [](const auto& value, auto out) {
    ToProto(value, &out);
    return out;
  };
  RoundTrip<v1::ListLocationsRequest>(
      [&](const LocationQuery& value) { return one(value, v1::ListLocationsRequest()); });
  RoundTrip<v1::ListLocationsResponse>([&](const std::vector<FileLocation>& value) {
    return one(value, v1::ListLocationsResponse());
  });
  RoundTrip<v1::ExplainHintsResponse>(
      [&](const HintExplanation& value) { return one(value, v1::ExplainHintsResponse()); });
  RoundTrip<v1::HintRule>([&](const HintRule& value) { return one(value, v1::HintRule()); });
}

TEST(Convert, WhatIsStagedComesBackUnchanged) {
  const auto one = [](const auto& value, auto out) {
    ToProto(value, &out);
    return out;
  };
  RoundTrip<v1::MarkStagedRequest>(
      [&](const std::vector<StagedFile>& value) { return one(value, v1::MarkStagedRequest()); });
  const std::vector<StageOutcome> outcomes = {StageOutcome::kStaged, StageOutcome::kChanged,
                                              StageOutcome::kBusy};
  EXPECT_EQ(*FromProto(one(outcomes, v1::MarkStagedResponse())), outcomes);
  RoundTrip<v1::ListUnstagedResponse>(
      [&](const UnstagedFiles& value) { return one(value, v1::ListUnstagedResponse()); });
  v1::MarkStagedRequest request;
  for (size_t i = 0; i <= kStagedFilesMax; ++i) request.add_files();
  EXPECT_THAT(MessageOf(FromProto(request).status()),
              HasSubstr("files has 10001 entries, at most 10000 are allowed"));
  v1::MarkStagedResponse response;
  response.add_outcomes(v1::STAGE_OUTCOME_UNSPECIFIED);
  EXPECT_THAT(MessageOf(FromProto(response).status()), HasSubstr("outcomes is 0"));
}

TEST(Convert, CostsOfReadingComeBackUnchanged) {
  const auto one = [](const auto& value, auto out) {
    ToProto(value, &out);
    return out;
  };
  const ReadCostQuery query{{{"/a", "/b\xff"}, {}, {"/c"}}, {"h1", "h2"}};
  EXPECT_EQ(*FromProto(one(query, v1::PredictReadsRequest())), query);
  const ReadCostAnswer answer{
      {"h1", "h2"},
      {{std::nullopt, {{1, {Nanoseconds(5), 6, 7}}, {0, {Nanoseconds(8), 0, 13}}}},
       {Failure{StatusCode::kNotFound, ErrorReason::kNoEntry, "there is no '/c'"}, {}}}};
  EXPECT_EQ(*FromProto(one(answer, v1::PredictReadsResponse())), answer);

  v1::PredictReadsRequest request;
  EXPECT_THAT(MessageOf(FromProto(request).status()), HasSubstr("name at least one set"));
  v1::ReadSet& set = *request.add_sets();
  for (size_t i = 0; i <= kReadPathsMax; ++i) set.add_paths("/f");
  EXPECT_THAT(MessageOf(FromProto(request).status()),
              HasSubstr("sets.paths has 10001 entries, at most 10000 are allowed"));
  request.Clear();
  for (size_t i = 0; i <= kReadSetsMax; ++i) request.add_sets();
  EXPECT_THAT(MessageOf(FromProto(request).status()), HasSubstr("sets has 2001 entries"));
  v1::PredictReadsResponse response;
  response.add_hosts("h1");
  response.add_sets()->add_hosts()->set_host(1);
  EXPECT_THAT(MessageOf(FromProto(response).status()), HasSubstr("host"));
}

TEST(Convert, RefusesHintsAndLocationsThatAreOutOfBounds) {
  v1::ListLocationsRequest locations;
  for (size_t i = 0; i <= kLocationPathsMax; ++i) locations.add_paths("/f");
  EXPECT_THAT(MessageOf(FromProto(locations).status()),
              HasSubstr("paths has 10001 entries, at most 10000 are allowed"));
  locations.mutable_paths()->RemoveLast();
  EXPECT_TRUE(FromProto(locations).ok());
  v1::ExplainHintsResponse explanation;
  explanation.add_hints()->set_name("ack");
  EXPECT_THAT(MessageOf(FromProto(explanation).status()), HasSubstr("hints.source is 0"));
  v1::HintRule rule;
  rule.add_hints()->set_name(std::string(256, 'n'));
  EXPECT_THAT(MessageOf(FromProto(rule).status()), HasSubstr("hint.name has 256 bytes"));
  rule.clear_hints();
  for (int i = 0; i < 65; ++i) rule.add_hints();
  EXPECT_THAT(MessageOf(FromProto(rule).status()), HasSubstr("rule.hints has 65 entries"));
}

// A registration as a node's stream carries it: one head, then pages.
TEST(Convert, RegistrationTravelsInPages) {
  for (const size_t count :
       {size_t{0}, size_t{1}, kObjectsPerPage, kObjectsPerPage + 1, 3 * kObjectsPerPage}) {
    NodeRegistration sent{.name = "n1",
                          .cluster_name = "c",
                          .incarnation = 77,
                          .address = "127.0.0.1:1",
                          .socket_path = "/s",
                          .host_identity = "h",
                          .limit_bytes = 10,
                          .used_bytes = 3,
                          .objects = {},
                          .sizes = {},
                          .aside = {}};
    for (uint64_t i = 0; i < count; ++i) {
      sent.objects.push_back(FileId{i * i});
      sent.sizes.push_back({.size_bytes = i, .allocated_bytes = 4096 * i, .modified = {-5}});
    }
    const std::vector<v1::NodeMessage> messages = ToProto(sent);
    EXPECT_EQ(messages.size(),
              1 + std::max<size_t>(1, (count + kObjectsPerPage - 1) / kObjectsPerPage));
    NodeRegistration received = std::get<NodeRegistration>(*FromProto(messages[0]));
    for (size_t i = 1; i < messages.size(); ++i) {
      const auto page = std::get<NodeObjectsPage>(*FromProto(messages[i]));
      EXPECT_EQ(page.last, i + 1 == messages.size());
      ASSERT_TRUE(AppendPage(page, received).ok());
    }
    EXPECT_TRUE(received == sent) << count << " objects";
  }
}

TEST(Convert, WhatIsPutAsideTravelsInPages) {
  for (const size_t count : {size_t{0}, size_t{1}, kAsidePerPage, 3 * kAsidePerPage + 1}) {
    NodeAside sent;
    for (uint64_t i = 0; i < count; ++i)
      sent.objects.push_back({.file = FileId{i + 7},
                              .size_bytes = i,
                              .allocated_bytes = 4096,
                              .modified = {3},
                              .data = {{0, 10, 0, 1}, {100, 5, 20, 3}}});
    NodeAside received;
    for (const v1::NodeMessage& message : ToProto(sent))
      ASSERT_TRUE(AppendPage(std::get<NodeAsidePage>(*FromProto(message)), received.objects).ok());
    EXPECT_TRUE(received == sent) << count << " objects";
  }
}

TEST(Convert, RefusesObjectsAndRangesThatCannotBe) {
  v1::NodeMessage message;
  v1::NodeObjects& objects = *message.mutable_objects();
  objects.add_file_ids(5);
  objects.add_size_bytes(1);
  EXPECT_THAT(MessageOf(FromProto(message).status()), HasSubstr("objects.size_bytes"));
  const struct {
    DataRuns runs;
    const char* expected;
  } rows[] = {{{0, 0, 0, 1}, "empty range"},
              {{0, 1, 0, 0}, "empty range"},
              {{0, 10, 5, 2}, "overlaps"},
              {{0, 1, kFileBytesMax, 2}, "beyond"},
              {{0, 1, 1, kDataRangesMax + 1}, "aside.data.count"},
              {{kFileBytesMax + 1, 1, 1, 1}, "aside.data.begin"}};
  for (const auto& row : rows) {
    const AsideObject object{.file = FileId{1},
                             .size_bytes = 0,
                             .allocated_bytes = 0,
                             .modified = {},
                             .data = {row.runs}};
    const auto sent = ToProto(NodeAside{{object}});
    EXPECT_THAT(MessageOf(FromProto(sent.at(0)).status()), HasSubstr(row.expected));
  }
  v1::ManagerToNode order;
  order.mutable_aside()->add_file_ids(1);
  EXPECT_THAT(MessageOf(FromProto(order).status()), HasSubstr("aside.action"));
}

TEST(Convert, HeartbeatComesBackUnchanged) {
  const NodeHeartbeat sent{.used_bytes = 1,
                           .limit_bytes = 2,
                           .object_count = 3,
                           .bytes_read_remote = 4,
                           .bytes_written_remote = 5,
                           .bytes_written_local = 6,
                           .descriptors_passed = 7,
                           .unsealed_objects = 8,
                           .corrupt_blocks = 9,
                           .corrupt_objects = {FileId{10}, FileId{11}},
                           .untold_objects = {FileId{21}},
                           .bulk = {.connections = 12,
                                    .connections_max = 13,
                                    .unproven = 14,
                                    .unproven_max = 15,
                                    .threads = 16,
                                    .threads_max = 17,
                                    .buffer_bytes = 18,
                                    .buffer_bytes_max = 19,
                                    .turned_away = 20},
                           .measurements = 22,
                           .drops_done = 23};
  v1::NodeMessage message;
  ToProto(sent, &message);
  EXPECT_TRUE(std::get<NodeHeartbeat>(*FromProto(message)) == sent);
}

TEST(Convert, CopyReportsComeBackUnchanged) {
  CopyReport sent{.file = FileId{3},
                  .order = 4,
                  .data_version = 5,
                  .copied_bytes = 6,
                  .fetched_bytes = 7,
                  .allocated_bytes = 8,
                  .done = true,
                  .failure = std::nullopt};
  for (int round = 0; round < 2; ++round) {
    v1::NodeMessage message;
    ToProto(sent, &message);
    EXPECT_TRUE(std::get<CopyReport>(*FromProto(message)) == sent);
    sent.done = false;
    sent.failure = Failure{.code = StatusCode::kResourceExhausted,
                           .reason = ErrorReason::kNoSpace,
                           .message = "node b has 0 B free"};
  }
}

TEST(Convert, RefusesCopyOrdersThatArithmeticCannotRelyOn) {
  v1::ManagerToNode message;
  v1::CopyOrder& order = *message.mutable_copy();
  EXPECT_THAT(MessageOf(FromProto(message).status()), HasSubstr("copy.sources"));
  order.mutable_sources()->set_chunk_bytes(1 << 20);
  EXPECT_TRUE(FromProto(message).ok());
  v1::Segment& segment = *order.mutable_sources()->add_segments();
  EXPECT_THAT(MessageOf(FromProto(message).status()), HasSubstr("segment.node_ids"));
  segment.set_width(2);
  segment.add_node_ids(0);  // Nothing to fetch there.
  segment.add_node_ids(7);
  EXPECT_TRUE(FromProto(message).ok());
  order.set_size_bytes(kFileBytesMax + 1);
  EXPECT_THAT(MessageOf(FromProto(message).status()), HasSubstr("copy.size_bytes"));
}

TEST(Convert, LongOrdersTravelAsSeveral) {
  DropObjectsOrder sent{.files = {}, .number = 7};
  for (uint64_t i = 1; i <= kObjectsPerPage + 5; ++i) sent.files.push_back(FileId{i});
  sent.generations = {{FileId{1}, 5}, {sent.files.back(), 6}};
  std::vector<FileId> received;
  std::map<FileId, uint64_t> generations;
  std::vector<uint64_t> numbers;
  for (const v1::ManagerToNode& message : ToProto(ManagerToNode(NodeOrder(sent)))) {
    const auto order = std::get<NodeOrder>(*FromProto(message));
    const auto& part = std::get<DropObjectsOrder>(order);
    received.insert(received.end(), part.files.begin(), part.files.end());
    numbers.push_back(part.number);
    generations.insert(part.generations.begin(), part.generations.end());
  }
  EXPECT_TRUE(received == sent.files);
  EXPECT_TRUE(generations == sent.generations);
  EXPECT_EQ(numbers, (std::vector<uint64_t>{0, 7})) << "it is carried out when its end is";
  v1::ManagerToNode message = ToProto(ManagerToNode(NodeOrder(sent))).front();
  auto* const generations_sent = message.mutable_drop_objects()->mutable_generations();
  for (const FileId wrong : {FileId{UINT64_MAX}, FileId{1}}) {
    generations_sent->Add()->set_file_id(wrong.value);
    EXPECT_THAT(MessageOf(FromProto(message).status()), HasSubstr("drop_objects.generations"));
    generations_sent->RemoveLast();
    EXPECT_TRUE(FromProto(message).ok());
  }
}

// ---- what is refused

struct RefusedRequest {
  const char* what;
  std::function<void(v1::Request&)> make;
  const char* field;
  ErrorReason reason = ErrorReason::kInvalid;
};

void Check(const RefusedRequest& row) {
  SCOPED_TRACE(row.what);
  v1::Request request;
  row.make(request);
  const Result<Request> value = FromProto(request);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(value.status()), HasSubstr(row.field));
  EXPECT_EQ(ReasonOf(value.status()), row.reason);
}

TEST(Convert, RefusesRequestsThatAreOutOfBounds) {
  const RefusedRequest rows[] = {
      {"no alternative", [](v1::Request&) {}, "request"},
      {"a name of 256 bytes",
       [](v1::Request& r) { r.mutable_lookup()->set_name(std::string(256, 'n')); }, "lookup.name",
       ErrorReason::kNameTooLong},
      {"an xattr value of more than 64 KiB",
       [](v1::Request& r) { r.mutable_set_xattr()->set_value(std::string(65'537, 'v')); },
       "set_xattr.value", ErrorReason::kArgumentTooBig},
      {"no type", [](v1::Request& r) { r.mutable_make()->set_name("a"); }, "make.type"},
      {"a type of the future",
       [](v1::Request& r) { r.mutable_make()->set_type(static_cast<v1::FileType>(8)); },
       "make.type"},
      {"mode bits of the file type",
       [](v1::Request& r) {
         r.mutable_make()->set_type(v1::FILE_TYPE_REGULAR);
         r.mutable_make()->set_permissions(0100644);
       },
       "make.permissions"},
      {"a negative size",
       [](v1::Request& r) { r.mutable_commit()->set_size_bytes(static_cast<uint64_t>(-1)); },
       "commit.size_bytes"},
      {"too many inline bytes",
       [](v1::Request& r) {
         r.mutable_commit()->set_inline_data(std::string(kInlineBytesMax + 1, 'i'));
       },
       "commit.inline_data"},
      {"a lock that ends before it begins",
       [](v1::Request& r) {
         r.mutable_set_lock()->mutable_lock()->set_type(v1::LOCK_TYPE_SHARED);
         r.mutable_set_lock()->mutable_lock()->set_begin_bytes(2);
         r.mutable_set_lock()->mutable_lock()->set_last_bytes(1);
       },
       "lock.begin_bytes"},
      {"no lock", [](v1::Request& r) { r.mutable_get_lock(); }, "get_lock.lock"},
      {"a grant of more than 2^63 bytes",
       [](v1::Request& r) { r.mutable_grant()->set_wanted_bytes(uint64_t{1} << 63); },
       "grant.wanted_bytes"},
      {"too many nodes",
       [](v1::Request& r) {
         for (uint32_t i = 0; i < 5000; ++i) r.mutable_relocate()->add_full_node_ids(i);
       },
       "relocate.full_node_ids"},
      {"half a page", [](v1::Request& r) { r.mutable_relocate()->set_begin_bytes(2048); },
       "relocate.end_bytes"},
      {"a range that ends before it begins",
       [](v1::Request& r) { r.mutable_relocate()->set_begin_bytes(4096); }, "relocate.end_bytes"},
  };
  for (const RefusedRequest& row : rows) Check(row);
}

TEST(Convert, RefusesLayoutsThatArithmeticCannotRelyOn) {
  const auto refuse = [](const char* field, const std::function<void(v1::Layout&)>& change) {
    v1::Reply reply;
    v1::Layout& layout = *reply.mutable_bind()->mutable_access()->mutable_layout();
    layout.set_chunk_bytes(1 << 20);
    v1::Segment& segment = *layout.add_segments();
    segment.set_width(1);
    segment.add_node_ids(1);
    ASSERT_TRUE(FromProto(reply).ok());
    change(layout);
    const Result<Reply> value = FromProto(reply);
    ASSERT_FALSE(value.ok());
    EXPECT_THAT(MessageOf(value.status()), HasSubstr(field));
  };
  refuse("segment.node_ids", [](v1::Layout& l) { l.mutable_segments(0)->set_width(0); });
  refuse("segment.node_ids", [](v1::Layout& l) { l.mutable_segments(0)->set_width(2); });
  refuse("segment.node_ids", [](v1::Layout& l) { l.mutable_segments(0)->clear_node_ids(); });
  refuse("layout.segments", [](v1::Layout& l) { l.mutable_segments(0)->set_begin_bytes(4096); });
  refuse("layout.segments", [](v1::Layout& l) {
    *l.add_segments() = l.segments(0);
    l.mutable_segments(1)->set_begin_bytes(4097);
  });
  refuse("layout.segments", [](v1::Layout& l) { *l.add_segments() = l.segments(0); });
  refuse("layout.chunk_bytes", [](v1::Layout& l) { l.set_chunk_bytes(0); });
}

TEST(Convert, RefusesEnvelopesThatAreTooLong) {
  v1::ClientMessage message;
  message.mutable_requests()->set_id(1);
  for (size_t i = 0; i <= kEnvelopeRequestsMax; ++i) {
    message.mutable_requests()->add_requests()->mutable_stat_filesystem();
  }
  const Result<ClientMessage> value = FromProto(message);
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(MessageOf(value.status()), HasSubstr("requests.requests has 4097 entries"));
}

TEST(Convert, RefusesTooManyRequestsGivenUp) {
  v1::ClientMessage message;
  for (size_t i = 0; i < kAbandonedMax; ++i) message.mutable_requests()->add_abandoned_ids(i + 1);
  EXPECT_TRUE(FromProto(message).ok());
  message.mutable_requests()->add_abandoned_ids(0);
  EXPECT_THAT(MessageOf(FromProto(message).status()),
              HasSubstr("requests.abandoned_ids has 4097 entries"));
}

TEST(Convert, RefusesGenerationsThatNobodyCanHaveCounted) {
  v1::Request request;
  request.mutable_commit()->set_generation(UINT64_MAX);
  EXPECT_THAT(MessageOf(FromProto(request).status()), HasSubstr("commit.generation"));
  request.mutable_set_attributes()->set_generation(UINT64_MAX);
  EXPECT_THAT(MessageOf(FromProto(request).status()), HasSubstr("set_attributes.generation"));
  v1::Reply reply;
  reply.mutable_bind()->mutable_access()->mutable_layout();
  reply.mutable_bind()->mutable_access()->set_generation(UINT64_MAX);
  EXPECT_THAT(MessageOf(FromProto(reply).status()), HasSubstr("access.generation"));
}

TEST(Convert, RefusesClientZeroAndNamelessNodes) {
  v1::ClientMessage client;
  client.mutable_start();
  EXPECT_THAT(MessageOf(FromProto(client).status()), HasSubstr("start.client_id"));
  v1::NodeMessage node;
  node.mutable_registration()->set_address("127.0.0.1:1");
  EXPECT_THAT(MessageOf(FromProto(node).status()), HasSubstr("registration.name"));
}

ResidenceSnapshot SomeResidence() {
  ResidenceSnapshot snapshot{.component = "storage",
                             .started = {1'000},
                             .taken = {2'000},
                             .rows = {{"read", "h1", {}}, {"read.object", "", {}}},
                             .amounts = {{"used_bytes", 7, false}, {"bytes_read", 9, true}}};
  for (ResidenceRow& row : snapshot.rows)
    for (const Duration time : {Microseconds(3), Milliseconds(20), Seconds(900)})
      row.times.Add(time);
  return snapshot;
}

TEST(Convert, ResidenceTimesComeBackUnchanged) {
  const ResidenceSnapshot snapshot = SomeResidence();
  v1::ResidenceSnapshot wire;
  ToProto(snapshot, &wire);
  EXPECT_TRUE(FromProto(wire).value() == snapshot);
  const ResidenceReport report = ReportOf({.query = 5}, snapshot);
  EXPECT_EQ(report.query, 5U);
  v1::ResidenceSnapshot reported;
  ASSERT_TRUE(reported.ParseFromString(report.snapshot));
  EXPECT_TRUE(FromProto(reported).value() == snapshot);
}

TEST(Convert, RefusesResidenceTimesWithoutSense) {
  const auto refuse = [](const std::string& field,
                         const std::function<void(v1::ResidenceRow&)>& spoil) {
    v1::ResidenceSnapshot wire;
    ToProto(SomeResidence(), &wire);
    spoil(*wire.mutable_rows(0));
    EXPECT_THAT(MessageOf(FromProto(wire).status()), HasSubstr(field));
  };
  refuse("rows.counts", [](v1::ResidenceRow& row) { row.add_counts(1); });
  refuse("rows.buckets", [](v1::ResidenceRow& row) { row.set_buckets(0, kDurationBuckets); });
  refuse("rows.buckets", [](v1::ResidenceRow& row) { row.set_buckets(1, row.buckets(0)); });
  refuse("rows.sum_ns", [](v1::ResidenceRow& row) { row.set_sum_ns(UINT64_MAX); });
  refuse("rows.name", [](v1::ResidenceRow& row) { row.set_name(std::string(300, 'x')); });
}

TEST(Convert, AResidenceReportThatIsTooLongLosesItsLastRows) {
  ResidenceSnapshot snapshot = SomeResidence();
  snapshot.rows.resize(1);
  snapshot.rows[0].times.counts.fill(uint64_t{1} << 62);
  snapshot.rows.resize(kResidenceRowsMax, snapshot.rows[0]);
  const ResidenceReport report = ReportOf({.query = 1}, snapshot);
  EXPECT_LE(report.snapshot.size(), kResidenceBytesMax);
  v1::ResidenceSnapshot reported;
  ASSERT_TRUE(reported.ParseFromString(report.snapshot));
  EXPECT_GT(reported.rows_size(), 100);
  EXPECT_EQ(reported.component(), "storage");
  EXPECT_TRUE(FromProto(reported).value().is_truncated);
}

TEST(Convert, ErrorsKeepCodeReasonAndSentence) {
  for (int code = 1; code <= 16; ++code) {
    const Failure failure{.code = static_cast<StatusCode>(code),
                          .reason = ErrorReason::kNotEmpty,
                          .message = "directory 7 holds 3 entries"};
    EXPECT_TRUE(FailureOf(StatusOf(failure)) == failure);
    EXPECT_TRUE(FailureOf(FromGrpc(ToGrpc(StatusOf(failure)))) == failure);
  }
  EXPECT_TRUE(FromGrpc(ToGrpc(OkStatus())).ok());
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::DO_NOT_USE, "odd")).code(),
            StatusCode::kUnknown);
}

}  // namespace
}  // namespace mosa
