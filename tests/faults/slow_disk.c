// A slow disk, preloaded into a daemon: what it reads and writes below the directory SLOW_DISK has the time of a device
// of SLOW_DISK_RATE bytes per second, one request after the other, of all processes that share the file SLOW_DISK_CLOCK
// (8 bytes, 0 at first). For trials of `mosa compare`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static dev_t device;
static double bytes_per_second;
static atomic_long* free_at_ns;  // When the device has done all that it was asked for.

__attribute__((constructor)) static void ReadEnvironment(void) {
  struct stat about;
  const char* directory = getenv("SLOW_DISK");
  const char* rate = getenv("SLOW_DISK_RATE");
  const char* clock = getenv("SLOW_DISK_CLOCK");
  if (directory == NULL || rate == NULL || clock == NULL || stat(directory, &about) != 0) abort();
  const int fd = open(clock, O_RDWR | O_CLOEXEC);
  free_at_ns = mmap(NULL, sizeof *free_at_ns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (free_at_ns == MAP_FAILED) abort();
  close(fd);
  device = about.st_dev;
  bytes_per_second = atof(rate);
}

static long Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static ssize_t Slowed(int fd, ssize_t bytes) {
  struct stat about;
  if (bytes <= 0 || fstat(fd, &about) != 0 || about.st_dev != device || !S_ISREG(about.st_mode)) return bytes;
  const long takes_ns = (long)((double)bytes / bytes_per_second * 1e9);
  long before = atomic_load(free_at_ns), done;
  do {
    const long now = Now();
    done = (before > now ? before : now) + takes_ns;
  } while (!atomic_compare_exchange_weak(free_at_ns, &before, done));
  const struct timespec until = {done / 1000000000L, done % 1000000000L};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
  }
  return bytes;
}

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) { return Slowed(fd, NEXT(pread64)(fd, to, bytes, at)); }
ssize_t pread(int fd, void* to, size_t bytes, off_t at) { return pread64(fd, to, bytes, at); }
ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) { return Slowed(fd, NEXT(pwrite64)(fd, from, bytes, at)); }
ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) { return pwrite64(fd, from, bytes, at); }
ssize_t sendfile64(int to, int from, off64_t* at, size_t bytes) { return Slowed(from, NEXT(sendfile64)(to, from, at, bytes)); }
ssize_t sendfile(int to, int from, off_t* at, size_t bytes) { return sendfile64(to, from, at, bytes); }
