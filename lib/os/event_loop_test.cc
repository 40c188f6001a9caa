#include "lib/os/event_loop.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "gtest/gtest.h"

namespace spoke::os {
namespace {

TEST(EventLoop, RunsWhatOtherThreadsPostInOrder) {
  EventLoop loop = EventLoop::Create().value();
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) loop.Post([&seen, i] { seen.push_back(i); });
    loop.Post([&] { loop.Stop(); });
  });
  while (loop.RunOnce(absl::Seconds(5))) {
  }
  other.join();
  ASSERT_EQ(seen.size(), 100U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(EventLoop, CallsTheReaderAndForgetsItWhenRemoved) {
  EventLoop loop = EventLoop::Create().value();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const UniqueFd reader(pipe[0]);
  const UniqueFd writer(pipe[1]);
  int calls = 0;
  ASSERT_TRUE(loop.AddReader(reader.get(),
                             [&] {
                               ++calls;
                               loop.Remove(reader.get());
                             })
                  .ok());
  ASSERT_EQ(::write(writer.get(), "x", 1), 1);
  EXPECT_TRUE(loop.RunOnce(absl::Seconds(5)));
  EXPECT_TRUE(loop.RunOnce(absl::ZeroDuration()));
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, StopsAtOnce) {
  EventLoop loop = EventLoop::Create().value();
  loop.Stop();
  EXPECT_FALSE(loop.RunOnce(absl::Seconds(60)));
}

}  // namespace
}  // namespace spoke::os
