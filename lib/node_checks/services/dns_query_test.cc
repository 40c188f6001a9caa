// Tests of what is sent to a resolver, and of what its answers are taken for.
#include "lib/node_checks/services/dns_query.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

using testing::HasSubstr;

std::string Query(std::string_view name = "a.Example") { return DnsQuery(0x1234, name).value(); }

// The query as a resolver sends it back, with that code.
std::string Reply(int code, const std::string& query = Query()) {
  std::string reply = query;
  reply[2] = static_cast<char>(0x81);
  reply[3] = static_cast<char>(0x80 | code);
  return reply;
}

TEST(DnsQuery, IsTheMessageOfRfc1035) {
  const std::string expected(
      "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
      "a\x07"
      "Example"
      "\x00\x00\x01\x00\x01",
      27);
  EXPECT_EQ(Query(), expected);
  EXPECT_EQ(Query("a.Example."), expected);
}

TEST(DnsQuery, RefusesWhatIsNoHostName) {
  EXPECT_TRUE(DnsQuery(1, std::string(63, 'a') + ".b").ok());
  EXPECT_TRUE(DnsQuery(1, "_dns.a-1").ok());
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  EXPECT_TRUE(DnsQuery(1, longest).ok());
  for (const std::string& name :
       {std::string(), std::string("."), std::string("a..b"), std::string(".a"), std::string("a b"),
        std::string("a\0b", 3), std::string("\xC3\xA4"), std::string(64, 'a'), longest + "b"}) {
    const auto query = DnsQuery(1, name);
    EXPECT_TRUE(absl::IsInvalidArgument(query.status())) << name;
    EXPECT_THAT(std::string(query.status().message()), HasSubstr("is no host name"));
  }
}

TEST(JudgeDnsReply, AnAnswerIsAnAnswerWhateverItSays) {
  EXPECT_EQ(JudgeDnsReply(Reply(0), Query(), true), absl::OkStatus());
  // What stands behind the question is not looked at, and a truncated answer is one too.
  std::string truncated = Reply(0) + "rest";
  truncated[2] = static_cast<char>(0x83);
  EXPECT_EQ(JudgeDnsReply(truncated, Query(), true), absl::OkStatus());
  // Some resolvers answer in other letters than they were asked in.
  EXPECT_EQ(JudgeDnsReply(Reply(0, Query("A.eXAMPLE")), Query(), true), absl::OkStatus());
}

TEST(JudgeDnsReply, ANameThatIsNotThereIsAFailureOnlyWhereItHasToBe) {
  EXPECT_EQ(JudgeDnsReply(Reply(3), Query(), false), absl::OkStatus());
  const auto wrong = JudgeDnsReply(Reply(3), Query(), true);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(*wrong, absl::NotFoundError("answers NXDOMAIN"));
}

TEST(JudgeDnsReply, AResolverThatDoesNotAnswerTheQuestionFails) {
  const std::vector<std::pair<int, const char*>> codes = {
      {1, "FORMERR"}, {2, "SERVFAIL"}, {4, "NOTIMP"}, {5, "REFUSED"}, {9, "error 9"}};
  for (const auto& [code, name] : codes) {
    const auto said = JudgeDnsReply(Reply(code), Query(), false);
    ASSERT_TRUE(said) << name;
    EXPECT_EQ(*said, absl::UnavailableError(std::string("answers ") + name));
  }
  // It may leave out the question that it refuses.
  std::string bare = Reply(5).substr(0, 12);
  bare[5] = 0;
  EXPECT_TRUE(absl::IsUnavailable(*JudgeDnsReply(bare, Query(), false)));
}

TEST(JudgeDnsReply, WhatIsNoAnswerToTheQueryIsPassedOver) {
  EXPECT_EQ(JudgeDnsReply("", Query(), false), std::nullopt);
  EXPECT_EQ(JudgeDnsReply(Query(), Query(), false), std::nullopt);  // It is a query.
  EXPECT_EQ(JudgeDnsReply(Reply(0).substr(0, 11), Query(), false), std::nullopt);
  EXPECT_EQ(JudgeDnsReply(Reply(0).substr(0, 20), Query(), false), std::nullopt);
  EXPECT_EQ(JudgeDnsReply(Reply(0, Query("b.Example")), Query(), false), std::nullopt);
  std::string other_id = Reply(0);
  other_id[1] = 0x35;
  EXPECT_EQ(JudgeDnsReply(other_id, Query(), false), std::nullopt);
  std::string two_questions = Reply(0);
  two_questions[5] = 2;
  EXPECT_EQ(JudgeDnsReply(two_questions, Query(), false), std::nullopt);
  // An answer without its question could be to any.
  std::string bare = Reply(0).substr(0, 12);
  bare[5] = 0;
  EXPECT_EQ(JudgeDnsReply(bare, Query(), false), std::nullopt);
  std::string notify = Reply(0);
  notify[2] = static_cast<char>(0xA1);
  EXPECT_EQ(JudgeDnsReply(notify, Query(), false), std::nullopt);
}

}  // namespace
}  // namespace spoke::node_checks
