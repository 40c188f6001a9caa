// What each GatewayRoutes promises, as tests: instantiate with a factory.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/core/claims.h"
#include "netagent/kernel/gateway_routes.h"

namespace spoke::netagent {

// Holds what the routes need to live in.
struct GatewayRoutesUnderTest {
  virtual ~GatewayRoutesUnderTest() = default;
  virtual GatewayRoutes& routes() = 0;
};
using MakeGatewayRoutes = std::function<std::unique_ptr<GatewayRoutesUnderTest>()>;

class GatewayRoutesContract : public testing::TestWithParam<MakeGatewayRoutes> {
 protected:
  void SetUp() override {
    made_ = GetParam()();
    if (made_ == nullptr) {
      ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr);
      GTEST_SKIP() << "needs CAP_SYS_ADMIN";
    }
  }
  GatewayRoutes& routes() { return made_->routes(); }
  std::map<uint32_t, ip::Address> Ways() { return routes().Read().value(); }

  static constexpr uint32_t kFirst = claims::kFirstGatewayMark;
  static constexpr uint32_t kLast = claims::kFirstGatewayMark + claims::kGatewayMarks - 1;
  const ip::Address a_ = ip::Address::V4(0x0A010064);
  const ip::Address b_ = ip::Address::V4(0x0A010065);
  const ip::Address six_ = ip::Address::V6(0xFD00'0001'0000'0000, 0x100);

 private:
  std::unique_ptr<GatewayRoutesUnderTest> made_;
};

TEST_P(GatewayRoutesContract, LeadsBothFamilies) {
  EXPECT_TRUE(Ways().empty());
  ASSERT_TRUE(routes().Lead(kFirst, a_).ok());
  ASSERT_TRUE(routes().Lead(kLast, six_).ok());
  EXPECT_THAT(Ways(), testing::ElementsAre(testing::Pair(kFirst, a_), testing::Pair(kLast, six_)));
}

TEST_P(GatewayRoutesContract, TwiceIsAsOnce) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(routes().Lead(kFirst, a_).ok());
  EXPECT_THAT(Ways(), testing::ElementsAre(testing::Pair(kFirst, a_)));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(routes().Forget(kFirst).ok());
  EXPECT_TRUE(Ways().empty());
}

TEST_P(GatewayRoutesContract, AMarkLeadsToOneGateway) {
  ASSERT_TRUE(routes().Lead(kFirst, a_).ok());
  ASSERT_TRUE(routes().Lead(kFirst, b_).ok());
  EXPECT_THAT(Ways(), testing::ElementsAre(testing::Pair(kFirst, b_)));
  ASSERT_TRUE(routes().Lead(kFirst, six_).ok());
  EXPECT_THAT(Ways(), testing::ElementsAre(testing::Pair(kFirst, six_)));
}

TEST_P(GatewayRoutesContract, OtherMarksAreRefused) {
  EXPECT_FALSE(routes().Lead(0, a_).ok());
  EXPECT_FALSE(routes().Lead(claims::kFlowMasqueraded, a_).ok());
  EXPECT_FALSE(routes().Lead(kLast + 1, a_).ok());
}

}  // namespace spoke::netagent
