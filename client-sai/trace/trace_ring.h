// A lock-free queue of trace events from one thread to the writer thread, so that a request for
// file bytes never waits for the trace. An event that finds no room is dropped and counted.
#ifndef MOSA_CLIENT_SAI_TRACE_TRACE_RING_H_
#define MOSA_CLIENT_SAI_TRACE_TRACE_RING_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mosa::sai {

// An Event is trivially copyable and is followed by a text. One thread pushes, another pops.
template <typename Event>
class TraceRing {
  static_assert(std::is_trivially_copyable_v<Event>);

 public:
  static constexpr size_t kBytes = size_t{1} << 19;

  TraceRing() : bytes_(std::make_unique<std::byte[]>(kBytes)) {}

  void Push(const Event& event, std::string_view text) {
    const Head head{event, static_cast<uint32_t>(text.size())};
    const uint64_t begin = pushed_.load(std::memory_order_relaxed);
    const size_t bytes = sizeof(Head) + text.size();
    if (begin + bytes - popped_.load(std::memory_order_acquire) > kBytes) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    CopyIn(begin, &head, sizeof head);
    CopyIn(begin + sizeof head, text.data(), text.size());
    pushed_.store(begin + bytes, std::memory_order_release);
  }

  std::optional<std::pair<Event, std::string>> Pop() {
    const uint64_t begin = popped_.load(std::memory_order_relaxed);
    if (begin == pushed_.load(std::memory_order_acquire)) return std::nullopt;
    Head head;
    CopyOut(begin, &head, sizeof head);
    std::string text(head.text_bytes, '\0');
    CopyOut(begin + sizeof head, text.data(), text.size());
    popped_.store(begin + sizeof head + text.size(), std::memory_order_release);
    return std::pair{head.event, std::move(text)};
  }

  bool IsEmpty() const {
    return popped_.load(std::memory_order_relaxed) == pushed_.load(std::memory_order_acquire);
  }

  // Returns the number of events dropped since the last call.
  uint64_t TakeDropped() { return dropped_.exchange(0, std::memory_order_relaxed); }

  // Marks that the pushing thread has ended. Remaining events can still be popped.
  void Abandon() { abandoned_.store(true, std::memory_order_release); }
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

 private:
  struct Head {
    Event event;
    uint32_t text_bytes;
  };

  void CopyIn(uint64_t at, const void* from, size_t size) {
    if (size == 0) return;  // `from` may be null for an empty text.
    const size_t place = at % kBytes;
    const size_t first = std::min(size, kBytes - place);
    std::memcpy(bytes_.get() + place, from, first);
    std::memcpy(bytes_.get(), static_cast<const std::byte*>(from) + first, size - first);
  }
  void CopyOut(uint64_t at, void* into, size_t size) const {
    if (size == 0) return;
    const size_t place = at % kBytes;
    const size_t first = std::min(size, kBytes - place);
    std::memcpy(into, bytes_.get() + place, first);
    std::memcpy(static_cast<std::byte*>(into) + first, bytes_.get(), size - first);
  }

  const std::unique_ptr<std::byte[]> bytes_;
  alignas(64) std::atomic<uint64_t> pushed_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<bool> abandoned_ = false;
  alignas(64) std::atomic<uint64_t> popped_ = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_TRACE_TRACE_RING_H_
