#include "lib/nft/connection.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"

namespace spoke::nft {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kPort = 4711;
// The first exchange of a socket begins with number 1, which the batch's own first message has.
constexpr uint32_t kBatch = 1;
constexpr uint32_t kFirstStep = 2;
constexpr uint32_t kSecondStep = 3;

// Plays the kernel: its answers are queued before the question is asked.
class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    const timeval timeout{.tv_sec = 0, .tv_usec = 10'000};
    EXPECT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
    connection_ =
        std::make_unique<Connection>(netlink::Socket::Adopt(os::UniqueFd(ends[0]), kPort));
    kernel_ = os::UniqueFd(ends[1]);
  }

  void Answer(uint32_t sequence, int error, uint32_t port = kPort) {
    struct {
      nlmsghdr header;
      nlmsgerr body;
    } message{};
    message.header.nlmsg_len = sizeof(message);
    message.header.nlmsg_type = NLMSG_ERROR;
    message.header.nlmsg_seq = sequence;
    message.header.nlmsg_pid = port;
    message.body.error = -error;
    ASSERT_EQ(::send(kernel_.get(), &message, sizeof(message), 0),
              static_cast<ssize_t>(sizeof(message)));
  }

  absl::Status ApplyTwoSteps() {
    const TableKey table{Family::kInet, "spoke"};
    Transaction transaction;
    transaction.Add(table, AddTable{});
    transaction.Add(table, FlushSet{"class4"});
    return connection_->Apply(transaction);
  }

  std::unique_ptr<Connection> connection_;
  os::UniqueFd kernel_;
};

TEST_F(ConnectionTest, IsDoneWhenTheLastStepIs) {
  Answer(kSecondStep, 0);
  EXPECT_TRUE(ApplyTwoSteps().ok());
}

TEST_F(ConnectionTest, TheFirstRefusalIsTheOneThatIsReported) {
  Answer(kFirstStep, EPERM);
  Answer(kSecondStep, ENOENT);
  const absl::Status status = ApplyTwoSteps();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 1 of 2, add table inet spoke"));
}

// This is as when the commit itself fails: then the kernel says nothing about the steps.
TEST_F(ConnectionTest, ARefusalOfTheWholeIsTheLastWord) {
  Answer(kBatch, ERESTART);
  const absl::Status status = ApplyTwoSteps();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("commit"));
}

TEST_F(ConnectionTest, SilenceIsNoSuccess) {
  EXPECT_EQ(ApplyTwoSteps().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ConnectionTest, ARefusalCountsAlsoWhenNothingFollows) {
  Answer(kFirstStep, EINVAL);
  EXPECT_EQ(ApplyTwoSteps().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ConnectionTest, WhatAnswersSomethingElseIsLeftAside) {
  Answer(900, ENOENT);
  Answer(kFirstStep, ENOENT, kPort + 1);
  Answer(kSecondStep, 0);
  EXPECT_TRUE(ApplyTwoSteps().ok());
}

struct ErrnoCase {
  int error;
  absl::StatusCode code;
};

class RefusalTest : public ConnectionTest, public testing::WithParamInterface<ErrnoCase> {};

TEST_P(RefusalTest, TellsTheCallerWhatToDoNext) {
  Answer(kSecondStep, GetParam().error);
  EXPECT_EQ(ApplyTwoSteps().code(), GetParam().code) << std::strerror(GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(Errors, RefusalTest,
                         testing::Values(ErrnoCase{ENOENT, absl::StatusCode::kNotFound},
                                         ErrnoCase{EEXIST, absl::StatusCode::kAlreadyExists},
                                         ErrnoCase{ENOTEMPTY, absl::StatusCode::kAlreadyExists},
                                         ErrnoCase{EBUSY, absl::StatusCode::kFailedPrecondition},
                                         ErrnoCase{ENFILE, absl::StatusCode::kResourceExhausted},
                                         ErrnoCase{ENOMEM, absl::StatusCode::kResourceExhausted},
                                         ErrnoCase{EOPNOTSUPP, absl::StatusCode::kUnimplemented},
                                         ErrnoCase{EINVAL, absl::StatusCode::kInvalidArgument},
                                         ErrnoCase{EFBIG, absl::StatusCode::kInvalidArgument},
                                         ErrnoCase{EMLINK, absl::StatusCode::kInvalidArgument},
                                         ErrnoCase{EAGAIN, absl::StatusCode::kUnavailable},
                                         ErrnoCase{ERESTART, absl::StatusCode::kUnavailable}),
                         [](const auto& test) {
                           return std::string(::strerrorname_np(test.param.error));
                         });

TEST_F(ConnectionTest, ATransactionThatIsTooLargeIsNotSent) {
  const TableKey table{Family::kInet, "spoke"};
  AddElements change{.set = "s", .elements = {}};
  change.elements.assign(kMaxTransactionBytes / 128, {.key = Bytes(64), .value = Bytes(64)});
  Transaction transaction;
  transaction.Add(table, std::move(change));
  EXPECT_EQ(connection_->Apply(transaction).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace spoke::nft
