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
  record.addresses[A("10.1.0.4")] = {.pool = "p", .configuration = "spoke-1", .since = since};
  record.addresses[A("10.1.0.5")] = {.pool = "p",
                                     .configuration = "spoke-2",
                                     .state = LeaseState::kAttached,
                                     .use = Use::kLent,
                                     .since = since,
                                     .generation = 5,
                                     .lessee = Lessee{"c1", "eth0", "ns", "pod", "uid"}};
  record.addresses[A("fd00::5")] = {.pool = "six",
                                    .configuration = "spoke-3",
                                    .state = LeaseState::kAttached,
                                    .use = Use::kCooling,
                                    .since = since,
                                    .generation = 6};
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
  EXPECT_EQ(record->addresses.at(A("10.1.0.4")).state, LeaseState::kAttached);
}

}  // namespace
}  // namespace spoke::ipam
