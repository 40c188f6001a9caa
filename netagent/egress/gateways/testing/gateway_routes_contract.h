// The promises of each GatewayRoutes, as tests: instantiate with a factory.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/claims.h"
#include "netagent/egress/gateways/gateway_routes.h"

namespace spoke::netagent {

// Holds what the routes need to live in.
struct GatewayRoutesUnderTest {
  virtual ~GatewayRoutesUnderTest() = default;
  virtual GatewayRoutes& routes() = 0;
  // Returns a UDP port at which somebody else listens.
  virtual uint16_t TakenPort() = 0;
  // Deletes the tunnel as somebody else does.
  virtual void DeleteTunnel() = 0;
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
  std::map<uint32_t, GatewayEndpoint> Ways() { return routes().Read().value(); }
  uint16_t TakenPort() { return made_->TakenPort(); }
  void DeleteTunnel() { made_->DeleteTunnel(); }
  static GatewayEndpoint ByTunnel(const ip::Address& address) {
    return {address, policy::GatewayTransport::kVxlan};
  }

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

TEST_P(GatewayRoutesContract, LeadsIntoATunnelOnceThereIsOne) {
  EXPECT_EQ(routes().TunnelPort().value(), std::nullopt);
  EXPECT_TRUE(absl::IsFailedPrecondition(routes().Lead(kFirst, ByTunnel(a_))));
  EXPECT_TRUE(Ways().empty());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(routes().PutTunnel(4789).ok());
  EXPECT_EQ(routes().TunnelPort().value(), 4789);
  ASSERT_TRUE(routes().Lead(kFirst, ByTunnel(a_)).ok());
  ASSERT_TRUE(routes().Lead(kLast, ByTunnel(six_)).ok());
  // The same gateway is led to both ways.
  ASSERT_TRUE(routes().Lead(kFirst + 1, a_).ok());
  EXPECT_THAT(Ways(), testing::ElementsAre(testing::Pair(kFirst, ByTunnel(a_)),
                                           testing::Pair(kFirst + 1, a_),
                                           testing::Pair(kLast, ByTunnel(six_))));
  ASSERT_TRUE(routes().Lead(kFirst, b_).ok());
  ASSERT_TRUE(routes().Forget(kLast).ok());
  EXPECT_THAT(Ways(),
              testing::ElementsAre(testing::Pair(kFirst, b_), testing::Pair(kFirst + 1, a_)));
}

TEST_P(GatewayRoutesContract, ATunnelThatIsGoneTakesItsWaysAlong) {
  ASSERT_TRUE(routes().PutTunnel(4789).ok());
  ASSERT_TRUE(routes().Lead(kFirst, ByTunnel(a_)).ok());
  DeleteTunnel();
  EXPECT_EQ(routes().TunnelPort().value(), std::nullopt);
  EXPECT_TRUE(Ways().empty());
  ASSERT_TRUE(routes().PutTunnel(4789).ok());
  ASSERT_TRUE(routes().Lead(kFirst, ByTunnel(a_)).ok());
  EXPECT_THAT(Ways(), testing::ElementsAre(testing::Pair(kFirst, ByTunnel(a_))));
  ASSERT_TRUE(routes().PutTunnel(4790).ok());
  EXPECT_EQ(routes().TunnelPort().value(), 4790);
  EXPECT_TRUE(Ways().empty()) << "they led to the other device";
}

TEST_P(GatewayRoutesContract, APortThatSomebodyElseHasIsRefused) {
  const uint16_t taken = TakenPort();
  const absl::Status status = routes().PutTunnel(taken);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(std::to_string(taken)));
  EXPECT_EQ(routes().TunnelPort().value(), std::nullopt);
  EXPECT_TRUE(routes().PutTunnel(4789).ok());
}

}  // namespace spoke::netagent
