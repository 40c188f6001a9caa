#include "ipam-server/admin/describe.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;

v1::AddressInfo Row(const std::string& address, const std::string& node, const std::string& state) {
  v1::AddressInfo info;
  info.set_address(address);
  info.set_node(node);
  info.set_state(state);
  return info;
}

TEST(RowsByAddress, AreSortedAsAddressesAre) {
  EXPECT_THAT(RowsByAddress({Row("10.1.0.10", "a", "available"), Row("10.1.0.9", "b", "available"),
                             Row("9.0.0.1", "c", "in_use")}),
              ElementsAre(2, 1, 0));
}

TEST(RowsByAddress, OfAnAddressThatMovedMeanwhileTheLaterIsKept) {
  EXPECT_THAT(RowsByAddress({Row("10.1.0.4", "a", "available"), Row("10.1.0.5", "a", "available"),
                             Row("10.1.0.4", "z", "in_use")}),
              ElementsAre(2, 1));
}

TEST(RowsByAddress, WhatTheCloudGaveTooEarlyIsShownBesideItsHolder) {
  EXPECT_THAT(RowsByAddress({Row("10.1.0.4", "a", "released"), Row("10.1.0.4", "b", "unusable")}),
              ElementsAre(0, 1));
}

}  // namespace
}  // namespace spoke::ipam
