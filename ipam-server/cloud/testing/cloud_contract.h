// The promises of Cloud, as tests. Each implementation's test instantiates them with its factory.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ipam-server/cloud/cloud.h"

namespace spoke::ipam {

struct CloudFactory {
  std::string name;
  // Makes a cloud with two VMs that have nothing of ours. What it needs lives as long as it does.
  std::function<std::shared_ptr<Cloud>(CloudAnswer)> make;
  // What the cloud knows the VMs by.
  std::function<std::vector<NicAddresses>()> vms;
};

class CloudContract : public testing::TestWithParam<CloudFactory> {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(60);
  using Names = std::set<std::string>;

  // Asks for entries of those names on top of what the NIC has, without those that are taken off.
  // A cloud that does not choose is told the whole list, with an address for each new name.
  NicRequest Ask(size_t vm, const Names& more, const std::vector<IpConfiguration>& off = {},
                 int v4_length = 32) {
    const NicAddresses& nic = vms_.at(vm);
    NicRequest request{.node = nic.node, .nic_mac = nic.nic_mac, .removing = off};
    request.instance = nic.instance;
    if (cloud_->ChoosesAddresses()) {
      for (const std::string& name : more) {
        request.wanted.push_back({name, ip::Family::kV4, v4_length});
      }
      return request;
    }
    for (const IpConfiguration& entry : held_[nic.node]) {
      if (std::find(off.begin(), off.end(), entry) != off.end()) continue;
      if (!more.contains(entry.name)) request.configurations.push_back(entry);
    }
    for (const std::string& name : more) request.configurations.push_back(EntryOf(name, v4_length));
    return request;
  }
  // Requests, and waits for the answer.
  absl::StatusOr<NicAddresses> Get(const NicRequest& request) {
    const size_t before = AnswersFor(request.node);
    cloud_->Request(request);
    absl::MutexLock lock(&mutex_);
    const auto& answers = answers_[request.node];
    const auto there = [&] { return answers.size() > before; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience)) {
      return absl::DeadlineExceededError("no answer came");
    }
    if (answers.back().ok()) held_[request.node] = answers.back()->configurations;
    return answers.back();
  }
  // Waits until the node's last answer has just those names.
  bool AwaitAnswer(const NodeKey& node, const Names& names) {
    absl::MutexLock lock(&mutex_);
    const auto& answers = answers_[node];
    const auto there = [&] {
      return !answers.empty() && answers.back().ok() && NamesOf(*answers.back()) == names;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience);
  }
  size_t AnswersFor(const NodeKey& node) {
    absl::MutexLock lock(&mutex_);
    return answers_[node].size();
  }
  CloudListing List() {
    struct Listed {
      absl::Notification done;
      CloudListing listing = absl::DeadlineExceededError("no listing came");
    };
    // Shared with the cloud, whose listing may come after the test has given up.
    const auto listed = std::make_shared<Listed>();
    cloud_->List([listed](CloudListing listing) {
      ASSERT_FALSE(listed->done.HasBeenNotified()) << "told twice";
      listed->listing = std::move(listing);
      listed->done.Notify();
    });
    if (!listed->done.WaitForNotificationWithTimeout(kPatience)) {
      return absl::DeadlineExceededError("no listing came");
    }
    return listed->listing;
  }
  static Names NamesOf(const NicAddresses& nic) {
    Names names;
    for (const IpConfiguration& entry : nic.configurations) names.insert(entry.name);
    return names;
  }

 private:
  // Each name has a range of its own, aligned for a block.
  IpConfiguration EntryOf(const std::string& name, int length) {
    const size_t number = numbers_.try_emplace(name, numbers_.size() + 1).first->second;
    const ip::Address base =
        ip::Advance(ip::Address::V4(0x0A010000), static_cast<uint64_t>(number) * 16);
    return {name, ip::Prefix::Of(base, length).value()};
  }

  absl::Mutex mutex_;
  std::map<NodeKey, std::vector<absl::StatusOr<NicAddresses>>> answers_ ABSL_GUARDED_BY(mutex_);
  std::map<NodeKey, std::vector<IpConfiguration>> held_;
  std::map<std::string, size_t> numbers_;

 protected:
  const std::vector<NicAddresses> vms_ = GetParam().vms();
  const std::shared_ptr<Cloud> cloud_ =
      GetParam().make([this](const NodeKey& node, absl::StatusOr<NicAddresses> result) {
        absl::MutexLock lock(&mutex_);
        answers_[node].push_back(std::move(result));
      });
};

TEST_P(CloudContract, EveryEntryHasAnAddressThatNobodyElseHas) {
  const auto a = Get(Ask(0, {"spoke-1", "spoke-2"}));
  const auto b = Get(Ask(1, {"spoke-3"}));
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(a->node, vms_[0].node);
  EXPECT_EQ(a->nic_mac, vms_[0].nic_mac);
  EXPECT_EQ(NamesOf(*a), (Names{"spoke-1", "spoke-2"}));
  EXPECT_EQ(NamesOf(*b), Names{"spoke-3"});
  std::set<ip::Prefix> ranges;
  for (const auto* nic : {&*a, &*b}) {
    EXPECT_TRUE(std::is_sorted(nic->configurations.begin(), nic->configurations.end()));
    for (const IpConfiguration& entry : nic->configurations) ranges.insert(entry.range);
  }
  EXPECT_EQ(ranges.size(), 3U);
}

TEST_P(CloudContract, AskingAgainGivesTheSameAddresses) {
  const NicRequest request = Ask(0, {"spoke-1", "spoke-2"});
  const auto first = Get(request);
  const auto second = Get(request);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(*first, *second);
}

TEST_P(CloudContract, EntriesGoAndTheOthersKeepTheirAddresses) {
  const auto first = Get(Ask(0, {"spoke-1", "spoke-2"}));
  ASSERT_TRUE(first.ok()) << first.status();
  const IpConfiguration gone = first->configurations[0];
  const auto second = Get(Ask(0, {"spoke-3"}, {gone}));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(NamesOf(*second), (Names{"spoke-2", "spoke-3"}));
  EXPECT_EQ(second->configurations[0], first->configurations[1]);
  const auto again = Get(Ask(0, {}, {gone}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *second);
}

TEST_P(CloudContract, WhatTheRequestDoesNotNameStaysOnlyWhereTheCloudChooses) {
  ASSERT_TRUE(Get(Ask(0, {"spoke-1"})).ok());
  NicRequest other = Ask(0, {"spoke-2"});
  std::erase_if(other.configurations, [](const auto& entry) { return entry.name == "spoke-1"; });
  const auto nic = Get(other);
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(NamesOf(*nic),
            cloud_->ChoosesAddresses() ? (Names{"spoke-1", "spoke-2"}) : Names{"spoke-2"});
  const auto look = Get(Ask(0, {}));
  ASSERT_TRUE(look.ok()) << look.status();
  EXPECT_EQ(*look, *nic);
}

TEST_P(CloudContract, ABlockIsOneEntry) {
  const auto nic = Get(Ask(0, {"spoke-1"}, {}, 28));
  ASSERT_TRUE(nic.ok()) << nic.status();
  ASSERT_EQ(nic->configurations.size(), 1U);
  EXPECT_EQ(nic->configurations[0].range.length(), 28);
}

TEST_P(CloudContract, ListsEveryVmWithWhatIsOurs) {
  const auto a = Get(Ask(0, {"spoke-1", "spoke-2"}));
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(Get(Ask(1, {})).ok()) << "a node without addresses is there as well";
  const auto listing = List();
  ASSERT_TRUE(listing.ok()) << listing.status();
  ASSERT_EQ(listing->size(), 2U);
  for (const NicAddresses& listed : *listing) {
    const bool first =
        listed.instance.empty() ? listed.node == vms_[0].node : listed.instance == vms_[0].instance;
    EXPECT_EQ(listed.configurations, first ? a->configurations : vms_[1].configurations);
    EXPECT_TRUE(cloud_->Covers(listed.instance));
  }
}

TEST_P(CloudContract, OfManyRequestsForOneNodeTheLastDecides) {
  const Names both = {"spoke-1", "spoke-2"};
  for (int i = 0; i < 20; ++i) cloud_->Request(Ask(0, {"spoke-1"}));
  cloud_->Request(Ask(0, both));
  EXPECT_TRUE(AwaitAnswer(vms_[0].node, both));
  EXPECT_LE(AnswersFor(vms_[0].node), 21U) << "one answer a request";
  EXPECT_FALSE(cloud_->ForecastOf(vms_[1].node).has_value()) << "nothing waits for it";
}

TEST_P(CloudContract, AfterItsEndNothingIsAnsweredAndNothingListed) {
  for (int i = 0; i < 5; ++i) cloud_->Request(Ask(0, {"spoke-1"}));
  cloud_->Stop();
  const size_t answered = AnswersFor(vms_[0].node);
  cloud_->Request(Ask(1, {"spoke-1"}));
  EXPECT_EQ(List().status().code(), absl::StatusCode::kUnavailable);
  cloud_->Stop();
  EXPECT_EQ(AnswersFor(vms_[0].node), answered);
  EXPECT_EQ(AnswersFor(vms_[1].node), 0U);
}

TEST_P(CloudContract, WhoWaitsForAListingIsToldSoAtTheEnd) {
  absl::Notification told;
  cloud_->List([&](const CloudListing& listing) {
    EXPECT_TRUE(listing.ok() || absl::IsUnavailable(listing.status())) << listing.status();
    told.Notify();
  });
  cloud_->Stop();
  EXPECT_TRUE(told.HasBeenNotified());
}

}  // namespace spoke::ipam
