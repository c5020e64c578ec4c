// UniqueFd: owns a file descriptor and closes it when destroyed.
#ifndef MOSA_COMMON_BASE_UNIQUE_FD_H_
#define MOSA_COMMON_BASE_UNIQUE_FD_H_

namespace mosa {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  ~UniqueFd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset();  // Closes the descriptor, if there is one.

 private:
  int fd_ = -1;
};

}  // namespace mosa

#endif  // MOSA_COMMON_BASE_UNIQUE_FD_H_
