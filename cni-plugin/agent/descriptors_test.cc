#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "cni-plugin/agent/agent_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/os/unique_fd.h"

namespace spoke::cni {
namespace {

struct Pipe {
  explicit Pipe(int flags = 0) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | flags), 0);
    read = os::UniqueFd(ends[0]);
    write = os::UniqueFd(ends[1]);
  }
  os::UniqueFd read;
  os::UniqueFd write;
};

TEST(ReadWhole, TakesAllWhateverItsLength) {
  for (const size_t size : {0U, 5U, 64U, 65U, 1000U, 1U << 20U}) {
    Pipe pipe;
    std::string sent;
    for (size_t i = 0; i < size; ++i) sent.push_back(static_cast<char>('a' + i % 26));
    std::thread writer([&] {
      EXPECT_TRUE(WriteWhole(pipe.write.get(), sent, 5000));
      pipe.write.Reset();
    });
    std::array<char, 64> buffer;
    std::string overflow;
    const auto text = ReadWhole(pipe.read.get(), 5000, buffer, overflow);
    writer.join();
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, sent);
  }
}

TEST(ReadWhole, AnEndThatIsNeverClosedIsAnIoFailure) {
  Pipe pipe;
  ASSERT_TRUE(WriteWhole(pipe.write.get(), "{}", 1000));
  std::array<char, 64> buffer;
  std::string overflow;
  const auto text = ReadWhole(pipe.read.get(), 20, buffer, overflow);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, kIoFailure);
  EXPECT_THAT(text.error().details, testing::HasSubstr("closed in time"));
}

TEST(ReadWhole, WhatIsTooLongOrUnreadableIsAnIoFailure) {
  std::array<char, 64> buffer;
  std::string overflow;
  const os::UniqueFd endless(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(ReadWhole(endless.get(), 5000, buffer, overflow).error().code, kIoFailure);
  const os::UniqueFd folder(::open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(ReadWhole(folder.get(), 5000, buffer, overflow).error().code, kIoFailure);
  EXPECT_EQ(ReadWhole(-1, 20, buffer, overflow).error().code, kIoFailure);
}

TEST(WriteWhole, SaysWhenNotAllWasTaken) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe closed;
  closed.read.Reset();
  EXPECT_FALSE(WriteWhole(closed.write.get(), "x", 20));
  Pipe full(O_NONBLOCK);
  EXPECT_FALSE(WriteWhole(full.write.get(), std::string(1 << 20, 'x'), 20));
  const os::UniqueFd device(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(WriteWhole(device.get(), "x", 20));
  EXPECT_FALSE(WriteWhole(-1, "x", 20));
}

}  // namespace
}  // namespace spoke::cni
