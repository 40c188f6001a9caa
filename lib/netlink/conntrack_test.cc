#include "lib/netlink/conntrack.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "lib/netlink/message.h"
#include "lib/netlink/testing/recorded_messages.h"

namespace spoke::netlink {
namespace {

constexpr ip::Address kPod4 = ip::Address::V4(0x0A010005);
constexpr ip::Address kFar4 = ip::Address::V4(0xC0000201);
constexpr ip::Address kNode4 = ip::Address::V4(0x0A000004);
constexpr ip::Address kPod6 = ip::Address::V6(0xFD00'0000'0000'0000, 5);
constexpr ip::Address kFar6 = ip::Address::V6(0x2001'0DB8'0000'0000, 1);
constexpr ip::Address kNode6 = ip::Address::V6(0xFD00'0000'0000'0000, 4);

using Ends = std::array<ip::Address, 4>;

TEST(ParseTrackedConnection, ReadsBothDirectionsAsTheKernelSentThem) {
  const std::vector<uint8_t> v4 = FromHex(kConnectionV4);
  const TrackedConnection connection = ParseTrackedConnection(v4).value();
  EXPECT_EQ(connection.ends, (Ends{kPod4, kFar4, kFar4, kNode4}));
  EXPECT_EQ(connection.zone, std::nullopt);
  EXPECT_NE(connection.id, std::nullopt);
  EXPECT_EQ(connection.protocol, IPPROTO_UDP);
  EXPECT_EQ(connection.answering_port, 53);
  const std::vector<uint8_t> v6 = FromHex(kConnectionV6);
  EXPECT_EQ(ParseTrackedConnection(v6).value().ends, (Ends{kPod6, kFar6, kFar6, kNode6}));
}

TEST(ParseTrackedConnection, ReadsTheZone) {
  const std::vector<uint8_t> bytes = FromHex(kZonedConnectionV4);
  EXPECT_EQ(ParseTrackedConnection(bytes).value().zone, std::optional<uint16_t>(0x0700));
}

TEST(ParseTrackedConnection, SurvivesDamage) {
  ExpectSurvivesDamage(kConnectionV4, &ParseTrackedConnection);
  ExpectSurvivesDamage(kZonedConnectionV4, &ParseTrackedConnection);
  ExpectSurvivesDamage(kConnectionV6, &ParseTrackedConnection);
}

TEST(ParseTrackedConnection, RefusesWhatLacksAnEndOrIsLongerThanAnyTuple) {
  nfgenmsg fixed{};
  EXPECT_TRUE(absl::IsDataLoss(
      ParseTrackedConnection(MessageReader(Request("try", 256, 0, fixed).bytes()).Next()->payload)
          .status()));
  fixed.nfgen_family = AF_INET;
  const auto add_tuple = [](Request& request, uint16_t type, size_t surplus) {
    request.BeginNest(type)
        .BeginNest(CTA_TUPLE_IP)
        .PutAddress(CTA_IP_V4_SRC, kPod4)
        .PutAddress(CTA_IP_V4_DST, kFar4)
        .EndNest()
        .PutBytes(CTA_TUPLE_PROTO, std::vector<uint8_t>(surplus))
        .EndNest();
  };
  for (const size_t surplus : {size_t{0}, TrackedConnection::kMaxTupleBytes}) {
    Request request("try", 256, 0, fixed);
    add_tuple(request, CTA_TUPLE_ORIG, surplus);
    const auto status = [&] {
      return ParseTrackedConnection(MessageReader(request.bytes()).Next()->payload).status();
    };
    EXPECT_TRUE(absl::IsDataLoss(status())) << "the answers' direction is missing";
    add_tuple(request, CTA_TUPLE_REPLY, 0);
    EXPECT_EQ(absl::IsDataLoss(status()), surplus > 0) << status();
  }
}

TEST(DeleteTrackedConnection, NamesTheTupleTheZoneAndTheEntryAsTheKernelDid) {
  for (const auto hex : {kConnectionV4, kZonedConnectionV4, kConnectionV6}) {
    const std::vector<uint8_t> bytes = FromHex(hex);
    const TrackedConnection connection = ParseTrackedConnection(bytes).value();
    const Request request = DeleteTrackedConnection(connection);
    EXPECT_TRUE(request.Tolerates(ENOENT));
    const auto message = MessageReader(request.bytes()).Next();
    EXPECT_EQ(message->type, (NFNL_SUBSYS_CTNETLINK << 8) | IPCTNL_MSG_CT_DELETE);
    EXPECT_EQ(message->payload[0], bytes[0]) << "the family";
    std::vector<uint16_t> types;
    AttributeReader reader(message->payload, sizeof(nfgenmsg));
    while (const auto attribute = reader.Next()) {
      types.push_back(attribute->type);
      if (attribute->type == CTA_TUPLE_ORIG) {
        EXPECT_TRUE(std::equal(attribute->payload.begin(), attribute->payload.end(),
                               connection.original.begin(), connection.original.end()));
      }
      if (attribute->type == CTA_ID) {
        EXPECT_EQ(attribute->U32(), connection.id);
      }
    }
    EXPECT_FALSE(reader.malformed());
    const std::vector<uint16_t> without = {CTA_TUPLE_ORIG, CTA_ID};
    const std::vector<uint16_t> with = {CTA_TUPLE_ORIG, CTA_ZONE, CTA_ID};
    EXPECT_EQ(types, connection.zone ? with : without);
  }
}

TEST(MarkTrackedConnection, NamesTheTupleAndChangesNothingButTheBitsOfTheMask) {
  for (const auto hex : {kConnectionV4, kZonedConnectionV4, kConnectionV6}) {
    const std::vector<uint8_t> bytes = FromHex(hex);
    const TrackedConnection connection = ParseTrackedConnection(bytes).value();
    const Request request = MarkTrackedConnection(connection, 4, 0x3F);
    EXPECT_TRUE(request.Tolerates(ENOENT));
    const auto message = MessageReader(request.bytes()).Next();
    EXPECT_EQ(message->type, (NFNL_SUBSYS_CTNETLINK << 8) | IPCTNL_MSG_CT_NEW);
    std::vector<uint16_t> types;
    AttributeReader reader(message->payload, sizeof(nfgenmsg));
    while (const auto attribute = reader.Next()) {
      types.push_back(attribute->type);
      if (attribute->type == CTA_MARK) {
        EXPECT_EQ(ReadStruct<uint32_t>(attribute->payload), htonl(4));
      }
      if (attribute->type == CTA_MARK_MASK) {
        EXPECT_EQ(ReadStruct<uint32_t>(attribute->payload), htonl(0x3F));
      }
    }
    EXPECT_FALSE(reader.malformed());
    const std::vector<uint16_t> without = {CTA_TUPLE_ORIG, CTA_MARK, CTA_MARK_MASK};
    const std::vector<uint16_t> with = {CTA_TUPLE_ORIG, CTA_ZONE, CTA_MARK, CTA_MARK_MASK};
    EXPECT_EQ(types, connection.zone ? with : without);
  }
}

TEST(ParseTrackedConnection, ReadsTheMarkAndWhetherItIsOver) {
  const auto parse = [](int state) {
    nfgenmsg fixed{};
    fixed.nfgen_family = AF_INET;
    Request request("try", 256, 0, fixed);
    for (const uint16_t type : {CTA_TUPLE_ORIG, CTA_TUPLE_REPLY}) {
      request.BeginNest(type)
          .BeginNest(CTA_TUPLE_IP)
          .PutAddress(CTA_IP_V4_SRC, kPod4)
          .PutAddress(CTA_IP_V4_DST, kFar4)
          .EndNest()
          .EndNest();
    }
    request.PutValue(CTA_MARK, htonl(0x8000'0004));
    request.BeginNest(CTA_PROTOINFO)
        .BeginNest(CTA_PROTOINFO_TCP)
        .PutValue(CTA_PROTOINFO_TCP_STATE, static_cast<uint8_t>(state))
        .EndNest()
        .EndNest();
    return ParseTrackedConnection(MessageReader(request.bytes()).Next()->payload).value();
  };
  EXPECT_EQ(parse(3).mark, 0x8000'0004U);
  for (const int open : {1, 2, 3, 4, 5, 6}) EXPECT_FALSE(parse(open).closed) << open;
  for (const int over : {7, 8}) EXPECT_TRUE(parse(over).closed) << over;
}

TEST(DeleteTrackedConnectionDeathTest, NeverEmptiesTheTable) {
  EXPECT_DEATH(static_cast<void>(DeleteTrackedConnection({})), "names which");
}

}  // namespace
}  // namespace spoke::netlink
