#include "netagent/dns/dns_answer.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/dns/testing/dns_message.h"

namespace spoke::netagent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using Message = DnsMessageForTest;

DnsAddress At(std::string_view address, int64_t seconds) {
  return {ip::Address::Parse(address).value(), absl::Seconds(seconds)};
}

DnsAnswer MustParse(const Message& message) {
  auto answer = ParseDnsAnswer(message.bytes());
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(DnsAnswer());
}

void ExpectRefused(const Message& message, std::string_view why) {
  const auto answer = ParseDnsAnswer(message.bytes());
  ASSERT_FALSE(answer.ok()) << why;
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(answer.status().message(), HasSubstr(why));
}

TEST(ParseDnsAnswer, AddressesOfBothFamilies) {
  const DnsAnswer answer = MustParse(Message("Example.ORG")
                                         .Address("example.org", "192.0.2.1", 300)
                                         .Address("EXAMPLE.org", "2001:db8::1", 0));
  EXPECT_EQ(answer.question, "example.org");
  EXPECT_THAT(answer.aliases, IsEmpty());
  EXPECT_THAT(answer.addresses, UnorderedElementsAre(At("192.0.2.1", 300), At("2001:db8::1", 0)));
}

// These are the bytes of a real answer, compressed as servers do it: www.example.org is an alias of
// a.cdn.example.org, which has two addresses.
TEST(ParseDnsAnswer, CompressedNames) {
  Message message("www.example.org");
  message.Compressed(5, 60,
                     std::string("\x01"
                                 "a\x03"
                                 "cdn\xC0\x10",
                                 8));  // 0x10: "example.org" in the question.
  for (const char last : {'\x01', '\x02'}) {
    message.Short(0xC02D).Short(1).Short(1).Short(0).Short(30).Short(4);
    message.Append(std::string("\xC0\x00\x02", 3) + last);
  }
  message.Set(3, 3);
  const DnsAnswer answer = MustParse(message);
  EXPECT_EQ(answer.question, "www.example.org");
  EXPECT_THAT(answer.aliases, ElementsAre("a.cdn.example.org"));
  EXPECT_THAT(answer.addresses, UnorderedElementsAre(At("192.0.2.1", 30), At("192.0.2.2", 30)));
}

TEST(ParseDnsAnswer, AChainInWhateverOrder) {
  const DnsAnswer answer = MustParse(Message("a.org")
                                         .Address("c.org", "192.0.2.3", 5)
                                         .Alias("b.org", "c.org")
                                         .Alias("a.org", "b.org"));
  EXPECT_THAT(answer.aliases, ElementsAre("b.org", "c.org"));
  EXPECT_THAT(answer.addresses, ElementsAre(At("192.0.2.3", 5)));
}

TEST(ParseDnsAnswer, WhatTheQuestionDoesNotLeadToIsNotTaken) {
  const DnsAnswer answer = MustParse(Message("a.org")
                                         .Alias("a.org", "b.org")
                                         // The record stands beside an alias.
                                         .Address("a.org", "192.0.2.1", 5)
                                         .Address("evil.org", "192.0.2.6", 5)
                                         .Alias("evil.org", "b.org"));
  EXPECT_THAT(answer.aliases, ElementsAre("b.org"));
  EXPECT_THAT(answer.addresses, IsEmpty());
}

TEST(ParseDnsAnswer, OtherRecordsArePassedOver) {
  Message message("a.org");
  message.Record("a.org", 16, 5, "\x03txt").Address("a.org", "192.0.2.1", 5);
  message.Name("a.org").Short(1).Short(3).Short(0).Short(5).Short(2).Append("xy");  // CHAOS.
  message.Set(3, 3);
  message.Name("").Short(41).Append("what is behind the answers is not looked at");
  EXPECT_THAT(MustParse(message).addresses, ElementsAre(At("192.0.2.1", 5)));
  EXPECT_THAT(MustParse(Message("none.org")), (DnsAnswer{"none.org", {}, {}}));
}

TEST(ParseDnsAnswer, ATtlWithTheFirstBitIsZero) {
  EXPECT_THAT(MustParse(Message("a.org").Address("a.org", "192.0.2.1", 0x80000001)).addresses,
              ElementsAre(At("192.0.2.1", 0)));
  EXPECT_THAT(MustParse(Message("a.org").Address("a.org", "192.0.2.1", 0x7FFFFFFF)).addresses,
              ElementsAre(At("192.0.2.1", 0x7FFFFFFF)));
}

TEST(ParseDnsAnswer, OnlyAWholeAnswerWithoutAnError) {
  ExpectRefused(Message("a.org").Set(1, 0x0100), "question");
  ExpectRefused(Message("a.org").Set(1, 0xA180), "no query");
  ExpectRefused(Message("a.org").Set(1, 0x8380), "truncated");
  ExpectRefused(Message("a.org").Set(1, 0x8183), "error 3");
  ExpectRefused(Message("a.org").Set(2, 0), "0 questions");
  ExpectRefused(Message("a.org").Set(2, 2), "2 questions");
  ExpectRefused(Message("a.org").Set(3, 65), "65 answers");
  ExpectRefused(Message("a.org").Set(3, 1), "ends too early");
  // The last number is the question's class: 3 is CHAOS.
  ExpectRefused(Message("ab.org").Set(11, 3), "Internet");
  Message most("a.org");
  for (size_t i = 0; i < kMaxDnsRecords; ++i) most.Compressed(1, 60, std::string("\1\1\1\1"));
  EXPECT_EQ(MustParse(most).addresses.size(), kMaxDnsRecords);
}

TEST(ParseDnsAnswer, WhereverItIsCutItIsRefused) {
  Message message("www.example.org");
  message.Alias("www.example.org", "b.org").Address("b.org", "192.0.2.1", 5);
  const std::vector<uint8_t>& bytes = message.bytes();
  ASSERT_TRUE(ParseDnsAnswer(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // The copy is there so that a sanitizer sees a byte too many.
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(ParseDnsAnswer(cut).ok()) << size;
  }
}

TEST(ParseDnsAnswer, PointersOnlyPointBackwards) {
  const auto with_owner = [](const std::string& owner) {
    Message message("a.org");
    message.Append(owner).Short(1).Short(1).Short(0).Short(5).Short(4).Append("\1\1\1\1");
    return message.Set(3, 1);
  };
  // The record begins at 23: 12 of the header, 7 of the name, 4 of type and class.
  EXPECT_THAT(MustParse(with_owner("\xC0\x0C")).addresses, ElementsAre(At("1.1.1.1", 5)));
  for (const std::string owner : {"\xC0\x17", "\xC0\x18", "\xFF\xFF"}) {
    ExpectRefused(with_owner(owner), "points forward");
  }
  // The name leads to a pointer that leads back to it, by way of a label, so that the name would
  // grow for ever.
  ExpectRefused(with_owner(std::string("\1x\xC0\x17", 4)), "points forward");
  ExpectRefused(with_owner("\x80\x0C"), "unknown kind");
  ExpectRefused(with_owner("\x40\x0C"), "unknown kind");
}

TEST(ParseDnsAnswer, NamesAreBoundedAndPlain) {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
  EXPECT_EQ(MustParse(Message(longest)).question, longest);
  ExpectRefused(Message(longest + "a"), "255 bytes");
  ExpectRefused(Message("a b.org"), "letters");
  ExpectRefused(Message("*.org"), "letters");
  // This is one label with a dot inside, which would read as two.
  Message dotted("");
  dotted
      .Append(std::string("\x05"
                          "a.org\0",
                          7))
      .Short(1)
      .Short(1)
      .Short(0)
      .Short(5)
      .Short(0);
  ExpectRefused(dotted.Set(3, 1), "letters");
}

TEST(ParseDnsAnswer, AliasesDoNotGoInACircle) {
  ExpectRefused(Message("a.org").Alias("a.org", "a.org"), "circle");
  ExpectRefused(Message("a.org").Alias("a.org", "b.org").Alias("b.org", "a.org"), "circle");
  ExpectRefused(Message("a.org").Alias("a.org", "b.org").Alias("a.org", "c.org"), "twice");
}

TEST(ParseDnsAnswer, DataHasTheLengthOfItsType) {
  ExpectRefused(Message("a.org").Record("a.org", 1, 5, "12345"), "another length");
  ExpectRefused(Message("a.org").Record("a.org", 28, 5, "1234"), "another length");
  ExpectRefused(Message("a.org").Record("a.org", 5, 5, Message::NameBytes("b.org") + "x"),
                "another length");
}

}  // namespace
}  // namespace spoke::netagent
