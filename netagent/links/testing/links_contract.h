// The promises of Links, as tests. Each implementation's test file instantiates them with a
// factory for a world of its own: a fake kernel, or a fresh namespace of the real one.
#pragma once

#include <fcntl.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/testing/link_acts.h"

namespace spoke::netagent {

// Links on a node without pods, and what the suite needs to see of, and do to, their surroundings.
class LinksWorld {
 public:
  virtual ~LinksWorld() = default;
  virtual Links& links() = 0;
  virtual os::UniqueFd NewPodNetns() = 0;
  virtual os::UniqueFd NodeNetns() = 0;
  // Puts a link of somebody else's with this name into the pod.
  virtual void AddPodLink(int pod_netns, const std::string& name) = 0;
  // Waits until what was taken down is unregistered.
  virtual absl::Status FinishDetaching() = 0;
  // Removes the host link for good, and the pod's end with it.
  virtual void Remove(const AttachSpec& spec) = 0;
  // Damages one part of what was made. `address` says for which of the link's addresses, where the
  // part has one for each.
  virtual void Break(const AttachSpec& spec, int pod_netns, Part part,
                     const ip::Address& address) = 0;
  // Adds a route to `address` that is not ours, by the host link of `spec`.
  virtual void AddForeignRoute(const AttachSpec& spec, const ip::Address& address) = 0;
  // Lists all that the two namespaces hold, one thing a line.
  virtual std::vector<std::string> Snapshot(int pod_netns) = 0;
  // Returns a device the node has, as ReadNic() must report it.
  virtual Nic ExistingNic() = 0;
  // The addresses with an unreachable route of ours, sorted.
  virtual std::vector<ip::Address> Unreachable() = 0;
  // The table into which a rule of ours leads what comes from each address.
  virtual std::map<ip::Address, uint32_t> SourceTables() = 0;
};

struct LinksWorldFactory {
  std::string name;
  // Makes a world; null where this machine cannot have one (no right to make namespaces).
  std::function<std::unique_ptr<LinksWorld>()> make;
};

class LinksContract : public testing::TestWithParam<LinksWorldFactory> {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    if (world_ != nullptr) return;
    // A skip must not pass for a success.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }

  Links& links() { return world_->links(); }
  LinksWorld& world() { return *world_; }

  static AttachSpec Spec(const std::string& container, std::vector<ip::Address> addresses) {
    return PlanAttach({container, "eth0"}, std::move(addresses), 1500).value();
  }

  std::vector<AttachedLink> Listed() {
    auto listed = ListAttached(links());
    EXPECT_TRUE(listed.ok()) << listed.status();
    return listed.ok() ? *std::move(listed) : std::vector<AttachedLink>();
  }

  // Plans for what is seen of the link, and leaves out what only follows from the first operation.
  LinkOperations Look(const AttachSpec& spec, std::optional<int> pod_netns) {
    auto hosts = links().Read();
    EXPECT_TRUE(hosts.ok()) << hosts.status();
    if (!hosts.ok()) return {};
    std::optional<PodSide> pod;
    if (pod_netns) {
      auto read = links().ReadPod(spec, *pod_netns);
      EXPECT_TRUE(read.ok()) << read.status();
      if (read.ok()) pod = *std::move(read);
    }
    LinkOperations plan = PlanLink(spec, {(*hosts)[spec.host_link], std::move(pod)});
    std::erase_if(plan, [](const LinkOperation& operation) { return operation.found.empty(); });
    return plan;
  }
  std::string LookTexts(const AttachSpec& spec, std::optional<int> pod_netns) {
    std::string text;
    for (const LinkOperation& operation : Look(spec, pod_netns)) text += operation.found + "\n";
    return text;
  }

  // Waits until no pod changes any more: the kernel does some of IPv6 a second later.
  bool BecomesQuiet() {
    // A new IPv6 address waits up to a second before it is asked for, and a second for an answer
    // (RFC 4862, 5.4.2); then the kernel tells of it once more.
    constexpr int kQuietLooks = 25;
    int quiet = 0;
    for (int looks = 0; looks < 100 && quiet < kQuietLooks; ++looks) {
      quiet = links().TakePodChanges() == PodChanges() ? quiet + 1 : 0;
      absl::SleepFor(absl::Milliseconds(100));
    }
    return quiet == kQuietLooks;
  }

  static constexpr ip::Address kFirstV4 = ip::Address::V4(0x0A000107);   // 10.0.1.7
  static constexpr ip::Address kSecondV4 = ip::Address::V4(0x0A000108);  // 10.0.1.8
  static constexpr ip::Address kFirstV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
  static constexpr ip::Address kSecondV6 = ip::Address::V6(0xFD00'0000'0000'0001, 8);

 private:
  std::unique_ptr<LinksWorld> world_;
};

// This is a macro, so that a failure names the line of the test.
#define EXPECT_CODE(expression, wanted)                                     \
  do {                                                                      \
    const absl::Status code_status = (expression);                          \
    EXPECT_EQ(code_status.code(), absl::StatusCode::wanted) << code_status; \
  } while (false)

TEST_P(LinksContract, ListsWhatWasAttachedByNameWithSortedAddresses) {
  EXPECT_TRUE(Listed().empty());
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec dual = Spec("dual", {kFirstV6, kFirstV4});
  const AttachSpec single = Spec("single", {kSecondV4});
  EXPECT_CODE(Attach(links(), dual, one.get()), kOk);
  EXPECT_CODE(Attach(links(), single, two.get()), kOk);

  std::vector<AttachedLink> wanted = {{dual.host_link, {kFirstV4, kFirstV6}},
                                      {single.host_link, {kSecondV4}}};
  if (dual.host_link > single.host_link) std::swap(wanted[0], wanted[1]);
  EXPECT_EQ(Listed(), wanted);
}

TEST_P(LinksContract, ASecondAttachOfOneHostLinkLeavesTheFirstAlone) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4});
  const AttachSpec other_address = Spec("pod", {kSecondV4, kSecondV6});
  ASSERT_TRUE(Attach(links(), first, one.get()).ok());

  EXPECT_CODE(Attach(links(), other_address, one.get()), kAlreadyExists);
  EXPECT_CODE(Attach(links(), other_address, two.get()), kAlreadyExists);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{first.host_link, {kFirstV4}}}));
}

TEST_P(LinksContract, AttachLeavesALinkThatThePodAlreadyHasAlone) {
  const os::UniqueFd pod = world().NewPodNetns();
  world().AddPodLink(pod.get(), "eth0");
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  EXPECT_CODE(Attach(links(), spec, pod.get()), kAlreadyExists);
  EXPECT_TRUE(Listed().empty());
}

TEST_P(LinksContract, APodMayHaveALinkForEachFamily) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4});
  const AttachSpec second = PlanAttach({"pod", "net1"}, {kFirstV6}, 1500).value();
  EXPECT_CODE(Attach(links(), first, pod.get()), kOk);
  EXPECT_CODE(Attach(links(), second, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 2U);
}

TEST_P(LinksContract, ASecondLinkOfOneFamilyIsRefusedForItsDefaultRouteAndLeavesNothing) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4});
  const AttachSpec second = PlanAttach({"pod", "net1"}, {kSecondV4, kSecondV6}, 1500).value();
  EXPECT_CODE(Attach(links(), first, pod.get()), kOk);
  EXPECT_CODE(Attach(links(), second, pod.get()), kInternal);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{first.host_link, {kFirstV4}}}));
}

TEST_P(LinksContract, APodMayHaveSeveralLinksOfOneFamilyInOrder) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4, kFirstV6});
  AttachOptions options;
  options.ordinal = 1;
  const AttachSpec second =
      PlanAttach({"pod", "net1"}, {kSecondV4, kSecondV6}, 1500, options).value();
  // The order does not matter, and one of them is attached again when it has gone.
  EXPECT_CODE(Attach(links(), second, pod.get()), kOk);
  EXPECT_CODE(Attach(links(), first, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 2U);
  EXPECT_CODE(Detach(links(), second.host_link), kOk);
  EXPECT_CODE(Attach(links(), second, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 2U);
}

TEST_P(LinksContract, RefusesTheNodesOwnNamespaceAndWhatIsNone) {
  const AttachSpec spec = Spec("pod", {kFirstV4});
  const os::UniqueFd node = world().NodeNetns();
  EXPECT_CODE(Attach(links(), spec, node.get()), kFailedPrecondition);
  const os::UniqueFd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_CODE(Attach(links(), spec, device.get()), kFailedPrecondition);
  EXPECT_CODE(Attach(links(), spec, -1), kFailedPrecondition);
  EXPECT_TRUE(Listed().empty());
}

TEST_P(LinksContract, AttachMakesNoLinkThatDetachWouldNotRemove) {
  const os::UniqueFd pod = world().NewPodNetns();
  AttachSpec spec = Spec("pod", {kFirstV4});
  spec.host_link = "veth0";
  EXPECT_CODE(Attach(links(), spec, pod.get()), kInvalidArgument);
  EXPECT_TRUE(Listed().empty());
}

TEST_P(LinksContract, DetachIsDoneOnceAndOkTwice) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  EXPECT_CODE(Detach(links(), spec.host_link), kOk);
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  EXPECT_CODE(Detach(links(), spec.host_link), kOk);
  EXPECT_TRUE(Listed().empty());
  EXPECT_CODE(Detach(links(), spec.host_link), kOk);
  // Nothing is left that would stand in the way of the next one.
  EXPECT_CODE(Attach(links(), spec, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 1U);
}

TEST_P(LinksContract, ADetachedLinkIsNotListedAndNotThereWhenDetachingIsFinished) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec leaving = Spec("leaving", {kFirstV4, kFirstV6});
  const AttachSpec staying = Spec("staying", {kSecondV4});
  ASSERT_TRUE(Attach(links(), leaving, one.get()).ok());
  ASSERT_TRUE(Attach(links(), staying, two.get()).ok());
  EXPECT_CODE(Detach(links(), leaving.host_link), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{staying.host_link, {kSecondV4}}}));
  EXPECT_CODE(world().FinishDetaching(), kOk);
  EXPECT_CODE(world().FinishDetaching(), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{staying.host_link, {kSecondV4}}}));
}

TEST_P(LinksContract, ADetachedLinkIsInNobodysWay) {
  const os::UniqueFd pod = world().NewPodNetns();
  const os::UniqueFd other = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  EXPECT_CODE(Detach(links(), spec.host_link), kOk);
  // The link is made again; then its interface for another container, its address, its host link.
  EXPECT_CODE(Attach(links(), spec, pod.get()), kOk);
  EXPECT_CODE(Detach(links(), spec.host_link), kOk);
  const AttachSpec same_pod = Spec("new", {kSecondV4});
  EXPECT_CODE(Attach(links(), same_pod, pod.get()), kOk);
  EXPECT_CODE(Detach(links(), same_pod.host_link), kOk);
  const AttachSpec same_address = Spec("next", {kFirstV4});
  EXPECT_CODE(Attach(links(), same_address, other.get()), kOk);
  EXPECT_CODE(Detach(links(), same_address.host_link), kOk);
  const AttachSpec same_link = Spec("next", {kSecondV6});
  EXPECT_CODE(Attach(links(), same_link, pod.get()), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{same_link.host_link, {kSecondV6}}}));
}

TEST_P(LinksContract, ManyMayBeDetachedAtOnce) {
  std::vector<os::UniqueFd> pods;
  std::vector<std::string> names;
  for (uint64_t i = 0; i < 40; ++i) {
    pods.push_back(world().NewPodNetns());
    const AttachSpec spec = Spec("pod" + std::to_string(i), {ip::Advance(kFirstV4, i)});
    ASSERT_TRUE(Attach(links(), spec, pods.back().get()).ok());
    names.push_back(spec.host_link);
  }
  for (const std::string& link : names) EXPECT_CODE(Detach(links(), link), kOk);
  // The links are taken down again, in either state.
  for (const std::string& link : names) EXPECT_CODE(Detach(links(), link), kOk);
  EXPECT_TRUE(Listed().empty());
  EXPECT_CODE(world().FinishDetaching(), kOk);
  for (const std::string& link : names) EXPECT_CODE(Detach(links(), link), kOk);
}

TEST_P(LinksContract, DetachRefusesNamesThatAreNotOurs) {
  for (const char* name : {"", "lo", "eth0", "spk", "spk00000000000", "spk0000000000000",
                           "spk00000000000g", "SPK000000000000", "xpk000000000000"}) {
    SCOPED_TRACE(name);
    EXPECT_CODE(Detach(links(), name), kInvalidArgument);
  }
}

TEST_P(LinksContract, TheLastAttachmentOfAnAddressHasItsRoute) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec old_pod = Spec("old", {kFirstV4, kFirstV6});
  const AttachSpec new_pod = Spec("new", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), old_pod, one.get()).ok());
  EXPECT_CODE(Attach(links(), new_pod, two.get()), kOk);
  // A late DEL of the old pod takes nothing from the new one.
  EXPECT_CODE(Detach(links(), old_pod.host_link), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{new_pod.host_link, {kFirstV4, kFirstV6}}}));
}

TEST_P(LinksContract, UnreachableRoutesAreExactlyTheOnesAskedFor) {
  EXPECT_CODE(links().SetUnreachable({kSecondV4, kFirstV6, kFirstV4}), kOk);
  EXPECT_EQ(world().Unreachable(), (std::vector<ip::Address>{kFirstV4, kSecondV4, kFirstV6}));
  EXPECT_CODE(links().SetUnreachable({kSecondV4, kFirstV6, kFirstV4, kFirstV4}), kOk);
  EXPECT_EQ(world().Unreachable(), (std::vector<ip::Address>{kFirstV4, kSecondV4, kFirstV6}));
  EXPECT_CODE(links().SetUnreachable({kSecondV6, kSecondV4}), kOk);
  EXPECT_EQ(world().Unreachable(), (std::vector<ip::Address>{kSecondV4, kSecondV6}));
  EXPECT_CODE(links().SetUnreachable({}), kOk);
  EXPECT_TRUE(world().Unreachable().empty());
}

TEST_P(LinksContract, UnreachableRoutesAndPodRoutesLeaveEachOtherAlone) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(links().SetUnreachable({kFirstV4, kFirstV6}).ok());
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  const std::vector<AttachedLink> wanted = {{spec.host_link, {kFirstV4, kFirstV6}}};
  EXPECT_EQ(Listed(), wanted);
  EXPECT_EQ(world().Unreachable(), spec.addresses);
  EXPECT_CODE(links().SetUnreachable({}), kOk);
  EXPECT_EQ(Listed(), wanted);
  EXPECT_CODE(links().SetUnreachable(spec.addresses), kOk);
  EXPECT_EQ(Listed(), wanted);
  EXPECT_CODE(Detach(links(), spec.host_link), kOk);
  EXPECT_EQ(world().Unreachable(), spec.addresses);
}

TEST_P(LinksContract, MoreUnreachableRoutesThanOneBatchHolds) {
  std::vector<ip::Address> many;
  for (uint64_t i = 0; i < 700; ++i) many.push_back(ip::Advance(kFirstV4, i));
  for (uint64_t i = 0; i < 300; ++i) many.push_back(ip::Advance(kFirstV6, i));
  EXPECT_CODE(links().SetUnreachable(many), kOk);
  EXPECT_EQ(world().Unreachable(), many);
  EXPECT_CODE(links().SetUnreachable({kSecondV4}), kOk);
  EXPECT_EQ(world().Unreachable(), std::vector<ip::Address>{kSecondV4});
}

TEST_P(LinksContract, ANicHasATableOfItsOwn) {
  const Nic nic = world().ExistingNic();
  const auto table = links().SetNicTable(nic.mac);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(links().SetNicTable(nic.mac).value(), *table);
  const absl::Status none = links().SetNicTable({{2, 9, 9, 9, 9, 9}}).status();
  EXPECT_CODE(none, kNotFound);
  EXPECT_NE(none.message().find("02:09:09:09:09:09"), absl::string_view::npos) << none;
}

TEST_P(LinksContract, SourceTablesComeAndGoWithTheirAttachment) {
  const uint32_t table = links().SetNicTable(world().ExistingNic().mac).value();
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  AttachSpec first = Spec("first", {kFirstV4, kFirstV6});
  first.source_tables = {{kFirstV4, table}, {kFirstV6, table}};
  using Tables = std::map<ip::Address, uint32_t>;
  EXPECT_CODE(Attach(links(), first, one.get()), kOk);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV4, table}, {kFirstV6, table}}));
  // A plan that is refused changes nothing.
  AttachSpec refused = Spec("refused", {kSecondV4});
  refused.source_tables = {{kSecondV4, table}};
  EXPECT_CODE(Attach(links(), refused, one.get()), kAlreadyExists);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV4, table}, {kFirstV6, table}}));

  // The addresses move, one of them to another NIC.
  AttachSpec second = Spec("second", {kFirstV4, kFirstV6});
  second.source_tables = {{kFirstV6, table}};
  EXPECT_CODE(Attach(links(), second, two.get()), kOk);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV6, table}}));
  EXPECT_CODE(Detach(links(), first.host_link), kOk);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV6, table}}));
  EXPECT_CODE(Detach(links(), second.host_link), kOk);
  EXPECT_TRUE(world().SourceTables().empty());
}

TEST_P(LinksContract, ReadsANic) {
  const Nic wanted = world().ExistingNic();
  const auto read = links().ReadNic(wanted.name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, wanted);
  EXPECT_CODE(links().ReadNic("absent0").status(), kNotFound);
  EXPECT_CODE(links().ReadNic("a-name-no-device-can-have").status(), kNotFound);
  EXPECT_CODE(links().ReadNic("").status(), kNotFound);
}

TEST_P(LinksContract, WhatWasJustBuiltIsAsItShouldBe) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  EXPECT_TRUE(links().Read()->empty());
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  EXPECT_EQ(links().Read()->size(), 1U);
  EXPECT_EQ(LookTexts(spec, pod.get()), "");
}

TEST_P(LinksContract, EachPartThatBreaksIsNamedAndMendedAndNothingElseChanges) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  const std::vector<std::string> built = world().Snapshot(pod.get());
  for (int i = 0; i <= static_cast<int>(kLastPart); ++i) {
    const Part part = static_cast<Part>(i);
    // Limits need a bandwidth, rules a second link. A link that is down has lost all that led by
    // it, so that is more than one part.
    if (part == Part::kHostLink || part == Part::kPodLink || part == Part::kIngressLimit ||
        part == Part::kPodRule || part == Part::kHostRule || part == Part::kHostUp ||
        part == Part::kPodUp) {
      continue;
    }
    for (const ip::Address& address : spec.addresses) {
      SCOPED_TRACE(std::string(NameOf(part)) + " " + address.ToString());
      world().Break(spec, pod.get(), part, address);
      const LinkOperations found = Look(spec, pod.get());
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(NameOf(found[0].part), NameOf(part)) << found[0].found;
      EXPECT_EQ(found[0].address.value_or(address), address) << found[0].found;
      // A device loses its neighbours with its MAC, and its routes with its last IPv4 address.
      const bool takes_more = part == Part::kHostMac || part == Part::kPodAddress;
      for (size_t more = 1; more < found.size() && !takes_more; ++more) {
        EXPECT_EQ(NameOf(found[more].part), NameOf(part)) << found[more].found;
        EXPECT_EQ(found[more].address, found[0].address) << found[more].found;
      }
      const absl::Status mended = links().Apply(spec, found, pod.get());
      EXPECT_TRUE(mended.ok()) << mended;
      EXPECT_EQ(LookTexts(spec, pod.get()), "");
      EXPECT_EQ(world().Snapshot(pod.get()), built);
      // A part that is right already stays as it is.
      EXPECT_TRUE(links().Apply(spec, found, pod.get()).ok());
      EXPECT_EQ(world().Snapshot(pod.get()), built);
    }
  }
}

TEST_P(LinksContract, ALinkThatWentDownIsMendedInOneGo) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  const std::vector<std::string> built = world().Snapshot(pod.get());
  for (const Part part : {Part::kHostUp, Part::kPodUp}) {
    SCOPED_TRACE(NameOf(part));
    world().Break(spec, pod.get(), part, kFirstV4);
    const LinkOperations found = Look(spec, pod.get());
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(NameOf(found[0].part), NameOf(part));
    const absl::Status mended = links().Apply(spec, found, pod.get());
    EXPECT_TRUE(mended.ok()) << mended;
    // IPv6 gives up more than what it says at first, once the link is down.
    const absl::Status rest = links().Apply(spec, Look(spec, pod.get()), pod.get());
    EXPECT_TRUE(rest.ok()) << rest;
    EXPECT_EQ(LookTexts(spec, pod.get()), "");
    EXPECT_EQ(world().Snapshot(pod.get()), built);
  }
}

TEST_P(LinksContract, TellsInWhichPodSomethingHasChanged) {
  EXPECT_TRUE(links().TakePodChanges().all) << "nothing was heard before";
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec first = Spec("first", {kFirstV4, kFirstV6});
  const AttachSpec second = Spec("second", {kSecondV4, kSecondV6});
  ASSERT_TRUE(Attach(links(), first, one.get()).ok());
  ASSERT_TRUE(Attach(links(), second, two.get()).ok());
  const auto hosts = links().Read().value();
  const std::optional<int32_t> in_first = hosts.at(first.host_link).peer_netns;
  const std::optional<int32_t> in_second = hosts.at(second.host_link).peer_netns;
  ASSERT_TRUE(in_first && in_second);
  EXPECT_NE(*in_first, *in_second);
  EXPECT_EQ(links().TakePodChanges(), (PodChanges{.netns = {*in_first, *in_second}}));
  ASSERT_TRUE(BecomesQuiet());

  for (const Part part : {Part::kPodNeighbour, Part::kPodRoute, Part::kPodAddress, Part::kPodUp}) {
    SCOPED_TRACE(NameOf(part));
    world().Break(first, one.get(), part, kFirstV4);
    EXPECT_EQ(links().TakePodChanges(), (PodChanges{.netns = {*in_first}}));
    const absl::Status mended = links().Apply(first, Look(first, one.get()), one.get());
    EXPECT_TRUE(mended.ok()) << mended;
    EXPECT_EQ(links().TakePodChanges(), (PodChanges{.netns = {*in_first}}));
  }
  ASSERT_TRUE(BecomesQuiet());
  world().AddPodLink(two.get(), "eth1");
  EXPECT_EQ(links().TakePodChanges(), (PodChanges{.netns = {*in_second}}));
  ASSERT_TRUE(BecomesQuiet());
  EXPECT_EQ(LookTexts(second, two.get()), "");
  EXPECT_EQ(links().TakePodChanges(), PodChanges()) << "a look changes nothing";
}

TEST_P(LinksContract, TheNodesSideIsMendedWithoutThePod) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  world().Break(spec, pod.get(), Part::kHostUp, kFirstV4);
  const absl::Status mended = links().Apply(spec, Look(spec, std::nullopt), std::nullopt);
  EXPECT_TRUE(mended.ok()) << mended;
  EXPECT_EQ(LookTexts(spec, pod.get()), "");
}

TEST_P(LinksContract, AnotherPodsNamespaceIsNeverTouched) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec first = Spec("first", {kFirstV4, kFirstV6});
  const AttachSpec second = Spec("second", {kSecondV4, kSecondV6});
  ASSERT_TRUE(Attach(links(), first, one.get()).ok());
  ASSERT_TRUE(Attach(links(), second, two.get()).ok());
  world().Break(first, one.get(), Part::kPodAddress, kFirstV4);
  const LinkOperations found = Look(first, one.get());
  const std::vector<std::string> before = world().Snapshot(two.get());

  EXPECT_TRUE(absl::IsFailedPrecondition(links().ReadPod(first, two.get()).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(links().Apply(first, found, two.get())));
  const os::UniqueFd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(absl::IsFailedPrecondition(links().ReadPod(first, device.get()).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(links().ReadPod(first, -1).status()));
  EXPECT_EQ(world().Snapshot(two.get()), before);
  EXPECT_EQ(Look(first, one.get()), found);
}

TEST_P(LinksContract, ALinkThatIsGoneIsSaidToBeAndNotMadeWithoutItsPod) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  world().Remove(spec);
  EXPECT_TRUE(links().Read()->empty());
  EXPECT_TRUE(absl::IsNotFound(links().ReadPod(spec, pod.get()).status()));
  const LinkOperations found = Look(spec, std::nullopt);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].part, Part::kHostLink);
  EXPECT_CODE(links().Apply(spec, found, std::nullopt), kInvalidArgument);
  const LinkOperation route{.part = Part::kHostRoute, .address = kFirstV4};
  EXPECT_CODE(links().Apply(spec, {route}, std::nullopt), kNotFound);
}

TEST_P(LinksContract, WhatIsInThePodIsNotMendedWithoutIt) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  const LinkOperation address{.part = Part::kPodAddress, .address = kFirstV4};
  EXPECT_CODE(links().Apply(spec, {address}, std::nullopt), kInvalidArgument);
  EXPECT_CODE(links().Apply(spec, {{.part = Part::kPodLink}}, pod.get()), kInvalidArgument);
}

TEST_P(LinksContract, ARouteOfSomebodyElsesInThePlaceOfOursStaysAndIsAnError) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, pod.get()).ok());
  world().Break(spec, pod.get(), Part::kHostRoute, kFirstV4);
  world().AddForeignRoute(spec, kFirstV4);
  const std::vector<std::string> before = world().Snapshot(pod.get());
  const absl::Status mended = links().Apply(spec, Look(spec, std::nullopt), std::nullopt);
  EXPECT_TRUE(absl::IsAlreadyExists(mended)) << mended;
  EXPECT_EQ(world().Snapshot(pod.get()), before);
}

TEST_P(LinksContract, AnAddressThatStillLeadsToAnotherPodOfOursIsBroughtBack) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  const AttachSpec thief = Spec("thief", {kFirstV4, kFirstV6});
  ASSERT_TRUE(Attach(links(), spec, one.get()).ok());
  ASSERT_TRUE(Attach(links(), thief, two.get()).ok());
  const LinkOperations found = Look(spec, std::nullopt);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].part, Part::kHostRoute);
  const absl::Status mended = links().Apply(spec, found, std::nullopt);
  EXPECT_TRUE(mended.ok()) << mended;
  EXPECT_EQ(LookTexts(spec, one.get()), "");
}

#undef EXPECT_CODE

}  // namespace spoke::netagent
