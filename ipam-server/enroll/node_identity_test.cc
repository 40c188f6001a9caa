#include "ipam-server/enroll/node_identity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kId =
    "/subscriptions/S/resourceGroups/mc_(a)/providers/Microsoft.Compute/virtualMachineScaleSets/"
    "gpu/virtualMachines/7";
constexpr const char* kInstance =
    "/subscriptions/s/resourcegroups/mc_(a)/providers/microsoft.compute/virtualmachinescalesets/"
    "gpu/virtualmachines/7";

TEST(NodeIdentity, IsReadFromTheUrisThatItIsWrittenAs) {
  const NodeFacts node{.name = "node-1",
                       .provider_id = std::string("azure://") + kId,
                       .labels = {{"topology.kubernetes.io/zone", "eastus-1"}, {"gpu", ""}}};
  const auto uris = IdentityUris(node);
  EXPECT_THAT(uris, ElementsAre(node.provider_id,
                                "spoke-node:node-1?gpu=&topology.kubernetes.io/zone=eastus-1"));
  const auto identity = IdentityIn(uris, "node-1");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->instance, kInstance);
  EXPECT_EQ(identity->labels, node.labels);
}

TEST(NodeIdentity, SaysNothingThatTheCertificateDoesNot) {
  EXPECT_EQ(IdentityIn({}, "node-1").value(), NodeIdentity());
  EXPECT_EQ(IdentityIn({"spiffe://cluster/ns/a", "aws:///zone/i-1"}, "node-1").value(),
            NodeIdentity());
  const auto bare = IdentityIn(IdentityUris({.name = "node-1"}), "node-1");
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->instance, "");
  ASSERT_TRUE(bare->labels.has_value()) << "that it has none is known";
  EXPECT_TRUE(bare->labels->empty());
}

TEST(NodeIdentity, OfAnotherNodeOrInAnotherFormIsRefused) {
  for (const char* uri :
       {"spoke-node:node-2", "spoke-node:node-2?a=b", "spoke-node:", "spoke-node:node-1?",
        "spoke-node:node-1?a", "spoke-node:node-1?=b", "spoke-node:node-1?a=b&"}) {
    const auto identity = IdentityIn({uri}, "node-1");
    EXPECT_TRUE(absl::IsInvalidArgument(identity.status())) << uri;
    EXPECT_THAT(std::string(identity.status().message()), HasSubstr("node-1")) << uri;
  }
}

TEST(NodeIdentity, CountsInPlaceOfWhatTheAgentSays) {
  node_api::Hello hello{.node = {.node_name = "node-1", .labels = {{"pool", "others"}}}};
  ASSERT_TRUE(TakeIdentity({.instance = kInstance, .labels = {{{"pool", "own"}}}}, hello).ok());
  EXPECT_EQ(hello.node.instance, kInstance);
  EXPECT_EQ(hello.node.labels.at("pool"), "own");
  hello.node.instance = "/subscriptions/s/another";
  const absl::Status other = TakeIdentity({.instance = kInstance, .labels = {}}, hello);
  EXPECT_TRUE(absl::IsPermissionDenied(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("/subscriptions/s/another"));
}

TEST(NodeIdentity, LeavesWhatIsNotProvedToTheAgent) {
  node_api::Hello hello{.node = {.node_name = "node-1",
                                 .labels = {{"pool", "own"}},
                                 .instance = "/subscriptions/s/i"}};
  ASSERT_TRUE(TakeIdentity({}, hello).ok());
  EXPECT_EQ(hello.node.instance, "/subscriptions/s/i");
  EXPECT_EQ(hello.node.labels.at("pool"), "own");
}

}  // namespace
}  // namespace spoke::ipam
