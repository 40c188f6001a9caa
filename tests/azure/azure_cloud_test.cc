// Tests of the cloud with its thread, over a transport that is the simulated Azure itself: the
// clock moves when the thread has nothing to do but wait.
#include "ipam-server/cloud/azure/azure_cloud.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "ipam-server/cloud/testing/cloud_contract.h"
#include "tests/azure-sim/arm_model.h"
#include "tests/azure/machine_world.h"

namespace spoke::ipam::azure {
namespace {

using testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
// Longer waits are for something from outside.
constexpr absl::Duration kAvailable = absl::Minutes(10);

class SimTransport final : public http::Transport {
 public:
  SimTransport(azure_sim::ArmModel& arm, os::SimClock& clock) : arm_(arm), clock_(clock) {}

  void Send(uint64_t id, http::Request request, absl::Duration /*timeout*/) override {
    if (request.url.find("/metadata/identity/") != std::string::npos) {
      completed_.push_back({id, TokenAnswer()});
      return;
    }
    if (on_send_) on_send_(request);
    const auto token = request.headers.Find("Authorization");
    EXPECT_TRUE(token.has_value());
    http::Response response = arm_.Handle(request, clock_.Now());
    if (refuse_token_ == token) {
      response = {.status = 401,
                  .headers = {},
                  .body = R"({"error":{"code":"ExpiredAuthenticationToken","message":"old"}})"};
    }
    completed_.push_back({id, std::move(response)});
  }
  std::vector<http::Completion> Wait(absl::Duration wait) override {
    if (!completed_.empty()) return std::exchange(completed_, {});
    absl::MutexLock lock(&mutex_);
    if (!woken_ && wait > kAvailable) mutex_.Await(absl::Condition(&woken_));
    if (!std::exchange(woken_, false)) clock_.Advance(wait);
    return {};
  }
  void Wake() override {
    absl::MutexLock lock(&mutex_);
    woken_ = true;
  }

  void set_no_tokens() { no_tokens_ = true; }
  void set_refuse(std::string token) { refuse_token_ = std::move(token); }
  // Called in the cloud's thread, while its machine is at work.
  void set_on_send(std::function<void(const http::Request&)> on_send) {
    on_send_ = std::move(on_send);
  }

 private:
  http::Response TokenAnswer() {
    if (no_tokens_) return {.status = 400, .headers = {}, .body = R"({"error":"invalid_request"})"};
    return {.status = 200,
            .headers = {{"Content-Type", "application/json"}},
            .body = fmt::format(R"({{"access_token":"t{}","expires_in":"86399","expires_on":"{}",)"
                                R"("resource":"r","token_type":"Bearer"}})",
                                ++tokens_, absl::ToUnixSeconds(clock_.Now()) + 86399)};
  }

  azure_sim::ArmModel& arm_;
  os::SimClock& clock_;
  std::vector<http::Completion> completed_;
  std::string refuse_token_;
  std::function<void(const http::Request&)> on_send_;
  bool no_tokens_ = false;
  int tokens_ = 0;
  absl::Mutex mutex_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

class NoLog final : public telemetry::Log {
 public:
  void Write(telemetry::Level /*level*/, std::string_view event,
             std::initializer_list<telemetry::Field> /*fields*/) override {
    absl::MutexLock lock(&mutex_);
    events_.emplace_back(event);
  }
  std::vector<std::string> events() const {
    absl::MutexLock lock(&mutex_);
    return events_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
};

// All that a cloud needs; it lives as long as the cloud.
class SimAzure {
 public:
  explicit SimAzure(int instances) {
    arm_ = azure_sim::ArmModel::Build(azure_sim::SmallSpec(instances), kStart).value();
    transport_ = std::make_unique<SimTransport>(*arm_, clock_);
  }
  SimTransport& transport() { return *transport_; }
  azure_sim::ArmModel& arm() { return *arm_; }
  const NoLog& log() const { return log_; }
  void set_leads(bool leads) { leads_ = leads; }

  std::unique_ptr<AzureCloud> Start(CloudAnswer answer) {
    Settings settings;
    settings.blocks_on_scale_sets = true;
    settings.endpoints.resource_manager = "https://management.azure.com";
    settings.endpoints.authority = "https://login.microsoftonline.com";
    settings.identities.resize(1);
    settings.scale_sets = {kSetId};
    return std::make_unique<AzureCloud>(
        settings,
        AzureCloud::World{
            .transport = std::move(transport_),
            .clock = clock_,
            .read_file = [](const std::string&) { return std::string("secret"); },
            .log = log_,
            .write_margin = [this] { return leads_ ? absl::Seconds(3) : absl::ZeroDuration(); }},
        std::move(answer));
  }
  NicAddresses VmOf(int number) {
    return {.node = {fmt::format("node{}", number), fmt::format("vm{}", number)},
            .nic_mac = arm_->world().FindInstance(VmId(number))->nics.at(0)->mac,
            .configurations = {},
            .instance = VmId(number)};
  }
  NicRequest Ask(int number, const std::vector<std::string>& names) {
    const NicAddresses vm = VmOf(number);
    NicRequest request;
    request.node = vm.node;
    request.nic_mac = vm.nic_mac;
    request.instance = vm.instance;
    for (const std::string& name : names) request.wanted.push_back({name});
    return request;
  }

 private:
  os::SimClock clock_{kStart};
  std::unique_ptr<azure_sim::ArmModel> arm_;
  std::unique_ptr<SimTransport> transport_;
  NoLog log_;
  std::atomic<bool> leads_ = true;
};

// A cloud with its Azure, for the contract.
struct OwnedCloud {
  explicit OwnedCloud(CloudAnswer answer) : cloud(azure.Start(std::move(answer))) {}

  SimAzure azure{2};
  const std::unique_ptr<AzureCloud> cloud;
};

INSTANTIATE_TEST_SUITE_P(Azure, CloudContract,
                         testing::Values(CloudFactory{
                             "Azure",
                             [](CloudAnswer answer) {
                               auto owned = std::make_shared<OwnedCloud>(std::move(answer));
                               // The Azure lives as long as whoever has the cloud.
                               return std::shared_ptr<Cloud>(owned, owned->cloud.get());
                             },
                             [] {
                               // One seed makes the same VMs each time.
                               SimAzure azure(2);
                               return std::vector{azure.VmOf(0), azure.VmOf(1)};
                             }}),
                         [](const auto& test) { return test.param.name; });

// Keeps the answer to the one request of a test.
class OneAnswer {
 public:
  CloudAnswer Sink() {
    return [this](const NodeKey& /*node*/, absl::StatusOr<NicAddresses> result) {
      result_ = std::move(result);
      done_.Notify();
    };
  }
  const absl::StatusOr<NicAddresses>& Wait() {
    done_.WaitForNotification();
    return result_;
  }

 private:
  absl::Notification done_;
  absl::StatusOr<NicAddresses> result_;
};

TEST(AzureCloud, AnswersRequestsThroughTheCallback) {
  SimAzure azure(20);
  absl::Mutex mutex;
  std::map<NodeKey, absl::StatusOr<NicAddresses>> answers;
  auto cloud = azure.Start([&](const NodeKey& node, absl::StatusOr<NicAddresses> result) {
    absl::MutexLock lock(&mutex);
    answers.insert_or_assign(node, std::move(result));
  });
  for (int i = 0; i < 20; ++i) cloud->Request(azure.Ask(i, {"spoke-a", "spoke-b"}));
  const auto all = [&] { return answers.size() == 20; };
  absl::MutexLock lock(&mutex);
  ASSERT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(60)));
  for (const auto& [node, result] : answers) {
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->configurations.size(), 2U);
  }
  EXPECT_EQ(cloud->counts().writes, 20U);
}

// The server's loop asks and looks: it must not wait while a page of a list is decoded.
TEST(AzureCloud, NeitherAsksNorForecastsWaitForTheMachine) {
  SimAzure azure(2);
  const NicRequest first = azure.Ask(0, {"spoke-a"});
  const NicRequest second = azure.Ask(1, {"spoke-a"});
  std::unique_ptr<AzureCloud> cloud;
  std::vector<std::optional<CloudForecast>> told;  // The forecasts of the first, at each call.
  std::optional<CloudForecast> at_once;  // The forecast of the second, when it was asked for.
  azure.transport().set_on_send([&](const http::Request& /*request*/) {
    if (!at_once) {
      cloud->Request(second);
      at_once = cloud->ForecastOf(second.node);
    }
    told.push_back(cloud->ForecastOf(first.node));
  });
  absl::BlockingCounter answers(2);
  std::atomic<int> still_told = 0;
  cloud = azure.Start([&](const NodeKey& node, const absl::StatusOr<NicAddresses>& result) {
    EXPECT_TRUE(result.ok()) << result.status();
    if (cloud->ForecastOf(node)) ++still_told;
    answers.DecrementCount();
  });
  EXPECT_FALSE(cloud->ForecastOf(first.node).has_value());
  cloud->Request(first);
  answers.Wait();
  EXPECT_EQ(still_told, 0) << "nothing waits any more";
  cloud->Stop();
  ASSERT_TRUE(at_once.has_value());
  EXPECT_EQ(at_once->waits_for, "its turn");
  ASSERT_TRUE(told.at(0).has_value());
  const auto under_way = [](const auto& forecast) {
    return forecast.has_value() && forecast->waits_for == "Azure's answer";
  };
  EXPECT_TRUE(std::any_of(told.begin(), told.end(), under_way));
}

TEST(AzureCloud, ARefusedTokenIsReplaced) {
  SimAzure azure(1);
  azure.transport().set_refuse("Bearer t1");
  OneAnswer answer;
  auto cloud = azure.Start(answer.Sink());
  cloud->Request(azure.Ask(0, {"spoke-a"}));
  const auto& nic = answer.Wait();
  ASSERT_TRUE(nic.ok()) << nic.status();
}

TEST(AzureCloud, WithoutATokenItSaysWhy) {
  SimAzure azure(1);
  azure.transport().set_no_tokens();
  OneAnswer answer;
  auto cloud = azure.Start(answer.Sink());
  cloud->Request(azure.Ask(0, {"spoke-a"}));
  const auto& nic = answer.Wait();
  EXPECT_EQ(nic.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nic.status().message()), HasSubstr("no token"));
  EXPECT_THAT(azure.log().events(), testing::Contains("azure_token_failed"));
}

TEST(AzureCloud, WritesOnlyWhileTheLeadershipLasts) {
  SimAzure azure(2);
  azure.set_leads(false);
  absl::Notification looked;
  absl::Notification changed;
  std::atomic<bool> led = false;
  azure.transport().set_on_send([&](const http::Request& request) {
    if (request.method == "PUT") {
      EXPECT_TRUE(led);
      EXPECT_EQ(request.send_within, kWriteLeaves);
    }
  });
  auto cloud = azure.Start([&](const NodeKey& node, const absl::StatusOr<NicAddresses>& result) {
    EXPECT_TRUE(result.ok()) << result.status();
    (node.name == "node0" ? changed : looked).Notify();
  });
  cloud->Request(azure.Ask(0, {"spoke-a"}));
  cloud->Request(azure.Ask(1, {}));
  looked.WaitForNotification();
  absl::Notification listed;
  cloud->List([&](const CloudListing& listing) {
    EXPECT_TRUE(listing.ok()) << listing.status();
    listed.Notify();
  });
  listed.WaitForNotification();
  EXPECT_FALSE(changed.HasBeenNotified());
  led = true;
  azure.set_leads(true);
  changed.WaitForNotification();
  cloud->Stop();
}

TEST(AzureCloud, StopsWhileRequestsAreUnderWay) {
  for (int round = 0; round < 20; ++round) {
    SimAzure azure(5);
    auto cloud = azure.Start([](const NodeKey&, const absl::StatusOr<NicAddresses>&) {});
    for (int i = 0; i < 5; ++i) cloud->Request(azure.Ask(i, {"spoke-a"}));
    std::atomic<int> told = 0;
    cloud->List([&](const CloudListing& listing) {
      ++told;
      if (!listing.ok()) {
        EXPECT_THAT(std::string(listing.status().message()), HasSubstr("stops"));
      }
    });
    if (round % 2 == 0) absl::SleepFor(absl::Milliseconds(round));
    cloud->ForecastOf({"node0", "vm0"});
    cloud.reset();
    EXPECT_EQ(told, 1);
  }
}

}  // namespace
}  // namespace spoke::ipam::azure
