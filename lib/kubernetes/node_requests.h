// The calls about nodes, as requests whose URL is the path alone. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "lib/http/message.h"
#include "lib/kubernetes/node_objects.h"

namespace spoke::kubernetes {

// The nodes of a page. Each may have some 20 KiB, with its images.
inline constexpr size_t kPageNodes = 250;
// How long the API server keeps a watch before it ends it, to be begun anew.
inline constexpr absl::Duration kWatchTime = absl::Minutes(4);

// The first page, or the one behind `next`.
http::Request ListNodesRequest(std::string_view next = {});
// What happens after that version, bookmarks included, as a streamed body of a line an event.
http::Request WatchNodesRequest(std::string_view resource_version);

// Changes the node's taints with one JSON patch: those with a key in `remove` go, those of `add`
// come. It names nothing but these, and is refused (422) when the node's taints are not in the
// order of `node` any more, so that what others change meanwhile stays. Call when there is
// something to change.
http::Request TaintPatch(const Node& node, const std::vector<std::string>& remove,
                         const std::vector<Taint>& add);

struct ConditionChange {
  Condition condition;
  bool status_changed = false;  // Its status is another than before, since now.

  bool operator==(const ConditionChange&) const = default;
};

// Puts each condition in place of the one of its type, by one strategic merge patch of the status.
http::Request ConditionPatch(const std::string& node, const std::vector<ConditionChange>& changes,
                             absl::Time now);

// Creates an event about the node, in the namespace "default", as for all that has none.
http::Request NodeEventRequest(const Node& node, std::string_view reason, std::string_view message,
                               absl::Time now);

}  // namespace spoke::kubernetes
