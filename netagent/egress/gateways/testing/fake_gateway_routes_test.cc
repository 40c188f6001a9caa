#include "netagent/egress/gateways/testing/fake_gateway_routes.h"

#include "netagent/egress/gateways/testing/gateway_routes_contract.h"

namespace spoke::netagent {
namespace {

struct Fake final : GatewayRoutesUnderTest {
  GatewayRoutes& routes() override { return fake; }
  uint16_t TakenPort() override { return fake.taken_port = 8472; }
  void DeleteTunnel() override { fake.DeleteTunnel(); }
  FakeGatewayRoutes fake;
};

INSTANTIATE_TEST_SUITE_P(Fake, GatewayRoutesContract, testing::Values(MakeGatewayRoutes([] {
                           return std::make_unique<Fake>();
                         })));

}  // namespace
}  // namespace spoke::netagent
