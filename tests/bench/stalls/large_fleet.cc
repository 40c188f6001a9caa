#include "tests/bench/stalls/large_fleet.h"

#include <grpcpp/channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "ipam-server/admin/admin_gate.h"
#include "ipam-server/admin/admin_service.h"
#include "ipam-server/cloud/testing/fake_cloud.h"
#include "ipam-server/dns/testing/fake_resolver.h"
#include "ipam-server/ledger/testing/hello_for_test.h"
#include "ipam-server/loop/background.h"
#include "ipam-server/policy/kinds/team.h"
#include "ipam-server/store/sqlite_store.h"
#include "lib/base/status.h"
#include "tests/bench/scale/loop_edges.h"
#include "tests/bench/stalls/failing_store.h"

namespace spoke::stalls {
namespace {

constexpr uint32_t kInUse = 13;
constexpr uint32_t kAtOnce = 256;  // The most at once while the fleet is set up.
constexpr absl::Duration kPatience = absl::Seconds(120);
// The number of turns in a row without anything to do after which nothing is left.
constexpr int kQuietTurns = 20;
constexpr absl::Duration kPause = absl::Milliseconds(1);

constexpr const char* kPool =
    "apiVersion: spoke/v1\nkind: Pool\nmetadata:\n  name: default\nspec:\n  cidr: 10.0.0.0/12\n";

absl::Duration TimeOf(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return absl::DurationFromTimespec(now);
}

ipam::ServerSettings Settings() {
  return {.pools = {},
          .fleet = {.target = {.min = LargeFleet::kAddressesANode,
                               .batch = LargeFleet::kAddressesANode,
                               .spare = 0.4,
                               .max = 250}}};
}

class Fleet final : public LargeFleet {
 public:
  Fleet(std::unique_ptr<ipam::Store> store, std::string database, uint32_t nodes)
      : database_(std::move(database)),
        store_(std::move(store)),
        listener_(nodes),
        sequences_(nodes),
        generations_(nodes),
        sessions_(nodes),
        extra_(nodes) {
    for (uint32_t node = 0; node < nodes; ++node) sessions_[node] = node + 1;
    grpc::ServerBuilder builder;
    builder.RegisterService(&admin_gate_);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
    stub_ = v1::AdminService::NewStub(channel_);
    thread_ = std::thread([this] { Run(); });
  }
  ~Fleet() override {
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    stopped_ = true;
    thread_.join();
  }

  absl::Status SetUp() {
    RETURN_IF_ERROR(ApplyPool());
    for (size_t from = 0; from < sessions_.size(); from += kAtOnce) {
      const size_t to = std::min(from + kAtOnce, sessions_.size());
      RETURN_IF_ERROR(Measure([&] {
                        for (size_t node = from; node < to; ++node) Greet(node);
                        return absl::OkStatus();
                      }).status());
    }
    for (size_t node = 0; node < sessions_.size(); ++node) {
      if (listener_.told(node).size() != kAddressesANode) {
        return absl::InternalError(
            fmt::format("node {} has {} addresses", node, listener_.told(node).size()));
      }
      addresses_.push_back(listener_.told(node));
      Post(node, AssignmentsOf(node, 0, kInUse));
    }
    return Measure([] { return absl::OkStatus(); }).status();
  }

  absl::StatusOr<Turns> Measure(const std::function<absl::Status()>& work) override {
    {
      absl::MutexLock lock(&mutex_);
      turns_ = {};
    }
    RETURN_IF_ERROR(work());
    absl::MutexLock lock(&mutex_);
    quiet_ = 0;
    const auto is_quiet = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return quiet_ >= kQuietTurns;
    };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&is_quiet), kPatience)) {
      return absl::DeadlineExceededError("the loop finds something to do all the time");
    }
    return turns_;
  }

  absl::Status ReportAll(uint32_t changes) override {
    const uint64_t before = listener_.acknowledged;
    for (size_t node = 0; node < sessions_.size(); ++node) {
      node_api::AssignmentReport report;
      if (extra_[node] == 0) {
        report = AssignmentsOf(node, kInUse, changes);
        extra_[node] = changes;
      } else {
        for (uint32_t i = 0; i < std::exchange(extra_[node], 0); ++i) {
          const ip::Address& address = addresses_[node][kInUse + i];
          report.released.push_back({address, generations_[node]});
          report.cooled.push_back(address);
        }
      }
      Post(node, std::move(report));
    }
    return Await("reports are acknowledged",
                 [&] { return listener_.acknowledged >= before + sessions_.size(); });
  }

  absl::Status ReconnectSome(uint32_t nodes) override {
    const uint64_t before = listener_.welcomed;
    for (size_t node = 0; node < nodes; ++node) loop_.PostClosed(sessions_[node]);
    for (size_t node = 0; node < nodes; ++node) {
      sessions_[node] += sessions_.size();
      sequences_[node] = 0;
      Greet(node);
    }
    return Await("agents are welcomed", [&] { return listener_.welcomed >= before + nodes; });
  }

  absl::Status ListNics() override {
    std::vector<ipam::NicAddresses> nics;
    for (size_t node = 0; node < sessions_.size(); ++node) {
      ipam::NicAddresses& nic = nics.emplace_back();
      nic.node = scale::KeyOf(node);
      for (size_t i = 0; i < addresses_[node].size(); ++i) {
        nic.configurations.push_back(
            {fmt::format("spoke-{}", i + 1), ip::Prefix::Host(addresses_[node][i])});
      }
    }
    loop_.PostListing(std::move(nics), [](const std::string&) { return true; });
    return absl::OkStatus();
  }

  absl::Status FailStore() override {
    store_.FailNext();
    Post(0, AssignmentsOf(0, 0, kInUse));
    RETURN_IF_ERROR(Await("the store fails", [&] { return !writable_; }));
    RETURN_IF_ERROR(Await("the store takes writes again", [&] { return writable_.load(); }));
    return ReconnectSome(1);  // Its session was ended.
  }

  v1::AdminService::Stub& operators() override { return *stub_; }

 private:
  void Run() {
    while (!stopped_) {
      const absl::Duration wall = TimeOf(CLOCK_MONOTONIC);
      const absl::Duration cpu = TimeOf(CLOCK_THREAD_CPUTIME_ID);
      const bool waits = loop_.mailbox().waiting_agents() + loop_.mailbox().waiting_hellos() > 0;
      loop_.RunOnce(absl::ZeroDuration());
      const absl::Duration took = TimeOf(CLOCK_MONOTONIC) - wall;
      const absl::Duration worked = TimeOf(CLOCK_THREAD_CPUTIME_ID) - cpu;
      const bool answered = fabric_.Answer();
      const bool idle = !waits && !answered && took < kPause;
      {
        absl::MutexLock lock(&mutex_);
        turns_.longest = std::max(turns_.longest, took);
        turns_.longest_cpu = std::max(turns_.longest_cpu, worked);
        turns_.all += took;
        ++turns_.count;
        quiet_ = idle ? quiet_ + 1 : 0;
      }
      if (idle) absl::SleepFor(kPause);
    }
  }

  template <typename Condition>
  absl::Status Await(std::string_view what, const Condition& condition) const {
    const absl::Time until = absl::Now() + kPatience;
    while (!condition()) {
      if (absl::Now() > until) return absl::InternalError(fmt::format("not in time: {}", what));
      absl::SleepFor(kPause);
    }
    return absl::OkStatus();
  }

  absl::Status ApplyPool() {
    v1::ApplyRequest request;
    v1::PolicyFile& file = *request.add_files();
    file.set_name("pool");
    file.set_text(kPool);
    v1::ApplyResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->Apply(&context, request, &response);
    return status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message());
  }

  void Greet(size_t node) {
    node_api::Hello hello{.node = IdentityOf(scale::KeyOf(node), "boot")};
    if (!addresses_.empty()) hello.in_use = AssignmentsOf(node, 0, kInUse + extra_[node]).in_use;
    loop_.PostHello(sessions_[node], std::move(hello));
  }

  node_api::AssignmentReport AssignmentsOf(size_t node, uint32_t first, uint32_t count) {
    node_api::AssignmentReport report;
    const uint64_t generation = ++generations_[node];
    for (uint32_t i = first; i < first + count; ++i) {
      report.in_use.push_back(
          scale::AssignmentOf(node, addresses_[node][i], generation, clock_.Now()));
    }
    return report;
  }

  void Post(size_t node, node_api::AssignmentReport report) {
    report.sequence = ++sequences_[node];
    loop_.PostFromAgent(ipam::ReportEvent{sessions_[node], std::move(report)});
  }

  const std::string database_;
  FailingStore store_;
  scale::Listener listener_;
  ipam::Mailbox mailbox_;
  scale::Fabric fabric_{ipam::AnswersTo(mailbox_)};
  os::RealClock clock_;
  scale::NoLog log_;
  std::vector<uint64_t> sequences_;
  std::vector<uint64_t> generations_;
  std::vector<ipam::SessionId> sessions_;  // The sessions by node.
  std::vector<uint32_t> extra_;            // The number above kInUse that is assigned.
  std::vector<std::vector<ip::Address>> addresses_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> writable_ = true;

  absl::Mutex mutex_;
  Turns turns_ ABSL_GUARDED_BY(mutex_);
  int quiet_ ABSL_GUARDED_BY(mutex_) = 0;

  // --- The server. ---
  ipam::Background background_;
  ipam::FleetLoop loop_{
      Settings(),
      ipam::LoadState(store_, Settings(), clock_.Now()).value(),
      {.store = store_,
       .agents = listener_,
       .cloud = fabric_,
       .mailbox = mailbox_,
       .clock = clock_,
       .log = log_,
       .background = &background_,
       .on_objects =
           [this](const ipam::ObjectSet& objects) {
             traffic_.SetTeams(ipam::TeamsByNamespace(objects));
           },
       .on_writable = [this](const absl::Status& why_not) { writable_ = why_not.ok(); }}};
  ipam::FakeCloud cloud_{ipam::AnswersTo(mailbox_)};
  ipam::EventRing events_{log_, clock_};
  ipam::TrafficBook traffic_{clock_, nullptr};
  ipam::BudgetKeeper budgets_{clock_};
  ipam::FakeResolver resolver_;
  const std::unique_ptr<ipam::Revocations> revocations_ =
      ipam::Revocations::Open(store_, clock_, [](uint64_t, const absl::Status&) {}).value();
  ipam::AuditJob audit_{{.period = absl::ZeroDuration()}, {loop_, cloud_, clock_, events_}};
  ipam::ReachabilityBoard reachability_{ipam::ReachabilitySettings{}};
  ipam::OperatorLogKeys operator_log_{ipam::OperatorLogKey()};
  ipam::AdminService admin_{Settings(),
                            {.version = "bench", .store = "sqlite", .cloud = "played"},
                            database_,
                            {loop_, store_, audit_, events_, clock_, clock_, traffic_, budgets_,
                             resolver_, *revocations_, nullptr, operator_log_, reachability_}};
  ipam::AdminGate admin_gate_{
      "bench", admin_, {.revocations = *revocations_, .clock = clock_, .log = log_}};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AdminService::Stub> stub_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LargeFleet>> LargeFleet::Create(const std::string& database,
                                                               uint32_t nodes) {
  ASSIGN_OR_RETURN(std::unique_ptr<ipam::Store> store, ipam::OpenSqliteStore(database));
  auto fleet = std::make_unique<Fleet>(std::move(store), database, nodes);
  RETURN_IF_ERROR(fleet->SetUp());
  return fleet;
}

}  // namespace spoke::stalls
