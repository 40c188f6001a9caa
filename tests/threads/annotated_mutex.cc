// Tells the thread sanitizer what absl::Mutex, absl::CondVar and absl::Notification order. Debian's
// build of them is not instrumented, so that without this all that they guard is reported as a
// race.
//
// These are definitions of absl's own functions. They come first in the order in which symbols are
// looked up, for our programs and for gRPC alike, and call those of Debian's library (dlsym(3),
// RTLD_NEXT). What is not used by us or by gRPC is not here: the linker takes it from the library,
// and its callers are reported.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

// Returns absl's own function of that mangled name. The namespace in it is that of Debian's build.
template <typename Function>
Function Real(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "annotated_mutex: libabsl_synchronization has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

// The time between two looks at a condition. absl evaluates conditions on whatever thread unlocks,
// inside of its own code, of which the sanitizer sees nothing; so they are evaluated here.
constexpr useconds_t kLookUs = 200;

// The library's reading of a notification is inline, and reads this byte.
void* NotifiedOf(const absl::Notification* notification) {
  return const_cast<char*>(reinterpret_cast<const char*>(notification)) + sizeof(absl::Mutex);
}

void BeforeUnlock(absl::Mutex* mutex) { __tsan_mutex_pre_unlock(mutex, 0); }
void AfterUnlock(absl::Mutex* mutex) { __tsan_mutex_post_unlock(mutex, 0); }
void BeforeLock(absl::Mutex* mutex) { __tsan_mutex_pre_lock(mutex, 0); }
void AfterLock(absl::Mutex* mutex) { __tsan_mutex_post_lock(mutex, 0, 0); }

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  static const auto real = Real<void (*)(Mutex*)>("_ZN4absl7debian35MutexD1Ev");
  __tsan_mutex_destroy(this, 0);
  real(this);
}

void Mutex::Lock() {
  static const auto real = Real<void (*)(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  BeforeLock(this);
  real(this);
  AfterLock(this);
}

void Mutex::Unlock() {
  static const auto real = Real<void (*)(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  BeforeUnlock(this);
  real(this);
  AfterUnlock(this);
}

bool Mutex::TryLock() {
  static const auto real = Real<bool (*)(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
  const bool locked = real(this);
  __tsan_mutex_post_lock(
      this, locked ? __tsan_mutex_try_lock : __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed,
      0);
  return locked;
}

void Mutex::Await(const Condition& condition) {
  while (!condition.Eval()) {
    Unlock();
    ::usleep(kLookUs);
    Lock();
  }
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  while (!condition.Eval()) {
    if (Now() >= deadline) return false;
    Unlock();
    ::usleep(kLookUs);
    Lock();
  }
  return true;
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return AwaitWithDeadline(condition, Now() + timeout);
}

void Mutex::LockWhen(const Condition& condition) {
  Lock();
  Await(condition);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  Lock();
  return AwaitWithDeadline(condition, deadline);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  Lock();
  return AwaitWithTimeout(condition, timeout);
}

void CondVar::Wait(Mutex* mutex) {
  static const auto real =
      Real<void (*)(CondVar*, Mutex*)>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  BeforeUnlock(mutex);
  AfterUnlock(mutex);
  real(this, mutex);
  BeforeLock(mutex);
  AfterLock(mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const auto real = Real<bool (*)(CondVar*, Mutex*, Time)>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  BeforeUnlock(mutex);
  AfterUnlock(mutex);
  const bool timed_out = real(this, mutex, deadline);
  BeforeLock(mutex);
  AfterLock(mutex);
  return timed_out;
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  return WaitWithDeadline(mutex, Now() + timeout);
}

void Notification::Notify() {
  static const auto real = Real<void (*)(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(NotifiedOf(this));
  real(this);
}

void Notification::WaitForNotification() const {
  while (!HasBeenNotified()) ::usleep(kLookUs);
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  const Time deadline = Now() + timeout;
  while (!HasBeenNotified()) {
    if (Now() >= deadline) return false;
    ::usleep(kLookUs);
  }
  return true;
}

ABSL_NAMESPACE_END
}  // namespace absl
