// Preloaded into a server or a worker: its CLOCK_REALTIME is ahead of the machine's by as many
// seconds as stand in the file that QUORATE_CLOCK names. CLOCK_MONOTONIC is the machine's.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long step(void) {
    static int file = -1;
    char text[16] = "";
    const char *path = file < 0 ? getenv("QUORATE_CLOCK") : 0;
    if (path) file = open(path, O_RDONLY | O_CLOEXEC);
    return file >= 0 && pread(file, text, sizeof text - 1, 0) > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += step();
    return (int)failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
