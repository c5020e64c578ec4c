/* LD_PRELOAD: every write to a file *.log and every fdatasync of this process takes SLOW_SYNC_MS longer, as on a slow disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_longer(void) {
  const char* said = getenv("SLOW_SYNC_MS");
  long ms = said ? atol(said) : 0;
  struct timespec wait = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&wait, NULL);
}

static int is_log(int descriptor) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 4) return 0;
  path[length] = 0;
  return strcmp(path + length - 4, ".log") == 0 && strstr(path, "/data") != NULL;
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  if (is_log(descriptor)) wait_longer();
  return ((ssize_t(*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write"))(descriptor, bytes, count);
}

int fdatasync(int descriptor) {
  wait_longer();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(descriptor);
}
