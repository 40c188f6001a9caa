#include "lib/netlink/message.h"

#include <linux/netlink.h>

#include <cerrno>

#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

std::vector<uint16_t> TypesIn(std::string_view hex, bool* malformed) {
  const std::vector<uint8_t> bytes = FromHex(hex);
  AttributeReader reader(bytes);
  std::vector<uint16_t> types;
  while (const auto attribute = reader.Next()) types.push_back(attribute->type);
  *malformed = reader.malformed();
  return types;
}

struct AttributeCase {
  std::string name;
  std::string hex;
  std::vector<uint16_t> types;
  bool malformed;
};

class AttributeReaderTest : public testing::TestWithParam<AttributeCase> {};

TEST_P(AttributeReaderTest, ReadsUpToTheFirstLie) {
  bool malformed = false;
  EXPECT_EQ(TypesIn(GetParam().hex, &malformed), GetParam().types);
  EXPECT_EQ(malformed, GetParam().malformed);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AttributeReaderTest,
    testing::Values(AttributeCase{"Nothing", "", {}, false},
                    AttributeCase{"Two",
                                  "0800010000000001"
                                  "05000200ff000000",
                                  {1, 2},
                                  false},
                    AttributeCase{"LastWithoutPadding", "05000200ff", {2}, false},
                    AttributeCase{"EmptyPayload", "04000700", {7}, false},
                    AttributeCase{"FlagBitsAreNotType", "0400078004000740", {7, 7}, false},
                    AttributeCase{"HeaderCutShort",
                                  "0800010000000001"
                                  "0400",
                                  {1},
                                  true},
                    AttributeCase{"LengthBelowHeader", "03000100", {}, true},
                    AttributeCase{"LengthZero", "00000100", {}, true},
                    AttributeCase{"LengthBeyondEnd", "0900010000000001", {}, true}),
    [](const auto& test) { return test.param.name; });

TEST(Attribute, ReadsValuesOnlyOfTheRightLength) {
  const std::vector<uint8_t> bytes = FromHex("0a000107ff");
  const Attribute attribute{.type = 1, .payload = bytes};
  const Attribute four{.type = 1, .payload = std::span(bytes).first(4)};
  EXPECT_EQ(four.U32(), 0x0701000aU);
  EXPECT_EQ(attribute.U32(), 0x0701000aU);
  EXPECT_EQ(four.U8(), 10);
  EXPECT_EQ(four.Address(ip::Family::kV4), ip::Address::V4(0x0A000107));
  EXPECT_FALSE(attribute.Address(ip::Family::kV4).has_value());
  EXPECT_FALSE(four.Address(ip::Family::kV6).has_value());
  EXPECT_FALSE(four.Mac().has_value());
  EXPECT_FALSE((Attribute{.type = 1, .payload = std::span(bytes).first(3)}.U32().has_value()));
  EXPECT_FALSE(Attribute{}.U8().has_value());
}

TEST(Attribute, TextEndsAtTheFirstNulOrTheEnd) {
  const std::vector<uint8_t> bytes = FromHex("6c6f0078");
  EXPECT_EQ((Attribute{.type = 3, .payload = bytes}.Text()), "lo");
  EXPECT_EQ((Attribute{.type = 3, .payload = std::span(bytes).first(2)}.Text()), "lo");
  EXPECT_EQ(Attribute{}.Text(), "");
}

TEST(AttributeTable, HasTheLastOfEachTypeAndLeavesOutHigherTypes) {
  const std::vector<uint8_t> bytes = FromHex(
      "0800010001000000"
      "0800010002000000"
      "0800030003000000");
  AttributeTable<2> table(bytes);
  uint32_t one = 0;
  uint32_t two = 9;
  std::optional<uint32_t> absent;
  table.Read(1, one);
  table.Read(2, two);
  table.Read(2, absent);
  EXPECT_EQ(one, 2U);
  EXPECT_EQ(two, 9U);
  EXPECT_EQ(absent, std::nullopt);
  EXPECT_EQ(table[2].Text(), "");
  EXPECT_FALSE(table.malformed());
}

TEST(AttributeTable, IsMalformedOnceAValueIsTooShort) {
  const std::vector<uint8_t> bytes = FromHex("0600010001000000");
  AttributeTable<1> table(bytes);
  EXPECT_FALSE(table.malformed());
  std::optional<uint32_t> value;
  std::optional<ip::Address> address;
  table.Read(1, value);
  EXPECT_TRUE(table.malformed());
  AttributeTable<1> again(bytes);
  again.Read(1, ip::Family::kV4, address);
  EXPECT_EQ(address, std::nullopt);
  EXPECT_TRUE(again.malformed());
}

TEST(AttributeTable, IsMalformedWhereALengthLies) {
  EXPECT_TRUE(AttributeTable<1>(FromHex("0900010000000001")).malformed());
}

TEST(MessageReader, SplitsADatagram) {
  // Two messages; the first has one byte of payload and three of padding.
  const std::vector<uint8_t> bytes = FromHex(
      "11000000100002000500000007000000aa000000"
      "10000000030000000600000007000000");
  MessageReader reader(bytes);
  const auto first = reader.Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->type, 16);
  EXPECT_EQ(first->flags, 2);
  EXPECT_EQ(first->sequence, 5U);
  EXPECT_EQ(first->port_id, 7U);
  EXPECT_EQ(first->payload.size(), 1U);
  const auto second = reader.Next();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->type, NLMSG_DONE);
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_FALSE(reader.malformed());
}

TEST(MessageReader, StopsAtALengthThatCannotBe) {
  for (const char* length : {"00000000", "0f000000", "11000000", "ffffffff"}) {
    const std::vector<uint8_t> bytes = FromHex(std::string(length) + "100002000500000007000000");
    MessageReader reader(bytes);
    EXPECT_FALSE(reader.Next().has_value());
    EXPECT_TRUE(reader.malformed());
    EXPECT_FALSE(reader.Next().has_value());
  }
}

Message Error(uint16_t flags, const std::vector<uint8_t>& payload) {
  return {.type = NLMSG_ERROR, .flags = flags, .sequence = 1, .port_id = 1, .payload = payload};
}

// The header of a request of 32 bytes, as an acknowledgement repeats it.
constexpr std::string_view kEchoed = "20000000100005060100000000000000";
constexpr std::string_view kWords =
    "0a000100"
    "6e6f706521000000";  // The text "nope!".

TEST(ParseAcknowledgement, ZeroIsDone) {
  const auto payload = FromHex("00000000" + std::string(kEchoed));
  const auto ack = ParseAcknowledgement(Error(NLM_F_CAPPED, payload));
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->error, 0);
  EXPECT_EQ(ack->text, "");
}

TEST(ParseAcknowledgement, FindsTheKernelsWordsBehindACappedRequest) {
  const auto payload = FromHex("efffffff" + std::string(kEchoed) + std::string(kWords));
  const auto ack = ParseAcknowledgement(Error(NLM_F_CAPPED | NLM_F_ACK_TLVS, payload));
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->error, EEXIST);
  EXPECT_EQ(ack->text, "nope!");
}

TEST(ParseAcknowledgement, FindsTheKernelsWordsBehindAWholeRequest) {
  const auto payload =
      FromHex("efffffff" + std::string(kEchoed) + std::string(32, '0') + std::string(kWords));
  const auto ack = ParseAcknowledgement(Error(NLM_F_ACK_TLVS, payload));
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->error, EEXIST);
  EXPECT_EQ(ack->text, "nope!");
}

TEST(ParseAcknowledgement, RefusesWhatIsNone) {
  const auto negative = FromHex("efffffff");
  const auto positive = FromHex("11000000");
  const auto lowest = FromHex("00000080");
  const auto short_of_error = FromHex("efffff");
  EXPECT_TRUE(ParseAcknowledgement(Error(0, negative)).ok());
  EXPECT_TRUE(absl::IsDataLoss(ParseAcknowledgement(Error(0, positive)).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseAcknowledgement(Error(0, lowest)).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseAcknowledgement(Error(0, short_of_error)).status()));
  EXPECT_TRUE(absl::IsDataLoss(ParseAcknowledgement(Error(NLM_F_ACK_TLVS, negative)).status()));
  Message other = Error(0, negative);
  other.type = NLMSG_DONE;
  EXPECT_TRUE(absl::IsDataLoss(ParseAcknowledgement(other).status()));
}

TEST(ParseAcknowledgement, ALyingRequestLengthCostsOnlyTheWords) {
  const auto payload = FromHex(
      "efffffff"
      "f0ffffff100005060100000000000000" +
      std::string(kWords));
  const auto ack = ParseAcknowledgement(Error(NLM_F_ACK_TLVS, payload));
  ASSERT_TRUE(ack.ok()) << ack.status();
  EXPECT_EQ(ack->error, EEXIST);
  EXPECT_EQ(ack->text, "");
}

}  // namespace
}  // namespace spoke::netlink
