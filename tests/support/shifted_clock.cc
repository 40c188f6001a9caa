// A library that a program is started with (LD_PRELOAD), so that its time of day is another than
// that of the machine. Tests only: nothing of it is in any program.
//
// SHIFTED_CLOCK_S is by how many seconds it is ahead, or with a minus sign behind;
// SHIFTED_CLOCK_DRIFT by how many seconds more in each second from the program's start on. Clocks
// that nobody sets go on as they are. Deadlines by the time of day are turned back before the
// kernel gets them, those of futex(2) too, by which absl waits.
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace {

constexpr int64_t kSecond = 1'000'000'000;

using SystemCall = long (*)(long, ...);

// libc's own, behind the one below.
SystemCall LibcSystemCall() {
  static const auto found = reinterpret_cast<SystemCall>(::dlsym(RTLD_NEXT, "syscall"));
  return found;
}

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * kSecond + time.tv_nsec; }
timespec TimeOf(int64_t nanoseconds) {
  return {.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
}

int64_t Real(clockid_t clock) {
  timespec now{};
  LibcSystemCall()(SYS_clock_gettime, clock, &now);
  return Nanoseconds(now);
}

double Setting(const char* name) {
  const char* text = ::getenv(name);
  return text == nullptr ? 0 : ::strtod(text, nullptr);
}

struct Shift {
  int64_t begun = Real(CLOCK_REALTIME);
  int64_t ahead = static_cast<int64_t>(Setting("SHIFTED_CLOCK_S") * kSecond);
  double drift = Setting("SHIFTED_CLOCK_DRIFT");

  int64_t Shown(int64_t real) const {
    return real + ahead + static_cast<int64_t>(static_cast<double>(real - begun) * drift);
  }
  // What Shown() makes `shown` of.
  int64_t Meant(int64_t shown) const {
    return begun + static_cast<int64_t>(static_cast<double>(shown - ahead - begun) / (1 + drift));
  }
};

const Shift& TheShift() {
  static const Shift shift;
  return shift;
}

bool IsTimeOfDay(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

timespec Meant(const timespec& shown) {
  const int64_t meant = TheShift().Meant(Nanoseconds(shown));
  return TimeOf(meant < 0 ? 0 : meant);
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  if (!IsTimeOfDay(clock)) {
    return static_cast<int>(LibcSystemCall()(SYS_clock_gettime, clock, out));
  }
  *out = TimeOf(TheShift().Shown(Real(clock)));
  return 0;
}

int gettimeofday(timeval* out, void*) noexcept {
  const int64_t now = TheShift().Shown(Real(CLOCK_REALTIME));
  *out = {.tv_sec = now / kSecond, .tv_usec = now % kSecond / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  const time_t now = TheShift().Shown(Real(CLOCK_REALTIME)) / kSecond;
  if (out != nullptr) *out = now;
  return now;
}

int timespec_get(timespec* out, int base) noexcept {
  if (base != TIME_UTC) return 0;
  *out = TimeOf(TheShift().Shown(Real(CLOCK_REALTIME)));
  return base;
}

long syscall(long number, ...) noexcept {
  va_list arguments;
  va_start(arguments, number);
  long word[6];
  for (long& one : word) one = va_arg(arguments, long);
  va_end(arguments);
  timespec meant;
  const auto* const deadline = reinterpret_cast<const timespec*>(word[3]);
  const long operation = word[1];
  if (number == SYS_futex && (operation & FUTEX_CLOCK_REALTIME) != 0 &&
      (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && deadline != nullptr) {
    meant = Meant(*deadline);
    word[3] = reinterpret_cast<long>(&meant);
  }
  if (number == SYS_clock_gettime) {
    return ::clock_gettime(static_cast<clockid_t>(word[0]), reinterpret_cast<timespec*>(word[1]));
  }
  return LibcSystemCall()(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

// The clock of a condition variable is not known here; ours wait by the time of day unless they ask
// for another with pthread_cond_clockwait().
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* deadline) {
  static const auto next = Next<decltype(&pthread_cond_timedwait)>("pthread_cond_timedwait");
  // One that was made for the other clock has a deadline since the boot.
  if (Nanoseconds(*deadline) < TheShift().begun / 2) return next(condition, mutex, deadline);
  const timespec meant = Meant(*deadline);
  return next(condition, mutex, &meant);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* deadline) {
  static const auto next = Next<decltype(&pthread_cond_clockwait)>("pthread_cond_clockwait");
  if (!IsTimeOfDay(clock)) return next(condition, mutex, clock, deadline);
  const timespec meant = Meant(*deadline);
  return next(condition, mutex, clock, &meant);
}

int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  static const auto next = Next<decltype(&sem_timedwait)>("sem_timedwait");
  const timespec meant = Meant(*deadline);
  return next(semaphore, &meant);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept {
  static const auto next = Next<decltype(&pthread_mutex_timedlock)>("pthread_mutex_timedlock");
  const timespec meant = Meant(*deadline);
  return next(mutex, &meant);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  static const auto next = Next<decltype(&clock_nanosleep)>("clock_nanosleep");
  if (!IsTimeOfDay(clock) || (flags & TIMER_ABSTIME) == 0) return next(clock, flags, time, left);
  const timespec meant = Meant(*time);
  return next(clock, flags, &meant, left);
}

}  // extern "C"
