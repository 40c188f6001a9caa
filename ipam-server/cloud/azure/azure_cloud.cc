#include "ipam-server/cloud/azure/azure_cloud.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "ipam-server/cloud/azure/resources/arm_id.h"
#include "ipam-server/cloud/azure/resources/ip_configurations.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::ipam::azure {
namespace {

// Ids of calls for tokens; the machine counts from one.
constexpr uint64_t kTokenCall = uint64_t{1} << 63U;
constexpr absl::Duration kTokenTimeout = absl::Seconds(30);
// The time after which calls fail without any token: until then they wait for the first one.
constexpr absl::Duration kTokenPatience = absl::Seconds(30);
// The least pause of the thread, which must not spin whatever is decided.
constexpr absl::Duration kShortestWait = absl::Milliseconds(1);
constexpr int kUnauthorized = 401;
// The age of forecasts: all are worked out at once, which takes a while where thousands wait.
constexpr absl::Duration kForecastPeriod = absl::Seconds(1);

CloudForecast NotLookedAt(const NicRequest& request, absl::Time now) {
  return {.lane = request.lane, .eta = now, .waits_for = "its turn"};
}

}  // namespace

AzureCloud::AzureCloud(Settings settings, World world, CloudAnswer answer)
    : settings_(std::move(settings)),
      world_(std::move(world)),
      answer_(std::move(answer)),
      without_token_since_(world_.clock.Now()),
      machine_(settings_, world_.seed) {
  CHECK(!settings_.identities.empty(), "the server has an identity");
  for (const Identity& identity : settings_.identities) {
    principals_.push_back({TokenSource(identity, settings_.endpoints), ""});
  }
  thread_ = std::thread([this] { Run(); });
}

AzureCloud::~AzureCloud() { Stop(); }

void AzureCloud::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  world_.transport->Wake();
  if (thread_.joinable()) thread_.join();
  std::deque<CloudListed> listings;
  {
    absl::MutexLock lock(&mutex_);
    listings.swap(listings_);
  }
  for (const CloudListed& listed : listings) listed(absl::UnavailableError("the server stops"));
}

std::string AzureCloud::Describe() const {
  const size_t sets = settings_.scale_sets.size();
  return fmt::format("azure: {} scale {}", sets, sets == 1 ? "set" : "sets");
}

CloudLoad AzureCloud::Load() const {
  const absl::Time now = world_.clock.Now();
  absl::MutexLock lock(&machine_mutex_);
  return machine_.Load(now);
}

MachineCounts AzureCloud::counts() const {
  absl::MutexLock lock(&machine_mutex_);
  return machine_.counts();
}

void AzureCloud::Request(NicRequest desired) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    forecasts_.try_emplace(desired.node, NotLookedAt(desired, world_.clock.Now()));
    inbox_.push_back(std::move(desired));
  }
  world_.transport->Wake();
}

std::optional<CloudForecast> AzureCloud::ForecastOf(const NodeKey& node) const {
  absl::MutexLock lock(&mutex_);
  const auto forecast = forecasts_.find(node);
  return forecast == forecasts_.end() ? std::nullopt : std::optional(forecast->second);
}

void AzureCloud::List(CloudListed listed) {
  {
    absl::MutexLock lock(&mutex_);
    if (!stopped_) {
      ++listings_asked_;
      listings_.push_back(std::exchange(listed, nullptr));
    }
  }
  if (listed != nullptr) return listed(absl::UnavailableError("the server stops"));
  world_.transport->Wake();
}

bool AzureCloud::InOurSets(const std::string& instance) const {
  const auto id = ResourceId::Parse(instance);
  const auto set = id.ok() ? ScaleSetOf(*id) : std::nullopt;
  return set.has_value() &&
         std::any_of(settings_.scale_sets.begin(), settings_.scale_sets.end(),
                     [&](const std::string& ours) { return SameName(ours, set->text()); });
}

bool AzureCloud::Covers(const std::string& instance) const {
  if (InOurSets(instance)) return true;
  absl::MutexLock lock(&mutex_);
  return listed_.contains(instance);
}

// --- The thread.

void AzureCloud::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_) return;
    }
    const absl::Time now = world_.clock.Now();
    TakeInbox(now);
    AskForTokens(now);
    SendCalls(now);
    HandOver();
    PublishForecasts(now);
    const absl::Duration wait = NextWake(now) - world_.clock.Now();
    for (http::Completion& completion : world_.transport->Wait(std::max(kShortestWait, wait))) {
      OnCompletion(std::move(completion), world_.clock.Now());
    }
    HandOver();
  }
}

void AzureCloud::TakeInbox(absl::Time now) {
  std::vector<NicRequest> requests;
  size_t listings = 0;
  {
    absl::MutexLock lock(&mutex_);
    requests.swap(inbox_);
    listings = std::exchange(listings_asked_, 0);
  }
  forecasts_stale_ = forecasts_stale_ || !requests.empty();
  absl::MutexLock lock(&machine_mutex_);
  for (NicRequest& request : requests) machine_.Request(std::move(request), now);
  for (; listings > 0; --listings) machine_.List(now);
}

void AzureCloud::AskForTokens(absl::Time now) {
  for (size_t i = 0; i < principals_.size(); ++i) {
    TokenSource& source = principals_[i].source;
    if (now < source.NextRequest()) continue;
    auto request = source.Start(now, world_.read_file);
    if (request.ok()) {
      world_.transport->Send(kTokenCall + i, *std::move(request), kTokenTimeout);
    } else {
      world_.log.Warn("azure_token_failed", {{"error", request.status()}});
    }
  }
}

void AzureCloud::OnToken(size_t principal, const absl::StatusOr<http::Response>& response,
                         absl::Time now) {
  const absl::Status status = principals_[principal].source.Finish(response, now);
  std::string& logged = principals_[principal].logged;
  if (status.ok()) {
    logged.clear();
    return;
  }
  // It is tried again and again; the same failure is told once.
  if (logged == status.message()) return;
  logged = std::string(status.message());
  world_.log.Warn("azure_token_failed", {{"error", status}});
}

bool AzureCloud::HasToken(absl::Time now) const {
  return std::any_of(principals_.begin(), principals_.end(), [now](const Principal& principal) {
    return principal.source.TokenAt(now).ok();
  });
}

absl::StatusOr<std::string> AzureCloud::TokenFor(size_t wanted, absl::Time now) {
  auto token = principals_.at(wanted).source.TokenAt(now);
  for (size_t i = 0; i < principals_.size() && !token.ok(); ++i) {
    auto other = principals_[i].source.TokenAt(now);
    if (other.ok()) token = std::move(other);
  }
  return token;
}

void AzureCloud::SendCalls(absl::Time now) {
  if (HasToken(now)) {
    without_token_since_ = now;
  } else if (now - without_token_since_ < kTokenPatience) {
    return;
  }
  const absl::Duration write_margin = world_.write_margin();
  absl::MutexLock lock(&machine_mutex_);
  for (MachineCall& call : machine_.Next(now, write_margin)) {
    forecasts_stale_ = true;
    auto token = TokenFor(call.principal, now);
    if (!token.ok()) {
      machine_.OnResponse(call.id, token.status(), now);
      continue;
    }
    call.request.headers.Add("Authorization", "Bearer " + *token);
    token_of_[call.id] = *std::move(token);
    world_.transport->Send(call.id, std::move(call.request), call.timeout);
  }
}

void AzureCloud::OnCompletion(http::Completion completion, absl::Time now) {
  if (completion.id >= kTokenCall) {
    OnToken(static_cast<size_t>(completion.id - kTokenCall), completion.response, now);
    return;
  }
  const auto token = token_of_.extract(completion.id);
  if (completion.response.ok() && completion.response->status == kUnauthorized && !token.empty()) {
    for (Principal& principal : principals_) principal.source.Reject(token.mapped(), now);
  }
  forecasts_stale_ = true;
  absl::MutexLock lock(&machine_mutex_);
  machine_.OnResponse(completion.id, completion.response, now);
}

void AzureCloud::HandOver() {
  std::vector<MachineAnswer> answers;
  std::vector<CloudListing> listings;
  {
    absl::MutexLock lock(&machine_mutex_);
    answers = machine_.TakeAnswers();
    listings = machine_.TakeListings();
  }
  if (!answers.empty()) {
    absl::MutexLock lock(&mutex_);
    for (const MachineAnswer& answer : answers) forecasts_.erase(answer.node);
  }
  for (MachineAnswer& answer : answers) answer_(answer.node, std::move(answer.result));
  HandOverListings(std::move(listings));
}

// The machine answers listings in the order in which they were asked for.
void AzureCloud::HandOverListings(std::vector<CloudListing> listings) {
  for (CloudListing& listing : listings) {
    CloudListed listed;
    {
      absl::MutexLock lock(&mutex_);
      listed = std::move(listings_.front());
      listings_.pop_front();
      const size_t nics = listing.ok() ? listing->size() : 0;
      for (size_t i = 0; i < nics; ++i) {
        const std::string& instance = (*listing)[i].instance;
        if (!InOurSets(instance)) listed_.insert(instance);
      }
    }
    listed(std::move(listing));
  }
}

void AzureCloud::PublishForecasts(absl::Time now) {
  if (!forecasts_stale_ || now < published_at_ + kForecastPeriod) return;
  forecasts_stale_ = false;
  published_at_ = now;
  std::map<NodeKey, CloudForecast> forecasts;
  {
    absl::MutexLock lock(&machine_mutex_);
    forecasts = machine_.Forecasts(now);
  }
  absl::MutexLock lock(&mutex_);
  for (const NicRequest& request : inbox_) {
    forecasts.try_emplace(request.node, NotLookedAt(request, now));
  }
  forecasts_.swap(forecasts);
}

absl::Time AzureCloud::NextWake(absl::Time now) const {
  absl::Time wake = forecasts_stale_ ? published_at_ + kForecastPeriod : absl::InfiniteFuture();
  for (const Principal& principal : principals_) {
    wake = std::min(wake, principal.source.NextRequest());
  }
  const absl::Time patience_ends = without_token_since_ + kTokenPatience;
  if (!HasToken(now) && now < patience_ends) return std::min(wake, patience_ends);
  absl::MutexLock lock(&machine_mutex_);
  return std::min(wake, machine_.NextWake());
}

}  // namespace spoke::ipam::azure
