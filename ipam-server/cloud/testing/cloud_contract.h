// The promises of Cloud, as tests. Each implementation's test instantiates them with its factory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/cloud/cloud.h"

namespace spoke::ipam {

struct CloudFactory {
  std::string name;
  std::function<std::unique_ptr<Cloud>()> make;
};

class CloudContract : public testing::TestWithParam<CloudFactory> {
 protected:
  static ip::Prefix RangeOf(const std::string& text) {
    return text.find('/') == std::string::npos ? ip::Prefix::Host(ip::Address::Parse(text).value())
                                               : ip::Prefix::Parse(text).value();
  }
  // Returns Nic() as a request.
  static NicRequest Ask(const std::string& node, std::vector<std::string> addresses) {
    NicAddresses nic = Nic(node, std::move(addresses));
    return {.node = nic.node, .nic_mac = nic.nic_mac, .configurations = nic.configurations};
  }
  static NicAddresses Nic(const std::string& node, std::vector<std::string> addresses) {
    NicAddresses nic{.node = {node, "vm-" + node},
                     .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:01").value()};
    for (const std::string& address : addresses) {
      nic.configurations.push_back({"spoke-" + address, RangeOf(address)});
    }
    return nic;
  }

  const std::unique_ptr<Cloud> cloud_ = GetParam().make();
};

TEST_P(CloudContract, WhatWasAppliedIsListed) {
  EXPECT_TRUE(cloud_->List()->empty());
  ASSERT_TRUE(cloud_->Apply(Ask("b", {"10.1.0.7"})).ok());
  ASSERT_TRUE(cloud_->Apply(Ask("a", {"10.1.0.5", "10.1.0.6"})).ok());
  EXPECT_EQ(*cloud_->List(), (std::vector<NicAddresses>{Nic("a", {"10.1.0.5", "10.1.0.6"}),
                                                        Nic("b", {"10.1.0.7"})}));
}

TEST_P(CloudContract, ApplyReplacesAndReturnsWhatTheNicHolds) {
  ASSERT_TRUE(cloud_->Apply(Ask("a", {"10.1.0.5", "10.1.0.6"})).ok());
  EXPECT_EQ(*cloud_->Apply(Ask("a", {"10.1.0.6"})), Nic("a", {"10.1.0.6"}));
  EXPECT_EQ(*cloud_->Apply(Ask("a", {"10.1.0.6"})), Nic("a", {"10.1.0.6"}));
  EXPECT_EQ(*cloud_->List(), std::vector<NicAddresses>{Nic("a", {"10.1.0.6"})});
}

TEST_P(CloudContract, ABlockIsOneConfiguration) {
  EXPECT_EQ(*cloud_->Apply(Ask("a", {"10.1.0.16/28", "10.1.0.5"})),
            Nic("a", {"10.1.0.16/28", "10.1.0.5"}));
}

TEST_P(CloudContract, ANodeWithoutAddressesIsStillThere) {
  ASSERT_TRUE(cloud_->Apply(Ask("a", {"10.1.0.5"})).ok());
  ASSERT_TRUE(cloud_->Apply(Ask("a", {})).ok());
  EXPECT_EQ(*cloud_->List(), std::vector<NicAddresses>{Nic("a", {})});
}

}  // namespace spoke::ipam
