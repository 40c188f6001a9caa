#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "ipam-server/cloud/static_cloud.h"
#include "ipam-server/cloud/testing/cloud_contract.h"
#include "ipam-server/cloud/testing/fake_cloud.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {
namespace {

NicAddresses Nic(const std::string& node, const std::string& mac, const std::string& address) {
  return {.node = {node, "vm"},
          .nic_mac = ip::MacAddress::Parse(mac).value(),
          .configurations = {{"spoke-1", ip::Prefix::Host(ip::Address::Parse(address).value())}}};
}

NicRequest Ask(const std::string& node, const std::string& mac, const std::string& address) {
  const NicAddresses nic = Nic(node, mac, address);
  return {.node = nic.node, .nic_mac = nic.nic_mac, .configurations = nic.configurations};
}

std::vector<NicAddresses> TwoVms() {
  return {{.node = {"node1", "vm-1"},
           .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:01").value(),
           .configurations = {},
           .instance = "/vm/1"},
          {.node = {"node2", "vm-2"},
           .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:02").value(),
           .configurations = {},
           .instance = "/vm/2"}};
}

std::shared_ptr<Cloud> ChoosingFake(CloudAnswer answer) {
  auto cloud = std::make_shared<FakeCloud>(std::move(answer));
  cloud->ChooseFrom(ip::Prefix::Parse("10.1.0.0/24").value());
  return cloud;
}

INSTANTIATE_TEST_SUITE_P(
    Clouds, CloudContract,
    testing::Values(CloudFactory{"Fake",
                                 [](CloudAnswer answer) -> std::shared_ptr<Cloud> {
                                   return std::make_shared<FakeCloud>(std::move(answer));
                                 },
                                 TwoVms},
                    CloudFactory{"ChoosingFake", ChoosingFake, TwoVms},
                    CloudFactory{"Static",
                                 [](CloudAnswer answer) -> std::shared_ptr<Cloud> {
                                   return std::make_shared<StaticCloud>("", std::move(answer));
                                 },
                                 TwoVms}),
    [](const auto& test) { return test.param.name; });

// What came of requests, in order.
class Answers {
 public:
  CloudAnswer Sink() {
    return [this](const NodeKey& /*node*/, absl::StatusOr<NicAddresses> result) {
      absl::MutexLock lock(&mutex_);
      results_.push_back(std::move(result));
    };
  }
  absl::StatusOr<NicAddresses> Next() {
    absl::MutexLock lock(&mutex_);
    const auto there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !results_.empty(); };
    mutex_.Await(absl::Condition(&there));
    absl::StatusOr<NicAddresses> result = std::move(results_.front());
    results_.pop_front();
    return result;
  }

 private:
  absl::Mutex mutex_;
  std::deque<absl::StatusOr<NicAddresses>> results_ ABSL_GUARDED_BY(mutex_);
};

// Neither of the two here takes its time.
std::vector<NicAddresses> Listed(Cloud& cloud) {
  std::vector<NicAddresses> nics;
  cloud.List([&](CloudListing listing) { nics = std::move(listing).value(); });
  return nics;
}

TEST(StaticCloud, PublishesEveryAttachmentInAddressOrder) {
  const testing_support::TempDir dir;
  const std::string file = dir.File("attachments");
  Answers answers;
  StaticCloud cloud(file, answers.Sink());
  EXPECT_FALSE(os::ReadFile(file).ok()) << "nothing is touched before it is told to begin";
  ASSERT_TRUE(cloud.Begin({Nic("node2", "00:0d:3a:00:00:02", "10.1.0.9")}).ok());
  EXPECT_EQ(*os::ReadFile(file), "# address\tnic\tnode\n10.1.0.9/32\t00:0d:3a:00:00:02\tnode2\n");
  cloud.Request(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10"));
  ASSERT_TRUE(answers.Next().ok());
  EXPECT_EQ(*os::ReadFile(file),
            "# address\tnic\tnode\n10.1.0.9/32\t00:0d:3a:00:00:02\tnode2\n"
            "10.1.0.10/32\t00:0d:3a:00:00:01\tnode1\n");
}

TEST(StaticCloud, WhatCannotBePublishedIsNotAttached) {
  const testing_support::TempDir dir;
  std::filesystem::create_directory(dir.File("sub"));
  Answers answers;
  StaticCloud cloud(dir.File("sub/attachments"), answers.Sink());
  ASSERT_TRUE(cloud.Begin({}).ok());
  std::filesystem::remove_all(dir.File("sub"));
  cloud.Request(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10"));
  EXPECT_FALSE(answers.Next().ok());
  EXPECT_FALSE(cloud.Begin({Nic("node2", "00:0d:3a:00:00:02", "10.1.0.9")}).ok());
  EXPECT_TRUE(Listed(cloud).empty());
  std::filesystem::create_directory(dir.File("sub"));
  cloud.Request(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10"));
  EXPECT_TRUE(answers.Next().ok()) << "asked again, it is done";
  EXPECT_EQ(Listed(cloud).size(), 1U);
}

TEST(StaticCloud, AnotherVmUnderTheNameReplacesTheFirst) {
  Answers answers;
  StaticCloud cloud("", answers.Sink());
  NicRequest nic = Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10");
  cloud.Request(nic);
  ASSERT_TRUE(answers.Next().ok());
  nic.node.vm_id = "vm-new";
  cloud.Request(nic);
  ASSERT_TRUE(answers.Next().ok());
  EXPECT_EQ(Listed(cloud), std::vector<NicAddresses>{nic.Configured()});
}

TEST(FakeCloud, RefusesWhenTold) {
  Answers answers;
  FakeCloud cloud(answers.Sink());
  cloud.FailRequests(absl::UnavailableError("throttled"));
  cloud.Request(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10"));
  EXPECT_FALSE(answers.Next().ok());
  EXPECT_EQ(cloud.applied(), 0);
  EXPECT_TRUE(Listed(cloud).empty());
}

TEST(FakeCloud, HoldsRequestsUntilItIsLetAndKeepsTheNewestOfANode) {
  Answers answers;
  FakeCloud cloud(answers.Sink());
  cloud.Hold();
  cloud.Request(Ask("node1", "00:0d:3a:00:00:01", "10.1.0.10"));
  const NicRequest newest = Ask("node1", "00:0d:3a:00:00:01", "10.1.0.11");
  cloud.Request(newest);
  EXPECT_EQ(cloud.waiting(), std::vector<NicRequest>{newest});
  EXPECT_TRUE(Listed(cloud).empty());
  cloud.Answer();
  EXPECT_EQ(*answers.Next(), newest.Configured());
}

}  // namespace
}  // namespace spoke::ipam
