#include "ipam-server/standby/standby.h"

#include <grpcpp/server_builder.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "fmt/core.h"
#include "ipam-server/authority/seal_key.h"
#include "ipam-server/loop/store_witness.h"
#include "ipam-server/standby/leader_connection.h"
#include "ipam-server/standby/proven_mark.h"
#include "ipam-server/standby/standby_service.h"
#include "ipam-server/store/record_codec.h"
#include "ipam-server/telemetry/leadership_samples.h"
#include "ipam-server/telemetry/server_metrics.h"
#include "lib/base/status.h"
#include "lib/base/status_news.h"
#include "lib/os/clock.h"
#include "lib/rpc/bounded_server.h"
#include "lib/rpc/certificate_metrics.h"
#include "lib/rpc/credentials.h"
#include "lib/telemetry/metrics.h"
#include "lib/telemetry/text_endpoint.h"

namespace spoke::ipam {
namespace {

// Between two campaigns that failed: for the mirror to hear who leads, or for etcd to come back.
constexpr int64_t kCampaignPauseMs = 50;
constexpr int64_t kSecondMs = 1000;
// A mirror that is not known to be complete for so long.
constexpr absl::Duration kBehind = FollowedStore::kMostAge;

LeadershipSample SampleOf(const etcd::Mirror& mirror) {
  const etcd::MirrorStats stats = mirror.stats();
  const std::optional<etcd::Leader> leader = mirror.CurrentLeader();
  return {.leader = leader ? leader->record.name : "",
          .mirror = LeadershipSample::Mirror{.records = stats.records,
                                             .revision = stats.revision,
                                             .full_reads = stats.full_reads,
                                             .broken_watches = stats.broken_watches,
                                             .age = stats.age}};
}

// What a standby serves; all of it ends before the server that leads opens the same ports.
class StandbyPorts {
 public:
  static absl::StatusOr<std::unique_ptr<StandbyPorts>> Open(const ServerConfig& config,
                                                            telemetry::Log& log) {
    auto ports = std::make_unique<StandbyPorts>();
    ports->metrics_.AddSource([&self = *ports] {
      absl::MutexLock lock(&self.mutex_);
      return LeadershipSamples(self.sample_);
    });
    ports->metrics_.AddSource([files = config.tls] { return rpc::CertificateSamples(files); });
    if (config.listen_metrics != "off") {
      ASSIGN_OR_RETURN(
          ports->endpoint_,
          telemetry::TextEndpoint::Open(
              {.address = config.listen_metrics, .token_file = config.metrics_token_file},
              telemetry::MetricsPage([&metrics = ports->metrics_] { return metrics.Render(); })));
    }
    ASSIGN_OR_RETURN(const auto credentials, rpc::ServerCredentials({.insecure = true}));
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&ports->service_);
    const mode_t old_mask = ::umask(0177);
    auto admin = rpc::BoundedServer::Start(builder,
                                           {.name = "admin",
                                            .address = config.listen_admin,
                                            .credentials = credentials,
                                            .limits = rpc::kAdminLimits},
                                           log);
    ::umask(old_mask);
    if (!admin.ok()) return admin.status();
    ports->admin_ = *std::move(admin);
    return ports;
  }

  StandbyPorts() : metrics_(ServerMetricSpecs()) {}

  void Say(const std::string& why) { service_.Say(why); }
  void Set(LeadershipSample sample) {
    absl::MutexLock lock(&mutex_);
    sample_ = std::move(sample);
  }

 private:
  absl::Mutex mutex_;
  LeadershipSample sample_ ABSL_GUARDED_BY(mutex_);
  telemetry::Metrics metrics_;
  StandbyService service_;
  std::unique_ptr<telemetry::TextEndpoint> endpoint_;  // Null: metrics are not to be served.
  std::unique_ptr<rpc::BoundedServer> admin_;
};

FollowedStore::Mirrored FollowedBy(const etcd::Mirror& mirror) {
  const etcd::MirrorStats stats = mirror.stats();
  return {.full_reads = stats.full_reads, .age = stats.age};
}

class Candidate {
 public:
  Candidate(const ServerConfig& config, EtcdOptions options, const StandbyEdges& edges,
            std::unique_ptr<etcd::Mirror> mirror)
      : config_(config),
        options_(std::move(options)),
        edges_(edges),
        mirror_(std::move(mirror)),
        signals_(edges.signals.Descriptor()) {}

  absl::StatusOr<Led> Run();

 private:
  absl::Status StandBy(const etcd::Leader& leader);
  void Say(const rpc::Reasons& why);
  void SayFollowed();
  bool MayTryAgain(const absl::Status& why) const;
  absl::StatusOr<Led> Campaign(const std::optional<etcd::Leader>& depose);
  bool Wait();
  void EverySecond(const etcd::Leader& leader);
  void LookAtEtcd(const etcd::Leader& leader, absl::Duration age);
  void NoteMark(int64_t leadership);

  const ServerConfig& config_;
  EtcdOptions options_;
  const StandbyEdges& edges_;
  std::unique_ptr<etcd::Mirror> mirror_;
  const os::UniqueFd signals_;
  std::unique_ptr<StandbyPorts> ports_;  // Null: it does not stand by yet.
  std::optional<LeaderConnection> connection_;
  int64_t lease_ = 0;           // Of the leader that is followed; 0: nobody leads.
  int64_t leader_seen_ms_ = 0;  // Since when.
  int64_t campaign_ms_ = 0;     // The next one; not before.
  int64_t second_ms_ = 0;       // When EverySecond() is due.
  bool name_taken_ = false;     // That was said.
  FollowedStore followed_;
  bool mark_told_ = false;    // It was said that the mark cannot be written.
  std::string standing_;      // What it says of itself as long as etcd answers.
  base::StatusNews trouble_;  // What is told of etcd; OK: it answers, and the mirror is not behind.
};

absl::StatusOr<Led> Candidate::Run() {
  do {
    const std::optional<etcd::Leader> leader = mirror_->CurrentLeader();
    if (!leader) {
      lease_ = 0;
      connection_.reset();
    } else if (leader->lease != lease_) {
      RETURN_IF_ERROR(StandBy(*leader));
    }
    if (ports_ != nullptr) ports_->Set(SampleOf(*mirror_));
    const int64_t now_ms = os::MonotonicMs();
    const bool gone = leader && connection_->Step(now_ms) == LeaderLink::kGone;
    if ((!leader || gone) && now_ms >= campaign_ms_) {
      absl::StatusOr<Led> led = Campaign(gone ? leader : std::nullopt);
      if (led.ok()) return led;
      const absl::Status why = led.status();
      campaign_ms_ = os::MonotonicMs() + kCampaignPauseMs;
      if (!absl::IsAlreadyExists(why)) {  // No other one was faster.
        if (!MayTryAgain(why)) return why;
        Say({fmt::format("nobody leads, and this server cannot: {}", base::MessageOf(why))});
        if (!absl::IsUnavailable(why)) campaign_ms_ += kSecondMs;
      }
    }
    if (leader) EverySecond(*leader);
  } while (Wait());
  edges_.log.Info("standby_stopping", {});
  return Led{};
}

// Follows this leader from now on.
absl::Status Candidate::StandBy(const etcd::Leader& leader) {
  if (ports_ == nullptr) {
    ASSIGN_OR_RETURN(ports_, StandbyPorts::Open(config_, edges_.log));
  }
  lease_ = leader.lease;
  leader_seen_ms_ = os::MonotonicMs();
  connection_.emplace(leader.record.address);
  standing_ =
      fmt::format("server {} stands by: server {} leads, as seen here since {}",
                  options_.leadership.name, leader.record.name,
                  absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::Now(), absl::UTCTimeZone()));
  SayFollowed();
  edges_.log.Info("standing_by",
                  {{"leader", leader.record.name}, {"address", leader.record.address}});
  return absl::OkStatus();
}

void Candidate::Say(const rpc::Reasons& why) {
  if (ports_ != nullptr) ports_->Say(absl::StrJoin(why, "; "));
  edges_.health.Say(why);
}

void Candidate::SayFollowed() {
  rpc::Reasons why = {standing_};
  if (const absl::Status& trouble = trouble_.told(); !trouble.ok()) {
    why.push_back(fmt::format("it cannot follow, nor take over: {}", base::MessageOf(trouble)));
  }
  Say(why);
}

// Whether a campaign that failed so is repeated. A server that has stood by stays to tell
// operators what etcd says, whatever it is; one that has only begun ends with it.
bool Candidate::MayTryAgain(const absl::Status& why) const {
  return absl::IsUnavailable(why) || ports_ != nullptr;
}

// `depose` is the leader to be overthrown; nullopt: there is none.
absl::StatusOr<Led> Candidate::Campaign(const std::optional<etcd::Leader>& depose) {
  Led led;
  const std::string& listen = config_.etcd->listen_standbys;
  options_.leadership.address.clear();
  options_.leadership.depose = depose ? depose->revision : 0;
  options_.leadership.deposed_lease = depose ? depose->lease : 0;
  if (listen != "off") {
    auto standbys = StandbyPort::Open(listen);
    if (standbys.ok()) {
      led.standbys = *std::move(standbys);
      options_.leadership.address =
          ReachedAt(listen, led.standbys->port(), config_.etcd->endpoints);
    } else {
      // Standbys then wait for the lease, as for a machine that is silent.
      edges_.log.Warn("standby_port_not_open", {{"address", listen}, {"error", standbys.status()}});
    }
  }
  const int64_t begun_ms = os::MonotonicMs();
  const bool proven = followed_.IsProven(FollowedBy(*mirror_));
  ASSIGN_OR_RETURN(led.store, EtcdStore::TakeOver(options_, mirror_));
  led.store_proven = proven;
  edges_.log.Info("leading", {{"name", options_.leadership.name},
                              {"fence", led.store->Fence()},
                              {"overthrown", depose.has_value()},
                              {"took_ms", os::MonotonicMs() - begun_ms}});
  return led;
}

// Waits until there may be something to do. False: a signal has come.
bool Candidate::Wait() {
  const int64_t now_ms = os::MonotonicMs();
  int64_t until_ms = lease_ == 0 ? campaign_ms_ : second_ms_;
  if (connection_) until_ms = std::min(until_ms, connection_->wake_ms());
  if (campaign_ms_ > now_ms) until_ms = std::min(until_ms, campaign_ms_);
  std::array<pollfd, 3> waiting = {
      {{signals_.get(), POLLIN, 0},
       {mirror_->leader_changed(), POLLIN, 0},
       {connection_ ? connection_->fd() : -1, connection_ ? connection_->events() : short{0}, 0}}};
  const int64_t wait_ms = std::clamp<int64_t>(until_ms - now_ms, 0, kSecondMs);
  ::poll(waiting.data(), waiting.size(), static_cast<int>(wait_ms));
  if (waiting[1].revents != 0) {
    eventfd_t ignored = 0;
    ::eventfd_read(waiting[1].fd, &ignored);
  }
  return waiting[0].revents == 0;
}

void Candidate::EverySecond(const etcd::Leader& leader) {
  const int64_t now_ms = os::MonotonicMs();
  if (now_ms < second_ms_) return;
  second_ms_ = now_ms + kSecondMs;
  const absl::Duration led_for = absl::Milliseconds(now_ms - leader_seen_ms_);
  const absl::Duration age = mirror_->stats().age;
  LookAtEtcd(leader, age);
  NoteMark(leader.lease);
  // Before that, it may be this server's own lease, from before it was started again.
  if (led_for < 2 * options_.leadership.lease || leader.record.name != options_.leadership.name) {
    return;
  }
  if (std::exchange(name_taken_, true)) return;
  edges_.log.Warn("server_name_taken",
                  {{"name", leader.record.name}, {"address", leader.record.address}});
}

// Tells it when etcd refuses this server, at once; when it is only silent, after a while.
void Candidate::LookAtEtcd(const etcd::Leader& leader, absl::Duration age) {
  absl::Status trouble = mirror_->connection()->Trouble();
  if (age <= kBehind && absl::IsUnavailable(trouble)) trouble = absl::OkStatus();
  if (age > kBehind && trouble.ok()) {
    trouble = absl::UnavailableError(
        fmt::format("the watch of etcd {} says nothing", mirror_->connection()->Describe()));
  }
  if (!trouble_.IsNews(std::move(trouble), os::MonotonicMs())) return;
  if (trouble_.told().ok()) {
    edges_.log.Info("standby_follows", {{"leader", leader.record.name}});
  } else {
    edges_.log.Warn("standby_behind", {{"leader", leader.record.name},
                                       {"age", absl::FormatDuration(age)},
                                       {"error", trouble_.told()}});
  }
  SayFollowed();
}

// Keeps the mark beside the store as new as what the leader is known to have proved.
void Candidate::NoteMark(int64_t leadership) {
  std::optional<RecoveryState> stored;
  int64_t revision = 0;
  mirror_->List({.range = KeyRange::WithPrefix(kStoreKey), .limit = 1},
                [&](std::string_view key, const StoredRecord& record) {
                  if (key != kStoreKey) return;
                  revision = record.revision;
                  auto decoded = DecodeStore(record.value);
                  if (decoded.ok()) stored = *std::move(decoded);
                });
  const FollowedStore::Mirrored mirror = FollowedBy(*mirror_);
  followed_.Look(mirror, stored.value_or(RecoveryState()), revision, leadership);
  if (!stored || !followed_.IsProven(mirror)) return;
  std::optional<MarkKeys> keys;
  if (!config_.seal_key_file.empty()) {
    const auto key = ReadSealKey(config_.seal_key_file);
    if (!key.ok()) return;
    keys = MarkKeys{.present = key->mark};
  }
  auto witness = StoreWitness::Open(config_.witness_directory(), ThisBoot(), keys);
  if (!witness.ok()) return;  // Whoever is to lead with it says so.
  const auto mark = ProvenMark(*stored, witness->found().last);
  if (!mark) return;
  const absl::Status written = witness->Remember(*mark);
  if (!written.ok() && !std::exchange(mark_told_, true)) {
    edges_.log.Warn("standby_mark_not_written", {{"error", written}});
  }
}

}  // namespace

absl::StatusOr<Led> Lead(const ServerConfig& config, EtcdOptions options,
                         const StandbyEdges& edges) {
  ASSIGN_OR_RETURN(auto mirror, EtcdStore::Follow(options));
  return Candidate(config, std::move(options), edges, std::move(mirror)).Run();
}

}  // namespace spoke::ipam
