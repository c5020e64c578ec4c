#include "client-sai/sai/object_view.h"

#include <sys/mman.h>

#include <atomic>
#include <utility>

#include "common/base/sync.h"

namespace mosa::sai {
namespace {

std::atomic<int> windows_mapped = 0;

}  // namespace

struct ObjectView::Window {
  Window(std::shared_ptr<const void> of, int descriptor, uint64_t from)
      : object(std::move(of)), begin(from) {
    if (windows_mapped.fetch_add(1) < kWindowsMax)
      bytes =
          mmap(nullptr, kWindowBytes, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(begin));
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() {
    if (bytes != MAP_FAILED) munmap(bytes, kWindowBytes);
    windows_mapped.fetch_sub(1);
  }

  const std::shared_ptr<const void> object;
  const uint64_t begin;
  void* bytes = MAP_FAILED;
};

std::shared_ptr<const std::byte> ObjectView::Map(const std::shared_ptr<const void>& object,
                                                 int descriptor, ByteRange range) {
  const uint64_t begin = range.begin / kWindowBytes * kWindowBytes;
  if (range.end > begin + kWindowBytes) return nullptr;
  const MutexLock lock(mutex_);
  if (given_up_) return nullptr;
  const auto is_wanted = [&](const std::shared_ptr<const Window>& window) {
    return window && window->begin == begin && window->object == object;
  };
  if (!is_wanted(windows_[0])) {
    std::swap(windows_[0], windows_[1]);
    if (!is_wanted(windows_[0])) {
      auto fresh = std::make_shared<const Window>(object, descriptor, begin);
      if (fresh->bytes == MAP_FAILED) return nullptr;
      windows_[0] = std::move(fresh);
    }
  }
  const std::shared_ptr<const Window>& window = windows_[0];
  return {window, static_cast<const std::byte*>(window->bytes) + (range.begin - begin)};
}

void ObjectView::GiveUp() {
  const MutexLock lock(mutex_);
  given_up_ = true;
  windows_ = {};
}

}  // namespace mosa::sai
