// The promises of Router, as tests. Each implementation's test file instantiates them with a
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

#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"
#include "netagent/links/router.h"

namespace spoke::netagent {

// A router on a node without pods, and what the suite needs to see of its surroundings.
class RouterWorld {
 public:
  virtual ~RouterWorld() = default;
  virtual Router& router() = 0;
  virtual os::UniqueFd NewPodNetns() = 0;
  virtual os::UniqueFd NodeNetns() = 0;
  // Somebody else puts a link of this name into the pod.
  virtual void AddPodLink(int pod_netns, const std::string& name) = 0;
  // A device the node has, as ReadNic() must report it.
  virtual Nic ExistingNic() = 0;
  // The addresses with an unreachable route of ours, sorted.
  virtual std::vector<ip::Address> Unreachable() = 0;
  // The table that a rule of ours leads what comes from each address into.
  virtual std::map<ip::Address, uint32_t> SourceTables() = 0;
};

struct RouterWorldFactory {
  std::string name;
  // Null where this machine cannot have such a world (no right to make namespaces).
  std::function<std::unique_ptr<RouterWorld>()> make;
};

class RouterContract : public testing::TestWithParam<RouterWorldFactory> {
 protected:
  void SetUp() override {
    world_ = GetParam().make();
    if (world_ != nullptr) return;
    // A skip must not pass for a success.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }

  Router& router() { return world_->router(); }
  RouterWorld& world() { return *world_; }

  static AttachSpec Spec(const std::string& container, std::vector<ip::Address> addresses) {
    return PlanAttach({container, "eth0"}, std::move(addresses), 1500).value();
  }

  std::vector<AttachedLink> Listed() {
    auto listed = router().ListAttached();
    EXPECT_TRUE(listed.ok()) << listed.status();
    return listed.ok() ? *std::move(listed) : std::vector<AttachedLink>();
  }

  static constexpr ip::Address kFirstV4 = ip::Address::V4(0x0A000107);   // 10.0.1.7
  static constexpr ip::Address kSecondV4 = ip::Address::V4(0x0A000108);  // 10.0.1.8
  static constexpr ip::Address kFirstV6 = ip::Address::V6(0xFD00'0000'0000'0001, 7);
  static constexpr ip::Address kSecondV6 = ip::Address::V6(0xFD00'0000'0000'0001, 8);

 private:
  std::unique_ptr<RouterWorld> world_;
};

// A macro, so that a failure names the line of the test.
#define EXPECT_CODE(expression, wanted)                                     \
  do {                                                                      \
    const absl::Status code_status = (expression);                          \
    EXPECT_EQ(code_status.code(), absl::StatusCode::wanted) << code_status; \
  } while (false)

TEST_P(RouterContract, ListsWhatWasAttachedByNameWithSortedAddresses) {
  EXPECT_TRUE(Listed().empty());
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec dual = Spec("dual", {kFirstV6, kFirstV4});
  const AttachSpec single = Spec("single", {kSecondV4});
  EXPECT_CODE(router().Attach(dual, one.get()), kOk);
  EXPECT_CODE(router().Attach(single, two.get()), kOk);

  std::vector<AttachedLink> wanted = {{dual.host_link, {kFirstV4, kFirstV6}},
                                      {single.host_link, {kSecondV4}}};
  if (dual.host_link > single.host_link) std::swap(wanted[0], wanted[1]);
  EXPECT_EQ(Listed(), wanted);
}

TEST_P(RouterContract, ASecondAttachOfOneHostLinkLeavesTheFirstAlone) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4});
  const AttachSpec other_address = Spec("pod", {kSecondV4, kSecondV6});
  ASSERT_TRUE(router().Attach(first, one.get()).ok());

  EXPECT_CODE(router().Attach(other_address, one.get()), kAlreadyExists);
  EXPECT_CODE(router().Attach(other_address, two.get()), kAlreadyExists);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{first.host_link, {kFirstV4}}}));
}

TEST_P(RouterContract, AttachLeavesALinkThatThePodAlreadyHasAlone) {
  const os::UniqueFd pod = world().NewPodNetns();
  world().AddPodLink(pod.get(), "eth0");
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  EXPECT_CODE(router().Attach(spec, pod.get()), kAlreadyExists);
  EXPECT_TRUE(Listed().empty());
}

TEST_P(RouterContract, APodMayHaveALinkForEachFamily) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4});
  const AttachSpec second = PlanAttach({"pod", "net1"}, {kFirstV6}, 1500).value();
  EXPECT_CODE(router().Attach(first, pod.get()), kOk);
  EXPECT_CODE(router().Attach(second, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 2U);
}

TEST_P(RouterContract, ASecondLinkOfOneFamilyIsRefusedForItsDefaultRouteAndLeavesNothing) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4});
  const AttachSpec second = PlanAttach({"pod", "net1"}, {kSecondV4, kSecondV6}, 1500).value();
  EXPECT_CODE(router().Attach(first, pod.get()), kOk);
  EXPECT_CODE(router().Attach(second, pod.get()), kInternal);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{first.host_link, {kFirstV4}}}));
}

TEST_P(RouterContract, APodMayHaveSeveralLinksOfOneFamilyInOrder) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec first = Spec("pod", {kFirstV4, kFirstV6});
  AttachOptions options;
  options.ordinal = 1;
  const AttachSpec second =
      PlanAttach({"pod", "net1"}, {kSecondV4, kSecondV6}, 1500, options).value();
  // In any order; and again, when one of them has gone.
  EXPECT_CODE(router().Attach(second, pod.get()), kOk);
  EXPECT_CODE(router().Attach(first, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 2U);
  EXPECT_CODE(router().Detach(second.host_link), kOk);
  EXPECT_CODE(router().Attach(second, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 2U);
}

TEST_P(RouterContract, RefusesTheNodesOwnNamespaceAndWhatIsNone) {
  const AttachSpec spec = Spec("pod", {kFirstV4});
  const os::UniqueFd node = world().NodeNetns();
  EXPECT_CODE(router().Attach(spec, node.get()), kFailedPrecondition);
  const os::UniqueFd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_CODE(router().Attach(spec, device.get()), kFailedPrecondition);
  EXPECT_CODE(router().Attach(spec, -1), kFailedPrecondition);
  EXPECT_TRUE(Listed().empty());
}

TEST_P(RouterContract, AttachMakesNoLinkThatDetachWouldNotRemove) {
  const os::UniqueFd pod = world().NewPodNetns();
  AttachSpec spec = Spec("pod", {kFirstV4});
  spec.host_link = "veth0";
  EXPECT_CODE(router().Attach(spec, pod.get()), kInvalidArgument);
  EXPECT_TRUE(Listed().empty());
}

TEST_P(RouterContract, DetachIsDoneOnceAndOkTwice) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  EXPECT_CODE(router().Detach(spec.host_link), kOk);
  ASSERT_TRUE(router().Attach(spec, pod.get()).ok());
  EXPECT_CODE(router().Detach(spec.host_link), kOk);
  EXPECT_TRUE(Listed().empty());
  EXPECT_CODE(router().Detach(spec.host_link), kOk);
  // Nothing is left that would stand in the way of the next one.
  EXPECT_CODE(router().Attach(spec, pod.get()), kOk);
  EXPECT_EQ(Listed().size(), 1U);
}

TEST_P(RouterContract, ADetachedLinkIsNotListedAndNotThereWhenDetachingIsFinished) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec leaving = Spec("leaving", {kFirstV4, kFirstV6});
  const AttachSpec staying = Spec("staying", {kSecondV4});
  ASSERT_TRUE(router().Attach(leaving, one.get()).ok());
  ASSERT_TRUE(router().Attach(staying, two.get()).ok());
  EXPECT_CODE(router().Detach(leaving.host_link), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{staying.host_link, {kSecondV4}}}));
  EXPECT_CODE(router().FinishDetaching(), kOk);
  EXPECT_CODE(router().FinishDetaching(), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{staying.host_link, {kSecondV4}}}));
}

TEST_P(RouterContract, ADetachedLinkIsInNobodysWay) {
  const os::UniqueFd pod = world().NewPodNetns();
  const os::UniqueFd other = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(router().Attach(spec, pod.get()).ok());
  EXPECT_CODE(router().Detach(spec.host_link), kOk);
  // The same again; its interface for another container; its address; its host link.
  EXPECT_CODE(router().Attach(spec, pod.get()), kOk);
  EXPECT_CODE(router().Detach(spec.host_link), kOk);
  const AttachSpec same_pod = Spec("new", {kSecondV4});
  EXPECT_CODE(router().Attach(same_pod, pod.get()), kOk);
  EXPECT_CODE(router().Detach(same_pod.host_link), kOk);
  const AttachSpec same_address = Spec("next", {kFirstV4});
  EXPECT_CODE(router().Attach(same_address, other.get()), kOk);
  EXPECT_CODE(router().Detach(same_address.host_link), kOk);
  const AttachSpec same_link = Spec("next", {kSecondV6});
  EXPECT_CODE(router().Attach(same_link, pod.get()), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{same_link.host_link, {kSecondV6}}}));
}

TEST_P(RouterContract, ManyMayBeDetachedAtOnce) {
  std::vector<os::UniqueFd> pods;
  std::vector<std::string> links;
  for (uint64_t i = 0; i < 40; ++i) {
    pods.push_back(world().NewPodNetns());
    const AttachSpec spec = Spec("pod" + std::to_string(i), {ip::Advance(kFirstV4, i)});
    ASSERT_TRUE(router().Attach(spec, pods.back().get()).ok());
    links.push_back(spec.host_link);
  }
  for (const std::string& link : links) EXPECT_CODE(router().Detach(link), kOk);
  // And again, in either state.
  for (const std::string& link : links) EXPECT_CODE(router().Detach(link), kOk);
  EXPECT_TRUE(Listed().empty());
  EXPECT_CODE(router().FinishDetaching(), kOk);
  for (const std::string& link : links) EXPECT_CODE(router().Detach(link), kOk);
}

TEST_P(RouterContract, DetachRefusesNamesThatAreNotOurs) {
  for (const char* name : {"", "lo", "eth0", "spk", "spk00000000000", "spk0000000000000",
                           "spk00000000000g", "SPK000000000000", "xpk000000000000"}) {
    SCOPED_TRACE(name);
    EXPECT_CODE(router().Detach(name), kInvalidArgument);
  }
}

TEST_P(RouterContract, TheLastAttachmentOfAnAddressHasItsRoute) {
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  const AttachSpec old_pod = Spec("old", {kFirstV4, kFirstV6});
  const AttachSpec new_pod = Spec("new", {kFirstV4, kFirstV6});
  ASSERT_TRUE(router().Attach(old_pod, one.get()).ok());
  EXPECT_CODE(router().Attach(new_pod, two.get()), kOk);
  // A late DEL of the old pod takes nothing from the new one.
  EXPECT_CODE(router().Detach(old_pod.host_link), kOk);
  EXPECT_EQ(Listed(), (std::vector<AttachedLink>{{new_pod.host_link, {kFirstV4, kFirstV6}}}));
}

TEST_P(RouterContract, UnreachableRoutesAreExactlyTheOnesAskedFor) {
  EXPECT_CODE(router().SetUnreachable({kSecondV4, kFirstV6, kFirstV4}), kOk);
  EXPECT_EQ(world().Unreachable(), (std::vector<ip::Address>{kFirstV4, kSecondV4, kFirstV6}));
  EXPECT_CODE(router().SetUnreachable({kSecondV4, kFirstV6, kFirstV4, kFirstV4}), kOk);
  EXPECT_EQ(world().Unreachable(), (std::vector<ip::Address>{kFirstV4, kSecondV4, kFirstV6}));
  EXPECT_CODE(router().SetUnreachable({kSecondV6, kSecondV4}), kOk);
  EXPECT_EQ(world().Unreachable(), (std::vector<ip::Address>{kSecondV4, kSecondV6}));
  EXPECT_CODE(router().SetUnreachable({}), kOk);
  EXPECT_TRUE(world().Unreachable().empty());
}

TEST_P(RouterContract, UnreachableRoutesAndPodRoutesLeaveEachOtherAlone) {
  const os::UniqueFd pod = world().NewPodNetns();
  const AttachSpec spec = Spec("pod", {kFirstV4, kFirstV6});
  ASSERT_TRUE(router().SetUnreachable({kFirstV4, kFirstV6}).ok());
  ASSERT_TRUE(router().Attach(spec, pod.get()).ok());
  const std::vector<AttachedLink> wanted = {{spec.host_link, {kFirstV4, kFirstV6}}};
  EXPECT_EQ(Listed(), wanted);
  EXPECT_EQ(world().Unreachable(), spec.addresses);
  EXPECT_CODE(router().SetUnreachable({}), kOk);
  EXPECT_EQ(Listed(), wanted);
  EXPECT_CODE(router().SetUnreachable(spec.addresses), kOk);
  EXPECT_EQ(Listed(), wanted);
  EXPECT_CODE(router().Detach(spec.host_link), kOk);
  EXPECT_EQ(world().Unreachable(), spec.addresses);
}

TEST_P(RouterContract, MoreUnreachableRoutesThanOneBatchHolds) {
  std::vector<ip::Address> many;
  for (uint64_t i = 0; i < 700; ++i) many.push_back(ip::Advance(kFirstV4, i));
  for (uint64_t i = 0; i < 300; ++i) many.push_back(ip::Advance(kFirstV6, i));
  EXPECT_CODE(router().SetUnreachable(many), kOk);
  EXPECT_EQ(world().Unreachable(), many);
  EXPECT_CODE(router().SetUnreachable({kSecondV4}), kOk);
  EXPECT_EQ(world().Unreachable(), std::vector<ip::Address>{kSecondV4});
}

TEST_P(RouterContract, ANicHasATableOfItsOwn) {
  const Nic nic = world().ExistingNic();
  const auto table = router().SetNicTable(nic.mac);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(router().SetNicTable(nic.mac).value(), *table);
  const absl::Status none = router().SetNicTable({{2, 9, 9, 9, 9, 9}}).status();
  EXPECT_CODE(none, kNotFound);
  EXPECT_NE(none.message().find("02:09:09:09:09:09"), absl::string_view::npos) << none;
}

TEST_P(RouterContract, SourceTablesComeAndGoWithTheirAttachment) {
  const uint32_t table = router().SetNicTable(world().ExistingNic().mac).value();
  const os::UniqueFd one = world().NewPodNetns();
  const os::UniqueFd two = world().NewPodNetns();
  AttachSpec first = Spec("first", {kFirstV4, kFirstV6});
  first.source_tables = {{kFirstV4, table}, {kFirstV6, table}};
  using Tables = std::map<ip::Address, uint32_t>;
  EXPECT_CODE(router().Attach(first, one.get()), kOk);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV4, table}, {kFirstV6, table}}));
  // What is refused changes nothing.
  AttachSpec refused = Spec("refused", {kSecondV4});
  refused.source_tables = {{kSecondV4, table}};
  EXPECT_CODE(router().Attach(refused, one.get()), kAlreadyExists);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV4, table}, {kFirstV6, table}}));

  // The addresses move, one of them to another NIC.
  AttachSpec second = Spec("second", {kFirstV4, kFirstV6});
  second.source_tables = {{kFirstV6, table}};
  EXPECT_CODE(router().Attach(second, two.get()), kOk);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV6, table}}));
  EXPECT_CODE(router().Detach(first.host_link), kOk);
  EXPECT_EQ(world().SourceTables(), (Tables{{kFirstV6, table}}));
  EXPECT_CODE(router().Detach(second.host_link), kOk);
  EXPECT_TRUE(world().SourceTables().empty());
}

TEST_P(RouterContract, ReadsANic) {
  const Nic wanted = world().ExistingNic();
  const auto read = router().ReadNic(wanted.name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, wanted);
  EXPECT_CODE(router().ReadNic("absent0").status(), kNotFound);
  EXPECT_CODE(router().ReadNic("a-name-no-device-can-have").status(), kNotFound);
  EXPECT_CODE(router().ReadNic("").status(), kNotFound);
}

#undef EXPECT_CODE

}  // namespace spoke::netagent
