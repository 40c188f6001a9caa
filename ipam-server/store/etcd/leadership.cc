#include "ipam-server/store/etcd/leadership.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "ipam-server/store/etcd/leader_record.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"

namespace spoke::ipam::etcd {
namespace {

namespace pb = etcdserverpb;

// Renewals in the time that one lasts.
constexpr int kRenewals = 6;

}  // namespace

Leadership::Leadership(Connection& connection, LeadershipSettings settings)
    : connection_(connection), settings_(std::move(settings)) {}

absl::StatusOr<std::unique_ptr<Leadership>> Leadership::Win(Connection& connection,
                                                            LeadershipSettings settings) {
  std::unique_ptr<Leadership> leadership(new Leadership(connection, std::move(settings)));
  RETURN_IF_ERROR(leadership->Campaign());
  leadership->keeper_ = std::thread([&self = *leadership] { self.KeepAlive(); });
  return leadership;
}

Leadership::~Leadership() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (keeper_.joinable()) keeper_.join();
  // Whoever cannot be told waits for the lease to end.
  if (lease_ != 0 && lost().ok()) connection_.Revoke(lease_).IgnoreError();
}

absl::Status Leadership::Campaign() {
  const int64_t begun_ms = os::MonotonicMs();
  ASSIGN_OR_RETURN(lease_, connection_.Grant(absl::ToInt64Seconds(settings_.lease)));
  {
    absl::MutexLock lock(&mutex_);
    renewed_ms_ = begun_ms;
  }
  const absl::Status written = settings_.depose == 0 ? Write(pb::Compare::CREATE, 0)
                                                     : Write(pb::Compare::MOD, settings_.depose);
  // Whoever stood still between the two calls tries again.
  if (absl::IsNotFound(written)) {
    return absl::UnavailableError("its lease ended while it campaigned");
  }
  RETURN_IF_ERROR(written);
  // Nothing hangs on the lease of the one that was overthrown; without it that one learns at once.
  if (settings_.deposed_lease != 0) connection_.Revoke(settings_.deposed_lease).IgnoreError();
  return absl::OkStatus();
}

// Puts the key under our lease if `target` is `revision`, and takes its new revision for the fence.
absl::Status Leadership::Write(pb::Compare::CompareTarget target, int64_t revision) {
  pb::TxnRequest request;
  pb::Compare& compare = *request.add_compare();
  compare.set_key(settings_.key);
  compare.set_target(target);
  target == pb::Compare::CREATE ? compare.set_create_revision(revision)
                                : compare.set_mod_revision(revision);
  pb::PutRequest& put = *request.add_success()->mutable_request_put();
  put.set_key(settings_.key);
  put.set_value(EncodeLeader({settings_.name, settings_.address}));
  put.set_lease(lease_);
  request.add_failure()->mutable_request_range()->set_key(settings_.key);
  pb::TxnResponse response;
  bool in_doubt = false;
  RETURN_IF_ERROR(connection_.Txn(request, response, in_doubt));
  int64_t written = response.header().revision();
  if (!response.succeeded()) {
    const auto& found = response.responses(0).response_range().kvs();
    if (found.empty()) return absl::UnavailableError("the leader's key has gone meanwhile");
    if (found[0].lease() != lease_) {
      return absl::AlreadyExistsError(
          fmt::format("server {} leads, since revision {} of etcd: this one can stand by only",
                      DecodeLeader(found[0].value()).name, found[0].create_revision()));
    }
    written = found[0].mod_revision();  // An attempt that was in doubt did it.
  }
  absl::MutexLock lock(&mutex_);
  fence_ = std::max(fence_, written);
  return absl::OkStatus();
}

int64_t Leadership::fence() const {
  absl::MutexLock lock(&mutex_);
  return fence_;
}

absl::Status Leadership::RaiseFence() {
  absl::MutexLock raising(&raising_);
  RETURN_IF_ERROR(lost());
  const absl::Status written = Write(pb::Compare::MOD, fence());
  if (absl::IsAlreadyExists(written)) return Lose(std::string(base::MessageOf(written)));
  // The key went with its lease; or etcd says that there is no such lease to put it under.
  if (absl::IsNotFound(written)) return Lose("its lease has ended");
  if (!absl::IsUnavailable(written)) return written;
  RETURN_IF_ERROR(Look({}));
  return written;
}

absl::Status Leadership::Look(const CallTime& time) {
  pb::RangeRequest request;
  request.set_key(settings_.key);
  pb::RangeResponse found;
  RETURN_IF_ERROR(connection_.Range(request, found, time));
  return Check(found);
}

absl::Status Leadership::Check(const pb::RangeResponse& found) {
  if (found.kvs_size() == 0) return Lose("its lease has ended");
  if (found.kvs(0).lease() == lease_) return absl::OkStatus();
  return Lose(fmt::format("server {} leads now", DecodeLeader(found.kvs(0).value()).name));
}

absl::Duration Leadership::Margin() const {
  absl::MutexLock lock(&mutex_);
  if (!lost_.ok()) return absl::ZeroDuration();
  return settings_.lease - absl::Milliseconds(os::MonotonicMs() - renewed_ms_);
}

absl::Status Leadership::lost() const {
  absl::MutexLock lock(&mutex_);
  return lost_;
}

absl::Status Leadership::Lose(const std::string& why) {
  absl::Status lost;
  bool first = false;
  {
    absl::MutexLock lock(&mutex_);
    first = lost_.ok();
    if (first) {
      lost_ = absl::FailedPreconditionError(
          fmt::format("this server no longer leads ({}), and has to end: what it knows is not "
                      "what holds",
                      why));
    }
    lost = lost_;
  }
  if (first) settings_.on_lost(lost);
  return lost;
}

void Leadership::KeepAlive() {
  const absl::Duration period = settings_.lease / kRenewals;
  const CallTime time{.attempt = period, .patience = settings_.lease / 2};
  const auto stopped = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopped_; };
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped), period)) return;
      if (!lost_.ok()) return;
    }
    if (!settings_.alive()) {
      // Whoever stands still still has to learn that it was deposed.
      if (Margin() <= absl::ZeroDuration()) Look(time).IgnoreError();
      continue;
    }
    const int64_t sent_ms = os::MonotonicMs();
    const absl::StatusOr<int64_t> left = connection_.KeepAlive(lease_, time);
    if (!left.ok()) continue;  // The margin says for how long that does not matter.
    if (*left == 0) {
      Lose("its lease has ended").IgnoreError();
      return;
    }
    // A server that is taken for gone is overthrown by its key, and its lease goes on.
    if (!Look(time).ok()) continue;
    absl::MutexLock lock(&mutex_);
    renewed_ms_ = sent_ms;
  }
}

}  // namespace spoke::ipam::etcd
