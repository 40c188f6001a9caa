#include "ipam-server/store/record_codec.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

ip::Address A(std::string_view text) { return ip::Address::Parse(text).value(); }

NodeRecord Sample() {
  NodeRecord record{.key = {"node1", "vm-1"},
                    .boot_id = "boot",
                    .session_epoch = 7,
                    .nic_mac = ip::MacAddress::Parse("00:0d:3a:00:00:01").value(),
                    .next_configuration = 9};
  const absl::Time since = absl::FromUnixMillis(1'700'000'000'123);
  const auto add = [&](const std::string& range, const std::string& pool,
                       AddressState state) -> Configuration& {
    Configuration configuration(ip::Prefix::Parse(range).value(), pool,
                                "spoke-" + std::to_string(record.configurations.size()), since);
    configuration.state = state;
    return record.configurations.emplace(configuration.range.base(), configuration).first->second;
  };
  add("10.1.0.4/32", "p", AddressState::kAttaching);
  Configuration& in_use = add("10.1.0.5/32", "p", AddressState::kAttached);
  in_use.slots[0] = {.use = Use::kInUse,
                     .generation = 5,
                     .since = since + absl::Seconds(1),
                     .lessee = std::make_shared<const node_api::Lessee>(
                         node_api::Lessee{"c1", "eth0", "ns", "pod", "uid"})};
  Configuration& cooldown = add("fd00::5/128", "six", AddressState::kAttached);
  cooldown.slots[0] = {.use = Use::kCooldown, .generation = 6, .since = since};
  cooldown.denied_until = since + absl::Minutes(5);
  Configuration& block = add("10.2.0.16/28", "blocks", AddressState::kDetaching);
  block.slots[3] = {.use = Use::kAvailable, .generation = 9, .since = since + absl::Hours(1)};
  block.slots[15] = in_use.slots[0];
  record.mode = NodeMode::kDraining;
  record.labels = {{"zone", "2"}, {"empty", ""}};
  record.vnet = "west";
  record.released = {{ip::Prefix::Parse("10.1.0.9/32").value(), since},
                     {ip::Prefix::Parse("10.2.0.32/28").value(), since + absl::Seconds(3)}};
  record.instance = "/subscriptions/s/resourcegroups/g/providers/vm/1";
  record.subnets = {ip::Prefix::Parse("10.1.0.0/16").value(),
                    ip::Prefix::Parse("fd00::/64").value()};
  record.nic_read = true;
  record.wanted = {
      {"spoke-7", {.pool = "blocks", .prefix_length = 28, .since = since}},
      {"spoke-8", {.pool = "six", .family = ip::Family::kV6, .prefix_length = 128, .since = since}},
      {"spoke-9",
       {.since = since,
        .given = ip::Prefix::Parse("10.9.0.4/32").value(),
        .problem = "is in none of the pools",
        .given_back = true}}};
  return record;
}

TEST(RecordCodec, DecodeUndoesEncode) { EXPECT_EQ(*DecodeNode(EncodeNode(Sample())), Sample()); }

TEST(RecordCodec, DamageIsNamedAndNeverTakenForARecord) {
  const std::string good = EncodeNode(Sample());
  EXPECT_EQ(DecodeNode("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeNode("garbage").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeNode(good.substr(0, good.size() / 2)).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(RecordCodec, ReadsWhatTheFirstVersionWrote) {
  // Field numbers are for ever: these bytes must decode the same in every later version.
  const std::string bytes(
      "\x0a\x01n\x12\x01v\x1a\x01"
      "b\x20\x02\x2a\x11"
      "00:0d:3a:00:00:01\x32\x0f\x0a\x04\x0a\x01"
      "\x00\x04\x12\x01p\x1a\x02s1\x20\x02\x38\x03",
      49);
  const auto record = DecodeNode(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->key, (NodeKey{"n", "v"}));
  EXPECT_EQ(record->session_epoch, 2U);
  EXPECT_EQ(record->next_configuration, 3U);
  const Configuration* configuration = record->Holding(A("10.1.0.4"));
  ASSERT_NE(configuration, nullptr);
  EXPECT_EQ(configuration->state, AddressState::kAttached);
  EXPECT_EQ(configuration->pool, "p");
  EXPECT_EQ(configuration->name, "s1");
  EXPECT_EQ(record->mode, NodeMode::kActive);
}

TEST(RecordCodec, OverlappingRangesAreDamage) {
  NodeRecord record = Sample();
  Configuration inside(ip::Prefix::Host(A("10.2.0.20")), "p", "spoke-x", absl::UnixEpoch());
  record.configurations.emplace(A("10.2.0.20"), inside);
  EXPECT_EQ(DecodeNode(EncodeNode(record)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(RecordCodec, TheOtherRecordsComeThroughWhole) {
  const absl::Time since = absl::FromUnixMillis(1'700'000'000'123);
  const Quarantine quarantine{
      .reason = "doubled", .since = since, .until = since + absl::Minutes(10), .doubled = true};
  EXPECT_EQ(*DecodeQuarantine(EncodeQuarantine(A("10.1.0.4"), quarantine)),
            (std::pair{A("10.1.0.4"), quarantine}));
  const BreakerState breaker{
      .freeze = BreakerState::Freeze{since, "too much", {.addresses = 40}},
      .pardon = BreakerState::Pardon{since, "before", {5, "the list", 12}, /*drawn=*/9},
      .freed = {{since, 7}},
      .trips = 3};
  EXPECT_EQ(*DecodeBreaker(EncodeBreaker(breaker)), breaker);
  Reservation reservation{.name = "job",
                          .by_count = true,
                          .addresses_per_node = 8,
                          .created = since,
                          .expires = since + absl::Hours(1),
                          .open_places = 2};
  reservation.missing["node1"];
  EXPECT_EQ(*DecodeReservation(EncodeReservation(reservation)), reservation);
  const RecoveryState store{.store_id = "s",
                            .epoch = 7,
                            .former = {"before"},
                            .cause = RecoveryState::Cause{"a backup", since, 3},
                            .unverified_until = since,
                            .opened_under = 0x7000000000000001,
                            .recovered = absl::UnixEpoch() + absl::Hours(7)};
  EXPECT_EQ(*DecodeStore(EncodeStore(store)), store);
  RecoveryState backup = store;
  backup.backup = true;
  EXPECT_EQ(*DecodeStore(*MarkedAsBackup(EncodeStore(store))), backup);
  EXPECT_FALSE(MarkedAsBackup("garbage").ok());
  for (const char* damaged : {"\xff", "garbage"}) {
    EXPECT_FALSE(DecodeQuarantine(damaged).ok());
    EXPECT_FALSE(DecodeReservation(damaged).ok());
    EXPECT_FALSE(DecodeStore(damaged).ok());
    EXPECT_FALSE(DecodeBreaker(damaged).ok());
  }
}

}  // namespace
}  // namespace spoke::ipam
