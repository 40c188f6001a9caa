#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "gtest/gtest.h"
#include "lib/netlink/message.h"

namespace spoke::netlink {
namespace {

TEST(Request, IsOneMessageThatTheReaderReadsBack) {
  ifinfomsg fixed{};
  fixed.ifi_index = 77;
  Request request("try", RTM_SETLINK, NLM_F_ACK, fixed);
  request.PutU8(1, 5).PutU32(2, 6).PutText(3, "name").PutAddress(4, ip::Address::V4(0x0A000001));
  request.PutMac(5, {{1, 2, 3, 4, 5, 6}});

  MessageReader messages(request.bytes());
  const auto message = messages.Next();
  ASSERT_TRUE(message.has_value());
  EXPECT_FALSE(messages.Next().has_value());
  EXPECT_FALSE(messages.malformed());
  EXPECT_EQ(message->type, RTM_SETLINK);
  EXPECT_EQ(message->flags, NLM_F_REQUEST | NLM_F_ACK);
  EXPECT_EQ(ReadStruct<ifinfomsg>(message->payload)->ifi_index, 77);

  AttributeReader reader(message->payload, sizeof(ifinfomsg));
  EXPECT_EQ(reader.Next()->U8(), 5);
  EXPECT_EQ(reader.Next()->U32(), 6U);
  const auto name = reader.Next();
  EXPECT_EQ(name->Text(), "name");
  EXPECT_EQ(name->payload.size(), 5U);  // The text has its NUL.
  EXPECT_EQ(reader.Next()->Address(ip::Family::kV4), ip::Address::V4(0x0A000001));
  EXPECT_EQ(reader.Next()->Mac(), (ip::MacAddress{{1, 2, 3, 4, 5, 6}}));
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_FALSE(reader.malformed());
}

TEST(Request, NestsEncloseWhatIsPutBetween) {
  Request request("try", RTM_SETLINK, 0, ifinfomsg{});
  request.BeginNest(1).BeginNest(2).PutU32(3, 33).EndNest().PutU8(4, 44).EndNest().PutU8(5, 55);

  MessageReader messages(request.bytes());
  AttributeReader outer(messages.Next()->payload, sizeof(ifinfomsg));
  const auto nest = outer.Next();
  EXPECT_EQ(nest->type, 1);
  EXPECT_EQ(outer.Next()->U8(), 55);
  AttributeReader middle(nest->payload);
  const auto inner_nest = middle.Next();
  EXPECT_EQ(inner_nest->type, 2);
  EXPECT_EQ(middle.Next()->U8(), 44);
  AttributeReader inner(inner_nest->payload);
  EXPECT_EQ(inner.Next()->U32(), 33U);
  EXPECT_FALSE(inner.Next().has_value());
}

TEST(Request, ACopyStandsOnItsOwn) {
  Request first("try", RTM_SETLINK, 0, ifinfomsg{});
  first.BeginNest(1).PutU8(2, 2).EndNest();
  Request second = first;
  second.PutU8(3, 3);
  EXPECT_LT(first.bytes().size(), second.bytes().size());
}

TEST(RequestDeathTest, OneThatDoesNotFitIsABug) {
  Request request("try", RTM_SETLINK, 0, ifinfomsg{});
  EXPECT_DEATH(request.PutText(1, std::string(Request::kMaxBytes, 'x')), "request fits");
  request.BeginNest(1);
  EXPECT_DEATH(static_cast<void>(request.bytes()), "each nest is ended");
}

}  // namespace
}  // namespace spoke::netlink
