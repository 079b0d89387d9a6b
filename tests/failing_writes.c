/* Counts the writes to files below FAIL_UNDER, of all processes that share the file FAIL_STATE, and lets one fail.
 * The state has three numbers: writes so far, the number of the one that fails (0: none), and its errno. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile long *state;
static const char *under;

__attribute__((constructor)) static void begin(void) {
    int handle = open(getenv("FAIL_STATE"), O_RDWR);
    under = getenv("FAIL_UNDER");
    state = mmap(NULL, 3 * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
}

static int fails(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || state == NULL) return 0;
    path[length] = 0;
    if (strncmp(path, under, strlen(under))) return 0;
    if (__sync_add_and_fetch(&state[0], 1) != state[1]) return 0;
    errno = (int)state[2];
    return 1;
}

#define FAILING(type, name, declared, passed)                        \
    type name declared {                                             \
        static type(*original) declared;                             \
        if (!original) original = (type(*) declared)dlsym(RTLD_NEXT, #name); \
        return fails(file) ? -1 : original passed;                   \
    }

FAILING(ssize_t, write, (int file, const void *data, size_t count), (file, data, count))
FAILING(ssize_t, pwrite, (int file, const void *data, size_t count, off_t at), (file, data, count, at))
FAILING(ssize_t, pwrite64, (int file, const void *data, size_t count, off64_t at), (file, data, count, at))
FAILING(ssize_t, writev, (int file, const struct iovec *data, int count), (file, data, count))
FAILING(int, fsync, (int file), (file))
FAILING(int, fdatasync, (int file), (file))
FAILING(int, ftruncate, (int file, off_t size), (file, size))
FAILING(int, ftruncate64, (int file, off64_t size), (file, size))
