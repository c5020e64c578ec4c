#include "tools/cluster/state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace mosa::cluster {
namespace {

class StateTest : public ::testing::Test {
 protected:
  StateTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "mosa_state_test.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    state_.plan.name = "lab";
    state_.plan.directory = directory_ + "/lab";
    state_.plan.forecasts = "/lab.json";
    state_.boot_id = BootId();
    std::filesystem::create_directory(state_.plan.directory);
    EXPECT_TRUE(Save(state_).ok());
  }
  ~StateTest() override { std::filesystem::remove_all(directory_); }
  // Removes a field from the saved plan.
  void Forget(const std::string& field) {
    nlohmann::json json = nlohmann::json::parse(std::ifstream(state_.path()));
    json["plan"].erase(field);
    std::ofstream(state_.path()) << json;
  }

  std::string directory_;
  ClusterState state_;
};

TEST_F(StateTest, ComesBackAsItWas) {
  const auto loaded = Load(directory_, "lab");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->plan.directory, state_.plan.directory);
  EXPECT_EQ(loaded->plan.forecasts, "/lab.json");
}

TEST_F(StateTest, OfAnOlderClusterHasNoPlatform) {
  Forget("forecasts");
  const auto loaded = Load(directory_, "lab");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->plan.forecasts, "");
}

TEST_F(StateTest, ThatLacksAnythingElseIsDamaged) {
  Forget("bridge");
  EXPECT_EQ(Load(directory_, "lab").status().code(), StatusCode::kDataLoss);
  std::ofstream(state_.path()) << "[]";
  EXPECT_EQ(Load(directory_, "lab").status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace mosa::cluster
