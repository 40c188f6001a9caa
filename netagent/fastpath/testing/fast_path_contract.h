// The promises of every FastPath, real or fake: a suite to instantiate with a World that makes one.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/fastpath/fast_path.h"

namespace spoke::netagent {

// A node with a device "uplink" and pods' links. Begin() is what a new agent does.
class FastPathWorld {
 public:
  virtual ~FastPathWorld() = default;
  // Returns the node's fast path, as a new agent finds it.
  virtual FastPath& Begin() = 0;
  virtual std::string uplink() const = 0;
  // Returns a pod with a link that is there, and with these addresses behind it.
  virtual TrafficPod Pod(std::vector<ip::Address> addresses) = 0;
};

using MakeFastPathWorld = std::unique_ptr<FastPathWorld> (*)();

class FastPathContract : public ::testing::TestWithParam<MakeFastPathWorld> {
 protected:
  void SetUp() override {
    world_ = GetParam()();
    ASSERT_NE(world_, nullptr) << "namespaces cannot be made here";
    fast_ = &world_->Begin();
  }
  FastPathTable Table() const {
    return {.uplink = world_->uplink(),
            .hops = {{ip::Address::V4(0x0A000000), ip::Address::V4(0x0AFFFFFF), std::nullopt},
                     {ip::Address::V6(0xFD00'0000'0000'0000, 0),
                      ip::Address::V6(0xFDFF'FFFF'FFFF'FFFF, ~uint64_t{0}), std::nullopt}}};
  }
  TrafficPod Pod(uint32_t number) {
    return world_->Pod(
        {ip::Address::V4(0x0A000200 + number), ip::Address::V6(0xFD00'0000'0000'0002, number)});
  }

  std::unique_ptr<FastPathWorld> world_;
  FastPath* fast_ = nullptr;
};

TEST_P(FastPathContract, APodNeedsATable) {
  EXPECT_FALSE(fast_->IsThere().value());
  EXPECT_EQ(fast_->AddPod(Pod(1), PodWay::kFast).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  EXPECT_TRUE(fast_->AddPod(Pod(1), PodWay::kFast).ok());
}

TEST_P(FastPathContract, ATableThatCannotBeIsRefused) {
  FastPathTable table = Table();
  table.uplink = "no-such-device";
  EXPECT_TRUE(absl::IsNotFound(fast_->Configure(table)));
  table = Table();
  table.hops.front().gateway = ip::Address::V6(1, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(fast_->Configure(table)));
  table = Table();
  for (uint32_t i = 0; i < kMaxFastHops; ++i) {
    const auto address = ip::Address::V4(0x0B000000 + i);
    table.hops.push_back({address, address, std::nullopt});
  }
  EXPECT_TRUE(absl::IsInvalidArgument(fast_->Configure(table)));
}

TEST_P(FastPathContract, PodsAreReadUntilTheyAreForgotten) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  const TrafficPod pod = Pod(1);
  const uint64_t id = fast_->AddPod(pod, PodWay::kFast).value();
  auto readings = fast_->Read().value();
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].id, id);
  EXPECT_FALSE(readings[0].ended);
  EXPECT_EQ(readings[0].host_index, pod.host_index);
  EXPECT_EQ(readings[0].addresses, pod.addresses);
  EXPECT_EQ(readings[0].counts, FastCounts());
  ASSERT_TRUE(fast_->EndPod(id).ok());
  ASSERT_TRUE(fast_->EndPod(id).ok());
  readings = fast_->Read().value();
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_TRUE(readings[0].ended);
  ASSERT_TRUE(fast_->ForgetPod(id).ok());
  ASSERT_TRUE(fast_->ForgetPod(id).ok());
  EXPECT_THAT(fast_->Read().value(), ::testing::IsEmpty());
}

TEST_P(FastPathContract, AnAddressIsOnePods) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  const TrafficPod first = Pod(1);
  const uint64_t id = fast_->AddPod(first, PodWay::kFast).value();
  TrafficPod second = Pod(2);
  second.addresses[0] = first.addresses[0];
  EXPECT_TRUE(absl::IsAlreadyExists(fast_->AddPod(second, PodWay::kFast).status()));
  EXPECT_EQ(fast_->Read().value().size(), 1U);
  ASSERT_TRUE(fast_->EndPod(id).ok());
  const auto next = fast_->AddPod(second, PodWay::kFast);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE(*next, id);
  // The end of the old one is not the end of the new one.
  ASSERT_TRUE(fast_->ForgetPod(id).ok());
  ASSERT_EQ(fast_->Read().value().size(), 1U);
  EXPECT_FALSE(fast_->Read().value()[0].ended);
}

TEST_P(FastPathContract, LocalAddressesAreOrdinaryOrPods) {
  EXPECT_EQ(fast_->SetLocal({}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fast_->AddLocal({}).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  const TrafficPod pod = Pod(1);
  const std::set<ip::Address> local(pod.addresses.begin(), pod.addresses.end());
  ASSERT_TRUE(fast_->SetLocal(local).ok());
  const auto id = fast_->AddPod(pod, PodWay::kFast);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_TRUE(fast_->SetLocal(local).ok());
  EXPECT_TRUE(fast_->SetLocal({}).ok());
  EXPECT_FALSE(fast_->Read().value()[0].ended);
  ASSERT_TRUE(fast_->EndPod(*id).ok());
  EXPECT_TRUE(fast_->AddPod(pod, PodWay::kFast).ok());
}

TEST_P(FastPathContract, MoreLocalAddressesThanThereIsRoomForAreRefused) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  ASSERT_TRUE(fast_->AddPod(Pod(1), PodWay::kFast).ok());
  std::set<ip::Address> local;
  for (uint32_t i = 0; i < kMaxFastPods - 1; ++i) local.insert(ip::Address::V4(0x0A010000 + i));
  EXPECT_TRUE(fast_->SetLocal(local).ok());
  local.insert(ip::Address::V4(0x0A020000));
  EXPECT_EQ(fast_->SetLocal(local).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(fast_->AddLocal({ip::Address::V4(0x0A010000)}).ok());
  EXPECT_EQ(fast_->AddLocal({ip::Address::V4(0x0A020000)}).code(),
            absl::StatusCode::kResourceExhausted);
  local.erase(ip::Address::V4(0x0A020000));
  EXPECT_TRUE(fast_->SetLocal(local).ok());
}

TEST_P(FastPathContract, APodsWayChanges) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  TrafficPod nameless = Pod(2);
  nameless.addresses.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(fast_->AddPod(nameless, PodWay::kOrdinary).status()));
  const uint64_t id = fast_->AddPod(Pod(1), PodWay::kOrdinary).value();
  EXPECT_EQ(fast_->Read().value().at(0).way, PodWay::kOrdinary);
  const ip::MacAddress mac{{0x0E, 1, 2, 3, 4, 5}};
  EXPECT_TRUE(fast_->Change(id, PodWay::kFast, mac).ok());
  EXPECT_EQ(fast_->Read().value().at(0).pod_mac, mac);
  EXPECT_EQ(fast_->Read().value().at(0).way, PodWay::kFast);
  fast_ = &world_->Begin();
  ASSERT_TRUE(fast_->Configure({}).ok());
  EXPECT_EQ(fast_->Read().value().at(0).way, PodWay::kFast);
  ASSERT_TRUE(fast_->EndPod(id).ok());
  EXPECT_TRUE(absl::IsNotFound(fast_->Change(id, PodWay::kOrdinary, mac)));
  EXPECT_TRUE(absl::IsNotFound(fast_->Change(id + 1, PodWay::kOrdinary, mac)));
}

// The agent was killed before it could end the former pod, whose device has gone.
TEST_P(FastPathContract, AnotherPodBehindTheSameLinkEndsTheFormer) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  const TrafficPod former = Pod(1);
  TrafficPod next = former;
  next.addresses = {ip::Address::V4(0x0A000202)};
  const uint64_t old_id = fast_->AddPod(former, PodWay::kFast).value();
  const uint64_t id = fast_->AddPod(next, PodWay::kFast).value();
  EXPECT_TRUE(fast_->EndPod(old_id).ok());
  const auto readings = fast_->Read().value();
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_TRUE(readings[0].ended);
  EXPECT_EQ(readings[1].id, id);
  EXPECT_FALSE(readings[1].ended);
  // The address is free for it as well.
  EXPECT_TRUE(fast_->AddPod(former, PodWay::kOrdinary).ok());
}

TEST_P(FastPathContract, EveryReasonIsReadOnce) {
  ASSERT_TRUE(fast_->Configure({}).ok());
  const auto refused = fast_->ReadRefused().value();
  ASSERT_EQ(refused.size(), kRefusedReasons.size());
  for (size_t i = 0; i < refused.size(); ++i) {
    EXPECT_EQ(refused[i].reason, kRefusedReasons.at(i));
    EXPECT_EQ(refused[i].packets, 0U);
  }
}

TEST_P(FastPathContract, TheNextAgentTakesOver) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  const uint64_t kept = fast_->AddPod(Pod(1), PodWay::kFast).value();
  const uint64_t ended = fast_->AddPod(Pod(2), PodWay::kFast).value();
  ASSERT_TRUE(fast_->EndPod(ended).ok());
  fast_ = &world_->Begin();
  EXPECT_TRUE(fast_->IsThere().value());
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  const auto readings = fast_->Read().value();
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].id, kept);
  EXPECT_FALSE(readings[0].ended);
  EXPECT_TRUE(readings[1].ended);
  EXPECT_GT(fast_->AddPod(Pod(3), PodWay::kFast).value(), ended);
  EXPECT_TRUE(fast_->SweepTranslated().ok());
}

TEST_P(FastPathContract, RemovedItIsGone) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  ASSERT_TRUE(fast_->AddPod(Pod(1), PodWay::kFast).ok());
  ASSERT_TRUE(fast_->Remove().ok());
  EXPECT_THAT(fast_->Read().value(), ::testing::IsEmpty());
  EXPECT_EQ(fast_->AddPod(Pod(2), PodWay::kFast).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  EXPECT_THAT(fast_->Read().value(), ::testing::IsEmpty());
}

TEST_P(FastPathContract, WhatAnEarlierAgentLeftCanBeRemoved) {
  ASSERT_TRUE(fast_->Configure(Table()).ok());
  ASSERT_TRUE(fast_->AddPod(Pod(1), PodWay::kFast).ok());
  fast_ = &world_->Begin();
  ASSERT_TRUE(fast_->Remove().ok());
  EXPECT_FALSE(fast_->IsThere().value());
}

}  // namespace spoke::netagent
