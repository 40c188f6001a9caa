// The promises of Inspector, as tests. Each implementation's test file instantiates them with a
// factory for a world of its own: a fake kernel, or a fresh namespace of the real one.
#pragma once

#include <fcntl.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/inspector.h"

namespace spoke::netagent {

// An inspector on a node without pods, and what the suite needs to do around it.
class InspectorWorld {
 public:
  virtual ~InspectorWorld() = default;
  virtual Inspector& inspector() = 0;
  virtual os::UniqueFd NewPodNetns() = 0;
  virtual void Build(const AttachSpec& spec, int pod_netns) = 0;
  // The host link goes for good, and the pod's end with it.
  virtual void Remove(const AttachSpec& spec) = 0;
  // Damages one part of what was built. `address` says for which of the attachment's addresses,
  // where the part has one for each.
  virtual void Break(const AttachSpec& spec, int pod_netns, Part part,
                     const ip::Address& address) = 0;
  // A route to `address` that is not ours, by the host link of `spec`.
  virtual void AddForeignRoute(const AttachSpec& spec, const ip::Address& address) = 0;
  // All that the two namespaces hold, one thing a line.
  virtual std::vector<std::string> Snapshot(int pod_netns) = 0;
};

struct InspectorWorldFactory {
  std::string name;
  // Null where this machine cannot have such a world (no right to make namespaces).
  std::function<std::unique_ptr<InspectorWorld>()> make;
};

class InspectorContract : public testing::TestWithParam<InspectorWorldFactory> {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    if (world_ != nullptr) return;
    // A skip must not pass for a success.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }

  Inspector& inspector() { return world_->inspector(); }
  InspectorWorld& world() { return *world_; }

  static AttachSpec Spec(const std::string& container) {
    return PlanAttach({container, "eth0"}, {kV4, kV6}, 1500).value();
  }

  // What Compare() makes of what the inspector sees.
  std::vector<Difference> Look(const AttachSpec& spec, std::optional<int> pod_netns) {
    auto hosts = inspector().ReadHostSides();
    EXPECT_TRUE(hosts.ok()) << hosts.status();
    if (!hosts.ok()) return {};
    std::optional<PodSide> pod;
    if (pod_netns) {
      auto read = inspector().ReadPodSide(spec, *pod_netns);
      EXPECT_TRUE(read.ok()) << read.status();
      if (read.ok()) pod = *std::move(read);
    }
    return Compare(spec, (*hosts)[spec.host_link], pod);
  }
  std::string LookTexts(const AttachSpec& spec, std::optional<int> pod_netns) {
    std::string text;
    for (const Difference& difference : Look(spec, pod_netns)) text += difference.text + "\n";
    return text;
  }

  static constexpr ip::Address kV4 = ip::Address::V4(0x0A000107);  // 10.0.1.7
  static constexpr ip::Address kV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);

 private:
  std::unique_ptr<InspectorWorld> world_;
};

TEST_P(InspectorContract, WhatWasJustBuiltIsAsItShouldBe) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  EXPECT_TRUE(inspector().ReadHostSides()->empty());
  world().Build(spec, pod.get());
  EXPECT_EQ(inspector().ReadHostSides()->size(), 1U);
  EXPECT_EQ(LookTexts(spec, pod.get()), "");
}

TEST_P(InspectorContract, EachPartThatBreaksIsNamedAndMendedAndNothingElseChanges) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  world().Build(spec, pod.get());
  const std::vector<std::string> built = world().Snapshot(pod.get());
  for (int i = 0; i <= static_cast<int>(kLastPart); ++i) {
    const Part part = static_cast<Part>(i);
    // Limits need a bandwidth, rules a second link. A link that is down has lost all that led by
    // it, so that is more than one part.
    if (!IsMendable(part) || part == Part::kIngressLimit || part == Part::kPodRule ||
        part == Part::kHostRule || part == Part::kHostUp || part == Part::kPodUp) {
      continue;
    }
    for (const ip::Address& address : spec.addresses) {
      SCOPED_TRACE(std::string(NameOf(part)) + " " + address.ToString());
      world().Break(spec, pod.get(), part, address);
      const std::vector<Difference> found = Look(spec, pod.get());
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(NameOf(found[0].part), NameOf(part)) << found[0].text;
      EXPECT_EQ(found[0].address.value_or(address), address) << found[0].text;
      // With its MAC a device loses its neighbour entries, with its last IPv4 address its routes.
      const bool takes_more = part == Part::kHostMac || part == Part::kPodAddress;
      for (size_t more = 1; more < found.size() && !takes_more; ++more) {
        EXPECT_EQ(NameOf(found[more].part), NameOf(part)) << found[more].text;
        EXPECT_EQ(found[more].address, found[0].address) << found[more].text;
      }
      const absl::Status mended = inspector().Mend(spec, found, pod.get());
      EXPECT_TRUE(mended.ok()) << mended;
      EXPECT_EQ(LookTexts(spec, pod.get()), "");
      EXPECT_EQ(world().Snapshot(pod.get()), built);
      // What is right already stays as it is.
      EXPECT_TRUE(inspector().Mend(spec, found, pod.get()).ok());
      EXPECT_EQ(world().Snapshot(pod.get()), built);
    }
  }
}

TEST_P(InspectorContract, ALinkThatWentDownIsMendedInOneGo) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  world().Build(spec, pod.get());
  const std::vector<std::string> built = world().Snapshot(pod.get());
  for (const Part part : {Part::kHostUp, Part::kPodUp}) {
    SCOPED_TRACE(NameOf(part));
    world().Break(spec, pod.get(), part, kV4);
    const std::vector<Difference> found = Look(spec, pod.get());
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(NameOf(found[0].part), NameOf(part));
    const absl::Status mended = inspector().Mend(spec, found, pod.get());
    EXPECT_TRUE(mended.ok()) << mended;
    // IPv6 gives up more than what it says at first, once the link is down.
    const absl::Status rest = inspector().Mend(spec, Look(spec, pod.get()), pod.get());
    EXPECT_TRUE(rest.ok()) << rest;
    EXPECT_EQ(LookTexts(spec, pod.get()), "");
    EXPECT_EQ(world().Snapshot(pod.get()), built);
  }
}

TEST_P(InspectorContract, TheNodesSideIsMendedWithoutThePod) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  world().Build(spec, pod.get());
  world().Break(spec, pod.get(), Part::kHostUp, kV4);
  const absl::Status mended = inspector().Mend(spec, Look(spec, std::nullopt), std::nullopt);
  EXPECT_TRUE(mended.ok()) << mended;
  EXPECT_EQ(LookTexts(spec, pod.get()), "");
}

TEST_P(InspectorContract, AnotherPodsNamespaceIsNeverTouched) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec first = Spec("first");
  AttachSpec second = Spec("second");
  second.addresses = {ip::Advance(kV4, 1), ip::Advance(kV6, 1)};
  world().Build(first, one.get());
  world().Build(second, two.get());
  world().Break(first, one.get(), Part::kPodAddress, kV4);
  const std::vector<Difference> found = Look(first, one.get());
  const std::vector<std::string> before = world().Snapshot(two.get());

  EXPECT_TRUE(absl::IsFailedPrecondition(inspector().ReadPodSide(first, two.get()).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(inspector().Mend(first, found, two.get())));
  const os::UniqueFd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(absl::IsFailedPrecondition(inspector().ReadPodSide(first, device.get()).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(inspector().ReadPodSide(first, -1).status()));
  EXPECT_EQ(world().Snapshot(two.get()), before);
  EXPECT_EQ(Look(first, one.get()), found);
}

TEST_P(InspectorContract, ALinkThatIsGoneIsSaidToBeAndNotMended) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  world().Build(spec, pod.get());
  world().Remove(spec);
  EXPECT_TRUE(inspector().ReadHostSides()->empty());
  EXPECT_TRUE(absl::IsNotFound(inspector().ReadPodSide(spec, pod.get()).status()));
  const std::vector<Difference> found = Look(spec, std::nullopt);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].part, Part::kHostLink);
  EXPECT_TRUE(absl::IsInvalidArgument(inspector().Mend(spec, found, std::nullopt)));
  EXPECT_TRUE(
      absl::IsNotFound(inspector().Mend(spec, {{Part::kHostRoute, "", kV4}}, std::nullopt)));
}

TEST_P(InspectorContract, WhatIsInThePodIsNotMendedWithoutIt) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  world().Build(spec, pod.get());
  EXPECT_TRUE(absl::IsInvalidArgument(
      inspector().Mend(spec, {{Part::kPodAddress, "", kV4}}, std::nullopt)));
}

TEST_P(InspectorContract, ARouteOfSomebodyElsesInThePlaceOfOursStaysAndIsAnError) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  world().Build(spec, pod.get());
  world().Break(spec, pod.get(), Part::kHostRoute, kV4);
  world().AddForeignRoute(spec, kV4);
  const std::vector<std::string> before = world().Snapshot(pod.get());
  const absl::Status mended = inspector().Mend(spec, Look(spec, std::nullopt), std::nullopt);
  EXPECT_TRUE(absl::IsAlreadyExists(mended)) << mended;
  EXPECT_EQ(world().Snapshot(pod.get()), before);
}

TEST_P(InspectorContract, AnAddressThatStillLeadsToAnotherPodOfOursIsBroughtBack) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec spec = Spec("pod");
  const AttachSpec thief = Spec("thief");
  world().Build(spec, one.get());
  world().Build(thief, two.get());
  const std::vector<Difference> found = Look(spec, std::nullopt);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].part, Part::kHostRoute);
  const absl::Status mended = inspector().Mend(spec, found, std::nullopt);
  EXPECT_TRUE(mended.ok()) << mended;
  EXPECT_EQ(LookTexts(spec, one.get()), "");
}

}  // namespace spoke::netagent
