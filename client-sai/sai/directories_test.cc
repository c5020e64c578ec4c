// Listings of directories, while names come and go.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "client-sai/sai/cluster_fixture.h"

namespace mosa::sai {
namespace {

TEST(Directories, AListingStandsStillWhileNamesGo) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  for (int i = 0; i < 2500; ++i)
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f" + std::to_string(i), "")));
  EXPECT_EQ(cluster.b().List("/d")->size(), 2500u);
  const FileId directory = *cluster.b().Find("/d");
  auto handle = cluster.b().fs().OpenDirectory(directory);
  auto page = cluster.b().fs().ReadDirectory(*handle, 0, 1000);
  ASSERT_TRUE(Ok(page));
  ASSERT_TRUE(Ok(cluster.a().Unlink("/d/" + page->items[2].name)));
  std::set<std::string> names;
  uint64_t offset = 0;
  for (;;) {
    page = cluster.b().fs().ReadDirectory(*handle, offset, 333);
    ASSERT_TRUE(Ok(page));
    if (page->items.empty()) break;
    for (const DirectoryItem& item : page->items) EXPECT_TRUE(names.insert(item.name).second);
    offset = page->items.back().next_offset;
  }
  EXPECT_EQ(names.size(), 2499u + 2);
}

TEST(Directories, NamesKeepTheirOffsetsInALaterListing) {
  Cluster cluster;
  ASSERT_TRUE(Ok(cluster.a().MakeDirectory("/d")));
  for (int i = 0; i < 2500; ++i)
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/f" + std::to_string(i), "")));
  const auto handle = cluster.b().fs().OpenDirectory(*cluster.b().Find("/d"));
  std::map<std::string, uint64_t> offsets;  // Where each name is read.
  const auto list = [&] {
    std::set<std::string> names;
    for (uint64_t offset = 0;;) {
      const auto page = cluster.b().fs().ReadDirectory(*handle, offset, 333);
      if (!Ok(page) || page->items.empty()) return names;
      for (const DirectoryItem& item : page->items) {
        EXPECT_TRUE(names.insert(item.name).second) << item.name;
        offsets.emplace(item.name, offset);
        EXPECT_GT(item.next_offset, offset);
        offset = item.next_offset;
      }
    }
  };
  EXPECT_EQ(list().size(), 2502U);
  for (int i = 0; i < 2500; i += 2) {
    ASSERT_TRUE(Ok(cluster.a().Unlink("/d/f" + std::to_string(i))));
    ASSERT_TRUE(Ok(cluster.a().WriteFile("/d/e" + std::to_string(i), "")));
  }
  EXPECT_EQ(list().size(), 2502U);
  for (int i = 1; i < 2500; i += 2) {
    const std::string name = "f" + std::to_string(i);
    const auto page = cluster.b().fs().ReadDirectory(*handle, offsets.at(name), 1);
    ASSERT_EQ(page->items.size(), 1U) << name;
    EXPECT_EQ(page->items[0].name, name);
  }
  ASSERT_TRUE(Ok(cluster.a().Unlink("/d/f1")));
  EXPECT_EQ(list().size(), 2501U);
}

}  // namespace
}  // namespace mosa::sai
