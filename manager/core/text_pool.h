// TextPool: texts that many files share (task names, layout reasons, hints), each stored once while
// it has holders. Text 0 is the empty text and needs no holder. Not thread-safe.
//
// A text counts for the user who added it until it has no holders. One user may fill three quarters
// of the pool, so that others find room; user 0 may fill it.
#ifndef MOSA_MANAGER_CORE_TEXT_POOL_H_
#define MOSA_MANAGER_CORE_TEXT_POOL_H_

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"

namespace mosa::manager {

class TextPool {
 public:
  // Hold accepts any text. HoldIfRoom keeps the pool below `bytes_max`, give or take one text.
  explicit TextPool(uint64_t bytes_max = UINT64_MAX) : bytes_max_(bytes_max) {}

  // Returns the number of `text` and adds a holder. A new text counts for `uid`.
  uint32_t Hold(std::string_view text, uint32_t uid) {
    if (text.empty()) return 0;
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) {
      ++slots_[found->second].holders;
      return found->second;
    }
    uint32_t number = 0;
    if (free_.empty()) {
      number = static_cast<uint32_t>(slots_.size());
      slots_.push_back({});
    } else {
      number = free_.back();
      free_.pop_back();
    }
    const auto added = numbers_.emplace(text, number).first;
    bytes_ += text.size() + kOverheadBytes;
    if (uid != 0) bytes_of_[uid] += text.size() + kOverheadBytes;
    slots_[number] = {&added->first, 1, uid};
    return number;
  }

  // The same for an optional text: returns 0 if it is new and the user has no room.
  uint32_t HoldIfRoom(std::string_view text, uint32_t uid) {
    return !HasRoomFor(uid) && !numbers_.contains(text) ? 0 : Hold(text, uid);
  }

  void Drop(uint32_t number) {
    if (number == 0) return;
    MOSA_CHECK(number < slots_.size() && slots_[number].holders > 0);
    if (--slots_[number].holders > 0) return;
    const uint64_t bytes = slots_[number].text->size() + kOverheadBytes;
    bytes_ -= bytes;
    if (const auto of = bytes_of_.find(slots_[number].uid); of != bytes_of_.end()) {
      of->second -= bytes;
      if (of->second == 0) bytes_of_.erase(of);
    }
    numbers_.erase(numbers_.find(*slots_[number].text));
    slots_[number].text = nullptr;
    free_.push_back(number);
  }

  const std::string& TextOf(uint32_t number) const {
    static const std::string kEmpty;
    if (number == 0) return kEmpty;
    MOSA_CHECK(number < slots_.size() && slots_[number].text != nullptr);
    return *slots_[number].text;
  }

  size_t size() const { return numbers_.size(); }
  // Size of all texts.
  uint64_t bytes() const { return bytes_; }
  uint64_t bytes_max() const { return bytes_max_; }
  bool is_full() const { return bytes_ >= bytes_max_; }
  bool HasRoomFor(uint32_t uid) const { return !is_full() && BytesOf(uid) < UserBytesMax(); }
  // Precondition: HasRoomFor(uid) is false.
  std::string WhyFull(uint32_t uid) const {
    const std::string what = "remove files with hints of their own";
    if (is_full())
      return fmt::format(
          "{} different texts of hints and tasks take {} bytes in total, and the limit is {}: {}",
          size(), bytes_, bytes_max_, what);
    return fmt::format(
        "the texts of hints and tasks of user {} take {} bytes, and the limit per user is {}: {}",
        uid, BytesOf(uid), UserBytesMax(), what);
  }

 private:
  // Overhead of a text besides its bytes.
  static constexpr uint64_t kOverheadBytes = 128;

  struct Slot {
    const std::string* text = nullptr;
    uint32_t holders = 0;
    uint32_t uid = 0;  // The user who added it.
  };

  uint64_t UserBytesMax() const { return bytes_max_ / 4 * 3; }
  uint64_t BytesOf(uint32_t uid) const {
    const auto of = bytes_of_.find(uid);
    return of == bytes_of_.end() ? 0 : of->second;
  }

  std::map<std::string, uint32_t, std::less<>> numbers_;
  std::vector<Slot> slots_ = {{}};  // Slot 0 stands for the empty text.
  std::vector<uint32_t> free_;
  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  std::map<uint32_t, uint64_t> bytes_of_;  // By user, except user 0.
};

}  // namespace mosa::manager

#endif  // MOSA_MANAGER_CORE_TEXT_POOL_H_
