#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "gtest/gtest.h"
#include "lib/netlink/socket.h"

namespace spoke::netlink {
namespace {

constexpr uint32_t kPort = 4711;
constexpr uint16_t kObject = RTM_NEWLINK;

// Plays the kernel: its answers are queued before the question is asked. The first exchange of a
// socket has sequence number 1.
class ExchangeTest : public testing::Test {
 protected:
  ExchangeTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    const timeval timeout{.tv_sec = 0, .tv_usec = 10'000};
    EXPECT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
    socket_ = Socket::Adopt(os::UniqueFd(ends[0]), kPort);
    kernel_ = os::UniqueFd(ends[1]);
  }

  static std::vector<uint8_t> Answer(uint16_t type, uint16_t flags, uint32_t sequence,
                                     std::span<const uint8_t> payload) {
    nlmsghdr header{};
    header.nlmsg_len = static_cast<uint32_t>(sizeof(header) + payload.size());
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    header.nlmsg_seq = sequence;
    header.nlmsg_pid = kPort;
    std::vector<uint8_t> bytes(sizeof(header));
    std::memcpy(bytes.data(), &header, sizeof(header));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  }
  static std::vector<uint8_t> Number(uint16_t type, uint16_t flags, uint32_t sequence, int value) {
    std::array<uint8_t, sizeof(value)> payload{};
    std::memcpy(payload.data(), &value, sizeof(value));
    return Answer(type, flags, sequence, payload);
  }
  static std::vector<uint8_t> Ack(uint32_t sequence, int error) {
    return Number(NLMSG_ERROR, 0, sequence, -error);
  }
  static std::vector<uint8_t> Done(uint32_t sequence, uint16_t flags = 0) {
    return Number(NLMSG_DONE, static_cast<uint16_t>(NLM_F_MULTI | flags), sequence, 0);
  }
  static std::vector<uint8_t> Object(uint32_t sequence, int value, uint16_t flags = NLM_F_MULTI) {
    return Number(kObject, flags, sequence, value);
  }

  // Queues one datagram of these messages.
  void Queue(std::initializer_list<std::vector<uint8_t>> messages) {
    std::vector<uint8_t> datagram;
    for (const auto& message : messages) {
      datagram.insert(datagram.end(), message.begin(), message.end());
    }
    ASSERT_EQ(::send(kernel_.get(), datagram.data(), datagram.size(), 0),
              static_cast<ssize_t>(datagram.size()));
  }

  // Returns how many questions were sent.
  int Asked() {
    int count = 0;
    std::array<uint8_t, 4096> buffer{};
    while (::recv(kernel_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) ++count;
    return count;
  }

  static Request Ask(std::string what) { return {std::move(what), RTM_GETLINK, 0, ifinfomsg{}}; }

  absl::StatusOr<std::vector<int>> DumpNumbers(const Request& request) {
    return DumpAs<int>(*socket_, request, kObject,
                       [](std::span<const uint8_t> payload) -> absl::StatusOr<std::optional<int>> {
                         const auto number = ReadStruct<int>(payload);
                         if (!number) return absl::DataLossError("no number");
                         return number;
                       });
  }

  std::optional<Socket> socket_;
  os::UniqueFd kernel_;
};

TEST_F(ExchangeTest, ABatchIsOneSendAndOneAcknowledgement) {
  Queue({Ack(3, 0)});
  const std::vector<Request> batch = {Ask("a"), Ask("b"), Ask("c")};
  const BatchResult result = SendBatch(*socket_, batch);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_FALSE(result.refused.has_value());
  EXPECT_EQ(Asked(), 1);
}

TEST_F(ExchangeTest, AnEmptyBatchSendsNothing) {
  EXPECT_TRUE(SendBatch(*socket_, {}).status.ok());
  EXPECT_EQ(Asked(), 0);
}

TEST_F(ExchangeTest, TheFirstRefusalIsNamed) {
  Queue({Ack(2, EEXIST)});
  Queue({Ack(3, ENODEV)});
  const std::vector<Request> batch = {Ask("make a"), Ask("make b"), Ask("make c")};
  const BatchResult result = SendBatch(*socket_, batch);
  EXPECT_EQ(result.refused, 1U);
  EXPECT_EQ(result.status, absl::AlreadyExistsError("make b (request 2 of 3): File exists"));
}

TEST_F(ExchangeTest, AToleratedRefusalIsNone) {
  Queue({Ack(1, ENODEV)});
  Request request = Ask("remove");
  request.Tolerate(ENODEV);
  EXPECT_TRUE(SendBatch(*socket_, {&request, 1}).status.ok());
}

TEST_F(ExchangeTest, NoAnswerIsNotKnownRatherThanDoneOrRefused) {
  const Request request = Ask("make");
  const BatchResult result = SendBatch(*socket_, {&request, 1});
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status)) << result.status;
  EXPECT_FALSE(result.refused.has_value());
}

TEST_F(ExchangeTest, LateAnswersOfAnEarlierExchangeAndForeignOnesAreIgnored) {
  const Request request = Ask("make");
  ASSERT_FALSE(SendBatch(*socket_, {&request, 1}).status.ok());
  Queue({Ack(1, EPERM)});
  std::vector<uint8_t> foreign = Ack(2, EPERM);
  foreign[12] = static_cast<uint8_t>(foreign[12] + 1);  // The byte of the port.
  Queue({foreign});
  Queue({Ack(2, 0)});
  EXPECT_TRUE(SendBatch(*socket_, {&request, 1}).status.ok());
}

TEST_F(ExchangeTest, AMalformedDatagramIsDataLossAndDoesNotReachIntoTheNextExchange) {
  std::vector<uint8_t> bad = Ack(1, 0);
  bad[0] = 200;
  Queue({bad});
  Queue({Ack(1, 0)});
  const Request request = Ask("make");
  EXPECT_TRUE(absl::IsDataLoss(SendBatch(*socket_, {&request, 1}).status));
  Queue({Ack(2, 0)});
  EXPECT_TRUE(SendBatch(*socket_, {&request, 1}).status.ok());
}

TEST_F(ExchangeTest, OneObjectIsReadWithItsAcknowledgement) {
  Queue({Object(1, 42, 0)});
  Queue({Ack(1, 0)});
  const auto object = GetOne(*socket_, Ask("read"), kObject);
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(ReadStruct<int>(*object), 42);
  Queue({Ack(2, ENODEV)});
  EXPECT_TRUE(absl::IsNotFound(GetOne(*socket_, Ask("read"), kObject).status()));
  Queue({Ack(3, 0)});
  EXPECT_TRUE(absl::IsDataLoss(GetOne(*socket_, Ask("read"), kObject).status()));
}

TEST_F(ExchangeTest, ADumpMaySpanDatagrams) {
  Queue({Object(1, 1), Object(1, 2)});
  Queue({Object(1, 3)});
  Queue({Done(1)});
  const auto numbers = DumpNumbers(Ask("list"));
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(*numbers, (std::vector<int>{1, 2, 3}));
}

TEST_F(ExchangeTest, AnInterruptedDumpIsReadAgainAndItsHalfForgotten) {
  Queue({Object(1, 1)});
  Queue({Object(1, 9, NLM_F_MULTI | NLM_F_DUMP_INTR), Done(1)});
  Queue({Object(2, 5), Done(2)});
  const auto numbers = DumpNumbers(Ask("list"));
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(*numbers, std::vector<int>{5});
  EXPECT_EQ(Asked(), 2);
}

TEST_F(ExchangeTest, AnInterruptionMayShowOnlyAtTheEnd) {
  Queue({Object(1, 1)});
  Queue({Done(1, NLM_F_DUMP_INTR)});
  Queue({Object(2, 2), Done(2)});
  EXPECT_EQ(DumpNumbers(Ask("list")).value(), std::vector<int>{2});
}

TEST_F(ExchangeTest, ADumpThatIsAlwaysInterruptedIsUnavailableAndNeverHalf) {
  for (int i = 1; i <= kMaxDumpAttempts; ++i) {
    Queue({Object(static_cast<uint32_t>(i), i, NLM_F_MULTI | NLM_F_DUMP_INTR),
           Done(static_cast<uint32_t>(i))});
  }
  const auto numbers = DumpNumbers(Ask("list"));
  EXPECT_TRUE(absl::IsUnavailable(numbers.status())) << numbers.status();
  EXPECT_EQ(Asked(), kMaxDumpAttempts);
}

TEST_F(ExchangeTest, ADumpIsReadToItsEndAfterAnErrorInIt) {
  Queue({Answer(kObject, NLM_F_MULTI, 1, {})});  // The answer has no number in it.
  Queue({Object(1, 2)});
  Queue({Done(1)});
  EXPECT_TRUE(absl::IsDataLoss(DumpNumbers(Ask("list")).status()));
  Queue({Object(2, 7), Done(2)});
  EXPECT_EQ(DumpNumbers(Ask("list")).value(), std::vector<int>{7});
}

TEST_F(ExchangeTest, ARefusedDumpIsAnErrorUnlessTolerated) {
  Queue({Ack(1, ENOENT)});
  EXPECT_TRUE(absl::IsNotFound(DumpNumbers(Ask("list")).status()));
  Request request = Ask("list");
  request.Tolerate(ENOENT);
  Queue({Ack(2, ENOENT)});
  EXPECT_TRUE(DumpNumbers(request).value().empty());
  Queue({Number(NLMSG_DONE, NLM_F_MULTI, 3, -ENOBUFS)});
  EXPECT_TRUE(absl::IsResourceExhausted(DumpNumbers(request).status()));
}

TEST_F(ExchangeTest, ADumpThatStopsIsNoShortList) {
  Queue({Object(1, 1)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(DumpNumbers(Ask("list")).status()));
}

}  // namespace
}  // namespace spoke::netlink
