#include "client-sai/sai/object_view.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/unique_fd.h"

namespace mosa::sai {
namespace {

constexpr uint64_t kWindow = ObjectView::kWindowBytes;

struct Object {
  UniqueFd fd{memfd_create("object", MFD_CLOEXEC)};
};

// Makes an object three windows long, with a page of `mark` at the beginning of each.
std::shared_ptr<Object> MakeObject(char mark) {
  auto object = std::make_shared<Object>();
  EXPECT_EQ(ftruncate(object->fd.get(), 3 * kWindow), 0);
  const std::string page(4096, mark);
  for (uint64_t at = 0; at < 3 * kWindow; at += kWindow)
    EXPECT_EQ(pwrite(object->fd.get(), page.data(), page.size(), static_cast<off_t>(at)), 4096);
  return object;
}

std::shared_ptr<const std::byte> MapWindow(ObjectView& view, const std::shared_ptr<Object>& object,
                                           uint64_t window) {
  return view.Map(object, object->fd.get(), {window * kWindow, window * kWindow + 4096});
}

TEST(ObjectView, ShowsTheObjectThatIsAskedForAndKeepsWhatIsInUse) {
  ObjectView view;
  auto first = MakeObject('a');
  const auto second = MakeObject('b');
  const auto of_first = MapWindow(view, first, 0);
  ASSERT_NE(of_first, nullptr);
  EXPECT_EQ(MapWindow(view, first, 0), of_first) << "mapped once";
  for (uint64_t window = 0; window < 3; ++window) {
    const auto of_second = MapWindow(view, second, window);
    ASSERT_NE(of_second, nullptr);
    EXPECT_EQ(static_cast<char>(*of_second), 'b') << window;
  }
  first.reset();  // Its descriptor stays open: the window in use owns it.
  EXPECT_EQ(static_cast<char>(*of_first), 'a');
  EXPECT_EQ(view.Map(second, second->fd.get(), {kWindow - 1, kWindow + 1}), nullptr);
}

TEST(ObjectView, WhatIsCutFaultsInTheCallAndEndsNobody) {
  ObjectView view;
  const auto object = MakeObject('a');
  const auto bytes = MapWindow(view, object, 1);
  ASSERT_NE(bytes, nullptr);
  const UniqueFd sink(memfd_create("sink", MFD_CLOEXEC));
  EXPECT_EQ(write(sink.get(), bytes.get(), 4096), 4096);
  ASSERT_EQ(ftruncate(object->fd.get(), kWindow), 0);
  EXPECT_EQ(write(sink.get(), bytes.get(), 4096), -1);
  EXPECT_EQ(errno, EFAULT);
  view.GiveUp();
  EXPECT_EQ(view.Map(object, object->fd.get(), {0, 4096}), nullptr);
}

TEST(ObjectView, HasALimitOverAllViews) {
  const auto object = MakeObject('a');
  std::vector<std::unique_ptr<ObjectView>> views;
  const auto add = [&] {
    views.push_back(std::make_unique<ObjectView>());
    return MapWindow(*views.back(), object, 0) != nullptr;
  };
  for (int i = 0; i < ObjectView::kWindowsMax; ++i) EXPECT_TRUE(add()) << i;
  EXPECT_FALSE(add());
  views.erase(views.begin());
  EXPECT_TRUE(add());
}

}  // namespace
}  // namespace mosa::sai
