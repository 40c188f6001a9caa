// The promises of a Cloud that chooses the addresses itself, as tests. Each implementation's test
// instantiates them with its factory.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/cloud/cloud.h"

namespace spoke::ipam {

struct ChoosingCloudFactory {
  std::string name;
  // Makes a cloud with two VMs that have nothing of ours.
  std::function<std::unique_ptr<Cloud>()> make;
  // What the cloud knows them by.
  std::function<std::vector<NicAddresses>()> vms;
};

class ChoosingCloudContract : public testing::TestWithParam<ChoosingCloudFactory> {
 protected:
  NicRequest Ask(size_t vm, const std::vector<std::string>& wanted,
                 const std::vector<IpConfiguration>& removing = {}) const {
    NicRequest request;
    request.node = vms_.at(vm).node;
    request.nic_mac = vms_.at(vm).nic_mac;
    request.instance = vms_.at(vm).instance;
    for (const std::string& name : wanted) request.wanted.push_back({name});
    request.removing = removing;
    return request;
  }
  static std::set<std::string> NamesOf(const NicAddresses& nic) {
    std::set<std::string> names;
    for (const IpConfiguration& entry : nic.configurations) names.insert(entry.name);
    return names;
  }
  using Set = std::set<std::string>;

  const std::unique_ptr<Cloud> cloud_ = GetParam().make();
  const std::vector<NicAddresses> vms_ = GetParam().vms();
};

TEST_P(ChoosingCloudContract, NamesGetAddressesThatNobodyElseHas) {
  ASSERT_TRUE(cloud_->ChoosesAddresses());
  const auto a = cloud_->Apply(Ask(0, {"spoke-1", "spoke-2"}));
  const auto b = cloud_->Apply(Ask(1, {"spoke-1"}));
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(a->node, vms_[0].node);
  EXPECT_EQ(NamesOf(*a), (Set{"spoke-1", "spoke-2"}));
  std::set<ip::Prefix> ranges;
  for (const auto* nic : {&*a, &*b}) {
    for (const IpConfiguration& entry : nic->configurations) ranges.insert(entry.range);
  }
  EXPECT_EQ(ranges.size(), 3U);
}

TEST_P(ChoosingCloudContract, AskingAgainGivesTheSameAddresses) {
  const auto first = cloud_->Apply(Ask(0, {"spoke-1", "spoke-2"}));
  const auto second = cloud_->Apply(Ask(0, {"spoke-1", "spoke-2"}));
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_EQ(*first, *second);
}

TEST_P(ChoosingCloudContract, EntriesGoByNameAndTheOthersKeepTheirAddresses) {
  const auto first = cloud_->Apply(Ask(0, {"spoke-1", "spoke-2"}));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = cloud_->Apply(Ask(0, {"spoke-3"}, {first->configurations[0]}));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(NamesOf(*second), (Set{"spoke-2", "spoke-3"}));
  EXPECT_EQ(second->configurations[0], first->configurations[1]);
  const auto again = cloud_->Apply(Ask(0, {}, {first->configurations[0]}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *second);
}

TEST_P(ChoosingCloudContract, WhatTheRequestDoesNotNameStaysAndIsTold) {
  ASSERT_TRUE(cloud_->Apply(Ask(0, {"spoke-1"})).ok());
  const auto nic = cloud_->Apply(Ask(0, {"spoke-2"}));
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(NamesOf(*nic), (Set{"spoke-1", "spoke-2"}));
  const auto look = cloud_->Apply(Ask(0, {}));
  ASSERT_TRUE(look.ok()) << look.status();
  EXPECT_EQ(*look, *nic);
}

TEST_P(ChoosingCloudContract, ListsEveryVmWithWhatIsOurs) {
  const auto nic = cloud_->Apply(Ask(0, {"spoke-1"}));
  ASSERT_TRUE(nic.ok()) << nic.status();
  const auto listing = cloud_->List();
  ASSERT_TRUE(listing.ok()) << listing.status();
  ASSERT_EQ(listing->size(), 2U);
  for (const NicAddresses& listed : *listing) {
    const bool first = listed.nic_mac == vms_[0].nic_mac;
    EXPECT_EQ(listed.configurations, first ? nic->configurations : decltype(nic->configurations)());
  }
}

}  // namespace spoke::ipam
