#include "ipam-server/store/migration.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"
#include "lib/base/time_text.h"

namespace spoke::ipam {
namespace {

// The mark of a store that is being filled: "<id of the store that is copied>\n<its name>".
constexpr std::string_view kFillingKey = "migration/filling";
// The mark of a store that was moved: "<time>\n<name of the new one>".
constexpr std::string_view kMovedKey = "migration/moved";
constexpr std::string_view kMarkPrefix = "migration/";

constexpr size_t kPageRecords = 1000;
// A page of the largest records is some MiB.
constexpr size_t kPageBytes = size_t{4} << 20;

using Page = std::map<std::string, StoredRecord>;

// Whether a record is copied: the marks are each store's own, and the store's record is written
// last.
bool IsCopied(std::string_view key) { return key != kStoreKey && !key.starts_with(kMarkPrefix); }

// Returns the records from `first` on that are copied, up to a page of them, and where the next
// page begins; nullopt: there is none.
struct PageRead {
  Page records;
  std::optional<std::string> next;
};
absl::StatusOr<PageRead> ReadPage(Store& store, const std::string& first) {
  PageRead read;
  size_t bytes = 0;
  size_t seen = 0;
  std::string last;
  const ListOptions options{.range = {.first = first}, .limit = kPageRecords};
  RETURN_IF_ERROR(store.List(options, [&](std::string_view key, const StoredRecord& record) {
    ++seen;
    if (bytes > kPageBytes) return;
    bytes += key.size() + record.value.size();
    last = key;
    if (IsCopied(key)) read.records.emplace(key, record);
  }));
  if (seen == kPageRecords || bytes > kPageBytes) read.next = last + '\0';
  return read;
}

// Returns the records of `store` that are copied and lie in `range`.
absl::StatusOr<Page> ReadRange(Store& store, const KeyRange& range) {
  Page records;
  RETURN_IF_ERROR(
      store.List({.range = range}, [&](std::string_view key, const StoredRecord& record) {
        if (IsCopied(key)) records.emplace(key, record);
      }));
  return records;
}

// Returns the writes that make the records of a range what they are to be.
std::vector<CompareAndPut> PlanPage(const Page& wanted, const Page& found) {
  std::vector<CompareAndPut> batch;
  for (const auto& [key, record] : wanted) {
    const auto there = found.find(key);
    if (there == found.end()) {
      batch.push_back({.key = key, .value = record.value});
    } else if (there->second.value != record.value) {
      batch.push_back({.key = key, .value = record.value, .expected = there->second.revision});
    }
  }
  for (const auto& [key, record] : found) {
    if (!wanted.contains(key)) batch.push_back({.key = key, .expected = record.revision});
  }
  return batch;
}

// Calls `take` with each page of `from` and the same range of `to`.
template <typename Take>
absl::Status ForEachPage(Store& from, Store& to, const Take& take) {
  std::optional<std::string> first = "";
  while (first) {
    ASSIGN_OR_RETURN(const PageRead page, ReadPage(from, *first));
    const KeyRange range{.first = *first, .end = page.next.value_or("")};
    ASSIGN_OR_RETURN(const Page there, ReadRange(to, range));
    RETURN_IF_ERROR(take(page.records, there));
    first = page.next;
  }
  return absl::OkStatus();
}

absl::Status Copy(Store& from, Store& to, const MigrationProgress& progress,
                  MigrationReport& report) {
  int64_t records = 0;
  return ForEachPage(from, to, [&](const Page& wanted, const Page& found) -> absl::Status {
    const std::vector<CompareAndPut> batch = PlanPage(wanted, found);
    if (!batch.empty()) RETURN_IF_ERROR(to.Commit(batch).status());
    for (const CompareAndPut& write : batch) ++(write.value ? report.written : report.removed);
    records += static_cast<int64_t>(wanted.size());
    progress("copy", records);
    return absl::OkStatus();
  });
}

absl::Status Verify(Store& from, Store& to, const MigrationProgress& progress,
                    MigrationReport& report) {
  return ForEachPage(from, to, [&](const Page& wanted, const Page& found) -> absl::Status {
    const std::vector<CompareAndPut> differences = PlanPage(wanted, found);
    if (!differences.empty()) {
      return absl::DataLossError(fmt::format(
          "the copy in {} differs in {} records, {} the first: it is not put into service; run the "
          "same command again, and look at the disks of both if this is said again",
          to.Describe(), differences.size(), differences.front().key));
    }
    report.records += static_cast<int64_t>(wanted.size());
    progress("verify", report.records);
    return absl::OkStatus();
  });
}

// What is known of a store before anything is moved.
struct Found {
  std::optional<StoredRecord> record;   // The store's own.
  std::optional<StoredRecord> filling;  // The mark of a move to it.
  std::optional<StoredRecord> moved;    // The mark of a move from it.
  std::optional<RecoveryState> state;   // The decoded record.
};

absl::StatusOr<Found> Look(Store& store) {
  Found found;
  ASSIGN_OR_RETURN(found.record, store.Get(kStoreKey));
  ASSIGN_OR_RETURN(found.filling, store.Get(kFillingKey));
  ASSIGN_OR_RETURN(found.moved, store.Get(kMovedKey));
  if (found.record) {
    ASSIGN_OR_RETURN(found.state, DecodeStore(found.record->value));
  }
  return found;
}

std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }
std::string_view SecondLine(std::string_view text) {
  const size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

absl::Status CheckSource(const Found& source, Store& from, Store& to) {
  if (source.filling) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is itself a copy of {} that is not whole: move that one, to the same place, "
        "until it says that it is done",
        from.Describe(), SecondLine(source.filling->value)));
  }
  if (!source.state) {
    return absl::NotFoundError(
        fmt::format("{} holds no records of a server: is it the right one?", from.Describe()));
  }
  if (source.moved && SecondLine(source.moved->value) != to.Describe()) {
    return absl::FailedPreconditionError(
        fmt::format("{} was moved to {} at {}: that one is the store now", from.Describe(),
                    SecondLine(source.moved->value), FirstLine(source.moved->value)));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> IsEmpty(Store& store) {
  bool empty = true;
  RETURN_IF_ERROR(
      store.List({.limit = 1}, [&](std::string_view, const StoredRecord&) { empty = false; }));
  return empty;
}

// Marks `to` as being filled from `source`, unless an earlier run has.
absl::Status Claim(const Found& source, Store& from, Store& to) {
  ASSIGN_OR_RETURN(const Found target, Look(to));
  const std::string& id = source.state->store_id;
  if (target.filling) {
    if (FirstLine(target.filling->value) == id) return absl::OkStatus();
    return absl::AlreadyExistsError(
        fmt::format("{} holds a part of another store, {}: move to an empty place", to.Describe(),
                    SecondLine(target.filling->value)));
  }
  if (source.moved && target.state && target.state->store_id == id) {
    return absl::AlreadyExistsError(fmt::format("{} was moved to {} at {}: nothing is left to do",
                                                from.Describe(), to.Describe(),
                                                FirstLine(source.moved->value)));
  }
  ASSIGN_OR_RETURN(const bool empty, IsEmpty(to));
  if (!empty) {
    return absl::AlreadyExistsError(fmt::format(
        "{} has records already, and nothing of them is overwritten: move to an empty place",
        to.Describe()));
  }
  const std::vector<CompareAndPut> mark = {
      {.key = std::string(kFillingKey), .value = fmt::format("{}\n{}", id, from.Describe())}};
  return to.Commit(mark).status();
}

// From here on no server starts on `from`.
absl::Status MarkMoved(const Found& source, Store& from, Store& to, absl::Time now) {
  if (source.moved) return absl::OkStatus();
  const std::vector<CompareAndPut> mark = {
      {.key = std::string(kMovedKey),
       .value = fmt::format("{}\n{}", base::ClockText(now), to.Describe())}};
  return from.Commit(mark).status();
}

absl::Status PutIntoService(const Found& source, Store& to) {
  ASSIGN_OR_RETURN(const Found target, Look(to));
  RecoveryState state = *source.state;
  state.epoch += kMigrationRaise;
  const std::vector<CompareAndPut> last = {
      {.key = std::string(kFillingKey), .expected = target.filling->revision},
      {.key = std::string(kStoreKey), .value = EncodeStore(state), .joined = true}};
  return to.Commit(last).status();
}

}  // namespace

absl::StatusOr<MigrationReport> MigrateStore(Store& from, Store& to, absl::Time now,
                                             const MigrationProgress& progress) {
  ASSIGN_OR_RETURN(const Found source, Look(from));
  RETURN_IF_ERROR(CheckSource(source, from, to));
  RETURN_IF_ERROR(Claim(source, from, to));
  MigrationReport report;
  RETURN_IF_ERROR(Copy(from, to, progress, report));
  RETURN_IF_ERROR(Verify(from, to, progress, report));
  RETURN_IF_ERROR(MarkMoved(source, from, to, now));
  RETURN_IF_ERROR(PutIntoService(source, to));
  ++report.records;  // The store's own.
  ++report.written;
  return report;
}

absl::Status CheckNotMoved(Store& store) {
  ASSIGN_OR_RETURN(const auto filling, store.Get(kFillingKey));
  if (filling) {
    return absl::FailedPreconditionError(fmt::format(
        "the store holds a part of the records of {}: run `spokectl store migrate` from there to "
        "here again until it says that it is done",
        SecondLine(filling->value)));
  }
  ASSIGN_OR_RETURN(const auto moved, store.Get(kMovedKey));
  if (moved) {
    return absl::FailedPreconditionError(fmt::format(
        "the store was moved to {} at {}: name that one in the configuration; to come back, move "
        "that one to a new place with `spokectl store migrate`",
        SecondLine(moved->value), FirstLine(moved->value)));
  }
  return absl::OkStatus();
}

}  // namespace spoke::ipam
