#include "ipam-server/store/etcd/upkeep.h"

#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ipam::etcd {
namespace {

namespace pb = etcdserverpb;

// A database that stays full is not defragmented all the time.
constexpr absl::Duration kFreePeriod = absl::Seconds(10);

struct MemberSizes {
  size_t member = 0;
  bool leads = false;
  int64_t bytes = 0;
  int64_t used = 0;
  int64_t revision = 0;
};

// The members that answer, with the one that leads last: while it is defragmented, nothing is
// written.
std::vector<MemberSizes> Survey(Connection& connection) {
  std::vector<MemberSizes> all;
  for (size_t i = 0; i < connection.members(); ++i) {
    const auto status = connection.StatusOf(i);
    if (!status.ok()) continue;
    all.push_back({.member = i,
                   .leads = status->leader() == status->header().member_id(),
                   .bytes = status->dbsize(),
                   .used = status->dbsizeinuse(),
                   .revision = status->header().revision()});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const MemberSizes& a, const MemberSizes& b) { return !a.leads && b.leads; });
  return all;
}

}  // namespace

absl::Status FreeSpace(Connection& connection) {
  const std::vector<MemberSizes> all = Survey(connection);
  int64_t revision = 0;
  for (const MemberSizes& sizes : all) revision = std::max(revision, sizes.revision);
  RETURN_IF_ERROR(base::Annotate(connection.Compact(revision, /*wait=*/true), "compact etcd"));
  for (const MemberSizes& sizes : all) {
    RETURN_IF_ERROR(base::Annotate(connection.Defragment(sizes.member), "defragment etcd"));
  }
  pb::AlarmRequest request;
  request.set_action(pb::AlarmRequest::GET);
  ASSIGN_OR_RETURN(const pb::AlarmResponse raised, connection.Alarm(request));
  for (const pb::AlarmMember& alarm : raised.alarms()) {
    if (alarm.alarm() != pb::NOSPACE) continue;
    request.set_action(pb::AlarmRequest::DEACTIVATE);
    request.set_memberid(alarm.memberid());
    request.set_alarm(alarm.alarm());
    RETURN_IF_ERROR(base::Annotate(connection.Alarm(request).status(), "end etcd's alarm"));
  }
  return absl::OkStatus();
}

Upkeep::Upkeep(Connection& connection, const UpkeepSettings& settings)
    : connection_(connection), settings_(settings), thread_([this] { Work(); }) {}

Upkeep::~Upkeep() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void Upkeep::OnFull() {
  absl::MutexLock lock(&mutex_);
  full_ = true;
}

UpkeepStats Upkeep::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

void Upkeep::Work() {
  const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopped_ || full_; };
  while (true) {
    const absl::Status done = Round();
    absl::MutexLock lock(&mutex_);
    if (!done.ok()) ++stats_.failures;
    // Space is freed at once the first time, and then no more often than that.
    if (full_ && absl::Now() < next_freeing_) {
      const auto stopped = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopped_; };
      mutex_.AwaitWithTimeout(absl::Condition(&stopped), next_freeing_ - absl::Now());
    } else {
      mutex_.AwaitWithTimeout(absl::Condition(&wanted), settings_.compact_period);
    }
    if (stopped_) return;
  }
}

absl::Status Upkeep::Round() {
  MemberSizes largest;
  int64_t revision = 0;
  for (const MemberSizes& sizes : Survey(connection_)) {
    if (sizes.bytes > largest.bytes) largest = sizes;
    revision = std::max(revision, sizes.revision);
  }
  bool full = false;
  {
    absl::MutexLock lock(&mutex_);
    stats_.database_bytes = largest.bytes;
    stats_.used_bytes = largest.used;
    full = full_ && absl::Now() >= next_freeing_;
  }
  if (full) {
    next_freeing_ = absl::Now() + kFreePeriod;
    RETURN_IF_ERROR(FreeSpace(connection_));
    absl::MutexLock lock(&mutex_);
    full_ = false;
  }
  if (former_revision_ > 0 && former_revision_ < revision) {
    RETURN_IF_ERROR(connection_.Compact(former_revision_, /*wait=*/false));
    absl::MutexLock lock(&mutex_);
    ++stats_.compactions;
  }
  former_revision_ = revision;
  if (largest.bytes <= settings_.defragment_bytes || largest.used * 2 > largest.bytes ||
      absl::Now() < next_defragmentation_) {
    return absl::OkStatus();
  }
  next_defragmentation_ = absl::Now() + settings_.defragment_period;
  return Defragment();
}

absl::Status Upkeep::Defragment() {
  const std::vector<MemberSizes> all = Survey(connection_);
  // One that is away must not be joined by one that is busy.
  if (all.size() < connection_.members()) return absl::OkStatus();
  for (const MemberSizes& sizes : all) RETURN_IF_ERROR(connection_.Defragment(sizes.member));
  return absl::OkStatus();
}

}  // namespace spoke::ipam::etcd
