#include "predictor/run/page_cache.h"

#include <gtest/gtest.h>

namespace mosa::predict {
namespace {

TEST(PageCache, KeepsWhatWasReadLast) {
  PageCache cache(100);
  cache.Put(FileId{1}, 1, 40);
  cache.Put(FileId{2}, 1, 40);
  EXPECT_TRUE(cache.Has(FileId{1}, 1));  // Now the most recently used.
  cache.Put(FileId{3}, 1, 40);
  EXPECT_TRUE(cache.Has(FileId{1}, 1));
  EXPECT_FALSE(cache.Has(FileId{2}, 1));
  EXPECT_TRUE(cache.Has(FileId{3}, 1));
  EXPECT_EQ(cache.bytes(), 80U);
}

TEST(PageCache, KnowsVersions) {
  PageCache cache(100);
  cache.Put(FileId{1}, 1, 40);
  EXPECT_FALSE(cache.Has(FileId{1}, 2));
  cache.Put(FileId{1}, 2, 60);
  EXPECT_FALSE(cache.Has(FileId{1}, 1));
  EXPECT_TRUE(cache.Has(FileId{1}, 2));
  EXPECT_EQ(cache.bytes(), 60U);
}

TEST(PageCache, TakesNothingThatIsLargerThanItself) {
  PageCache cache(100);
  cache.Put(FileId{1}, 1, 40);
  cache.Put(FileId{2}, 1, 101);
  EXPECT_FALSE(cache.Has(FileId{2}, 1));
  EXPECT_TRUE(cache.Has(FileId{1}, 1));
}

}  // namespace
}  // namespace mosa::predict
