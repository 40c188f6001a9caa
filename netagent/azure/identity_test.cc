#include "netagent/azure/identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent::azure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const ip::MacAddress kFirst = ip::MacAddress::Parse("00:0d:3a:00:00:01").value();
const ip::MacAddress kSecond = ip::MacAddress::Parse("00:0d:3a:00:00:02").value();

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }
ip::Prefix P(std::string_view text) { return ip::Prefix::Parse(text).value(); }

ImdsInstance TwoNics() {
  return {.name = "pool_0",
          .vm_id = "55b8499d",
          .resource_id = "/subscriptions/s/vm/0",
          .nics = {{.mac = kFirst, .addresses = {A("10.0.0.4")}, .subnets = {P("10.0.0.0/24")}},
                   {.mac = kSecond, .addresses = {A("10.1.0.4")}, .subnets = {P("10.1.0.0/16")}}}};
}

TEST(AzureIdentity, TheSubnetsAreThoseOfTheNicWithTheDevicesMac) {
  const auto identity = IdentityOf(TwoNics(), "eth1", kSecond);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->vm_id, "55b8499d");
  EXPECT_EQ(identity->instance, "/subscriptions/s/vm/0");
  EXPECT_THAT(identity->subnets, ElementsAre(P("10.1.0.0/16")));
  EXPECT_THAT(identity->addresses, ElementsAre(A("10.1.0.4")));
}

TEST(AzureIdentity, ADeviceThatIsNoNicOfTheVmIsNamedBesideThoseThatAre) {
  const auto identity =
      IdentityOf(TwoNics(), "docker0", ip::MacAddress::Parse("02:00:00:00:00:09").value());
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(identity.status().message()),
              HasSubstr("device docker0 has MAC 02:00:00:00:00:09, but the NICs of pool_0 have: "
                        "00:0d:3a:00:00:01, 00:0d:3a:00:00:02"));
}

TEST(AzureIdentity, AnInstanceWithoutAnIdIsRefused) {
  for (std::string ImdsInstance::*field : {&ImdsInstance::vm_id, &ImdsInstance::resource_id}) {
    ImdsInstance instance = TwoNics();
    (instance.*field).clear();
    EXPECT_EQ(IdentityOf(instance, "eth0", kFirst).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace spoke::netagent::azure
