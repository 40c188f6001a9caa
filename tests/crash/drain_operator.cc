#include "tests/crash/drain_operator.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "fmt/core.h"
#include "tests/bench/swarm/sim_node.h"

namespace spoke::crash {
namespace {

// The nodes drained at once. Together they hold less than the pools have to spare, so that nobody
// starves for good.
constexpr size_t kDrainedAtOnce = 5;
constexpr absl::Duration kPause = absl::Milliseconds(10);
constexpr std::chrono::seconds kPatience(1);  // The time for one call; the server may be away.
constexpr int kReconnectMs = 20;

constexpr const char* kActive = "active";
constexpr const char* kDraining = "draining";

std::unique_ptr<v1::AdminService::Stub> NewStub(const std::string& admin) {
  grpc::ChannelArguments arguments;
  for (const char* key : {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
                          GRPC_ARG_MAX_RECONNECT_BACKOFF_MS}) {
    arguments.SetInt(key, kReconnectMs);
  }
  return v1::AdminService::NewStub(
      grpc::CreateCustomChannel(admin, grpc::InsecureChannelCredentials(), arguments));
}

// Returns whether a code is what a crash of the server looks like.
bool MayHaveHappened(grpc::StatusCode code) {
  return code == grpc::StatusCode::UNAVAILABLE || code == grpc::StatusCode::DEADLINE_EXCEEDED ||
         code == grpc::StatusCode::CANCELLED;
}

}  // namespace

DrainOperator::DrainOperator(const std::string& admin, uint32_t nodes, uint64_t seed,
                             IsThere is_there)
    : stub_(NewStub(admin)),
      nodes_(nodes),
      is_there_(std::move(is_there)),
      random_(seed),
      thread_([this] { Run(); }) {}

DrainOperator::~DrainOperator() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void DrainOperator::Finish() {
  absl::MutexLock lock(&mutex_);
  finishing_ = true;
}

bool DrainOperator::finished() const {
  absl::MutexLock lock(&mutex_);
  return finished_;
}

std::map<std::string, std::set<std::string>> DrainOperator::PossibleModes() const {
  absl::MutexLock lock(&mutex_);
  return modes_;
}

uint64_t DrainOperator::acknowledged() const {
  absl::MutexLock lock(&mutex_);
  return acknowledged_;
}

std::string DrainOperator::refusal() const {
  absl::MutexLock lock(&mutex_);
  return refusal_;
}

void DrainOperator::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const auto told = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || finishing_;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&told), kPause);
      finished_ = finishing_ && drained_.empty();
      if (stopping_ || finished_) return;
    }
    const std::optional<Step> step = NextStep();
    while (step && !Try(*step)) {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
  }
}

std::optional<DrainOperator::Step> DrainOperator::NextStep() {
  bool finishing = false;
  {
    absl::MutexLock lock(&mutex_);
    finishing = finishing_;
  }
  if (finishing || drained_.size() >= kDrainedAtOnce) {
    const uint32_t node = drained_.front();
    drained_.pop_front();
    return Step{node, kActive};
  }
  const auto first = static_cast<uint32_t>(random_() % nodes_);
  for (uint32_t i = 0; i < nodes_; ++i) {
    const uint32_t node = (first + i) % nodes_;
    if (!is_there_(node) || std::find(drained_.begin(), drained_.end(), node) != drained_.end()) {
      continue;
    }
    drained_.push_back(node);
    return Step{node, kDraining};
  }
  return std::nullopt;
}

bool DrainOperator::Try(const Step& step) {
  const std::string name = swarm::NamesOf(step.node).name;
  {
    absl::MutexLock lock(&mutex_);
    modes_.try_emplace(name, std::set<std::string>{kActive}).first->second.insert(step.mode);
  }
  v1::SetNodeModeRequest request;
  request.set_name(name);
  request.set_mode(step.mode);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::NodeInfo answer;
  const grpc::Status status = stub_->SetNodeMode(&context, request, &answer);
  if (MayHaveHappened(status.error_code())) return false;
  absl::MutexLock lock(&mutex_);
  if (!status.ok()) {
    refusal_ = fmt::format("{} to {}: {}", name, step.mode, status.error_message());
    return true;
  }
  modes_[name] = {step.mode};
  ++acknowledged_;
  return true;
}

}  // namespace spoke::crash
