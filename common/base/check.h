// MOSA_CHECK stops the process on a programmer's error, in release builds too. Bad input is not a
// programmer's error: return a Status for it.
#ifndef MOSA_COMMON_BASE_CHECK_H_
#define MOSA_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define MOSA_CHECK(condition)                                                            \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // MOSA_COMMON_BASE_CHECK_H_
