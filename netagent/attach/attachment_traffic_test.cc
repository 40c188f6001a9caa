// What happens to a pod's traffic around ADD and DEL.
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/attach/attachments_fixture.h"
#include "netagent/attach/pod_traffic.h"

namespace spoke::netagent {
namespace {

class RecordingTraffic : public PodTraffic {
 public:
  absl::Status Ready() const override { return ready; }
  absl::Status Attach(const TrafficPod& pod) override {
    if (!attach_fault.ok()) return attach_fault;
    pods[pod.host_link] = pod;
    return absl::OkStatus();
  }
  absl::Status Detach(const std::string& host_link) override {
    if (!detach_fault.ok()) return detach_fault;
    pods.erase(host_link);
    return absl::OkStatus();
  }

  absl::Status ready;
  absl::Status attach_fault;
  absl::Status detach_fault;
  std::map<std::string, TrafficPod> pods;
};

const ip::Address kAddress = ip::Address::V4(0x0A000107);
const AttachmentKey kPodKey{"c1", "eth0"};

class AttachmentTrafficTest : public AttachmentsFixture {
 protected:
  AttachmentTrafficTest() {
    Begin();
    node_api::DesiredState desired{.version = 1, .full = true};
    desired.added.push_back({.range = ip::Prefix::Host(kAddress), .pool = "default"});
    EXPECT_TRUE(attachments_->OnDesired(desired).ok());
  }
  void Begin() {
    const std::vector<Event> events = tmpfs_.events;
    attachments_.emplace(settings_,
                         Attachments::Edges{kernel_, server_, clock_, log_, {&shaping_, &traffic_}},
                         std::make_unique<FakeJournal>(tmpfs_));
    ASSERT_TRUE(attachments_->Start(events).ok());
  }
  Assignment Request() const {
    return {.key = kPodKey, .pod = {.pod_namespace = "web", .name = "a", .uid = "u"}};
  }

  RecordingTraffic shaping_;
  RecordingTraffic traffic_;
};

TEST_F(AttachmentTrafficTest, APodIsCountedBeforeItsAddIsAnswered) {
  const auto spec = Add(Request());
  ASSERT_TRUE(spec.ok()) << spec.status();
  const TrafficPod pod = traffic_.pods.at(spec->host_link);
  EXPECT_EQ(pod.addresses, std::vector{kAddress});
  EXPECT_EQ(pod.pod_namespace, "web");
  EXPECT_EQ(pod.pod_name, "a");
  EXPECT_EQ(pod.mtu, 1500U);
  EXPECT_NE(pod.host_index, 0U);
  EXPECT_TRUE(pod.on_first_nic);
  // The pod is also known to an agent that starts.
  Begin();
  EXPECT_EQ(attachments_->TrafficPods(), std::vector{pod});
}

TEST_F(AttachmentTrafficTest, WithoutCountingThereIsNoAttachment) {
  traffic_.attach_fault = absl::UnavailableError("busy");
  EXPECT_EQ(Add(Request()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(HasLink(kPodKey));
  EXPECT_EQ(attachments_->assignments().Find(kPodKey), nullptr);
  traffic_.attach_fault = absl::OkStatus();
  EXPECT_TRUE(Add(Request()).ok());
}

TEST_F(AttachmentTrafficTest, WhatOneOwnerRefusesTheOthersDoNotKeep) {
  traffic_.attach_fault = absl::UnavailableError("busy");
  EXPECT_FALSE(Add(Request()).ok());
  EXPECT_TRUE(shaping_.pods.empty());
  traffic_.attach_fault = absl::OkStatus();
  ASSERT_TRUE(Add(Request()).ok());
  EXPECT_EQ(shaping_.pods, traffic_.pods);
  shaping_.detach_fault = absl::UnavailableError("busy");
  EXPECT_FALSE(attachments_->Del(kPodKey).ok());
  EXPECT_TRUE(traffic_.pods.empty()) << "one that fails does not keep the others from it";
}

TEST_F(AttachmentTrafficTest, PodsWaitUntilAllOwnersAreReady) {
  traffic_.ready = absl::ResourceExhaustedError("waits for the policy");
  EXPECT_EQ(Add(Request()).status().code(), absl::StatusCode::kResourceExhausted);
  traffic_.ready = absl::OkStatus();
  EXPECT_TRUE(Add(Request()).ok());
}

TEST_F(AttachmentTrafficTest, AnAddressIsNotFreeBeforeItsCountingHasEnded) {
  ASSERT_TRUE(Add(Request()).ok());
  traffic_.detach_fault = absl::UnavailableError("busy");
  EXPECT_FALSE(attachments_->Del(kPodKey).ok());
  EXPECT_NE(attachments_->assignments().Find(kPodKey), nullptr);
  traffic_.detach_fault = absl::OkStatus();
  EXPECT_TRUE(attachments_->Del(kPodKey).ok());
  EXPECT_TRUE(traffic_.pods.empty());
  EXPECT_EQ(attachments_->assignments().Find(kPodKey), nullptr);
}

}  // namespace
}  // namespace spoke::netagent
