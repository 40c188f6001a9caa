// What a server that has followed or led says when its etcd refuses it from then on: which member
// said what, and what is to be done. With real members.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/etcd/etcd_store.h"
#include "ipam-server/store/etcd/testing/etcd_cluster.h"

namespace spoke::ipam {
namespace {

using absl::StatusCode;
using etcd::EtcdCluster;
using testing::AllOf;
using testing::HasSubstr;

EtcdOptions OptionsOf(const EtcdCluster& cluster) {
  EtcdOptions options;
  options.access = cluster.access();
  options.leadership.name = "server-a";
  return options;
}

// A server that leads and one that follows, both without a fault so far.
struct Servers {
  explicit Servers(const EtcdOptions& options)
      : mirror(EtcdStore::Follow(options).value()), leader(EtcdStore::Open(options).value()) {
    EXPECT_TRUE(mirror->connection()->Trouble().ok());
    EXPECT_TRUE(leader->Trouble().ok());
  }

  std::unique_ptr<etcd::Mirror> mirror;
  std::unique_ptr<EtcdStore> leader;
};

// What `trouble` says once its code is `code` and it has these words, or after a while.
absl::Status Await(StatusCode code, const std::function<absl::Status()>& trouble,
                   const std::string& words = "") {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  absl::Status now = trouble();
  const auto is_it = [&] {
    return now.code() == code && std::string(now.message()).find(words) != std::string::npos;
  };
  while (!is_it() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(20));
    now = trouble();
  }
  return now;
}

// Both servers say it, with the member's endpoint, and nobody has to ask them to call etcd.
void ExpectBothSay(const Servers& servers, const EtcdCluster& cluster, StatusCode code,
                   const std::string& words) {
  const std::vector<std::pair<std::string, std::function<absl::Status()>>> both = {
      {"the standby", [&] { return servers.mirror->connection()->Trouble(); }},
      {"the leader", [&] { return servers.leader->Trouble(); }}};
  for (const auto& [who, trouble] : both) {
    const absl::Status said = Await(code, trouble, words);
    EXPECT_EQ(said.code(), code) << who << ": " << said;
    EXPECT_THAT(std::string(said.message()),
                AllOf(HasSubstr(words), HasSubstr(cluster.endpoints()[0])))
        << who;
  }
}

void EnableAuthentication(const EtcdCluster& cluster) {
  cluster.Ctl({"user", "add", "root:secret"});
  cluster.Ctl({"user", "grant-role", "root", "root"});
  cluster.Ctl({"auth", "enable"});
}

TEST(EtcdRefusals, AuthenticationIsDemandedWhereItWasNot) {
  const EtcdCluster cluster;
  const Servers servers(OptionsOf(cluster));
  EnableAuthentication(cluster);
  ExpectBothSay(servers, cluster, StatusCode::kPermissionDenied,
                "demands authentication: set store.etcd.user and password_file");
  cluster.Ctl({"--user=root:secret", "auth", "disable"});
  EXPECT_TRUE(Await(StatusCode::kOk, [&] { return servers.leader->Trouble(); }).ok())
      << "it is over";
  EXPECT_TRUE(Await(StatusCode::kOk, [&] { return servers.mirror->connection()->Trouble(); }).ok());
}

TEST(EtcdRefusals, ThePasswordIsChanged) {
  const EtcdCluster cluster;
  cluster.Ctl({"user", "add", "spoke:secret"});
  cluster.Ctl({"user", "grant-role", "spoke", "root"});
  EnableAuthentication(cluster);
  EtcdOptions options = OptionsOf(cluster);
  options.access.user = "spoke";
  options.access.password = "secret";
  const Servers servers(options);
  cluster.Ctl({"--user=root:secret", "user", "delete", "spoke"});
  cluster.Ctl({"--user=root:secret", "user", "add", "spoke:other"});
  cluster.Ctl({"--user=root:secret", "user", "grant-role", "spoke", "root"});
  ExpectBothSay(servers, cluster, StatusCode::kPermissionDenied,
                "does not know this user with this password");
}

TEST(EtcdRefusals, AuthenticationIsGone) {
  const EtcdCluster cluster;
  EnableAuthentication(cluster);
  EtcdOptions options = OptionsOf(cluster);
  options.access.user = "root";
  options.access.password = "secret";
  const Servers servers(options);
  cluster.Ctl({"--user=root:secret", "auth", "disable"});
  ExpectBothSay(servers, cluster, StatusCode::kPermissionDenied, "has no authentication");
  EXPECT_THAT(std::string(EtcdStore::Follow(options).status().message()),
              AllOf(HasSubstr("has no authentication"), HasSubstr(cluster.endpoints()[0])))
      << "who comes anew is told as well";
}

TEST(EtcdRefusals, TheUserMayNotWrite) {
  const EtcdCluster cluster;
  cluster.Ctl({"role", "add", "reader"});
  cluster.Ctl({"role", "grant-permission", "reader", "--prefix=true", "read", "/spoke/"});
  cluster.Ctl({"user", "add", "spoke:spoke"});
  cluster.Ctl({"user", "grant-role", "spoke", "reader"});
  EnableAuthentication(cluster);
  EtcdOptions options = OptionsOf(cluster);
  options.access.user = "spoke";
  options.access.password = "spoke";
  const auto opened = EtcdStore::Open(options);
  EXPECT_EQ(opened.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(opened.status().message()),
              AllOf(HasSubstr("may read and write the prefix"), HasSubstr(cluster.endpoints()[0])));
}

TEST(EtcdRefusals, AnotherClusterAnswersAtTheSameEndpoint) {
  EtcdCluster cluster;
  const Servers servers(OptionsOf(cluster));
  cluster.Kill(0);
  cluster.Forget(0);
  cluster.Start(0);
  ExpectBothSay(servers, cluster, StatusCode::kFailedPrecondition, "another cluster of etcd");
  EXPECT_EQ(cluster.Ctl({"get", "/spoke/", "--prefix"}), "") << "nothing was written there";
}

TEST(EtcdRefusals, NobodyAnswers) {
  EtcdCluster cluster;
  const Servers servers(OptionsOf(cluster));
  cluster.Kill(0);
  ExpectBothSay(servers, cluster, StatusCode::kUnavailable, "cannot be connected to");
}

TEST(EtcdRefusals, ANameHasNoAddressWhileTheOtherMemberIsAway) {
  EtcdCluster cluster;
  EtcdOptions options = OptionsOf(cluster);
  options.access.endpoints.push_back({.host = "etcd.invalid"});
  const Servers servers(options);
  cluster.Kill(0);
  ExpectBothSay(servers, cluster, StatusCode::kUnavailable,
                "http://etcd.invalid:2379: the name has no address");
}

TEST(EtcdRefusals, ThereIsNoQuorum) {
  EtcdCluster cluster({.members = 3});
  const Servers servers(OptionsOf(cluster));
  cluster.Kill(1);
  cluster.Kill(2);
  ExpectBothSay(servers, cluster, StatusCode::kUnavailable, "no answer in time");
}

}  // namespace
}  // namespace spoke::ipam
