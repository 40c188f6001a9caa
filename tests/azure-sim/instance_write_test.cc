// Tests what writing an instance's network profile does, when, and what is refused.
#include "gmock/gmock.h"
#include "tests/azure-sim/model_for_test.h"

namespace spoke::azure_sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class InstanceWriteTest : public ModelTest {
 protected:
  void SetUp() override { Make(3); }
};

TEST_F(InstanceWriteTest, NamesGetTheLowestFreeAddressesOnceTheOperationIsDone) {
  const http::Response put = Put(0, BodyWith(0, {"spoke-a", "spoke-b"}));

  ASSERT_EQ(put.status, 200) << put.body;
  EXPECT_EQ(Json::parse(put.body)["properties"]["provisioningState"], "Updating");
  EXPECT_FALSE(put.headers.Find("Location").has_value());
  EXPECT_FALSE(put.headers.Find("Retry-After").has_value());
  EXPECT_EQ(Poll(put)["status"], "InProgress");
  EXPECT_THAT(AddressesOf(0), ElementsAre(Pair("ipconfig1", "10.0.0.4")));

  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(put)["status"], "Succeeded");
  EXPECT_THAT(AddressesOf(0),
              ElementsAre(Pair("ipconfig1", "10.0.0.4"), Pair("spoke-a", "10.0.0.7"),
                          Pair("spoke-b", "10.0.0.8")));
  EXPECT_EQ(GetJson(InstancePath(0))["properties"]["provisioningState"], "Succeeded");
}

TEST_F(InstanceWriteTest, WhatIsLeftOutOfTheListIsGoneAndItsAddressIsGivenAgain) {
  Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  Json body = BodyWith(0, {"spoke-c"});
  body["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0]
      ["properties"]["ipConfigurations"]
          .erase(1);
  ASSERT_EQ(Put(0, body).status, 200);
  now_ += absl::Minutes(1);
  // The new name is served before the old address is free.
  EXPECT_THAT(AddressesOf(0),
              ElementsAre(Pair("ipconfig1", "10.0.0.4"), Pair("spoke-c", "10.0.0.8")));
  Put(1, BodyWith(1, {"spoke-d"}));
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(1)["spoke-d"], "10.0.0.7");
}

TEST_F(InstanceWriteTest, ABodyWithoutTheNetworkLeavesItAsItIs) {
  Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  const std::string etag = GetJson(InstancePath(0))["etag"];
  ASSERT_EQ(Put(0, {{"tags", {{"key", "value"}}}}).status, 200);
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 2);
  EXPECT_EQ(GetJson(InstancePath(0))["etag"], etag);
}

TEST_F(InstanceWriteTest, AStaleEtagIsRefusedAndChangesNothing) {
  const Json body = BodyWith(0, {"spoke-a"});
  const std::string etag = GetJson(InstancePath(0))["etag"];
  ASSERT_EQ(Put(0, body, {{"If-Match", etag}}).status, 200);
  now_ += absl::Minutes(1);
  EXPECT_NE(GetJson(InstancePath(0))["etag"], etag);

  const http::Response late = Put(0, BodyWith(0, {"spoke-b"}), {{"If-Match", etag}});
  EXPECT_EQ(late.status, 412);
  EXPECT_EQ(CodeOf(late), "PreconditionFailed");
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 2);
}

TEST_F(InstanceWriteTest, APrimaryEntryCannotGoOrBeRenamed) {
  Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  Json body = BodyWith(0, {});
  Json& configs = body["properties"]["networkProfileConfiguration"]
                      ["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"];
  configs[0]["name"] = "renamed";
  EXPECT_EQ(CodeOf(Put(0, body)), "IpConfigDeleteNotSupported");
  configs.erase(0);
  EXPECT_EQ(CodeOf(Put(0, body)), "IpConfigDeleteNotSupported");
  configs = Json::array();
  EXPECT_EQ(CodeOf(Put(0, body)), "InvalidIPConfigCount");
}

TEST_F(InstanceWriteTest, OnlyOneOfSeveralIsPrimary) {
  Json body = BodyWith(0, {"spoke-a"});
  Json& configs = body["properties"]["networkProfileConfiguration"]
                      ["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"];
  configs[1]["properties"]["primary"] = true;
  EXPECT_EQ(Put(0, body).status, 400);
  configs[0]["properties"]["primary"] = false;
  configs[1]["properties"]["primary"] = false;
  EXPECT_EQ(Put(0, body).status, 400);
}

TEST_F(InstanceWriteTest, MoreThanTheNicTakesIsRefused) {
  std::vector<std::string> names(256);
  for (size_t i = 0; i < names.size(); ++i) names[i] = fmt::format("spoke-{}", i);
  EXPECT_EQ(CodeOf(Put(0, BodyWith(0, names))), "SecondaryIpConfigurationCountPerVMSSVMExceeded");
  names.pop_back();
  EXPECT_EQ(Put(0, BodyWith(0, names)).status, 200);
}

TEST_F(InstanceWriteTest, BlocksNeedTheApiThatHasThem) {
  const Json body = BodyWith(0, {"spoke-block"}, true);
  const http::Response old = Send("PUT", InstancePath(0, kInstanceApi), body);
  EXPECT_EQ(old.status, 400) << old.body;
  ASSERT_EQ(Send("PUT", InstancePath(0, kBlockApi), body).status, 200);
  now_ += absl::Minutes(1);
  const Json nics = GetJson(NicsPath(0));
  const Json& entry = nics["value"][0]["properties"]["ipConfigurations"][1]["properties"];
  EXPECT_EQ(entry["privateIPAddress"], "10.0.0.16");  // This is the first that is aligned and free.
  EXPECT_EQ(entry["privateIPAddressPrefixLength"], 28);
}

TEST_F(InstanceWriteTest, AnEchoedImageReferenceIsRefused) {
  const Json instance = GetJson(InstancePath(0));
  EXPECT_EQ(CodeOf(Put(0, instance)), "LinkedAuthorizationFailed");
  model_->knobs().reads_image_references = true;
  EXPECT_EQ(Put(0, instance).status, 200);
}

TEST_F(InstanceWriteTest, ASecondWriteConflictsOrTakesOver) {
  const http::Response first = Put(0, BodyWith(0, {"spoke-a"}));
  const http::Response second = Put(0, BodyWith(0, {"spoke-b"}));
  EXPECT_EQ(second.status, 409);
  EXPECT_EQ(CodeOf(second), "Conflict");

  model_->knobs().on_concurrent_write = OnConcurrentWrite::kPreempt;
  const http::Response third = Put(0, BodyWith(0, {"spoke-b"}));
  ASSERT_EQ(third.status, 200);
  const Json preempted = Poll(first);
  EXPECT_EQ(preempted["status"], "Canceled");
  EXPECT_EQ(preempted["error"]["code"], "OperationPreempted");
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(third)["status"], "Succeeded");
  EXPECT_EQ(AddressesOf(0).size(), 3);  // The second list was made from the first one's model.
}

TEST_F(InstanceWriteTest, AFailedOperationLeavesAModelThatTheNicDoesNotHave) {
  model_->knobs().failed_operations = 1;
  const http::Response put = Put(0, BodyWith(0, {"spoke-a"}));
  ASSERT_EQ(put.status, 200);
  now_ += absl::Minutes(1);
  const Json status = Poll(put);
  EXPECT_EQ(status["status"], "Failed");
  EXPECT_EQ(status["error"]["code"], "NetworkingInternalOperationError");
  const Json instance = GetJson(InstancePath(0));
  EXPECT_EQ(instance["properties"]["provisioningState"], "Failed");
  EXPECT_EQ(instance["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"]
                    [0]["properties"]["ipConfigurations"]
                        .size(),
            2);
  EXPECT_EQ(AddressesOf(0).size(), 1);

  // The same list once more is what cures it.
  model_->knobs().failed_operations = 0;
  ASSERT_EQ(Put(0, BodyWith(0, {})).status, 200);
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 2);
}

TEST_F(InstanceWriteTest, ACanceledOperationChangesNothingOnTheNic) {
  model_->knobs().canceled_operations = 1;
  const http::Response put = Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(put)["status"], "Canceled");
  EXPECT_EQ(GetJson(InstancePath(0))["properties"]["provisioningState"], "Canceled");
  EXPECT_EQ(AddressesOf(0).size(), 1);
}

TEST_F(InstanceWriteTest, AFullSubnetShowsInTheAnswerOrInTheOperation) {
  Make(SmallSpec(1, "10.0.0.0/29"));  // The subnet has three usable addresses.
  const http::Response put = Put(0, BodyWith(0, {"a", "b", "c"}));
  ASSERT_EQ(put.status, 200);
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(put)["error"]["code"], "SubnetIsFull");
  EXPECT_EQ(AddressesOf(0).size(), 1);  // A write gets all or nothing.

  Knobs knobs;
  knobs.full_subnet = FullSubnet::kSync;
  Make(SmallSpec(1, "10.0.0.0/29"), knobs);
  EXPECT_EQ(CodeOf(Put(0, BodyWith(0, {"a", "b", "c"}))), "SubnetIsFull");
  ASSERT_EQ(Put(0, BodyWith(0, {"a", "b"})).status, 200);
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 3);
}

TEST_F(InstanceWriteTest, TheNicIsSeenLaterThanTheOperation) {
  model_->knobs().nic_lag = absl::Seconds(90);
  const http::Response put = Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  EXPECT_EQ(Poll(put)["status"], "Succeeded");
  EXPECT_EQ(AddressesOf(0).size(), 1);
  EXPECT_EQ(model_->Wire().size(), 4);  // The address is missing though it is on the wire.
  now_ += absl::Minutes(2);
  EXPECT_EQ(AddressesOf(0).size(), 2);
}

TEST_F(InstanceWriteTest, AnotherWriterIsNoticedByWhoSendsTheEtag) {
  model_->knobs().foreign_writes = 1;
  const Json instance = GetJson(InstancePath(0));
  model_->knobs().foreign_writes = 0;
  const Json body = {
      {"properties",
       {{"networkProfileConfiguration", instance["properties"]["networkProfileConfiguration"]}}}};
  EXPECT_EQ(Put(0, body, {{"If-Match", instance["etag"].get<std::string>()}}).status, 412);
  EXPECT_EQ(model_->counters().foreign_writes_lost, 0);

  EXPECT_EQ(Put(0, body).status, 200);  // A client that does not wait overwrites it.
  EXPECT_EQ(model_->counters().foreign_writes_lost, 1);
}

TEST_F(InstanceWriteTest, AnotherWriterMayBeFasterHoweverTheInstanceWasRead) {
  const Json body = BodyWith(0, {"spoke-a"});
  const std::string etag = GetJson(InstancePath(0))["etag"];
  model_->knobs().foreign_writes_at_put = 1;
  EXPECT_EQ(Put(0, body, {{"If-Match", etag}}).status, 412);
  EXPECT_EQ(model_->counters().foreign_writes, 1);
}

TEST_F(InstanceWriteTest, AWriteThatTakesOverAndIsRefusedLeavesNothingRunning) {
  model_->knobs().on_concurrent_write = OnConcurrentWrite::kPreempt;
  const http::Response first = Put(0, BodyWith(0, {"spoke-a"}));
  Json bad = BodyWith(0, {});
  bad["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0]
     ["properties"]["ipConfigurations"] = Json::array();
  EXPECT_EQ(Put(0, bad).status, 400);
  EXPECT_EQ(Poll(first)["status"], "Canceled");
  now_ += absl::Minutes(1);
  EXPECT_EQ(GetJson(InstancePath(0))["properties"]["provisioningState"], "Canceled");
  EXPECT_EQ(AddressesOf(0).size(), 1);
}

TEST_F(InstanceWriteTest, ALostResponseHidesAWriteThatWasCarriedOut) {
  model_->knobs().lost_responses = 1;
  EXPECT_EQ(Put(0, BodyWith(0, {"spoke-a"})).status, 0);
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 2);
  EXPECT_EQ(model_->counters().Of("instance.put", 0), 1);
}

TEST_F(InstanceWriteTest, DenialsChangeNothing) {
  const Json body = BodyWith(0, {"spoke-a"});
  model_->knobs().deny_writes = true;
  EXPECT_EQ(CodeOf(Put(0, body)), "AuthorizationFailed");
  model_->knobs().deny_writes = false;
  model_->knobs().deny_join = true;
  EXPECT_EQ(CodeOf(Put(0, body)), "LinkedAuthorizationFailed");
  model_->knobs().deny_join = false;
  model_->knobs().scope_locked = true;
  EXPECT_EQ(CodeOf(Put(0, body)), "ScopeLocked");
  now_ += absl::Minutes(1);
  EXPECT_EQ(AddressesOf(0).size(), 1);
}

TEST_F(InstanceWriteTest, ABodyThatIsNoneIsRefused) {
  for (const char* body : {"", "[]", "{", "7", "null"}) {
    const http::Request request{"PUT", kHost + InstancePath(0), {}, body};
    EXPECT_EQ(model_->Handle(request, now_).status, 400) << body;
  }
}

}  // namespace
}  // namespace spoke::azure_sim
