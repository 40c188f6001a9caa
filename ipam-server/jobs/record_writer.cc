#include "ipam-server/jobs/record_writer.h"

#include <utility>

#include "ipam-server/core/history.h"
#include "ipam-server/store/history_codec.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kProbeKey = "probe";

}  // namespace

void RecordWriter::Reset(Revisions revisions, const HistoryKeyParts& newest_chunk) {
  revisions_ = std::move(revisions);
  history_ = HistoryBuffer(newest_chunk);
}

absl::StatusOr<size_t> RecordWriter::Commit(const Effects& effects, const RawRecords& raw,
                                            const Fleet& fleet, absl::Time now) {
  std::vector<CompareAndPut> puts;
  puts.reserve(effects.changed.size() + raw.size() + 2);
  for (const NodeKey& key : effects.changed) {
    const NodeRecord* record = fleet.Find(key);
    Put(StoreKeyOf(key),
        record == nullptr ? std::nullopt : std::optional<std::string>(EncodeNode(*record)), puts);
  }
  for (const ip::Address& address : effects.quarantined) {
    const auto it = fleet.quarantine().find(address);
    Put(QuarantineKeyOf(address),
        it == fleet.quarantine().end()
            ? std::nullopt
            : std::optional<std::string>(EncodeQuarantine(address, it->second)),
        puts);
  }
  for (const std::string& name : effects.reservations) {
    const auto it = fleet.reservations().all().find(name);
    Put(ReservationKeyOf(name),
        it == fleet.reservations().all().end()
            ? std::nullopt
            : std::optional<std::string>(EncodeReservation(it->second)),
        puts);
  }
  if (effects.breaker) {
    Put(std::string(kBreakerKey), EncodeBreaker(fleet.breaker().state()), puts);
  }
  for (const auto& [key, value] : raw) Put(key, value, puts);
  if (puts.empty()) return 0;
  for (const HistoryEntry& entry : effects.history) history_.Append(entry);
  for (const HistoryBuffer::Chunk& chunk : history_.Take(now)) {
    puts.push_back({.key = chunk.key, .value = EncodeHistory(chunk.entries)});
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> revisions, store_.Commit(puts));
  for (size_t i = 0; i < puts.size(); ++i) {
    if (revisions[i] == 0) {
      revisions_.erase(puts[i].key);
    } else if (!puts[i].key.starts_with(kHistoryPrefix)) {  // Never written again.
      revisions_[puts[i].key] = revisions[i];
    }
  }
  return puts.size();
}

void RecordWriter::Put(std::string key, std::optional<std::string> value,
                       std::vector<CompareAndPut>& puts) {
  const auto revision = revisions_.find(key);
  const int64_t expected = revision == revisions_.end() ? 0 : revision->second;
  if (!value && expected == 0) return;  // Came and went between two commits.
  puts.push_back({.key = std::move(key), .value = std::move(value), .expected = expected});
}

absl::Status RecordWriter::Probe() {
  ASSIGN_OR_RETURN(const auto stored, store_.Get(kProbeKey));
  const std::vector<CompareAndPut> put = {
      {.key = std::string(kProbeKey), .value = "", .expected = stored ? stored->revision : 0}};
  return store_.Commit(put).status();
}

}  // namespace spoke::ipam
