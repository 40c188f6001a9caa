#include "ipam-server/loop/background.h"

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace spoke::ipam {
namespace {

TEST(Background, WorksInOrderOnAThreadOfItsOwnAndFinishesWhatItWasGiven) {
  std::vector<int> done;
  std::thread::id worker;
  absl::Notification go;
  {
    Background background;
    background.Run([&] {
      go.WaitForNotification();
      worker = std::this_thread::get_id();
      done.push_back(1);
    });
    background.Run([&] { done.push_back(2); });
    EXPECT_TRUE(done.empty()) << "who gives work does not wait";
    go.Notify();
  }
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_NE(worker, std::this_thread::get_id());
}

}  // namespace
}  // namespace spoke::ipam
