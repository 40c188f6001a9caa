// A fresh network namespace for each test. The machine's own namespace is never changed.
#pragma once

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "lib/base/check.h"
#include "lib/os/unique_fd.h"

namespace spoke::testing_support {

inline os::UniqueFd OpenCurrentNetns() {
  return os::UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

// Holds the calling thread in a namespace of its own, which dies with the object and with the last
// descriptor of it. Create and destroy on one thread, innermost first; threads started meanwhile
// are in it too.
class FreshNetns {
 public:
  // Returns null, with errno, where this takes more than the caller may do (CAP_SYS_ADMIN).
  static std::unique_ptr<FreshNetns> Enter() {
    os::UniqueFd home = OpenCurrentNetns();
    // This moves this thread only.
    if (!home.valid() || ::unshare(CLONE_NEWNET) < 0) return nullptr;
    return std::unique_ptr<FreshNetns>(new FreshNetns(std::move(home)));
  }
  FreshNetns(const FreshNetns&) = delete;
  FreshNetns& operator=(const FreshNetns&) = delete;
  ~FreshNetns() {
    CHECK(::setns(home_.get(), CLONE_NEWNET) == 0, "a test returns to the namespace it came from");
  }

 private:
  explicit FreshNetns(os::UniqueFd home) : home_(std::move(home)) {}

  const os::UniqueFd home_;
};

// Makes one more namespace, in which no thread stays. Invalid, with errno, as for FreshNetns.
inline os::UniqueFd NewNetns() {
  const auto inside = FreshNetns::Enter();
  return inside == nullptr ? os::UniqueFd() : OpenCurrentNetns();
}

// Each test runs in a namespace with nothing in it but lo, which is down.
class NetnsTest : public testing::Test {
 protected:
  void SetUp() override {
    netns_ = FreshNetns::Enter();
    if (netns_ != nullptr) return;
    // A skip must not pass for a success: scripts/test.sh sets the variable, so there this fails.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << std::strerror(errno);
    GTEST_SKIP() << "needs CAP_SYS_ADMIN: " << std::strerror(errno);
  }
  void TearDown() override { netns_.reset(); }

 private:
  std::unique_ptr<FreshNetns> netns_;
};

}  // namespace spoke::testing_support
