// Tests of what becomes of the pods of agents of the layouts before.
#include <bpf/bpf.h>
#include <net/if.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/os/unique_fd.h"
#include "netagent/bpf/maps.h"
#include "netagent/claims.h"
#include "netagent/fastpath/translated_pairs.h"
#include "tests/netns/traffic/fast_path_world.h"

namespace spoke::netagent {
namespace {

// The maps of such an agent, and a program that has them and lets all packets go the ordinary way.
class FormerAgent {
 public:
  // `layout`: 1 or 3.
  explicit FormerAgent(int layout) {
    program_ = os::UniqueFd(bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "former", "Apache-2.0", kPass,
                                          std::size(kPass), /*opts=*/nullptr));
    slots_ = Make(BPF_MAP_TYPE_ARRAY, "spoke_slots", 4,
                  static_cast<uint32_t>(layout == 1 ? offsetof(spoke_slot, has_mac)
                                                    : offsetof(spoke_slot, begun)),
                  SPOKE_MAX_PODS);
    pairs4_ = Make(BPF_MAP_TYPE_LRU_HASH, "spoke_pairs4", sizeof(spoke_pair4), 8, SPOKE_MAX_PAIRS);
    pairs6_ = Make(BPF_MAP_TYPE_LRU_HASH, "spoke_pairs6", sizeof(spoke_pair6), 8, SPOKE_MAX_PAIRS);
  }

  void Put(uint32_t slot, uint64_t id, const TrafficPod& pod) {
    spoke_slot content{};
    content.id = id;
    content.link = pod.host_index;
    content.fast = 1;  // Layout 1 does not say so.
    for (const ip::Address& address : pod.addresses) {
      (address.is_v4() ? content.v4 : content.v6) = ToLayout(address);
      (address.is_v4() ? content.has_v4 : content.has_v6) = 1;
    }
    EXPECT_TRUE(netagent::Put(slots_.get(), slot, content, "a pod").ok());
  }

  void Run(netlink::Socket& socket, uint32_t link) {
    MustSend(socket, {netlink::AddClsact(static_cast<int32_t>(link)),
                      netlink::SetBpfFilter({.link = static_cast<int32_t>(link),
                                             .priority = claims::kFastPathPriority,
                                             .name = "former",
                                             .program_id = 0,
                                             .direct = true},
                                            netlink::HookOf(netlink::Direction::kIngress),
                                            program_.get())});
  }

  // Learns as its programs do when somebody has translated a connection between the two.
  void Learn(const ip::Address& a, const ip::Address& b) {
    const uint32_t one = ToLayout(a).word[0];
    const uint32_t other = ToLayout(b).word[0];
    const spoke_pair4 pair{.low = std::min(one, other), .high = std::max(one, other)};
    EXPECT_TRUE(netagent::Put(pairs4_.get(), pair, PairClockNs(), "a pair").ok());
  }

 private:
  static constexpr bpf_insn kPass[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1},
      {.code = BPF_JMP | BPF_EXIT}};

  os::UniqueFd Make(bpf_map_type type, const char* name, uint32_t key, uint32_t value,
                    uint32_t most) {
    os::UniqueFd map(bpf_map_create(type, name, key, value, most, /*opts=*/nullptr));
    EXPECT_EQ(bpf_prog_bind_map(program_.get(), map.get(), /*opts=*/nullptr), 0) << name;
    return map;
  }

  os::UniqueFd program_, slots_, pairs4_, pairs6_;
};

class FastPathUpgradeTest : public FastPathTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    FastPathTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(fast_->Remove().ok());
    former_.emplace(GetParam());
    former_->Put(0, 7, one_->pod);
    former_->Put(5, 9, two_->pod);
    for (const auto* pod : {&one_->pod, &two_->pod}) former_->Run(node_->socket(), pod->host_index);
    fast_ = BpfFastPath::Create().value();
  }

  absl::Status Configure() { return fast_->Configure({.uplink = kNodeDevice, .hops = Hops()}); }

  // Returns whether packets between the two pass by the fast path. They have to arrive.
  bool IsFast(Attached& pod, const ip::Address& mine, const netns::Netns& other,
              const ip::Address& far) {
    UdpSocket client(pod.netns.netns(), mine);
    UdpSocket server(other, far);
    const uint64_t before = Forwarded();
    EXPECT_TRUE(CanTalk(client, server, far, 100)) << mine.ToString() << " " << far.ToString();
    const uint64_t forwarded = Forwarded() - before;
    EXPECT_THAT(forwarded, ::testing::AnyOf(0U, 2U));
    return forwarded == 0;
  }

  std::optional<FormerAgent> former_;
};

TEST_P(FastPathUpgradeTest, PodsStayFastUnderTheirIdsAndTheirPairsAreKnown) {
  former_->Learn(kFirstV4, kFabricV4);
  ASSERT_EQ(Configure(), absl::OkStatus());
  const auto readings = fast_->Read().value();
  ASSERT_EQ(readings.size(), 2U);
  EXPECT_EQ(readings[0].id, 7U);
  EXPECT_EQ(readings[0].addresses, one_->pod.addresses);
  EXPECT_EQ(readings[1].id, 9U);
  EXPECT_FALSE(IsFast(*one_, kFirstV4, node_->fabric(), kFabricV4));
  EXPECT_TRUE(IsFast(*one_, kFirstV6, node_->fabric(), kFabricV6));
  EXPECT_TRUE(IsFast(*one_, kFirstV4, two_->netns.netns(), kSecondV4));
}

// What a link's former programs learn until they are replaced must not be lost: no pod is fast
// before all are.
TEST_P(FastPathUpgradeTest, UntilAllLinksRunTheNewProgramsPodsGoTheOrdinaryWay) {
  // Keeps the programs from the uplink: filters of one priority are of one kind.
  const std::string blocker = fmt::format("dev {} ingress pref {} protocol all", kNodeDevice,
                                          uint32_t{claims::kFastPathPriority});
  const auto tc = [](const std::string& command) {
    EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(cert-env33-c)
  };
  tc(fmt::format("tc qdisc replace dev {} clsact", kNodeDevice));
  tc("tc filter add " + blocker + " u32 match u32 0 0");
  ASSERT_FALSE(Configure().ok());
  EXPECT_FALSE(IsFast(*one_, kFirstV4, two_->netns.netns(), kSecondV4));
  former_->Learn(kFirstV4, kFabricV4);
  tc("tc filter del " + blocker);
  ASSERT_EQ(Configure(), absl::OkStatus());
  EXPECT_FALSE(IsFast(*one_, kFirstV4, node_->fabric(), kFabricV4));
  EXPECT_TRUE(IsFast(*one_, kFirstV4, two_->netns.netns(), kSecondV4));
}

TEST_P(FastPathUpgradeTest, TheUplinkBeforeRunsNoProgramsAnyMore) {
  former_->Run(node_->socket(), ::if_nametoindex("lo"));
  ASSERT_EQ(Configure(), absl::OkStatus());
  const auto filters =
      netlink::DumpFilters(node_->socket(), static_cast<int32_t>(::if_nametoindex("lo")),
                           netlink::HookOf(netlink::Direction::kIngress));
  ASSERT_TRUE(filters.ok()) << filters.status();
  EXPECT_THAT(*filters, ::testing::IsEmpty());
}

// The maps of the new agent have learned of others meanwhile.
TEST_P(FastPathUpgradeTest, APodWithAPairForWhichNoRoomIsLeftLeavesTheFastPath) {
  const auto make = [](bpf_map_type type, uint32_t key, uint32_t value, uint32_t most) {
    return os::UniqueFd(bpf_map_create(type, "test", key, value, most, /*opts=*/nullptr));
  };
  const auto v4 = make(BPF_MAP_TYPE_HASH, sizeof(spoke_pair4), 8, /*most=*/1);
  const auto v6 = make(BPF_MAP_TYPE_HASH, sizeof(spoke_pair6), 8, /*most=*/1);
  const auto counts = make(BPF_MAP_TYPE_ARRAY, 4, 4, SPOKE_MAX_PODS);
  const auto over_share = make(BPF_MAP_TYPE_ARRAY, 4, 4, SPOKE_MAX_PODS);
  const TranslatedPairs pairs{v4.get(), v6.get(), counts.get(), over_share.get()};
  const FormerPairs former{make(BPF_MAP_TYPE_HASH, sizeof(spoke_pair4), 8, 8),
                           make(BPF_MAP_TYPE_HASH, sizeof(spoke_pair6), 8, 8)};
  const spoke_pair4 known{.low = 1, .high = 100};
  const spoke_pair4 other{.low = 2, .high = 100};
  ASSERT_TRUE(Put(v4.get(), known, uint64_t{20}, "a pair").ok());
  for (const auto& pair : {known, other}) {
    ASSERT_TRUE(Put(former.v4.get(), pair, uint64_t{10}, "a pair").ok());
  }
  const std::map<uint32_t, spoke_slot> pods = {{3, {.id = 1, .v4 = {.word = {1}}, .has_v4 = 1}},
                                               {4, {.id = 2, .v4 = {.word = {2}}, .has_v4 = 1}}};
  ASSERT_EQ(pairs.TakeOver(former, pods), absl::OkStatus());
  EXPECT_FALSE(pairs.IsOverShare(3));
  EXPECT_TRUE(pairs.IsOverShare(4));
  uint64_t last = 0;
  ASSERT_EQ(bpf_map_lookup_elem(v4.get(), &known, &last), 0);
  EXPECT_EQ(last, 20U);  // What is newer stays.
}

INSTANTIATE_TEST_SUITE_P(Layouts, FastPathUpgradeTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace spoke::netagent
