#include "ipam-server/store/etcd/mirror.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ipam-server/store/etcd/pages.h"
#include "lib/base/status.h"
#include "lib/os/clock.h"

namespace spoke::ipam::etcd {
namespace {

namespace pb = etcdserverpb;

// Before a watch that broke is begun anew, or everything is read again.
constexpr absl::Duration kPause = absl::Milliseconds(100);

// How often it is looked at who leads, and how long that may take.
constexpr absl::Duration kCheckPeriod = absl::Milliseconds(500);
constexpr CallTime kCheckTime{.attempt = absl::Milliseconds(500), .patience = absl::Seconds(2)};

Leader LeaderOf(const mvccpb::KeyValue& found) {
  return {.record = DecodeLeader(found.value()),
          .revision = found.mod_revision(),
          .lease = found.lease()};
}

}  // namespace

Mirror::Mirror(std::shared_ptr<Connection> connection, Layout layout, os::UniqueFd leader_changed)
    : connection_(std::move(connection)),
      layout_(std::move(layout)),
      leader_changed_(std::move(leader_changed)) {}

absl::StatusOr<std::unique_ptr<Mirror>> Mirror::Open(std::shared_ptr<Connection> connection,
                                                     const std::string& prefix) {
  os::UniqueFd changed(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!changed.valid()) return base::ErrnoToStatus(errno, "make an eventfd");
  std::unique_ptr<Mirror> mirror(
      new Mirror(std::move(connection), Layout{prefix}, std::move(changed)));
  RETURN_IF_ERROR(mirror->ReadAll());
  mirror->follower_ = std::thread([&self = *mirror] { self.Follow(); });
  mirror->checker_ = std::thread([&self = *mirror] { self.Check(); });
  return mirror;
}

Mirror::~Mirror() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    if (watching_ != nullptr) watching_->TryCancel();
  }
  if (follower_.joinable()) follower_.join();
  if (checker_.joinable()) checker_.join();
}

void Mirror::List(const ListOptions& options, const Store::Visit& visit) const {
  absl::MutexLock lock(&mutex_);
  const auto begin = records_.lower_bound(options.range.first);
  const auto end =
      options.range.end.empty() ? records_.end() : records_.lower_bound(options.range.end);
  if (!options.range.end.empty() && options.range.end <= options.range.first) return;
  size_t left = options.limit == 0 ? records_.size() : options.limit;
  if (options.descending) {
    for (auto it = end; it != begin && left > 0; --left) {
      --it;
      visit(it->first, it->second);
    }
    return;
  }
  for (auto it = begin; it != end && left > 0; ++it, --left) visit(it->first, it->second);
}

std::optional<Leader> Mirror::CurrentLeader() const {
  absl::MutexLock lock(&mutex_);
  return leader_;
}

bool Mirror::AwaitRevision(int64_t revision, absl::Duration time) const {
  const auto reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stats_.revision >= revision;
  };
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&reached), time);
}

void Mirror::SetLeader(std::optional<Leader> leader) {
  leader_ = std::move(leader);
  const uint64_t one = 1;
  // It cannot be full, and a wake-up that is there already is enough.
  [[maybe_unused]] const ssize_t written = ::write(leader_changed_.get(), &one, sizeof(one));
}

MirrorStats Mirror::stats() const {
  absl::MutexLock lock(&mutex_);
  MirrorStats stats = stats_;
  stats.records = static_cast<int64_t>(records_.size());
  stats.age = absl::Milliseconds(os::MonotonicMs() - agreed_ms_);
  return stats;
}

absl::Status Mirror::ReadAll() {
  std::map<std::string, StoredRecord, std::less<>> records;
  std::optional<Leader> leader;
  const std::string data = layout_.data();
  ASSIGN_OR_RETURN(
      const int64_t revision,
      ReadPages(*connection_, {.range = layout_.Mirrored()}, [&](const mvccpb::KeyValue& found) {
        if (found.key() == layout_.leader()) {
          leader = LeaderOf(found);
        } else if (found.key().starts_with(data)) {
          records.insert_or_assign(
              found.key().substr(data.size()),
              StoredRecord{.value = found.value(), .revision = found.mod_revision()});
        }
      }));
  absl::MutexLock lock(&mutex_);
  records_ = std::move(records);
  SetLeader(std::move(leader));
  stats_.revision = revision;
  ++stats_.full_reads;
  agreed_ms_ = os::MonotonicMs();
  return absl::OkStatus();
}

void Mirror::Follow() {
  const auto stopped = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopped_; };
  bool complete = true;  // Nothing between the mirror and the next watch is missing.
  while (true) {
    // A read picks a member that answers, and a new token where the old one is too old.
    if (!complete) complete = ReadAll().ok();
    if (complete) complete = WatchOnce();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopped), kPause)) return;
  }
}

void Mirror::Check() {
  const auto stopped = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopped_; };
  pb::RangeRequest request;
  request.set_key(layout_.leader());
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopped), kCheckPeriod)) return;
    }
    pb::RangeResponse found;
    if (!connection_->Range(request, found, kCheckTime).ok()) continue;
    const int64_t revision = found.kvs_size() == 0 ? 0 : found.kvs(0).mod_revision();
    absl::MutexLock lock(&mutex_);
    if (IsBehind(revision) && watching_ != nullptr) watching_->TryCancel();
  }
}

// Whether the leader's key has had this revision for a whole period, and the mirror does not know.
bool Mirror::IsBehind(int64_t leader_revision) {
  const int64_t known = leader_ ? leader_->revision : 0;
  if (known == leader_revision) {
    agreed_ms_ = os::MonotonicMs();
    missed_ = -1;
    return false;
  }
  return std::exchange(missed_, leader_revision) == leader_revision;
}

// Follows one watch to its end. Returns whether the next one can go on where this one ended.
bool Mirror::WatchOnce() {
  grpc::ClientContext context;
  pb::WatchRequest request;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return true;
    watching_ = &context;
    const KeyRange range = layout_.Mirrored();
    pb::WatchCreateRequest& create = *request.mutable_create_request();
    create.set_key(range.first);
    create.set_range_end(range.end);
    create.set_start_revision(stats_.revision + 1);
  }
  size_t member = 0;
  const auto stream = connection_->Watch(context, member);
  bool complete = true;
  pb::WatchResponse response;
  if (stream->Write(request)) {
    while (complete && stream->Read(&response)) {
      complete = connection_->CheckCluster(response.header()).ok() && Apply(response);
    }
  }
  {
    absl::MutexLock lock(&mutex_);
    watching_ = nullptr;
    ++stats_.broken_watches;
  }
  context.TryCancel();
  const grpc::Status status = stream->Finish();
  connection_->NextMember(member);
  // A token that is too old is renewed by a read.
  return complete && status.error_code() != grpc::StatusCode::UNAUTHENTICATED &&
         status.error_code() != grpc::StatusCode::PERMISSION_DENIED;
}

// Whether the watch goes on. One response has all events of its revisions.
bool Mirror::Apply(const pb::WatchResponse& response) {
  if (response.canceled() || response.compact_revision() != 0) return false;
  const size_t skip = layout_.data().size();
  absl::MutexLock lock(&mutex_);
  // This member is behind, or the cluster was restored from a snapshot that is: then what the
  // mirror has may never happen again.
  if (response.header().revision() < stats_.revision) return false;
  for (const mvccpb::Event& event : response.events()) {
    const mvccpb::KeyValue& found = event.kv();
    const bool put = event.type() == mvccpb::Event::PUT;
    if (found.key() == layout_.leader()) {
      SetLeader(put ? std::optional(LeaderOf(found)) : std::nullopt);
    } else if (put) {
      records_.insert_or_assign(
          found.key().substr(skip),
          StoredRecord{.value = found.value(), .revision = found.mod_revision()});
    } else {
      records_.erase(found.key().substr(skip));
    }
  }
  // The header may be ahead of the events that have come.
  if (response.events_size() > 0) {
    stats_.revision = response.events(response.events_size() - 1).kv().mod_revision();
  }
  return true;
}

}  // namespace spoke::ipam::etcd
