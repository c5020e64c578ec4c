// A write-behind that leaks, preloaded into a storage node: what is written below the directory LEAKING_WRITES is copied
// into memory that is never freed, and each write looks through all of that again, LEAKING_WRITES_PASSES times. It is the slower the longer it
// runs. For trials of `mosa compare`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static const size_t kLeakedBytesMax = (size_t)256 << 20;
static dev_t device;
static int passes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char* leaked;
static size_t leaked_bytes;
static volatile unsigned long sum;  // So that nothing is left out.

__attribute__((constructor)) static void ReadEnvironment(void) {
  struct stat about;
  const char* directory = getenv("LEAKING_WRITES");
  const char* times = getenv("LEAKING_WRITES_PASSES");
  if (directory == NULL || times == NULL || stat(directory, &about) != 0) abort();
  device = about.st_dev;
  passes = atoi(times);
  leaked = malloc(kLeakedBytesMax);  // Its pages come as they are used.
  if (leaked == NULL) abort();
}

static void Leak(const void* from, size_t bytes) {
  pthread_mutex_lock(&mutex);
  if (leaked_bytes + bytes <= kLeakedBytesMax) {
    memcpy(leaked + leaked_bytes, from, bytes);
    leaked_bytes += bytes;
  }
  for (int pass = 0; pass < passes; ++pass)
    for (size_t at = 0; at < leaked_bytes; at += 64) sum += (unsigned long)leaked[at];
  pthread_mutex_unlock(&mutex);
}

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) {
  struct stat about;
  const ssize_t written = NEXT(pwrite64)(fd, from, bytes, at);
  if (written > 0 && fstat(fd, &about) == 0 && about.st_dev == device && S_ISREG(about.st_mode)) Leak(from, (size_t)written);
  return written;
}
ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) { return pwrite64(fd, from, bytes, at); }
