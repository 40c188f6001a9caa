#include "tests/bench/swarm/swarm.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/core.h"
#include "tests/bench/swarm/port_probe.h"

namespace spoke::swarm {
namespace {

constexpr size_t kMaxConnectsAtOnce = 64;
// For how long it is known whether a server takes connections.
constexpr absl::Duration kGoodFor = absl::Milliseconds(20);

// Ports differ from stream to stream, the reason does not.
std::string KindOf(const grpc::Status& status) {
  std::string message = status.error_message().substr(0, 120);
  for (char& c : message) {
    if (c >= '0' && c <= '9') c = '#';
  }
  return fmt::format("{}: {}", static_cast<int>(status.error_code()), message);
}

}  // namespace

Swarm::Swarm(const Options& options)
    : options_(options),
      ledger_(absl::ToInt64Nanoseconds(options_.cooldown), options_.memory),
      budget_reports_(options_.budget_refresh, options_.seed),
      silent_(options_.target.servers.size()),
      random_(options_.seed),
      looks_(options_.target.servers.size()) {
  for (uint32_t i = 0; i < options_.agents; ++i) {
    agents_.emplace_back(std::make_unique<Agent>(SimNode(options_.first + i, options_.reporting,
                                                         ledger_, options_.dead_nic),
                                                 options_.target, *this),
                         options_.reconnect);
  }
}

Swarm::~Swarm() {
  budget_reports_.Stop();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (mover_.joinable()) mover_.join();
  if (thread_.joinable()) thread_.join();
  if (destroyer_.joinable()) destroyer_.join();
}

void Swarm::Start() {
  const int64_t now = NowNs();
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < agents_.size(); ++i) {
      const absl::Duration delay = agents_[i].reconnect.BeforeFirst(jitter(random_));
      SetDue(i, now + absl::ToInt64Nanoseconds(delay));
    }
  }
  destroyer_ = std::thread([this] { DestroyEnded(); });
  thread_ = std::thread([this] { Run(); });
  if (options_.target.servers.size() > 1) mover_ = std::thread([this] { MoveSlowAgents(); });
  if (options_.budget_refresh == absl::ZeroDuration()) return;
  std::vector<Agent*> agents;
  for (Entry& entry : agents_) agents.push_back(entry.agent.get());
  budget_reports_.Start(std::move(agents));
}

void Swarm::Hold() {
  absl::MutexLock lock(&mutex_);
  held_ = true;
}

void Swarm::Release() {
  absl::MutexLock lock(&mutex_);
  held_ = false;
}

void Swarm::Run() {
  std::vector<Due> connect;
  while (Next(connect)) {
    for (const Due& due : connect) Connect(due);
  }
  // The agents are cancelled on this thread, so that no stream is opened after the others were told
  // to end.
  for (Entry& entry : agents_) entry.agent->Cancel();
  absl::MutexLock lock(&mutex_);
  const auto closed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_ == 0; };
  mutex_.Await(absl::Condition(&closed));
  all_ended_ = true;
}

void Swarm::DestroyEnded() {
  constexpr int kLowest = 19;
  // Linux has a priority for each thread (sched(7)). Without it this is only in others' way.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowest);
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return all_ended_ || !ended_.empty();
  };
  while (true) {
    std::vector<std::unique_ptr<Stream>> ended;
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&ready));
    if (ended_.empty()) return;
    ended.swap(ended_);
  }
}

bool Swarm::Next(std::vector<Due>& connect) {
  connect.clear();
  absl::MutexLock lock(&mutex_);
  const int64_t now = NowNs();
  int64_t wait = 1'000'000'000;
  const bool held = held_;
  if (!due_.empty() && !held && MayDial()) wait = std::min(wait, due_.top().at - now);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || held_ != held ||
           (!held && !due_.empty() && due_.top().at < now + wait && MayDial());
  };
  if (wait > 0) mutex_.AwaitWithTimeout(absl::Condition(&ready), absl::Nanoseconds(wait));
  if (stopping_) return false;
  const int64_t later = NowNs();
  while (!held_ && !due_.empty() && due_.top().at <= later && connect.size() < kMaxConnectsAtOnce &&
         MayDial()) {
    const Due due = due_.top();
    due_.pop();
    Entry& entry = agents_[due.index];
    if (entry.due_at != due.at) continue;  // It was hastened.
    entry.due_at = -1;
    connect.push_back(due);
    ++open_;
    entry.dialling = true;
    ++dialling_;
  }
  return true;
}

void Swarm::Connect(const Due& due) {
  Entry& entry = agents_[due.index];
  const int64_t now = NowNs();
  if (entry.last_attempt == 0) start_lag_ = std::max(start_lag_.load(), now - due.at);
  if (entry.first_attempt == 0) entry.first_attempt = now;
  entry.last_attempt = now;
  ++attempts_;
  const absl::Status status = IsWorthADial(*entry.agent)
                                  ? entry.agent->Connect()
                                  : absl::UnavailableError("nobody listens there");
  if (status.ok()) return;
  OnEnded(*entry.agent, nullptr,
          {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())});
}

bool Swarm::IsWorthADial(const Agent& agent) {
  if (looks_.size() == 1) return true;
  const size_t server = agent.server();
  Look& look = looks_[server];
  if (look.at == 0 || NowNs() - look.at > absl::ToInt64Nanoseconds(kGoodFor)) {
    look.takes = TakesConnections(options_.target.servers[server]);
    look.at = NowNs();
  }
  return look.takes;
}

void Swarm::OnEnded(Agent& agent, std::unique_ptr<Stream> stream, const grpc::Status& why) {
  Entry& entry = EntryOf(agent);
  const bool welcomed = entry.welcomed.exchange(0) != 0;
  if (welcomed) --connected_;
  if (entry.synced.exchange(0) != 0) --synced_;
  absl::MutexLock lock(&mutex_);
  --open_;
  StopDialling(entry);
  if (stream != nullptr) ended_.push_back(std::move(stream));
  if (stopping_) return;
  ++ends_[KindOf(why)];
  const netagent::StreamEnd end{welcomed, absl::Nanoseconds(NowNs() - entry.last_attempt)};
  const absl::Duration delay = DelayAfter(entry, end);
  SetDue(IndexOf(agent), NowNs() + absl::ToInt64Nanoseconds(delay));
}

bool Swarm::MayDial() const {
  return options_.target.servers.size() == 1 || dialling_ < kMostDialling;
}

void Swarm::StopDialling(Entry& entry) {
  if (std::exchange(entry.dialling, false)) --dialling_;
}

void Swarm::SetDue(size_t index, int64_t at) {
  agents_[index].due_at = at;
  due_.push({at, index});
}

// A server that an agent has lost is asked again before the others: it may only have restarted.
absl::Duration Swarm::DelayAfter(Entry& entry, const netagent::StreamEnd& end) {
  std::uniform_real_distribution<double> jitter(0.0, 1.0);
  const size_t servers = options_.target.servers.size();
  if (servers == 1) return entry.reconnect.After(end, jitter(random_));
  if (std::exchange(entry.moving, false)) return absl::ZeroDuration();
  const bool urgent = entry.agent->WithNode([](const SimNode& node) { return node.IsUrgent(); });
  if (end.welcomed) {
    entry.refused = 0;
    const absl::Duration delay = entry.reconnect.After(end, jitter(random_));
    return urgent ? kNextServer * jitter(random_) : delay;
  }
  entry.agent->TurnToNextServer();
  if (++entry.refused % servers != 0) return kNextServer * jitter(random_);
  const absl::Duration delay = entry.reconnect.After(end, jitter(random_));
  return urgent ? kHurryPause * (1 + 2 * jitter(random_)) : delay;
}

bool Swarm::RunPod(size_t index) {
  Entry& entry = agents_[index];
  const int64_t now = NowNs();
  const bool runs = entry.agent->WithNode([now](SimNode& node) { return node.RunPod(now); });
  if (entry.welcomed != 0 || options_.target.servers.size() == 1) return runs;
  const int64_t soon = now + absl::ToInt64Nanoseconds(kNextServer);
  absl::MutexLock lock(&mutex_);
  // One that is due no later than it would be in a hurry is left alone.
  const int64_t hurry = now + absl::ToInt64Nanoseconds(3 * kHurryPause);
  if (entry.due_at > hurry) SetDue(index, soon);
  return runs;
}

void Swarm::MoveSlowAgents() {
  constexpr absl::Duration kLook = absl::Milliseconds(100);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kLook)) return;
    }
    MoveThoseWaitingSince(NowNs() - absl::ToInt64Nanoseconds(kSlow));
  }
}

void Swarm::MoveThoseWaitingSince(int64_t slow) {
  std::vector<std::optional<bool>> takes(options_.target.servers.size());
  for (Entry& entry : agents_) {
    const int64_t since =
        entry.agent->WithNode([](const SimNode& node) { return node.waits_since(); });
    if (since < 0 || since > slow) continue;
    const size_t present = entry.agent->server();
    const std::optional<size_t> other = FindAnother(present, takes);
    if (!other) continue;
    {
      absl::MutexLock lock(&mutex_);
      if (entry.due_at >= 0 || entry.moving) continue;  // It has no stream.
      entry.moving = true;
    }
    silent_[present] = true;
    entry.agent->TurnTo(*other);
    entry.agent->Cancel();
  }
}

std::optional<size_t> Swarm::FindAnother(size_t present, std::vector<std::optional<bool>>& takes) {
  const std::vector<std::string>& servers = options_.target.servers;
  for (size_t i = 1; i < servers.size(); ++i) {
    const size_t other = (present + i) % servers.size();
    if (!takes[other]) {
      takes[other] = TakesConnections(servers[other]);
      if (!*takes[other]) silent_[other] = false;  // It has ended: who listens next is another.
    }
    if (*takes[other] && !silent_[other]) return other;
  }
  return std::nullopt;
}

void Swarm::OnWelcomed(Agent& agent, absl::Duration reconnect_within) {
  silent_[agent.server()] = false;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = EntryOf(agent);
    entry.reconnect.SetWithin(reconnect_within);
    StopDialling(entry);
  }
  if (EntryOf(agent).welcomed.exchange(NowNs()) == 0) ++connected_;
}

void Swarm::OnSynced(Agent& agent) {
  int64_t never = 0;
  if (EntryOf(agent).synced.compare_exchange_strong(never, NowNs())) ++synced_;
}

void Swarm::OnAcknowledged(Agent& agent, const Acknowledged& what) {
  const int64_t struck = struck_;
  if (struck == 0) return;
  Entry& entry = EntryOf(agent);
  const int64_t now = NowNs();
  const int64_t waited = what.wanted < 0 ? 0 : now - std::max(struck, what.wanted);
  int64_t longest = entry.longest_wait;
  while (waited > longest && !entry.longest_wait.compare_exchange_weak(longest, waited)) {
  }
  int64_t none = 0;
  if (what.sent < struck || !entry.next_wait.compare_exchange_strong(none, now - struck)) return;
  ++answered_;
  int64_t first = first_wait_;
  while ((first == 0 || now - struck < first) &&
         !first_wait_.compare_exchange_weak(first, now - struck)) {
  }
}

int64_t Swarm::Strike() {
  struck_ = 0;  // What arrives meanwhile counts for nothing.
  for (Entry& entry : agents_) entry.next_wait = entry.longest_wait = 0;
  first_wait_ = 0;
  answered_ = 0;
  const int64_t now = NowNs();
  struck_ = now;
  return now;
}

std::vector<Swarm::Wait> Swarm::waits() const {
  std::vector<Wait> all;
  all.reserve(agents_.size());
  for (const Entry& entry : agents_) {
    all.push_back({.next = entry.next_wait, .longest = entry.longest_wait});
  }
  return all;
}

void Swarm::ForgetSyncs() {
  for (Entry& entry : agents_) {
    if (entry.synced.exchange(0) != 0) --synced_;
    entry.first_attempt = 0;
  }
}

std::vector<Swarm::Progress> Swarm::progress() const {
  std::vector<Progress> all;
  all.reserve(agents_.size());
  for (const Entry& entry : agents_) {
    all.push_back({.first_attempt = entry.first_attempt,
                   .last_attempt = entry.last_attempt,
                   .welcomed = entry.welcomed,
                   .synced = entry.synced});
  }
  return all;
}

std::map<std::string, uint64_t> Swarm::ends() const {
  absl::MutexLock lock(&mutex_);
  return ends_;
}

}  // namespace spoke::swarm
