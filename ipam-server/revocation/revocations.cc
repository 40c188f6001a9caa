#include "ipam-server/revocation/revocations.h"

#include <optional>
#include <vector>

#include "fmt/core.h"
#include "ipam-server/revocation/denied_record.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

// The clocks of whoever made a certificate and of this server may differ by so much.
constexpr absl::Duration kClockTolerance = absl::Minutes(5);

}  // namespace

absl::StatusOr<std::unique_ptr<Revocations>> Revocations::Open(Store& store, const os::Clock& clock,
                                                               Cut cut) {
  std::unique_ptr<Revocations> out(new Revocations(store, clock, std::move(cut)));
  absl::MutexLock change(&out->change_);
  RETURN_IF_ERROR(out->Read());
  return out;
}

absl::Status Revocations::Read() {
  DenyList list;
  std::map<DeniedName, int64_t> revisions;
  absl::Status damaged;
  const auto take = [&](std::string_view key, const StoredRecord& record) -> absl::Status {
    ASSIGN_OR_RETURN(const DeniedName name, ParseDeniedKey(key));
    ASSIGN_OR_RETURN(Denial denial, DecodeDenial(record.value));
    revisions[name] = record.revision;
    return list.Put(name, std::move(denial));
  };
  const absl::Status listed =
      store_.List(kDeniedKeyPrefix, [&](std::string_view key, const StoredRecord& record) {
        damaged.Update(base::Annotate(take(key, record), fmt::format("store key {}", key)));
      });
  RETURN_IF_ERROR(base::Annotate(listed, "read the revoked identities"));
  RETURN_IF_ERROR(damaged);
  revisions_ = std::move(revisions);
  doubtful_ = false;
  absl::MutexLock lock(&mutex_);
  list_ = std::move(list);
  return absl::OkStatus();
}

absl::Status Revocations::Check(const PeerIdentity& peer) const {
  absl::MutexLock lock(&mutex_);
  return list_.Check(peer, clock_.Now());
}

// Checks and remembers under one lock, so that no session slips in beside a revocation.
absl::Status Revocations::Admit(uint64_t session, PeerIdentity peer) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(list_.Check(peer, clock_.Now()));
  sessions_.insert_or_assign(session, std::move(peer));
  return absl::OkStatus();
}

void Revocations::Forget(uint64_t session) {
  absl::MutexLock lock(&mutex_);
  sessions_.erase(session);
}

absl::Status Revocations::Write(const DeniedName& name, const Denial* denial,
                                const CompareAndPut* beside) {
  CompareAndPut put{.key = DeniedKeyOf(name), .value = std::nullopt};
  if (denial != nullptr) put.value = EncodeDenial(*denial);
  if (const auto known = revisions_.find(name); known != revisions_.end()) {
    put.expected = known->second;
  }
  std::vector<CompareAndPut> batch = {std::move(put)};
  if (beside != nullptr) batch.push_back(*beside);
  const auto stored = store_.Commit(batch);
  doubtful_ = !stored.ok();
  RETURN_IF_ERROR(stored.status());
  if (denial == nullptr) {
    revisions_.erase(name);
  } else {
    revisions_[name] = stored->front();
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Revocations::Revoke(const DeniedName& name, const Denial& denial,
                                           const CompareAndPut* beside) {
  absl::MutexLock change(&change_);
  if (doubtful_) RETURN_IF_ERROR(Read());
  {
    absl::MutexLock lock(&mutex_);
    DenyList next = list_;
    RETURN_IF_ERROR(next.Put(name, denial));
  }
  RETURN_IF_ERROR(base::Annotate(Write(name, &denial, beside), "store the revoked identity"));
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(list_.Put(name, denial));
  }
  // CutWhere() holds the lock of the list.
  return CutWhere([this](const PeerIdentity& peer, absl::Time now)
                      ABSL_NO_THREAD_SAFETY_ANALYSIS { return list_.Check(peer, now); });
}

size_t Revocations::CutWhere(
    const std::function<absl::Status(const PeerIdentity&, absl::Time)>& judge) {
  std::vector<std::pair<uint64_t, absl::Status>> ended;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_.Now();
    for (const auto& [session, peer] : sessions_) {
      if (absl::Status why = judge(peer, now); !why.ok()) ended.emplace_back(session, why);
    }
  }
  for (const auto& [session, why] : ended) cut_(session, why);
  return ended.size();
}

size_t Revocations::CutEnded() {
  return CutWhere([](const PeerIdentity& peer, absl::Time now) -> absl::Status {
    if (now - kClockTolerance < peer.not_after) return absl::OkStatus();
    return absl::UnauthenticatedError(
        fmt::format("the certificate of node {} has ended: connect with a new one", peer.node));
  });
}

absl::Status Revocations::Unrevoke(const DeniedName& name, const CompareAndPut* beside) {
  absl::MutexLock change(&change_);
  if (doubtful_) RETURN_IF_ERROR(Read());
  if (!revisions_.contains(name)) {
    return absl::NotFoundError(fmt::format("{} {} is not revoked; see: spokectl node revoked",
                                           NameOf(name.kind), name.value));
  }
  RETURN_IF_ERROR(base::Annotate(Write(name, nullptr, beside), "store that it is lifted"));
  absl::MutexLock lock(&mutex_);
  list_.Remove(name);
  return absl::OkStatus();
}

std::map<DeniedName, Denial> Revocations::List() const {
  absl::MutexLock lock(&mutex_);
  return list_.all();
}

}  // namespace spoke::ipam
