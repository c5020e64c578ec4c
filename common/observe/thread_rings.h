// ThreadRings: a queue from any number of threads to one that writes what they push. A thread that
// pushes takes no lock and waits for nobody: it has a ring of its own.
//
// Threads: Push from any; Drain from one at a time. A thread gets its ring, `ring_bytes` of memory,
// with its first Push. Drain frees the ring of a thread that has ended, once it is empty. The
// object may end before the threads that have pushed; none pushes to it from then on. A thread that
// pushes to two objects of one type in turn gets a new ring at each change: there should be one.
//
// Loss: an item is dropped if its ring is full, or if there is no memory for a ring. Push says so,
// and the caller counts it. All other items are handed out once, those of one thread in order: by
// the first Drain that begins after the Push.
#ifndef MOSA_COMMON_OBSERVE_THREAD_RINGS_H_
#define MOSA_COMMON_OBSERVE_THREAD_RINGS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mosa {

enum class Pushed : uint8_t { kYes, kYesHalfRing, kDropped };

// An Item is plain bytes, and may have a text behind it.
template <typename Item, size_t ring_bytes>
class ThreadRings {
  static_assert(std::is_trivially_copyable_v<Item>);
  struct Head {
    Item item;
    uint32_t text_bytes;
  };

 public:
  // What an item takes of its ring, without its text.
  static constexpr size_t kItemBytes = sizeof(Head);

  ThreadRings() = default;
  ~ThreadRings() {
    TakeNewRings();
    while (rings_ != nullptr) delete std::exchange(rings_, rings_->next);
  }
  ThreadRings(const ThreadRings&) = delete;
  ThreadRings& operator=(const ThreadRings&) = delete;

  // kYesHalfRing comes twice in every round of a ring: then the next Drain should not be far.
  Pushed Push(const Item& item, std::string_view text = {}) noexcept {
    Ring* const ring = RingOfThread();
    const size_t bytes = sizeof(Head) + text.size();
    if (ring == nullptr) return Pushed::kDropped;
    const uint64_t begin = ring->pushed.load(std::memory_order_relaxed);
    const uint64_t end = begin + bytes;
    if (end - ring->popped.load(std::memory_order_acquire) > ring_bytes) return Pushed::kDropped;
    const Head head{item, static_cast<uint32_t>(text.size())};
    ring->CopyIn(begin, &head, sizeof head);
    ring->CopyIn(begin + sizeof head, text.data(), text.size());
    ring->pushed.store(end, std::memory_order_release);
    constexpr size_t kHalf = ring_bytes / 2;
    return begin / kHalf == end / kHalf ? Pushed::kYes : Pushed::kYesHalfRing;
  }

  // Hands out what was pushed to a ring before it reaches that ring, so that a thread which pushes
  // as fast as this pops cannot keep it here. `take` gets an item and its text, and says whether to
  // go on; if not, the rest is for the next Drain.
  template <typename Take>
  void Drain(const Take& take) {
    TakeNewRings();
    for (const Link* link = rings_; link != nullptr; link = link->next) {
      Ring* const ring = link->ring.get();
      const uint64_t end = ring->pushed.load(std::memory_order_acquire);
      while (ring->popped.load(std::memory_order_relaxed) < end) {
        const uint64_t begin = ring->popped.load(std::memory_order_relaxed);
        Head head;
        ring->CopyOut(begin, &head, sizeof head);
        std::string text(head.text_bytes, '\0');
        ring->CopyOut(begin + sizeof head, text.data(), text.size());
        ring->popped.store(begin + sizeof head + text.size(), std::memory_order_release);
        if (!take(std::as_const(head.item), std::move(text))) return;
      }
    }
    for (Link** link = &rings_; *link != nullptr;) {
      const Ring& ring = *(*link)->ring;
      const bool is_over = ring.is_abandoned.load(std::memory_order_acquire) &&
                           ring.popped.load(std::memory_order_relaxed) ==
                               ring.pushed.load(std::memory_order_relaxed);
      if (is_over) {
        delete std::exchange(*link, (*link)->next);
      } else {
        link = &(*link)->next;
      }
    }
  }

 private:
  // Its thread pushes, the draining one pops.
  struct Ring {
    void CopyIn(uint64_t at, const void* from, size_t size) {
      if (size == 0) return;  // `from` may be null for an empty text.
      const size_t place = at % ring_bytes;
      const size_t first = std::min(size, ring_bytes - place);
      std::memcpy(bytes.get() + place, from, first);
      std::memcpy(bytes.get(), static_cast<const std::byte*>(from) + first, size - first);
    }
    void CopyOut(uint64_t at, void* into, size_t size) const {
      if (size == 0) return;
      const size_t place = at % ring_bytes;
      const size_t first = std::min(size, ring_bytes - place);
      std::memcpy(into, bytes.get() + place, first);
      std::memcpy(static_cast<std::byte*>(into) + first, bytes.get(), size - first);
    }

    const std::unique_ptr<std::byte[]> bytes =
        std::make_unique_for_overwrite<std::byte[]>(ring_bytes);
    alignas(64) std::atomic<uint64_t> pushed = 0;
    std::atomic<bool> is_abandoned = false;  // Its thread has ended.
    alignas(64) std::atomic<uint64_t> popped = 0;
  };
  struct Link {
    std::shared_ptr<Ring> ring;
    Link* next = nullptr;
  };
  struct OwnRing {
    uint64_t of = 0;  // The object's number.
    std::shared_ptr<Ring> ring;
    ~OwnRing() { Leave(); }
    void Leave() {
      if (ring) ring->is_abandoned.store(true, std::memory_order_release);
      ring.reset();
    }
  };

  Ring* RingOfThread() noexcept {
    thread_local OwnRing own;
    if (own.of == number_ && own.ring) return own.ring.get();
    own.Leave();
    own.of = number_;
    try {
      auto ring = std::make_shared<Ring>();
      auto* const fresh = new Link{ring, new_rings_.load(std::memory_order_relaxed)};
      own.ring = std::move(ring);
      while (!new_rings_.compare_exchange_weak(fresh->next, fresh, std::memory_order_release,
                                               std::memory_order_relaxed)) {
      }
    } catch (const std::bad_alloc&) {  // The next Push tries again.
    }
    return own.ring.get();
  }

  // Appends them in the order in which they were made. Allocates nothing, so none is ever lost.
  void TakeNewRings() {
    Link* newest = new_rings_.exchange(nullptr, std::memory_order_acquire);
    Link* oldest = nullptr;
    while (newest != nullptr) {
      Link* const next = std::exchange(newest->next, oldest);
      oldest = std::exchange(newest, next);
    }
    Link** end = &rings_;
    while (*end != nullptr) end = &(*end)->next;
    *end = oldest;
  }

  static inline std::atomic<uint64_t> last_number_ = 0;
  const uint64_t number_ = ++last_number_;  // Unlike an address, it never comes again.
  std::atomic<Link*> new_rings_ = nullptr;  // A stack.
  Link* rings_ = nullptr;  // A list in order of age. Used only by the draining thread.
};

}  // namespace mosa

#endif  // MOSA_COMMON_OBSERVE_THREAD_RINGS_H_
