// What every HostResolver promises, as tests. Tests only.
//
//   INSTANTIATE_TEST_SUITE_P(Fake, HostResolverContract, testing::Values([] { ... }));
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/dns/host_resolver.h"

namespace spoke::ipam {

// One that knows "localhost", which every machine does without asking anybody.
using MakeResolver = std::function<std::unique_ptr<HostResolver>()>;

class HostResolverContract : public testing::TestWithParam<MakeResolver> {
 protected:
  const std::unique_ptr<HostResolver> resolver_ = GetParam()();
};

TEST_P(HostResolverContract, GivesTheAddressesOfANameItKnows) {
  const HostAddresses found = resolver_->Resolve({"localhost"}, absl::Seconds(60));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found.at("localhost"), testing::Contains(ip::Address::V4(0x7F000001)));
  EXPECT_THAT(found.at("localhost"), testing::WhenSorted(found.at("localhost")));
}

TEST_P(HostResolverContract, LeavesOutWhatItDoesNotKnow) {
  // A label may have 63 signs, so that no server is asked.
  const std::string none = std::string(64, 'a') + ".invalid";
  const HostAddresses found = resolver_->Resolve({none, "localhost"}, absl::Seconds(60));
  EXPECT_THAT(found, testing::ElementsAre(testing::Key("localhost")));
}

TEST_P(HostResolverContract, GivesNothingForNothing) {
  EXPECT_TRUE(resolver_->Resolve({}, absl::Seconds(60)).empty());
}

}  // namespace spoke::ipam
