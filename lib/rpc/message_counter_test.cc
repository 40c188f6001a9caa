#include "lib/rpc/message_counter.h"

#include "gtest/gtest.h"

namespace spoke::rpc {
namespace {

const ip::Address kPeer = ip::Address::V4(0x0A000007);

TEST(MessageCounter, AConnectionThatTakesAnOldPortIsNotForgottenWithTheOldOne) {
  MessageCounter counter;
  const MessageCounter::Peer peer(kPeer, 4711);
  EXPECT_EQ(counter.Find(peer), nullptr);
  const MessageCounter::Bytes old = counter.Add(peer);
  const MessageCounter::Bytes next = counter.Add(peer);
  counter.Remove(peer, old);
  EXPECT_EQ(counter.Find(peer), next);
  counter.Remove(peer, next);
  EXPECT_EQ(counter.Find(peer), nullptr);
}

}  // namespace
}  // namespace spoke::rpc
