#include "ipam-server/dns/host_resolver.h"

#include "absl/synchronization/notification.h"
#include "ipam-server/dns/system_resolver.h"
#include "ipam-server/dns/testing/fake_resolver.h"
#include "ipam-server/dns/testing/host_resolver_contract.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Pair;

std::unique_ptr<HostResolver> Fake() {
  auto resolver = std::make_unique<FakeResolver>();
  resolver->Set("localhost", {ip::Address::V4(0x7F000001)});
  return resolver;
}

INSTANTIATE_TEST_SUITE_P(Fake, HostResolverContract, testing::Values(Fake));
INSTANTIATE_TEST_SUITE_P(System, HostResolverContract,
                         testing::Values([] { return std::make_unique<SystemResolver>(); }));

TEST(SystemResolver, SortsAndJoinsWhatItIsTold) {
  SystemResolver resolver([](const std::string&) {
    return std::vector{ip::Address::V4(9), ip::Address::V4(5), ip::Address::V4(9)};
  });
  EXPECT_THAT(resolver.Resolve({"a"}, absl::Seconds(60)),
              ElementsAre(Pair("a", ElementsAre(ip::Address::V4(5), ip::Address::V4(9)))));
}

TEST(SystemResolver, AsksForManyNames) {
  SystemResolver resolver([](const std::string&) { return std::vector{ip::Address::V4(1)}; });
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back(std::to_string(i));
  EXPECT_EQ(resolver.Resolve(names, absl::Seconds(60)).size(), names.size());
}

// Lookups of "slow" that hang until the test lets them go, whoever has left by then.
struct Hanging {
  absl::Notification let_go;
  absl::Mutex mutex;
  int asked ABSL_GUARDED_BY(mutex) = 0;
  int answered ABSL_GUARDED_BY(mutex) = 0;

  void Hang() {
    {
      absl::MutexLock lock(&mutex);
      ++asked;
    }
    let_go.WaitForNotification();
    absl::MutexLock lock(&mutex);
    ++answered;
  }
  int Asked() {
    absl::MutexLock lock(&mutex);
    return asked;
  }
};

TEST(SystemResolver, GivesWhatItHasWhenTheTimeIsOver) {
  const auto hanging = std::make_shared<Hanging>();
  auto resolver = std::make_unique<SystemResolver>([hanging](const std::string& name) {
    if (name == "slow") hanging->Hang();
    return std::vector{ip::Address::V4(1)};
  });
  EXPECT_THAT(resolver->Resolve({"slow", "a", "b"}, absl::Seconds(1)),
              ElementsAre(Key("a"), Key("b")));
  // There is nobody to ask while every thread hangs, and nothing to wait for.
  while (hanging->Asked() < SystemResolver::kMaxThreads) {
    EXPECT_TRUE(resolver->Resolve({"slow"}, absl::Milliseconds(1)).empty());
  }
  EXPECT_TRUE(resolver->Resolve({"a"}, absl::InfiniteDuration()).empty());
  // The threads that still ask do not need it any more.
  resolver.reset();
  hanging->let_go.Notify();
  absl::MutexLock lock(&hanging->mutex);
  hanging->mutex.Await(absl::Condition(
      +[](Hanging* it) ABSL_NO_THREAD_SAFETY_ANALYSIS { return it->answered == it->asked; },
      hanging.get()));
}

}  // namespace
}  // namespace spoke::ipam
