#include "ipam-server/loop/record_writer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fmt/core.h"
#include "ipam-server/history/history.h"
#include "ipam-server/history/history_codec.h"
#include "ipam-server/operators/operator_keys.h"
#include "ipam-server/policy/staged_policy.h"
#include "ipam-server/store/record_codec.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

constexpr std::string_view kProbePrefix = "probe/";
// A disk that has room for less is as good as full.
constexpr size_t kLeastProbeBytes = size_t{256} << 10;
constexpr size_t kBytesPerProbe = size_t{256} << 10;

// Returns whether a store may divide the batch; half of what all take counts, since stores add to
// it.
bool IsLarge(const std::vector<CompareAndPut>& puts) {
  size_t bytes = 0;
  for (const CompareAndPut& put : puts)
    bytes += put.key.size() + (put.value ? put.value->size() : 0);
  return puts.size() > kAtomicWrites || bytes > kAtomicBytes / 2;
}

// What changes hands, by who has it now. What a node loses is said by the history.
struct Moves {
  std::set<NodeKey> losing;
  std::map<NodeKey, std::vector<ip::Address>> taken;
};

Moves MovesIn(const Effects& effects, const Fleet& fleet) {
  Moves moves;
  for (const HistoryEntry& entry : effects.history) {
    if (entry.event != HistoryEvent::kDetached) continue;
    const NodeKey former{entry.node, entry.vm_id};
    moves.losing.insert(former);
    const NodeRecord* holder = HolderOf(fleet.ledger, entry.address);
    if (holder != nullptr && holder->key != former) {
      moves.taken[holder->key].push_back(entry.address);
    }
  }
  return moves;
}

// Returns the record of before it took `taken`.
NodeRecord Without(const std::vector<ip::Address>& taken, NodeRecord record) {
  for (const ip::Address& address : taken) {
    if (const Configuration* held = record.Holding(address)) {
      record.configurations.erase(ip::Address(held->range.base()));
    }
  }
  return record;
}

// Returns whether the record is never written again, so that its revision need not be known.
bool IsWrittenOnce(std::string_view key) {
  return key.starts_with(kHistoryPrefix) || key.starts_with(kOperatorLogPrefix);
}

}  // namespace

void RecordWriter::Reset(Revisions revisions, const HistoryKeyParts& newest_chunk) {
  revisions_ = std::move(revisions);
  history_ = HistoryBuffer(newest_chunk);
}

absl::StatusOr<size_t> RecordWriter::Commit(const Decided& decided, absl::Time now) {
  const auto& [effects, raw, fleet, next] = decided;
  std::vector<CompareAndPut> puts;
  puts.reserve(effects.changed.size() + raw.size() + 2);
  PutNodes(effects, fleet, puts);
  for (const ip::Address& address : effects.quarantined) {
    const auto it = fleet.ledger.quarantine().entries.find(address);
    Put(QuarantineKeyOf(address),
        it == fleet.ledger.quarantine().entries.end()
            ? std::nullopt
            : std::optional<std::string>(EncodeQuarantine(address, it->second)),
        puts);
    if (it != fleet.ledger.quarantine().entries.end()) puts.back().stage = Stage::kHold;
  }
  for (const std::string& name : effects.reservations) {
    const auto it = fleet.reservations.all().find(name);
    Put(ReservationKeyOf(name),
        it == fleet.reservations.all().end()
            ? std::nullopt
            : std::optional<std::string>(EncodeReservation(it->second)),
        puts);
  }
  if (effects.breaker) {
    Put(std::string(kBreakerKey), EncodeBreaker(fleet.breaker.state()), puts);
  }
  const size_t first_raw = puts.size();
  for (const auto& [key, value] : raw) Put(key, value, puts);
  StagePolicy(puts, first_raw, revisions_);
  if (puts.empty() && !effects.recovery) return 0;
  Put(std::string(kStoreKey), EncodeStore(next), puts);
  // A recovery is over once all that it decided is stored, and is under way before.
  if (effects.recovery) puts.back().stage = next.cause ? Stage::kHold : Stage::kFinish;
  AppendHistory(effects, now);
  for (const HistoryBuffer::Chunk& chunk : history_.Take(now)) {
    puts.push_back({.key = chunk.key, .value = EncodeHistory(chunk.entries)});
  }
  size_t written = 0;
  last_in_parts_ = IsLarge(puts);
  if (last_in_parts_) {
    ASSIGN_OR_RETURN(written, CommitLosses(effects, fleet, puts));
  }
  RETURN_IF_ERROR(Commit(puts));
  return written + puts.size();
}

void RecordWriter::AppendHistory(const Effects& effects, absl::Time now) {
  for (const HistoryEntry& entry : effects.history) {
    const bool of_pods = entry.event == HistoryEvent::kInUse ||
                         entry.event == HistoryEvent::kReleased ||
                         entry.event == HistoryEvent::kAvailable;
    if (!of_pods || history_rates_.Take(entry.node, now) == absl::ZeroDuration()) {
      history_.Append(entry);
    } else if (told_.Take(entry.node, now) == absl::ZeroDuration()) {
      omitted_.push_back(entry.node);
    }
  }
}

absl::Status RecordWriter::Commit(const std::vector<CompareAndPut>& puts) {
  absl::StatusOr<std::vector<int64_t>> committed = store_.Commit(puts);
  if (!committed.ok()) {
    failed_bytes_ = 0;
    for (const CompareAndPut& put : puts) failed_bytes_ += put.value ? put.value->size() : 0;
    return committed.status();
  }
  const std::vector<int64_t>& revisions = *committed;
  for (size_t i = 0; i < puts.size(); ++i) {
    if (revisions[i] == 0) {
      revisions_.erase(puts[i].key);
    } else if (!IsWrittenOnce(puts[i].key)) {
      revisions_[puts[i].key] = revisions[i];
    }
  }
  return absl::OkStatus();
}

// A node whose record both loses and takes is written twice: one stage has room for one of the two,
// and nodes may take from each other in a circle.
absl::StatusOr<size_t> RecordWriter::CommitLosses(const Effects& effects, const Fleet& fleet,
                                                  std::vector<CompareAndPut>& puts) {
  const Moves moves = MovesIn(effects, fleet);
  std::map<std::string, std::string, std::less<>> losses;
  for (const auto& [key, taken] : moves.taken) {
    if (!moves.losing.contains(key)) continue;
    losses.emplace(StoreKeyOf(key), EncodeNode(Without(taken, *fleet.ledger.Find(key))));
  }
  if (losses.empty()) return 0;
  std::vector<CompareAndPut> first;
  bool follows = false;  // The write before is among them.
  for (const CompareAndPut& put : puts) {
    const auto loss = losses.find(put.key);
    const bool loses = loss != losses.end();
    follows = loses || put.stage == Stage::kHold || (put.joined && follows);
    if (!follows) continue;
    first.push_back(put);
    if (loses) {
      first.back().value = loss->second;
      first.back().stage = Stage::kRelease;
    }
  }
  RETURN_IF_ERROR(Commit(first));
  std::erase_if(puts, [&](CompareAndPut& put) {
    const auto revision = revisions_.find(put.key);
    if (IsWrittenOnce(put.key)) return false;
    put.expected = revision == revisions_.end() ? 0 : revision->second;
    return !put.value && put.expected == 0;
  });
  return first.size();
}

// What a node gives up, another may have in the same commit. A record that has another key now is
// in one transaction under both: between the two, its addresses would be nobody's.
void RecordWriter::PutNodes(const Effects& effects, const Fleet& fleet,
                            std::vector<CompareAndPut>& puts) {
  const Moves moves = MovesIn(effects, fleet);
  const auto put = [&](const NodeKey& key, bool joined) {
    const NodeRecord* record = fleet.ledger.Find(key);
    const size_t before = puts.size();
    Put(StoreKeyOf(key),
        record == nullptr ? std::nullopt : std::optional<std::string>(EncodeNode(*record)), puts);
    if (puts.size() == before) return;
    puts.back().joined = joined;
    if (moves.losing.contains(key) && !moves.taken.contains(key))
      puts.back().stage = Stage::kRelease;
  };
  std::set<NodeKey> written;
  for (const auto& [former, present] : effects.renamed) {
    const size_t before = puts.size();
    if (written.insert(present).second && effects.changed.contains(present)) put(present, false);
    if (written.insert(former).second) put(former, puts.size() > before);
  }
  for (const NodeKey& key : effects.changed) {
    if (!written.contains(key)) put(key, false);
  }
}

void RecordWriter::Put(std::string key, std::optional<std::string> value,
                       std::vector<CompareAndPut>& puts) {
  const auto revision = revisions_.find(key);
  const int64_t expected = revision == revisions_.end() ? 0 : revision->second;
  if (!value && expected == 0) return;  // It came and went between two commits.
  const Stage stage = value ? Stage::kTake : Stage::kRelease;
  puts.push_back(
      {.key = std::move(key), .value = std::move(value), .expected = expected, .stage = stage});
}

// An empty record fits on any disk: what is tried must be no smaller than what failed, or the next
// commit fails again.
absl::Status RecordWriter::Probe() {
  RETURN_IF_ERROR(WriteProbes(std::max(failed_bytes_, kLeastProbeBytes)));
  return WriteProbes(0);
}

// Replaces the probe records by some of so many bytes together; 0 removes them.
absl::Status RecordWriter::WriteProbes(size_t bytes) {
  std::map<std::string, int64_t> stored;
  RETURN_IF_ERROR(store_.List(kProbePrefix, [&](std::string_view key, const StoredRecord& record) {
    stored.emplace(key, record.revision);
  }));
  std::vector<CompareAndPut> puts;
  for (size_t i = 0; i * kBytesPerProbe < bytes; ++i) {
    std::string key = fmt::format("{}{}", kProbePrefix, i);
    const auto before = stored.extract(key);
    puts.push_back({.key = std::move(key),
                    .value = std::string(std::min(bytes - i * kBytesPerProbe, kBytesPerProbe), '.'),
                    .expected = before.empty() ? 0 : before.mapped()});
  }
  for (const auto& [key, revision] : stored) puts.push_back({.key = key, .expected = revision});
  return store_.Commit(puts).status();
}

}  // namespace spoke::ipam
