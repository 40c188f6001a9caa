// EtcdStore against real members of etcd: the contract of all stores, and what is its own.
#include "ipam-server/store/etcd/etcd_store.h"

#include <fstream>
#include <map>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/store/etcd/testing/etcd_cluster.h"
#include "ipam-server/store/migration.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/store/sqlite_store.h"
#include "ipam-server/store/testing/store_contract.h"
#include "lib/os/subprocess.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

using absl::StatusCode;
using etcd::EtcdCluster;
using testing::HasSubstr;

// One for all that a process opens: each directory has a prefix of its own.
EtcdCluster& ClusterOf(size_t members) {
  static std::map<size_t, EtcdCluster> clusters;
  return clusters.try_emplace(members, etcd::ClusterOptions{.members = members}).first->second;
}

EtcdOptions OptionsOf(const EtcdCluster& cluster, const std::string& prefix = "/spoke/") {
  EtcdOptions options;
  options.access = cluster.access();
  options.prefix = prefix;
  options.leadership.name = "server-a";
  return options;
}

StoreFactory FactoryOf(std::string name, size_t members) {
  return {.name = std::move(name),
          .open = [members](const std::string& directory) -> std::unique_ptr<Store> {
            return EtcdStore::Open(OptionsOf(ClusterOf(members), directory + "/")).value();
          },
          .restore = [](const std::string& backup) { return OpenSqliteStore(backup); },
          .durable = true};
}

INSTANTIATE_TEST_SUITE_P(Etcd, StoreContract,
                         testing::Values(FactoryOf("OneMember", 1), FactoryOf("ThreeMembers", 3)),
                         [](const auto& test) { return test.param.name; });

absl::StatusOr<int64_t> Put(Store& store, const std::string& key, const std::string& value,
                            int64_t expected = 0) {
  const std::vector<CompareAndPut> batch = {{key, value, expected}};
  const auto revisions = store.Commit(batch);
  if (!revisions.ok()) return revisions.status();
  return revisions->at(0);
}

TEST(EtcdStore, RecordsMoveFromSqliteToEtcdAndBack) {
  const testing_support::TempDir directory;
  const auto old_store = OpenSqliteStore(directory.path() + "/old.db").value();
  std::vector<CompareAndPut> batch;
  for (size_t i = 0; i < 3000; ++i) {
    batch.push_back({.key = fmt::format("node/{:05}", i), .value = std::string(i % 700, 'x')});
  }
  batch.push_back({.key = std::string(kStoreKey), .value = EncodeStore({.store_id = "abc"})});
  ASSERT_TRUE(old_store->Commit(batch).ok());
  const auto quiet = [](std::string_view, int64_t) {};

  const EtcdCluster cluster({.members = 3});
  const auto etcd_store = EtcdStore::Open(OptionsOf(cluster)).value();
  const auto there = MigrateStore(*old_store, *etcd_store, absl::Now(), quiet);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->records, 3001);
  EXPECT_TRUE(CheckNotMoved(*etcd_store).ok());
  EXPECT_FALSE(CheckNotMoved(*old_store).ok());

  const auto new_store = OpenSqliteStore(directory.path() + "/new.db").value();
  const auto back = MigrateStore(*etcd_store, *new_store, absl::Now(), quiet);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->records, 3001);
  EXPECT_EQ(new_store->Get("node/02999")->value().value, std::string(2999 % 700, 'x'));
  EXPECT_EQ(DecodeStore(new_store->Get(kStoreKey)->value().value)->epoch, 2 * kMigrationRaise);
  EXPECT_FALSE(CheckNotMoved(*etcd_store).ok());
}

TEST(EtcdStore, ASecondServerIsToldWhoLeadsAndWinsOnceTheFirstHasGone) {
  const EtcdCluster cluster;
  auto first = EtcdStore::Open(OptionsOf(cluster)).value();
  ASSERT_TRUE(Put(*first, "a", "1").ok());
  EtcdOptions options = OptionsOf(cluster);
  options.leadership.name = "server-b";
  const absl::Status refused = EtcdStore::Open(options).status();
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("server-a"));
  const int64_t fence = first->Fence();
  EXPECT_GT(first->LeadershipMargin(), absl::Seconds(1));
  first.reset();
  const auto second = EtcdStore::Open(options).value();
  EXPECT_GT(second->Fence(), fence);
  EXPECT_EQ(second->Get("a")->value().value, "1");
}

TEST(EtcdStore, ADeposedServerWritesNothingAndIsToldOnce) {
  const EtcdCluster cluster;
  EtcdOptions options = OptionsOf(cluster);
  int lost = 0;
  options.leadership.on_lost = [&](const absl::Status&) { ++lost; };
  const auto first = EtcdStore::Open(options).value();
  ASSERT_TRUE(Put(*first, "a", "1").ok());
  EtcdOptions usurper = OptionsOf(cluster);
  usurper.leadership.name = "server-b";
  usurper.leadership.depose = first->Fence();
  const auto second = EtcdStore::Open(usurper).value();
  const absl::Status refused = Put(*first, "b", "1").status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("server-b"));
  EXPECT_EQ(Put(*first, "b", "1").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(first->Get("a").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_LE(first->LeadershipMargin(), absl::ZeroDuration());
  EXPECT_EQ(lost, 1);
  EXPECT_FALSE(second->Get("b")->has_value());
  // Whoever is overthrown twice by one revision was not: the second would-be leader read too early.
  EXPECT_EQ(EtcdStore::Open(usurper).status().code(), StatusCode::kAlreadyExists);
}

TEST(EtcdStore, ADeposedServerThatWritesNothingLearnsItFromItsLease) {
  const EtcdCluster cluster;
  EtcdOptions options = OptionsOf(cluster);
  absl::Notification lost;
  options.leadership.on_lost = [&](const absl::Status&) { lost.Notify(); };
  const auto first = EtcdStore::Open(options).value();
  EtcdOptions usurper = OptionsOf(cluster);
  usurper.leadership.name = "server-b";
  usurper.leadership.depose = first->Fence();
  const auto second = EtcdStore::Open(usurper).value();
  EXPECT_TRUE(lost.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_LE(first->LeadershipMargin(), absl::ZeroDuration());
}

TEST(EtcdStore, ABackupIsAStoreOfSqliteWithTheSameRevisions) {
  const EtcdCluster cluster;
  const testing_support::TempDir dir;
  const auto store = EtcdStore::Open(OptionsOf(cluster)).value();
  const int64_t revision = Put(*store, "node/a", "1").value();
  ASSERT_TRUE(store->Backup(dir.File("copy.db")).ok());
  const auto copy = OpenSqliteStore(dir.File("copy.db")).value();
  EXPECT_EQ(copy->Get("node/a").value(), (StoredRecord{"1", revision}));
}

TEST(EtcdStore, AnotherClusterThanTheRememberedOneIsRefused) {
  const testing_support::TempDir dir;
  {
    const EtcdCluster cluster;
    EtcdOptions options = OptionsOf(cluster);
    options.directory = dir.path();
    ASSERT_TRUE(EtcdStore::Open(options).ok());
    ASSERT_TRUE(EtcdStore::Open(options).ok());
  }
  const EtcdCluster other;
  EtcdOptions options = OptionsOf(other);
  options.directory = dir.path();
  const absl::Status refused = EtcdStore::Open(options).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("another cluster"));
  EXPECT_EQ(other.Ctl({"get", "--prefix", "/"}), "") << "nothing was changed";
  std::ofstream(dir.File("etcd-cluster")) << "no id";
  EXPECT_EQ(EtcdStore::Open(options).status().code(), StatusCode::kDataLoss);
}

TEST(EtcdStore, EndpointsThatResolveToNothingOrAnswerNothingSaySo) {
  EtcdOptions options;
  options.access.endpoints = {{"no-such-host.invalid", 2379, false}};
  const absl::Status unknown = EtcdStore::Open(options).status();
  EXPECT_EQ(unknown.code(), StatusCode::kNotFound) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("has an address"));
  options.access.endpoints = {{"127.0.0.1", 1, false}};
  EXPECT_EQ(EtcdStore::Open(options).status().code(), StatusCode::kUnavailable);
}

// Users: root, and reader, who may only read.
void EnableAuthentication(const EtcdCluster& cluster) {
  cluster.Ctl({"user", "add", "root:secret"});
  cluster.Ctl({"user", "grant-role", "root", "root"});
  cluster.Ctl({"user", "add", "reader:secret"});
  cluster.Ctl({"role", "add", "reads"});
  cluster.Ctl({"role", "grant-permission", "--prefix=true", "reads", "read", "/spoke/"});
  cluster.Ctl({"user", "grant-role", "reader", "reads"});
  cluster.Ctl({"auth", "enable"});
}

TEST(EtcdStore, UserAndPasswordAreShownWhereTheyAreNeededAndOnlyThere) {
  const EtcdCluster cluster;
  const auto open = [&](const std::string& user, const std::string& password) {
    EtcdOptions options = OptionsOf(cluster);
    options.access.user = user;
    options.access.password = password;
    return EtcdStore::Open(options).status();
  };
  const absl::Status needless = open("root", "secret");
  EXPECT_EQ(needless.code(), StatusCode::kPermissionDenied) << needless;
  EXPECT_THAT(std::string(needless.message()), HasSubstr("has no authentication"));
  EnableAuthentication(cluster);
  EXPECT_TRUE(open("root", "secret").ok()) << open("root", "secret");
  EXPECT_THAT(std::string(open("root", "wrong").message()), HasSubstr("does not know this user"));
  const absl::Status nobody = open("", "");
  EXPECT_EQ(nobody.code(), StatusCode::kPermissionDenied) << nobody;
  EXPECT_THAT(std::string(nobody.message()), HasSubstr("demands authentication"));
  const absl::Status reader = open("reader", "secret");
  EXPECT_EQ(reader.code(), StatusCode::kPermissionDenied) << reader;
  EXPECT_THAT(std::string(reader.message()), HasSubstr("read and write the prefix"));
}

// Files of an authority, and of a member and a client that it has signed: both are 127.0.0.1.
void MakeCertificates(const testing_support::TempDir& dir) {
  std::ofstream(dir.File("san")) << "subjectAltName=IP:127.0.0.1";
  const auto openssl = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "/usr/bin/openssl");
    const auto result = os::RunProgram(arguments);
    ASSERT_TRUE(result.ok() && result->exit_code == 0) << result->errors;
  };
  const std::vector<std::string> new_key = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                                            "-nodes"};
  for (const std::string name : {"ca", "other"}) {
    std::vector<std::string> make = {"req",     "-x509",
                                     "-days",   "1",
                                     "-subj",   "/CN=" + name,
                                     "-keyout", dir.File(name + ".key"),
                                     "-out",    dir.File(name + ".pem")};
    make.insert(make.end(), new_key.begin(), new_key.end());
    openssl(make);
  }
  for (const std::string name : {"member", "client"}) {
    std::vector<std::string> ask = {"req",     "-new",
                                    "-subj",   "/CN=root",
                                    "-keyout", dir.File(name + ".key"),
                                    "-out",    dir.File(name + ".csr")};
    ask.insert(ask.end(), new_key.begin(), new_key.end());
    openssl(ask);
    openssl({"x509", "-req", "-days", "1", "-in", dir.File(name + ".csr"), "-CA",
             dir.File("ca.pem"), "-CAkey", dir.File("ca.key"), "-CAcreateserial", "-extfile",
             dir.File("san"), "-out", dir.File(name + ".pem")});
  }
}

TEST(EtcdStore, WithTlsBothSidesShowACertificateOfTheAuthority) {
  const testing_support::TempDir dir;
  MakeCertificates(dir);
  const EtcdCluster cluster(
      {.flags = {"--cert-file", dir.File("member.pem"), "--key-file", dir.File("member.key"),
                 "--trusted-ca-file", dir.File("ca.pem"), "--client-cert-auth"},
       .scheme = "https"});
  EtcdOptions options = OptionsOf(cluster);
  options.access.ca = dir.File("ca.pem");
  options.access.certificate = dir.File("client.pem");
  options.access.key = dir.File("client.key");
  auto store = EtcdStore::Open(options);
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (!store.ok() && absl::Now() < end) store = EtcdStore::Open(options);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(Put(**store, "a", "1").ok());
  store->reset();
  EtcdOptions without = options;
  without.access.certificate = without.access.key = "";
  EXPECT_EQ(EtcdStore::Open(without).status().code(), StatusCode::kUnavailable);
  EtcdOptions mistrusting = options;
  mistrusting.access.ca = dir.File("other.pem");
  EXPECT_EQ(EtcdStore::Open(mistrusting).status().code(), StatusCode::kUnavailable);
  EtcdOptions missing = options;
  missing.access.ca = dir.File("none.pem");
  EXPECT_EQ(EtcdStore::Open(missing).status().code(), StatusCode::kNotFound);
}

TEST(EtcdStore, ATokenThatHasEndedIsReplaced) {
  const EtcdCluster cluster({.flags = {"--auth-token-ttl", "1"}});
  EnableAuthentication(cluster);
  EtcdOptions options = OptionsOf(cluster);
  options.access.user = "root";
  options.access.password = "secret";
  // Nothing keeps the token alive but what the test does.
  options.leadership.lease = absl::Seconds(60);
  const auto store = EtcdStore::Open(options).value();
  int64_t revision = 0;
  for (int i = 0; i < 3; ++i) {
    const auto put = Put(*store, "a", std::to_string(i), revision);
    ASSERT_TRUE(put.ok()) << put.status();
    revision = *put;
    absl::SleepFor(absl::Milliseconds(2500));
  }
}

}  // namespace
}  // namespace spoke::ipam
