#include "predictor/envelope/classify.h"

#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

using enum EnvelopeOperation;

constexpr uint64_t kSmall = 1000;
constexpr uint64_t kLarge = 16'000'000;

void Set(Envelope& envelope, EnvelopeCell cell, double rate) {
  envelope.cells[cell] = {rate, rate, rate, 0};
}

// GPFS on 32 clients, from section 4.2 of the MTC Envelope paper: small files have the highest
// throughput, large ones the highest bandwidth.
Envelope Gpfs() {
  constexpr uint32_t clients = 32;
  Envelope envelope;
  envelope.name = "gpfs";
  const struct {
    EnvelopeOperation operation;
    double operations_per_second;
    double bytes_per_second;
  } rows[] = {{kRead, 1624, 2123e6}, {kSharedRead, 3489, 4118e6}, {kWrite, 1481, 3429e6}};
  Set(envelope, {kCreate, 0, clients}, 1367);
  Set(envelope, {kOpen, 0, clients}, 1974);
  for (const auto& row : rows) {
    Set(envelope, {row.operation, kSmall, clients}, row.operations_per_second);
    Set(envelope, {row.operation, kLarge, clients}, row.bytes_per_second / kLarge);
  }
  return envelope;
}

// A stage of Table 1; all its files have one size.
struct TableOne {
  const char* name;
  uint64_t tasks, files_read, files_written;
  double gigabytes_read, gigabytes_written;
  uint64_t shared_files;  // Small files, counted in `files_read`, that all tasks read.
};

StageProfile ProfileOf(const TableOne& row) {
  StageProfile stage;
  stage.name = row.name;
  stage.tasks = row.tasks;
  stage.files_read = row.files_read;
  stage.files_written = row.files_written;
  stage.tasks_creating = std::min(row.tasks, row.files_written);
  const uint64_t own = row.files_read - row.shared_files;
  const auto size = [](double gigabytes, uint64_t files) {
    return static_cast<uint64_t>(gigabytes * 1e9 / static_cast<double>(files));
  };
  stage.transfers[{kRead, size(row.gigabytes_read, own)}] = own;
  if (row.shared_files > 0) stage.transfers[{kSharedRead, 300}] = row.shared_files;
  stage.transfers[{kWrite, size(row.gigabytes_written, row.files_written)}] = row.files_written;
  return stage;
}

struct TableFour {
  TableOne stage;
  double read_metadata, write_metadata;  // Per cent.
  Bound read_bound, write_bound;
  double tolerance;
};
constexpr Bound kBw = Bound::kBandwidth, kTput = Bound::kThroughput;
// Table 4 from Table 1 and the figures of section 4.2. Tolerances allow for Table 1's rounding. In
// mProject, the second input of each task is a shared file (Table 2 has as many N-to-1 as 1-to-1
// spikes). For merge the paper counted one open for each of its 16 tasks instead of its 1,008
// files, and for blastall fewer than its 4,032.
constexpr TableFour kTableFour[] = {
    {{"mProject", 1319, 2638, 2594, 3.2, 10.9, 1319}, 69.7, 37.4, kBw, kBw, 1.3},
    {{"mDiff", 3883, 7766, 3883, 2.2, 0.001, 0}, 82.0, 52.0, kTput, kTput, 0.4},
    {{"mFit", 3883, 7766, 7746, 35.8, 3.6, 0}, 23.3, 52.0, kBw, kTput, 0.2},
    {{"mBack", 1297, 1297, 1297, 5.8, 5.4, 0}, 24.1, 37.7, kBw, kBw, 0.3},
    {{"formatdb", 63, 63, 252, 4.0, 4.7, 0}, 1.7, 11.9, kBw, kBw, 0.2},
    {{"blastall", 1008, 4032, 1008, 64.5, 0.9, 0}, 6.0, 52.0, kBw, kTput, 0.8},
    {{"merge", 16, 16, 16, 0.9, 0.06, 0}, 1.9, 40.8, kBw, kBw, 0.8},
    {{"extract", 393, 1179, 786, 41.3, 40.1, 0}, 3.1, 4.7, kBw, kBw, 0.2},
    {{"seis", 11868, 35604, 11868, 2655.2, 0.3, 0}, 1.4, 52.0, kBw, kTput, 0.2},
    {{"peakGM", 11868, 11868, 11868, 0.4, 0.03, 0}, 82.4, 52.0, kTput, kTput, 0.3},
};

TEST(Classify, DecomposesThePapersStagesAsItsTableFour) {
  for (const TableFour& row : kTableFour) {
    SCOPED_TRACE(row.stage.name);
    const auto forecast = Classify(ProfileOf(row.stage), Gpfs(), 32);
    ASSERT_TRUE(forecast.ok()) << forecast.status();
    EXPECT_EQ(forecast->clients, std::min<uint64_t>(32, row.stage.tasks));
    EXPECT_EQ(forecast->rated_clients, 32U);
    EXPECT_NEAR(100 * forecast->input.metadata_share, row.read_metadata, row.tolerance);
    EXPECT_NEAR(100 * forecast->output.metadata_share, row.write_metadata, row.tolerance);
    EXPECT_EQ(forecast->input.transfer_bound, row.read_bound);
    EXPECT_EQ(forecast->output.transfer_bound, row.write_bound);
  }
}

// Section 4.1: 8,192 tasks that write 16 MB each at 3,500 MB/s take 37 seconds.
TEST(Classify, TakesAsLongAsThePapersExample) {
  Envelope envelope;
  for (const EnvelopeOperation operation : kEnvelopeOperations)
    Set(envelope, {operation, MovesBytes(operation) ? kLarge : 0, 64}, 1e9);
  Set(envelope, {kWrite, kSmall, 64}, 1e6);
  Set(envelope, {kWrite, kLarge, 64}, 3500e6 / kLarge);
  StageProfile stage;
  stage.tasks = stage.files_written = stage.tasks_creating = 8192;
  stage.transfers[{kWrite, kLarge}] = 8192;
  const auto forecast = Classify(stage, envelope, 64);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  EXPECT_EQ(forecast->rounds, 128U);
  EXPECT_NEAR(forecast->output.coarse_seconds, 37.4, 0.1);
  EXPECT_NEAR(forecast->output.fine_seconds, 37.4, 0.1);
  EXPECT_EQ(forecast->output.bound, Bound::kBandwidth);
  EXPECT_EQ(forecast->input.bound, Bound::kNothing);
  EXPECT_EQ(forecast->input.coarse_seconds, 0);
}

TEST(Classify, CountsTheLastRoundAsAFullOne) {
  // Equation 2: ceil(N/C) * (C/T_create + C/T_w).
  Envelope envelope = Gpfs();
  StageProfile stage;
  stage.tasks = stage.files_written = stage.tasks_creating = 33;
  stage.transfers[{kWrite, 0}] = 33;
  const auto forecast = Classify(stage, envelope, 32);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  EXPECT_EQ(forecast->rounds, 2U);
  EXPECT_NEAR(forecast->output.coarse_seconds, 2 * (32 / 1367.0 + 32 / 1481.0), 1e-9);
}

TEST(Classify, AddsUpTheTwoKindsOfReads) {
  // Equation 3; each term is bound by its own larger part.
  StageProfile stage;
  stage.tasks = 32;
  stage.files_read = 64;
  stage.transfers[{kRead, kLarge}] = 32;
  stage.transfers[{kSharedRead, kSmall}] = 32;
  const auto forecast = Classify(stage, Gpfs(), 32);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  EXPECT_NEAR(forecast->input.coarse_seconds, 32 * kLarge / 2123e6 + 32 / 3489.0, 1e-9);
  EXPECT_NEAR(forecast->input.fine_seconds, forecast->input.coarse_seconds, 1e-9)
      << "both sizes are measured, and have the highest rates";
  EXPECT_EQ(forecast->input.bound, Bound::kBandwidth);
  EXPECT_EQ(forecast->input.operation, kRead);
}

TEST(Classify, NamesABoundThatTheLongerKindOfReadHas) {
  Envelope envelope = Gpfs();
  const auto set = [&](EnvelopeOperation operation, double files, double bytes) {
    Set(envelope, {operation, kSmall, 32}, files);
    Set(envelope, {operation, kLarge, 32}, bytes / kLarge);
  };
  set(kRead, 3.2, 32 * 1e6 / 9);         // 10 s for its files, 9 s for its bytes.
  set(kSharedRead, 1000, 32 * 1e6 / 5);  // 5 s for its bytes.
  StageProfile stage;
  stage.tasks = 32;
  stage.files_read = 64;
  stage.transfers[{kRead, 1'000'000}] = 32;
  stage.transfers[{kSharedRead, 1'000'000}] = 32;
  const auto forecast = Classify(stage, envelope, 32);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  EXPECT_NEAR(forecast->input.coarse_seconds, 10 + 5, 1e-9);
  EXPECT_EQ(forecast->input.transfer_bound, Bound::kThroughput);
  EXPECT_EQ(forecast->input.operation, kRead);
}

TEST(Classify, FineModelGoesByTheFilesSize) {
  // Half way between two sizes, both rates are means; one creation per task.
  StageProfile stage;
  stage.tasks = stage.tasks_creating = 32;
  stage.files_written = 64;
  constexpr uint64_t kMiddle = (kSmall + kLarge) / 2;
  stage.transfers[{kWrite, kMiddle}] = 64;
  const auto forecast = Classify(stage, Gpfs(), 32);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  const double bytes_per_second = (1481.0 * kSmall + 3429e6) / 2;
  EXPECT_NEAR(forecast->output.fine_seconds, 32 / 1367.0 + 64 * kMiddle / bytes_per_second, 1e-9);
  EXPECT_NEAR(forecast->output.coarse_seconds, 64 / 1367.0 + 64 * kMiddle / 3429e6, 1e-9);
}

TEST(Classify, NamesConcurrencyWhereFewerClientsGetMoreDone) {
  Envelope envelope;
  for (const uint32_t clients : {1U, 8U, 32U, 64U}) {
    for (const EnvelopeOperation operation : kEnvelopeOperations)
      Set(envelope, {operation, MovesBytes(operation) ? kSmall : 0, clients}, clients * 10.0);
  }
  envelope.cells[{kCreate, 0, 32}] = {300, 250, 350, 0.9};
  envelope.cells[{kCreate, 0, 64}] = {200, 150, 240, 0.9};
  StageProfile stage;
  stage.tasks = stage.files_written = stage.tasks_creating = 1000;
  stage.transfers[{kWrite, 0}] = 1000;
  auto forecast = Classify(stage, envelope, 64);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  EXPECT_EQ(forecast->output.bound, Bound::kMetadata);
  EXPECT_EQ(forecast->output.operation, kCreate);
  EXPECT_EQ(forecast->output.better_clients, 32U);
  envelope.cells[{kCreate, 0, 64}].high = 260;
  forecast = Classify(stage, envelope, 64);
  ASSERT_TRUE(forecast.ok()) << forecast.status();
  EXPECT_EQ(forecast->output.better_clients, 0U) << "that may be chance";
}

}  // namespace
}  // namespace mosa::predict
