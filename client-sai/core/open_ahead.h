// OpenAhead: whether lookups in a directory are to open what they find, so that an open that
// follows asks nothing. They are from when a file that was looked up there had to be opened by a
// request of its own, until many in a row are looked up and not opened, as by a listing. Plain
// value.
#ifndef MOSA_CLIENT_SAI_CORE_OPEN_AHEAD_H_
#define MOSA_CLIENT_SAI_CORE_OPEN_AHEAD_H_

#include <cstdint>

namespace mosa::sai {

class OpenAhead {
 public:
  bool wanted() const { return wanted_; }
  // An open for reading had to ask, though its file was looked up here.
  void NoteAsked() {
    wanted_ = true;
    unused_ = 0;
  }
  // A lookup has opened a file, and none of its opens has used that so far.
  void NoteOpened() {
    if (++unused_ > kUnusedMax) wanted_ = false;
  }
  void NoteUsed() {
    if (unused_ > 0) --unused_;
  }

 private:
  static constexpr uint32_t kUnusedMax = 16;

  bool wanted_ = false;
  uint32_t unused_ = 0;
};

}  // namespace mosa::sai

#endif  // MOSA_CLIENT_SAI_CORE_OPEN_AHEAD_H_
