#include "netagent/attach/lost_del_release.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace spoke::netagent {
namespace {

std::string AddressesOf(const Assignment& assignment) {
  std::string text;
  for (const ip::Address& address : assignment.addresses) {
    text += (text.empty() ? "" : ",") + address.ToString();
  }
  return text;
}

}  // namespace

LostDelRelease::LostDelRelease(Settings settings, const Edges& edges, const Repairer& repairer,
                               Attachments& attachments)
    : settings_(std::move(settings)),
      edges_(edges),
      repairer_(repairer),
      attachments_(attachments),
      lost_dels_(settings_.after) {}

void LostDelRelease::Tick() {
  if (settings_.after <= absl::ZeroDuration()) return;
  const uint64_t rounds = repairer_.counts().rounds - repairer_.counts().failed_rounds;
  if (std::exchange(rounds_seen_, rounds) == rounds) return;
  const std::vector<Assignment> gone = repairer_.Gone();
  std::vector<LostDels::Candidate> candidates;
  for (const Assignment& assignment : gone) {
    candidates.push_back(
        {assignment.key, assignment.generation,
         IsNetnsGone(assignment.netns_trace, settings_.look_at_netns(assignment.netns_path))});
  }
  LostDels::Verdict verdict = lost_dels_.Look(candidates, edges_.clock.Now());
  for (const AttachmentKey& key : verdict.unproved) {
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const auto& candidate) { return candidate.key == key; });
    edges_.log.Warn("lost_del_unproved", {{"container", key.container_id},
                                          {"ifname", key.ifname},
                                          {"error", found->netns_gone.status()}});
  }
  verdict.lost.resize(std::min(verdict.lost.size(), kMaxReleases));
  for (const AttachmentKey& key : verdict.lost) {
    const auto found = std::find_if(gone.begin(), gone.end(), [&](const Assignment& assignment) {
      return assignment.key == key;
    });
    Release(*found);
  }
}

void LostDelRelease::Release(const Assignment& assignment) {
  const absl::Status released = attachments_.Del(assignment.key);
  if (!released.ok()) {
    if (std::exchange(last_failure_, released) != released) {
      edges_.log.Warn("lost_del_failed", {{"container", assignment.key.container_id},
                                          {"ifname", assignment.key.ifname},
                                          {"error", released}});
    }
    return;
  }
  ++counts_.released;
  edges_.log.Warn("lost_del_released",
                  {{"container", assignment.key.container_id},
                   {"ifname", assignment.key.ifname},
                   {"pod", assignment.pod.pod_namespace + "/" + assignment.pod.name},
                   {"addresses", AddressesOf(assignment)},
                   {"gone_for_s", absl::ToInt64Seconds(settings_.after)}});
}

}  // namespace spoke::netagent
