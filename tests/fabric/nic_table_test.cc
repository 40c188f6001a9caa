#include "tests/fabric/nic_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fabric/frames_for_test.h"

namespace spoke::fabric {
namespace {

using testing::HasSubstr;

ip::Prefix Block(std::string_view text) { return ip::Prefix::Parse(text).value(); }

const Nic kNode1{"node1", "port1", Mac("02:00:00:00:00:01"), {Ip("10.0.0.4"), Ip("fd00::4")}};
const Nic kNode2{"node2", "port2", Mac("02:00:00:00:00:02"), {Ip("10.0.0.5")}};

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

TEST(ParseNic, TakesSeveralAddresses) {
  const auto nic = ParseNic("node1=port1,02:00:00:00:00:01,10.0.0.4,fd00::4");
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(*nic, kNode1);
}

TEST(ParseNic, NamesTheTextItCannotRead) {
  for (const std::string text :
       {"", "node1", "=port1,02:00:00:00:00:01,10.0.0.4", "n=", "n=p,02:00:00:00:00:01",
        "n=,02:00:00:00:00:01,10.0.0.4", "n=p,02:00:00:00:00,10.0.0.4",
        "n=p,01:00:00:00:00:01,10.0.0.4", "n=p,02:00:00:00:00:01,10.0.0.4/24",
        "n=p,02:00:00:00:00:01,10.0.0.4,"}) {
    const auto nic = ParseNic(text);
    ASSERT_TRUE(absl::IsInvalidArgument(nic.status())) << text;
    EXPECT_THAT(MessageOf(nic.status()), HasSubstr("\"" + text + "\""));
  }
}

TEST(ParseAttachments, SkipsCommentsAndBlankLines) {
  const auto parsed = ParseAttachments(
      "# published by the server\n\n"
      "10.0.64.1/32\t02:00:00:00:00:01\tnode1\n"
      "10.0.64.16/28\t02:00:00:00:00:02\tnode2");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(*parsed,
              testing::ElementsAre(
                  Attachment{3, Block("10.0.64.1/32"), Mac("02:00:00:00:00:01"), "node1"},
                  Attachment{4, Block("10.0.64.16/28"), Mac("02:00:00:00:00:02"), "node2"}));
}

TEST(ParseAttachments, EmptyTextHasNone) {
  ASSERT_TRUE(ParseAttachments("").ok());
  EXPECT_TRUE(ParseAttachments("")->empty());
}

TEST(ParseAttachments, NamesTheFirstBadLine) {
  for (const std::string line :
       {"10.0.64.1\t02:00:00:00:00:01\tnode1", "10.0.64.1/32 02:00:00:00:00:01 node1",
        "10.0.64.1/32\tnode1\tnode1", "10.0.64.1/32\t02:00:00:00:00:01",
        "10.0.64.1/32\t02:00:00:00:00:01\t", "10.0.64.1/32\t02:00:00:00:00:01\tnode1\tmore",
        "10.0.64.1/28\t02:00:00:00:00:01\tnode1"}) {
    const auto parsed = ParseAttachments("# one\n" + line + "\nrubbish\n");
    ASSERT_TRUE(absl::IsInvalidArgument(parsed.status())) << line;
    EXPECT_THAT(MessageOf(parsed.status()), HasSubstr("line 2: ")) << line;
  }
}

TEST(NicTable, FindsTheHolder) {
  const auto table =
      NicTable::Build({kNode1, kNode2}, {{1, Block("10.0.64.1/32"), kNode1.mac, "node1"},
                                         {2, Block("10.0.64.16/28"), kNode2.mac, "node2"},
                                         // This is its own, once more.
                                         {3, Block("10.0.0.5/32"), kNode2.mac, "node2"}});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->HolderOf(Ip("10.0.0.4")), 0U);
  EXPECT_EQ(table->HolderOf(Ip("fd00::4")), 0U);
  EXPECT_EQ(table->HolderOf(Ip("10.0.0.5")), 1U);
  EXPECT_EQ(table->HolderOf(Ip("10.0.64.1")), 0U);
  EXPECT_EQ(table->HolderOf(Ip("10.0.64.15")), std::nullopt);
  EXPECT_EQ(table->HolderOf(Ip("10.0.64.16")), 1U);
  EXPECT_EQ(table->HolderOf(Ip("10.0.64.31")), 1U);
  EXPECT_EQ(table->HolderOf(Ip("10.0.64.32")), std::nullopt);
  EXPECT_EQ(table->HolderOf(Ip("0.0.0.0")), std::nullopt);
  EXPECT_EQ(table->HolderOf(Ip("::")), std::nullopt);
  EXPECT_EQ(table->size(), 5U);
  EXPECT_TRUE(table->left_out().empty());
}

TEST(NicTable, LeavesOutNodesThatAreNotPluggedIn) {
  const Attachment elsewhere{1, Block("10.0.64.1/32"), Mac("02:00:00:00:00:09"), "node9"};
  const auto table = NicTable::Build({kNode1}, {elsewhere});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->HolderOf(Ip("10.0.64.1")), std::nullopt);
  EXPECT_THAT(table->left_out(), testing::ElementsAre(elsewhere));
}

TEST(NicTable, AnAddressOnTwoNicsIsAnErrorThatNamesBoth) {
  const auto table =
      NicTable::Build({kNode1, kNode2}, {{7, Block("10.0.64.1/32"), kNode1.mac, "node1"},
                                         {8, Block("10.0.64.1/32"), kNode2.mac, "node2"}});
  ASSERT_TRUE(absl::IsInvalidArgument(table.status()));
  for (const char* part : {"10.0.64.1/32", "NIC node1", "NIC node2", "line 7", "line 8"}) {
    EXPECT_THAT(MessageOf(table.status()), HasSubstr(part));
  }
}

TEST(NicTable, RefusesClashes) {
  const ip::MacAddress& mac1 = kNode1.mac;
  const ip::MacAddress& mac2 = kNode2.mac;
  // The block is around another NIC's address, from either side, or around its own.
  EXPECT_FALSE(NicTable::Build({kNode1, kNode2}, {{1, Block("10.0.0.0/29"), mac2, "node2"}}).ok());
  EXPECT_FALSE(NicTable::Build({kNode1, kNode2}, {{1, Block("10.0.64.0/28"), mac1, "node1"},
                                                  {2, Block("10.0.64.9/32"), mac2, "node2"}})
                   .ok());
  EXPECT_FALSE(NicTable::Build({kNode1}, {{1, Block("10.0.0.0/29"), mac1, "node1"}}).ok());
  for (const Nic& twin : {Nic{"node1", "port2", mac2, {Ip("10.0.0.5")}},
                          Nic{"node2", "port1", mac2, {Ip("10.0.0.5")}},
                          Nic{"node2", "port2", mac1, {Ip("10.0.0.5")}},
                          Nic{"node2", "port2", mac2, {Ip("10.0.0.4")}}}) {
    const auto table = NicTable::Build({kNode1, twin}, {});
    ASSERT_TRUE(absl::IsInvalidArgument(table.status())) << twin.name << " " << twin.device;
    EXPECT_THAT(MessageOf(table.status()), HasSubstr(twin.name));
  }
}

}  // namespace
}  // namespace spoke::fabric
