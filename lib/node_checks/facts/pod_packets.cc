#include "lib/node_checks/facts/pod_packets.h"

#include <utility>

namespace spoke::node_checks {

const std::vector<PodPackets>& PodPacketLooks::Add(std::map<std::string, uint64_t> links,
                                                   std::optional<uint64_t> counted) {
  if (counted_ && counted && *counted >= *counted_) {
    PodPackets between{.counted = *counted - *counted_};
    for (const auto& [name, total] : links) {
      const auto before = links_.find(name);
      // A link of the same name that was made anew has counted from 0.
      if (before != links_.end() && total >= before->second) {
        between.carried += total - before->second;
      }
    }
    comparisons_.push_back(between);
    if (comparisons_.size() > kKept) comparisons_.erase(comparisons_.begin());
  } else {
    comparisons_.clear();
  }
  links_ = std::move(links);
  counted_ = counted;
  return comparisons_;
}

}  // namespace spoke::node_checks
