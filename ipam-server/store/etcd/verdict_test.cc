#include "ipam-server/store/etcd/verdict.h"

#include <string>
#include <utility>
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

TEST(Judge, HasAMessageOfItsOwnForEachReason) {
  const std::vector<std::pair<std::pair<StatusCode, const char*>, const char*>> cases = {
      {{StatusCode::kUnavailable, "DNS resolution failed for etcd.invalid:2379: not found"},
       "the name has no address"},
      {{StatusCode::kUnavailable, "failed to connect to all addresses; Ssl handshake failed: x"},
       "TLS with it fails"},
      {{StatusCode::kUnavailable, "failed to connect to all addresses; Connection refused"},
       "cannot be connected to"},
      {{StatusCode::kUnavailable, "etcdserver: no leader"}, "no quorum"},
      {{StatusCode::kUnavailable, "etcdserver: request timed out"}, "no quorum"},
      {{StatusCode::kDeadlineExceeded, "Deadline Exceeded"}, "no answer in time"},
      {{StatusCode::kInvalidArgument, "etcdserver: user name is empty"}, "demands authentication"},
      {{StatusCode::kInvalidArgument, "etcdserver: authentication failed, invalid user ID"},
       "does not know this user"},
      {{StatusCode::kFailedPrecondition, "etcdserver: authentication is not enabled"},
       "has no authentication"},
      {{StatusCode::kPermissionDenied, "etcdserver: permission denied"}, "give it a role"},
      {{StatusCode::kResourceExhausted, "etcdserver: mvcc: database space exceeded"}, "NOSPACE"},
      {{StatusCode::kDataLoss, "etcdserver: corrupt cluster"}, "damaged"},
      {{StatusCode::kUnimplemented, "unknown service etcdserverpb.KV"}, "3.4 or later"},
  };
  for (const auto& [call, words] : cases) {
    const Verdict verdict = Judge(static_cast<int>(call.first), call.second);
    EXPECT_THAT(std::string(verdict.status.message()), testing::HasSubstr(words)) << call.second;
  }
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
