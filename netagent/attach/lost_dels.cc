#include "netagent/attach/lost_dels.h"

#include <utility>

namespace spoke::netagent {

absl::StatusOr<bool> IsNetnsGone(const netns::Trace& before,
                                 const absl::StatusOr<netns::Trace>& now) {
  if (before.inode == 0) {
    return absl::FailedPreconditionError(
        "the agent that attached the pod did not see its network namespace at that path, or was of "
        "an older version");
  }
  if (!now.ok()) return now.status();
  if (now->directory_device != before.directory_device ||
      now->directory_inode != before.directory_inode) {
    return absl::FailedPreconditionError(
        "the directory in which its network namespace was cannot be seen from here any more");
  }
  if (now->inode == 0) return true;
  if (now->cookie != 0 && before.cookie != 0) return now->cookie != before.cookie;
  return now->inode != before.inode;
}

LostDels::Verdict LostDels::Look(const std::vector<Candidate>& candidates, absl::Time now) {
  Verdict verdict;
  std::map<AttachmentKey, Entry> entries;
  for (const Candidate& candidate : candidates) {
    const bool proved = candidate.netns_gone.ok();
    if (proved && !*candidate.netns_gone)
      continue;  // The pod is there: it has lost its link and nothing else.
    Entry entry{.generation = candidate.generation, .proved = proved, .since = now};
    const auto before = entries_.find(candidate.key);
    if (before != entries_.end() && before->second.generation == entry.generation &&
        before->second.proved == proved) {
      entry = before->second;
    }
    if (now - entry.since >= after_) {
      if (proved) verdict.lost.push_back(candidate.key);
      if (!proved && !std::exchange(entry.told, true)) verdict.unproved.push_back(candidate.key);
    }
    entries.insert_or_assign(candidate.key, entry);
  }
  entries_ = std::move(entries);
  return verdict;
}

}  // namespace spoke::netagent
