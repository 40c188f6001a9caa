#include "ipam-server/store/etcd/verdict.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam::etcd {
namespace {

using absl::StatusCode;

struct Case {
  StatusCode code;
  std::string message;
  StatusCode want;
  bool try_next = false;
  bool in_doubt = false;
};

TEST(Judge, SaysWhatTheCallerDoesNext) {
  const std::vector<Case> cases = {
      {StatusCode::kUnavailable, "failed to connect to all addresses", StatusCode::kUnavailable,
       true},
      {StatusCode::kUnavailable, "Socket closed", StatusCode::kUnavailable, true, true},
      {StatusCode::kUnavailable, "etcdserver: leader changed", StatusCode::kUnavailable, true,
       true},
      {StatusCode::kDeadlineExceeded, "Deadline Exceeded", StatusCode::kUnavailable, true, true},
      {StatusCode::kResourceExhausted, "etcdserver: mvcc: database space exceeded",
       StatusCode::kResourceExhausted},
      {StatusCode::kResourceExhausted, "etcdserver: too many requests", StatusCode::kUnavailable,
       true},
      {StatusCode::kPermissionDenied, "etcdserver: permission denied",
       StatusCode::kPermissionDenied},
      {StatusCode::kOutOfRange, "etcdserver: mvcc: required revision has been compacted",
       StatusCode::kOutOfRange},
      {StatusCode::kInvalidArgument, "etcdserver: request is too large",
       StatusCode::kInvalidArgument},
      {StatusCode::kInvalidArgument, "etcdserver: user name is empty",
       StatusCode::kPermissionDenied},
  };
  for (const Case& c : cases) {
    const Verdict verdict = Judge(static_cast<int>(c.code), c.message);
    EXPECT_EQ(verdict.status.code(), c.want) << c.message;
    EXPECT_EQ(verdict.try_next, c.try_next) << c.message;
    EXPECT_EQ(verdict.in_doubt, c.in_doubt) << c.message;
    EXPECT_FALSE(verdict.authenticate) << c.message;
  }
  EXPECT_TRUE(
      Judge(static_cast<int>(StatusCode::kUnauthenticated), "invalid auth token").authenticate);
}

TEST(CheckVersion, RefusesWhatIsTooOld) {
  for (const char* good : {"3.4.0", "3.4.23", "3.5.0-rc.1", "3.10.1", "4.0.0"}) {
    EXPECT_TRUE(CheckVersion(good).ok()) << good;
  }
  for (const char* bad : {"3.3.27", "2.3.8", "", "3", "3.", "x.4", "-3.4"}) {
    EXPECT_EQ(CheckVersion(bad).code(), StatusCode::kUnimplemented) << bad;
  }
}

}  // namespace
}  // namespace spoke::ipam::etcd
