#include "ipam-server/session/stream_gate.h"

#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

using Writes = StreamWrites<int>;

node_api::Hello HelloOf(std::string name, std::string version = "1.4.0") {
  node_api::Hello hello;
  hello.node.node_name = std::move(name);
  hello.node.vm_id = "vm-1";
  hello.node.agent_version = std::move(version);
  return hello;
}

class StreamGateTest : public testing::Test {
 protected:
  absl::StatusCode Admit(node_api::Hello hello) { return gate_.Admit(hello).status().code(); }

  const StreamGate::Rules rules_{.server_version = "1.4.0"};
  StreamGate gate_{rules_, {"node1"}, {}};
};

TEST_F(StreamGateTest, TheHelloComesFirstAndOnce) {
  EXPECT_EQ(gate_.CheckOrder(/*is_hello=*/false),
            absl::InvalidArgumentError("the first message must be Hello"));
  EXPECT_TRUE(gate_.CheckOrder(/*is_hello=*/true).ok());
  ASSERT_EQ(Admit(HelloOf("node1")), absl::StatusCode::kOk);
  EXPECT_EQ(gate_.node()->name, "node1");
  EXPECT_TRUE(gate_.CheckOrder(/*is_hello=*/false).ok());
  EXPECT_EQ(gate_.CheckOrder(/*is_hello=*/true),
            absl::InvalidArgumentError("a second Hello on one stream"));
}

TEST_F(StreamGateTest, NobodySpeaksForAnotherNode) {
  EXPECT_EQ(Admit(HelloOf("node2")), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(gate_.node(), std::nullopt);
  EXPECT_FALSE(gate_.CheckOrder(/*is_hello=*/false).ok()) << "a refused one is not admitted";
}

TEST_F(StreamGateTest, WithoutTlsThereIsNoNameToCheck) {
  const StreamGate::Rules open{.server_version = "1.4.0", .check_peer_name = false};
  StreamGate gate(open, {}, {});
  node_api::Hello hello = HelloOf("node2");
  EXPECT_TRUE(gate.Admit(hello).ok());
}

TEST_F(StreamGateTest, AnAgentWhoseVersionDoesNotFitIsRefused) {
  EXPECT_EQ(Admit(HelloOf("node1", "1.6.0")), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(gate_.node(), std::nullopt);
}

TEST(StreamWrites, OneIsInFlightAndTheEndComesAfterAllOfThem) {
  Writes writes;
  EXPECT_EQ(writes.Next(), Writes::Act::kNothing);
  writes.Push(1);
  writes.Push(2);
  EXPECT_EQ(writes.Next(), Writes::Act::kWrite);
  EXPECT_EQ(writes.Next(), Writes::Act::kNothing) << "one at a time";
  writes.End(absl::AbortedError("first"));
  writes.End(absl::UnavailableError("second"));
  writes.Push(3);
  writes.OnWritten(true);
  EXPECT_EQ(writes.Next(), Writes::Act::kWrite);
  EXPECT_EQ(writes.front(), 2);
  writes.OnWritten(true);
  EXPECT_EQ(writes.Next(), Writes::Act::kFinish);
  EXPECT_EQ(writes.why(), absl::AbortedError("first"));
  EXPECT_EQ(writes.Next(), Writes::Act::kNothing) << "it ends once";
}

TEST(StreamWrites, AnAgentThatDoesNotReadIsEndedAndNothingGrows) {
  Writes writes;
  writes.Push(0);
  ASSERT_EQ(writes.Next(), Writes::Act::kWrite);
  for (int i = 1; i <= static_cast<int>(Writes::kMaxUnsent); ++i) {
    EXPECT_FALSE(writes.has_ended());
    writes.Push(i);
  }
  EXPECT_TRUE(writes.has_ended());
  EXPECT_EQ(writes.front(), 0) << "what is in flight stays where it is";
  writes.OnWritten(true);
  EXPECT_EQ(writes.Next(), Writes::Act::kFinish);
  EXPECT_EQ(writes.why().code(), absl::StatusCode::kResourceExhausted);
}

TEST(StreamWrites, AStreamThatIsCutWritesNothingMore) {
  Writes idle;
  EXPECT_FALSE(idle.Abort(absl::PermissionDeniedError("revoked")));
  EXPECT_EQ(idle.Next(), Writes::Act::kFinish);
  Writes writes;
  writes.Push(1);
  writes.Push(2);
  ASSERT_EQ(writes.Next(), Writes::Act::kWrite);
  writes.End(absl::OkStatus());
  EXPECT_TRUE(writes.Abort(absl::PermissionDeniedError("revoked"))) << "one is on its way";
  writes.Push(3);
  writes.OnWritten(true);
  EXPECT_EQ(writes.Next(), Writes::Act::kFinish);
  EXPECT_TRUE(absl::IsPermissionDenied(writes.why()));
}

TEST(StreamWrites, OfABrokenStreamNothingMoreIsWritten) {
  Writes writes;
  writes.Push(1);
  writes.Push(2);
  ASSERT_EQ(writes.Next(), Writes::Act::kWrite);
  writes.OnWritten(false);
  EXPECT_EQ(writes.Next(), Writes::Act::kNothing);
  writes.End(absl::OkStatus());
  EXPECT_EQ(writes.Next(), Writes::Act::kFinish);
}

}  // namespace
}  // namespace spoke::ipam
