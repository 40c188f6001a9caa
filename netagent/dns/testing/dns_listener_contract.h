// The promises of DnsListener, as tests. Each implementation's test file instantiates them with a
// factory for a world of its own: a fake, or fresh namespaces of the real kernel.
#pragma once

#include <poll.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "netagent/dns/dns_listener.h"

namespace spoke::netagent {

// A node with a pod, and a host beyond its network device.
class DnsListenerWorld {
 public:
  // The way of a datagram: from the host to the node, from the node to the pod, from the
  // pod to the node.
  enum class Way { kToNode, kToPod, kFromPod };

  virtual ~DnsListenerWorld() = default;
  virtual DnsListener& listener() = 0;
  // Sends `text` by UDP, from `source`, which is one of that sender's, and `port`.
  virtual void Send(Way way, const ip::Address& source, const std::string& text,
                    uint16_t port = 53) = 0;

  // The addresses of the host, of the node and of the pod, each in both families. The host has the
  // stranger's too.
  static constexpr ip::Address kHost4 = ip::Address::V4(0xA83F8110);  // 168.63.129.16
  static constexpr ip::Address kHost6 = ip::Address::V6(0xFD53ULL << 48U, 1);
  static constexpr ip::Address kStranger4 = ip::Address::V4(0xA83F8111);
  static constexpr ip::Address kStranger6 = ip::Address::V6(0xFD53ULL << 48U, 2);
  static constexpr ip::Address kService4 = ip::Address::V4(0x0A60000A);  // 10.96.0.10
  static constexpr ip::Address kService6 = ip::Address::V6(0xFD96ULL << 48U, 0xA);
  static constexpr ip::Address kPod4 = ip::Address::V4(0x0A000207);  // 10.0.2.7
  static constexpr ip::Address kPod6 = ip::Address::V6(0xFD00'0000'0000'0002, 7);
};

struct DnsListenerWorldFactory {
  std::string name;
  // The factory; null where this machine cannot have such a world (no right to make namespaces).
  std::function<std::unique_ptr<DnsListenerWorld>()> make;
};

class DnsListenerContract : public testing::TestWithParam<DnsListenerWorldFactory> {
 protected:
  using World = DnsListenerWorld;
  using Way = World::Way;
  using Heard = std::vector<std::pair<ip::Address, std::string>>;

  void SetUp() override {
    world_ = GetParam().make();
    if (world_ != nullptr) return;
    // A skip must not pass for a success.
    ASSERT_EQ(std::getenv("NETNS_TESTS_REQUIRED"), nullptr) << "cannot make network namespaces";
    GTEST_SKIP() << "cannot make network namespaces";
  }

  DnsListener& listener() { return world_->listener(); }
  void Open(const std::vector<ip::Address>& resolvers) {
    std::vector<ip::Prefix> blocks;
    for (const ip::Address& address : resolvers) blocks.push_back(ip::Prefix::Host(address));
    const absl::Status status = listener().Open(blocks);
    ASSERT_TRUE(status.ok()) << status;
  }

  bool Readable(absl::Duration patience) {
    pollfd waits{.fd = listener().fd(), .events = POLLIN, .revents = 0};
    return ::poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) == 1;
  }

  // Returns everything up to what says "end", which is left out. What is sent before it comes
  // before it.
  Heard HearUntilEnd() {
    Heard heard;
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (absl::Now() < deadline) {
      if (!Readable(deadline - absl::Now())) break;
      const auto batch = listener().Take(1);
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) return heard;
      EXPECT_LE(batch->messages.size(), 1U);
      EXPECT_EQ(batch->looked_at, 1U);
      for (const DnsMessage& message : batch->messages) {
        const std::string text(message.bytes.begin(), message.bytes.end());
        if (text == "end") return heard;
        heard.emplace_back(message.resolver, text);
      }
    }
    ADD_FAILURE() << "the end was not heard";
    return heard;
  }

  std::unique_ptr<DnsListenerWorld> world_;
};

TEST_P(DnsListenerContract, HearsResolversOfBothFamiliesAndNobodyElse) {
  Open({World::kHost4, World::kHost6});
  world_->Send(Way::kToNode, World::kStranger4, "a");
  world_->Send(Way::kToNode, World::kHost4, "b");
  world_->Send(Way::kToNode, World::kHost4, "c", 54);
  world_->Send(Way::kToNode, World::kStranger6, "d");
  world_->Send(Way::kToNode, World::kHost6, "e");
  world_->Send(Way::kToNode, World::kHost6, "f", 54);
  world_->Send(Way::kToNode, World::kHost4, "end");
  EXPECT_THAT(HearUntilEnd(), testing::ElementsAre(testing::Pair(World::kHost4, "b"),
                                                   testing::Pair(World::kHost6, "e")));
}

TEST_P(DnsListenerContract, AResolverMayBeABlock) {
  const auto block = [](const ip::Address& address, int length) {
    return ip::Prefix::Of(address, length).value();
  };
  // The last bits decide; a second word of IPv6 as well.
  ASSERT_TRUE(listener()
                  .Open({block(World::kPod4, 24), block(World::kPod6, 64), block(World::kHost4, 32),
                         block(World::kHost6, 127)})
                  .ok());
  for (const auto& address : {World::kStranger4, World::kStranger6, World::kHost4, World::kHost6}) {
    world_->Send(Way::kToNode, address, "x");
  }
  world_->Send(Way::kToNode, World::kHost4, "end");
  EXPECT_THAT(HearUntilEnd(), testing::ElementsAre(testing::Pair(World::kHost4, "x"),
                                                   testing::Pair(World::kHost6, "x")));
  ASSERT_TRUE(listener().Open({block(World::kHost4, 31), block(World::kHost6, 126)}).ok());
  for (const auto& address : {World::kStranger4, World::kStranger6}) {
    world_->Send(Way::kToNode, address, "x");
  }
  world_->Send(Way::kToNode, World::kHost4, "end");
  EXPECT_THAT(HearUntilEnd(), testing::ElementsAre(testing::Pair(World::kStranger4, "x"),
                                                   testing::Pair(World::kStranger6, "x")));
}

TEST_P(DnsListenerContract, HearsWhatPodsGetAndNotWhatTheySend) {
  Open({World::kService4, World::kService6, World::kPod4, World::kPod6});
  world_->Send(Way::kFromPod, World::kPod4, "a");
  world_->Send(Way::kFromPod, World::kPod6, "b");
  world_->Send(Way::kToPod, World::kService4, "c");
  world_->Send(Way::kToPod, World::kService6, "d");
  world_->Send(Way::kToPod, World::kService4, "end");
  EXPECT_THAT(HearUntilEnd(), testing::ElementsAre(testing::Pair(World::kService4, "c"),
                                                   testing::Pair(World::kService6, "d")));
}

TEST_P(DnsListenerContract, LooksAtAsManyAsItIsTold) {
  Open({World::kHost4});
  for (int i = 0; i < 5; ++i) world_->Send(Way::kToNode, World::kHost4, "x");
  ASSERT_TRUE(Readable(absl::Seconds(10)));
  EXPECT_EQ(listener().Take(0)->looked_at, 0U);
  world_->Send(Way::kToNode, World::kHost4, "end");
  EXPECT_EQ(HearUntilEnd().size(), 5U);
  EXPECT_FALSE(Readable(absl::ZeroDuration()));
  EXPECT_EQ(listener().Take(100)->looked_at, 0U);
}

TEST_P(DnsListenerContract, ALongerMessageThanItTakesIsPassedOver) {
  Open({World::kHost4});
  const std::string longest(DnsListener::kMaxPacket - 28, 'x');
  world_->Send(Way::kToNode, World::kHost4, longest + 'x');
  world_->Send(Way::kToNode, World::kHost4, longest);
  world_->Send(Way::kToNode, World::kHost4, "end");
  EXPECT_THAT(HearUntilEnd(), testing::ElementsAre(testing::Pair(World::kHost4, longest)));
}

TEST_P(DnsListenerContract, OpeningAgainForgetsWhatWaits) {
  Open({World::kHost4});
  world_->Send(Way::kToNode, World::kHost4, "a");
  ASSERT_TRUE(Readable(absl::Seconds(10)));
  Open({World::kStranger4});
  world_->Send(Way::kToNode, World::kHost4, "b");
  world_->Send(Way::kToNode, World::kStranger4, "c");
  world_->Send(Way::kToNode, World::kStranger4, "end");
  EXPECT_THAT(HearUntilEnd(), testing::ElementsAre(testing::Pair(World::kStranger4, "c")));
}

TEST_P(DnsListenerContract, TooManyResolversAreRefusedAndNothingChanges) {
  Open({World::kHost4});
  const int fd = listener().fd();
  const absl::Status status = listener().Open(
      std::vector<ip::Prefix>(DnsListener::kMaxResolvers + 1, ip::Prefix::Host(World::kStranger4)));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(listener().fd(), fd);
  world_->Send(Way::kToNode, World::kHost4, "end");
  EXPECT_THAT(HearUntilEnd(), testing::IsEmpty());
  EXPECT_TRUE(listener()
                  .Open(std::vector<ip::Prefix>(DnsListener::kMaxResolvers,
                                                ip::Prefix::Host(World::kHost6)))
                  .ok());
}

TEST_P(DnsListenerContract, ClosedItHearsNothing) {
  EXPECT_EQ(listener().fd(), -1);
  EXPECT_EQ(listener().Take(10)->looked_at, 0U);
  Open({World::kHost4});
  EXPECT_GE(listener().fd(), 0);
  world_->Send(Way::kToNode, World::kHost4, "a");
  ASSERT_TRUE(Readable(absl::Seconds(10)));
  listener().Close();
  listener().Close();
  EXPECT_EQ(listener().fd(), -1);
  EXPECT_EQ(listener().Take(10)->looked_at, 0U);
}

}  // namespace spoke::netagent
