#include "ipam-server/store/etcd/etcd_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "ipam-server/store/etcd/layout.h"
#include "ipam-server/store/etcd/pages.h"
#include "ipam-server/store/etcd/writer.h"
#include "ipam-server/store/sqlite_backup.h"
#include "ipam-server/store/sqlite_schema.h"
#include "lib/base/status.h"
#include "lib/os/file.h"

namespace spoke::ipam {
namespace {

namespace pb = etcdserverpb;

constexpr std::string_view kClusterFile = "/etcd-cluster";
constexpr size_t kMaxClusterFileBytes = 64;
// For a mirror that has followed, milliseconds are long.
constexpr absl::Duration kMirrorTime = absl::Seconds(1);

class FencedStore final : public EtcdStore {
 public:
  FencedStore(std::shared_ptr<etcd::Connection> connection,
              std::unique_ptr<etcd::Leadership> leadership, std::unique_ptr<etcd::Mirror> mirror,
              const EtcdOptions& options)
      : layout_{options.prefix},
        connection_(std::move(connection)),
        upkeep_(*connection_, options.upkeep),
        leadership_(std::move(leadership)),
        mirror_(std::move(mirror)),
        writer_(*connection_, *leadership_, layout_) {}

  absl::StatusOr<std::optional<StoredRecord>> Get(std::string_view key) override;
  using Store::List;
  absl::Status List(const ListOptions& options, const Visit& visit) override;
  absl::StatusOr<std::vector<int64_t>> Commit(std::span<const CompareAndPut> batch) override;
  absl::StatusOr<BackupInfo> Backup(const std::string& path) override;
  absl::Status CheckIntegrity() override;
  StoreStats Stats() const override;
  std::string Describe() const override {
    return fmt::format("etcd:{} {}", connection_->Describe(), layout_.prefix);
  }
  absl::Duration LeadershipMargin() const override { return leadership_->Margin(); }
  absl::Status Trouble() const override { return connection_->Trouble(); }
  int64_t Fence() const override { return leadership_->fence(); }
  int64_t Leadership() const override { return leadership_->lease(); }

 private:
  absl::Status Annotated(const absl::Status& status) const {
    return base::Annotate(status, "store etcd " + layout_.prefix);
  }
  // As List(); the revision of the snapshot.
  absl::StatusOr<int64_t> ListAt(const ListOptions& options, const Visit& visit);

  const etcd::Layout layout_;
  const std::shared_ptr<etcd::Connection> connection_;  // The mirror's too, while there is one.
  // It ends after the leadership: it may be in the midst of a defragmentation.
  etcd::Upkeep upkeep_;
  const std::unique_ptr<etcd::Leadership> leadership_;
  // All records as they are until our first commit; null: there is none, or they have changed.
  absl::Mutex mirror_mutex_;
  std::unique_ptr<etcd::Mirror> mirror_ ABSL_GUARDED_BY(mirror_mutex_);
  etcd::Writer writer_;
  absl::Mutex backing_up_;  // One backup at a time: each has all records in memory.
  mutable absl::Mutex mutex_;
  StoreStats stats_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::optional<StoredRecord>> FencedStore::Get(std::string_view key) {
  std::optional<StoredRecord> record;
  const std::string end = std::string(key) + '\0';
  RETURN_IF_ERROR(List({.range = {.first = std::string(key), .end = end}, .limit = 1},
                       [&](std::string_view, const StoredRecord& found) { record = found; }));
  return record;
}

absl::StatusOr<int64_t> FencedStore::ListAt(const ListOptions& options, const Visit& visit) {
  RETURN_IF_ERROR(Annotated(writer_.Settle()));
  const size_t skip = layout_.data().size();
  const auto revision =
      etcd::ReadPages(*connection_,
                      {.range = layout_.Records(options.range),
                       .limit = options.limit,
                       .descending = options.descending},
                      [&](const mvccpb::KeyValue& found) {
                        visit(std::string_view(found.key()).substr(skip),
                              {.value = found.value(), .revision = found.mod_revision()});
                      });
  if (!revision.ok()) return Annotated(revision.status());
  return revision;
}

absl::Status FencedStore::List(const ListOptions& options, const Visit& visit) {
  {
    absl::MutexLock lock(&mirror_mutex_);
    if (mirror_ != nullptr) {
      RETURN_IF_ERROR(Annotated(leadership_->lost()));
      mirror_->List(options, visit);
      return absl::OkStatus();
    }
  }
  return ListAt(options, visit).status();
}

absl::StatusOr<std::vector<int64_t>> FencedStore::Commit(std::span<const CompareAndPut> batch) {
  RETURN_IF_ERROR(ValidateBatch(batch));
  if (batch.empty()) return std::vector<int64_t>();
  {
    absl::MutexLock lock(&mirror_mutex_);
    mirror_.reset();
  }
  absl::StatusOr<std::vector<int64_t>> revisions = writer_.Commit(batch);
  if (absl::IsResourceExhausted(revisions.status())) upkeep_.OnFull();
  absl::MutexLock lock(&mutex_);
  if (revisions.ok()) {
    ++stats_.commits;
    stats_.records_written += static_cast<int64_t>(batch.size());
  } else if (!absl::IsAborted(revisions.status())) {
    ++stats_.failed_commits;
    return Annotated(revisions.status());
  }
  return revisions;
}

// The same file as a backup of SqliteStore: its rows have etcd's revisions.
absl::StatusOr<BackupInfo> FencedStore::Backup(const std::string& path) {
  absl::MutexLock lock(&backing_up_);
  ASSIGN_OR_RETURN(const sqlite::Database copy, sqlite::OpenInMemory());
  RETURN_IF_ERROR(sqlite::CreateTables(copy.get()));
  absl::Status failed;
  {
    sqlite::Transaction transaction(copy.get());
    RETURN_IF_ERROR(transaction.BeginWriting());
    ASSIGN_OR_RETURN(const int64_t revision,
                     ListAt({}, [&](std::string_view key, const StoredRecord& record) {
                       if (failed.ok()) failed = sqlite::AddRecord(copy.get(), key, record);
                     }));
    RETURN_IF_ERROR(failed);
    RETURN_IF_ERROR(
        sqlite::Execute(copy.get(), fmt::format("UPDATE counter SET revision = {}", revision)));
    RETURN_IF_ERROR(transaction.Commit());
  }
  return sqlite::BackUp(copy.get(), path);
}

absl::Status FencedStore::CheckIntegrity() {
  pb::AlarmRequest request;
  ASSIGN_OR_RETURN(const pb::AlarmResponse raised, connection_->Alarm(request));
  for (const pb::AlarmMember& alarm : raised.alarms()) {
    if (alarm.alarm() != pb::CORRUPT) continue;
    return Annotated(absl::DataLossError(
        fmt::format("the members of etcd differ (alarm CORRUPT, member {:x}): replace that member",
                    alarm.memberid())));
  }
  return List("", [](std::string_view, const StoredRecord&) {});
}

StoreStats FencedStore::Stats() const {
  const etcd::UpkeepStats upkeep = upkeep_.stats();
  absl::MutexLock lock(&mutex_);
  StoreStats stats = stats_;
  stats.file_bytes = upkeep.database_bytes;
  stats.log_bytes = upkeep.database_bytes - upkeep.used_bytes;
  stats.checkpoints = upkeep.compactions;
  stats.failed_checkpoints = upkeep.failures;
  return stats;
}

// The id of the cluster that was used last; 0: none was.
absl::StatusOr<uint64_t> RememberedCluster(const std::string& directory) {
  if (directory.empty()) return 0;
  const std::string path = directory + std::string(kClusterFile);
  const absl::StatusOr<std::string> text = os::ReadFile(path, kMaxClusterFileBytes);
  if (absl::IsNotFound(text.status())) return 0;
  RETURN_IF_ERROR(text.status());
  const std::string digits(absl::StripAsciiWhitespace(*text));
  uint64_t id = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), id, /*base=*/16);
  if (error == std::errc() && end == digits.data() + digits.size() && id != 0) return id;
  return absl::DataLossError(
      fmt::format("{} does not hold the id of a cluster of etcd: remove it to take the one that "
                  "the endpoints name",
                  path));
}

// Connects to the cluster that is remembered, and remembers it.
absl::StatusOr<std::shared_ptr<etcd::Connection>> Connect(EtcdOptions& options) {
  ASSIGN_OR_RETURN(options.access.cluster_id, RememberedCluster(options.directory));
  ASSIGN_OR_RETURN(std::shared_ptr<etcd::Connection> connection,
                   etcd::Connection::Open(options.access));
  if (options.access.cluster_id == 0 && !options.directory.empty()) {
    RETURN_IF_ERROR(os::WriteFileAtomic(options.directory + std::string(kClusterFile),
                                        fmt::format("{:x}\n", connection->cluster_id()),
                                        os::Durability::kSurvivesPower));
  }
  return connection;
}

absl::StatusOr<std::unique_ptr<etcd::Leadership>> Win(etcd::Connection& connection,
                                                      const EtcdOptions& options) {
  etcd::LeadershipSettings settings = options.leadership;
  settings.key = etcd::Layout{options.prefix}.leader();
  auto leadership = etcd::Leadership::Win(connection, settings);
  if (absl::IsResourceExhausted(leadership.status())) {
    // A full database takes not even a lease.
    RETURN_IF_ERROR(etcd::FreeSpace(connection));
    leadership = etcd::Leadership::Win(connection, settings);
  }
  if (leadership.ok()) return leadership;
  return base::Annotate(leadership.status(), "open store etcd " + connection.Describe());
}

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdStore>> EtcdStore::Open(EtcdOptions options) {
  ASSIGN_OR_RETURN(auto connection, Connect(options));
  ASSIGN_OR_RETURN(auto leadership, Win(*connection, options));
  return std::make_unique<FencedStore>(std::move(connection), std::move(leadership), nullptr,
                                       options);
}

absl::StatusOr<std::unique_ptr<etcd::Mirror>> EtcdStore::Follow(EtcdOptions options) {
  ASSIGN_OR_RETURN(auto connection, Connect(options));
  const std::string what = "follow store etcd " + connection->Describe();
  auto mirror = etcd::Mirror::Open(std::move(connection), options.prefix);
  if (!mirror.ok()) return base::Annotate(mirror.status(), what);
  return mirror;
}

absl::StatusOr<std::unique_ptr<EtcdStore>> EtcdStore::TakeOver(
    EtcdOptions options, std::unique_ptr<etcd::Mirror>& mirror) {
  std::shared_ptr<etcd::Connection> connection = mirror->connection();
  ASSIGN_OR_RETURN(auto leadership, Win(*connection, options));
  std::unique_ptr<etcd::Mirror> taken = std::move(mirror);
  const int64_t fence = leadership->fence();
  // Nothing of ours has come after the fence yet: a mirror that is further has followed another
  // history, of a cluster that was restored from a snapshot since.
  if (!taken->AwaitRevision(fence, kMirrorTime) || taken->stats().revision != fence) taken.reset();
  return std::make_unique<FencedStore>(std::move(connection), std::move(leadership),
                                       std::move(taken), options);
}

}  // namespace spoke::ipam
