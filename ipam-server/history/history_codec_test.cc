#include "ipam-server/history/history_codec.h"

#include "fmt/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/spoke/v1/history.pb.h"
#include "tests/support/random_seed.h"

namespace spoke::ipam {
namespace {

using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'123);

HistoryEntry Assigned(uint32_t number) {
  return {.at = kNow + absl::Milliseconds(number),
          .event = HistoryEvent::kInUse,
          .address = ip::Address::V4(0x0A000000 + number),
          .node = fmt::format("node-{}", number % 10),
          .vm_id = fmt::format("{:08x}-1234-5678-9abc-def012345678", number % 10),
          .pod_namespace = "research",
          .pod_name = fmt::format("train-worker-{}", number),
          .pod_uid = fmt::format("{:08x}-0000-4000-8000-{:012x}", number, number * 7919),
          .container_id = fmt::format("{:064x}", number * 104729),
          .ifname = "eth0",
          .generation = number};
}

TEST(HistoryCodec, EveryFieldSurvivesARoundTrip) {
  std::vector<HistoryEntry> entries;
  for (uint32_t i = 1; i <= 11; ++i) {
    entries.push_back(Assigned(i));
    entries.back().event = static_cast<HistoryEvent>(i);
  }
  entries.push_back({.at = kNow - absl::Hours(1), .address = ip::Address::V6(1, 2)});
  const auto decoded = DecodeHistory(EncodeHistory(entries));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, entries);
  EXPECT_THAT(*DecodeHistory(EncodeHistory({})), IsEmpty());
}

TEST(HistoryCodec, TextsThatLookLikeNumbersComeBackAsTheyWere) {
  for (const char* text :
       {"", "a", "ab", "deadbeef", "deadbee", "DEADBEEF", "deadbeeg", "00000000",
        "01234567-89ab-cdef-0123-456789abcdef", "01234567-89ab-cdef-0123-456789abcdeF",
        "0123456--89ab-cdef-0123-456789abcdef", "01234567089ab-cdef-0123-456789abcdef", "\x01\x02",
        "\xff\xfe not utf-8"}) {
    const std::vector<HistoryEntry> entries{{.at = kNow, .container_id = text}};
    const auto decoded = DecodeHistory(EncodeHistory(entries));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->at(0).container_id, text);
  }
}

TEST(HistoryCodec, IsCompact) {
  std::vector<HistoryEntry> in_use;
  std::vector<HistoryEntry> attached;
  for (uint32_t i = 0; i < 1000; ++i) {
    in_use.push_back(Assigned(i));
    attached.push_back({.at = kNow,
                        .event = HistoryEvent::kAttached,
                        .address = ip::Address::V4(0x0A000000 + i),
                        .node = "node-1",
                        .vm_id = "vm-1"});
  }
  EXPECT_LT(EncodeHistory(in_use).size() / in_use.size(), 100U);
  EXPECT_LT(EncodeHistory(attached).size() / attached.size(), 20U);
}

TEST(HistoryCodec, AnAddressIsFoundInTheBytesOfItsChunk) {
  const std::string bytes = EncodeHistory(std::vector<HistoryEntry>{Assigned(0x010203)});
  EXPECT_TRUE(MayMention(bytes, ip::Address::V4(0x0A010203)));
  EXPECT_FALSE(MayMention(bytes, ip::Address::V4(0x0A010204)));
  EXPECT_FALSE(MayMention(bytes, ip::Address::V6(1, 2)));
}

TEST(HistoryCodec, AKindOfALaterVersionIsLeftOut) {
  v1::HistoryChunk chunk;
  ASSERT_TRUE(
      chunk.ParseFromString(EncodeHistory(std::vector<HistoryEntry>{Assigned(1), Assigned(2)})));
  chunk.set_events(0, 200);
  const auto decoded = DecodeHistory(chunk.SerializeAsString());
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->size(), 1U);
  EXPECT_EQ(decoded->at(0), Assigned(2));
}

TEST(HistoryCodec, DamageIsNamed) {
  const auto damage = [](auto change) {
    v1::HistoryChunk chunk;
    EXPECT_TRUE(chunk.ParseFromString(EncodeHistory(std::vector<HistoryEntry>{Assigned(1)})));
    change(chunk);
    const absl::Status status = DecodeHistory(chunk.SerializeAsString()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(damage([](v1::HistoryChunk& c) { c.add_nodes(1); }),
            "history chunk: its columns differ in length");
  EXPECT_EQ(damage([](v1::HistoryChunk& c) { c.set_nodes(0, 99); }),
            "history chunk: a number that no text has");
  EXPECT_EQ(damage([](v1::HistoryChunk& c) { c.set_texts(0, ""); }),
            "history chunk: a text without its first byte");
  EXPECT_EQ(damage([](v1::HistoryChunk& c) { c.set_texts(0, "\x07zz"); }),
            "history chunk: a text packed in an unknown way");
  EXPECT_EQ(damage([](v1::HistoryChunk& c) { c.set_texts(0, "\x02zz"); }),
            "history chunk: a UUID that has not 16 bytes");
  EXPECT_EQ(damage([](v1::HistoryChunk& c) { c.set_time_steps_ms(0, -1); }),
            "history chunk: a time beyond the year 9999");
  EXPECT_NE(damage([](v1::HistoryChunk& c) { c.set_addresses(0, "abc"); }), "");
  EXPECT_EQ(DecodeHistory("\xff\xff").status().code(), absl::StatusCode::kDataLoss);
}

TEST(HistoryCodec, AnyEntriesSurviveARoundTrip) {
  testing_support::Random random;
  const auto text = [&] {
    std::string made;
    for (uint64_t i = random.Between(0, 12); i > 0; --i) {
      made += random.OneIn(3) ? static_cast<char>(random.Between(0, 255))
                              : "0123456789abcdef-"[random.Between(0, 16)];
    }
    return made;
  };
  for (int i = 0; i < testing_support::kRandomCases / 20; ++i) {
    std::vector<HistoryEntry> entries(random.Between(0, 20));
    for (HistoryEntry& entry : entries) {
      entry = {.at = absl::FromUnixMillis(static_cast<int64_t>(random.Between(0, 1ULL << 42U))),
               .event = static_cast<HistoryEvent>(random.Between(1, 11)),
               .address =
                   random.OneIn(2) ? ip::Address::V6(random.Between(0, 9), 1) : ip::Address::V4(1),
               .node = text(),
               .vm_id = text(),
               .pod_namespace = text(),
               .pod_name = text(),
               .pod_uid = text(),
               .container_id = text(),
               .ifname = text(),
               .generation = random.Between(0, 1000)};
    }
    const auto decoded = DecodeHistory(EncodeHistory(entries));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(*decoded, entries);
  }
}

}  // namespace
}  // namespace spoke::ipam
