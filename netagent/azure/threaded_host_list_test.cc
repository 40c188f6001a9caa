#include "netagent/azure/threaded_host_list.h"

#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace spoke::netagent::azure {
namespace {

using testing::ElementsAre;

using Outcome = absl::StatusOr<std::set<ip::Address>>;

// Asks the list, and waits for the outcome.
Outcome ReadNow(HostList& list) {
  Outcome outcome = absl::UnknownError("none");
  absl::Notification done;
  EXPECT_TRUE(list.Read([&](Outcome result) {
    outcome = std::move(result);
    done.Notify();
  }));
  done.WaitForNotification();
  return outcome;
}

TEST(ThreadedHostList, ReadsOnAThreadOfItsOwn) {
  const ip::Address address = ip::Address::Parse("fd00::5").value();
  std::thread::id read_on;
  int readings = 0;
  ThreadedHostList list([&]() -> Outcome {
    read_on = std::this_thread::get_id();
    if (++readings == 2) return absl::UnavailableError("away");
    return std::set{address};
  });
  const Outcome first = ReadNow(list);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(*first, ElementsAre(address));
  EXPECT_NE(read_on, std::this_thread::get_id());
  EXPECT_EQ(ReadNow(list).status(), absl::UnavailableError("away"));
  EXPECT_TRUE(ReadNow(list).ok());
}

TEST(ThreadedHostList, OneReadingIsUnderWayAtATimeAndIsWaitedForAtTheEnd) {
  absl::Notification asked;
  absl::Notification answer;
  int outcomes = 0;
  {
    ThreadedHostList list([&]() -> Outcome {
      asked.Notify();
      answer.WaitForNotification();
      return std::set<ip::Address>();
    });
    ASSERT_TRUE(list.Read([&](const Outcome&) { ++outcomes; }));
    asked.WaitForNotification();
    EXPECT_FALSE(list.Read([&](const Outcome&) { ++outcomes; }));
    answer.Notify();
  }
  EXPECT_EQ(outcomes, 1);
}

}  // namespace
}  // namespace spoke::netagent::azure
