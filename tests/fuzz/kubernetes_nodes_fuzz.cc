// Feeds what the API server's address may answer about nodes, and what it may stream in a watch:
// never a crash, nothing above the limits, and a mirror that always has a next call.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/kubernetes/node_mirror.h"
#include "lib/kubernetes/node_objects.h"
#include "lib/kubernetes/node_requests.h"

namespace kubernetes = spoke::kubernetes;

namespace {

void CheckNode(const kubernetes::Node& node, size_t size) {
  CHECK(!node.name.empty() && node.name.size() <= size, "names come from the text");
  CHECK(!node.resource_version.empty(), "a node has a version");
  CHECK(node.taints.size() <= kubernetes::kMaxTaints, "lists are limited");
  CHECK(node.conditions.size() <= kubernetes::kMaxConditions, "lists are limited");
  std::vector<std::string> keys;
  for (const kubernetes::Taint& taint : node.taints) keys.push_back(taint.key);
  CHECK(kubernetes::TaintPatch(node, keys, {}).url.find(node.name) != std::string::npos,
        "a patch is of this node");
}

// The text as two parts of a watch, after an empty list.
void CheckMirror(std::string_view text) {
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  kubernetes::NodeMirror mirror;
  CHECK(mirror.Next(now).has_value(), "it begins");
  mirror.OnEnd(spoke::http::Response{.status = 200, .headers = {}, .body = std::string(text)}, now);
  if (!mirror.complete()) {
    now = std::max(now, mirror.NextAt());
    CHECK(mirror.Next(now).has_value(), "it begins anew");
    mirror.OnEnd(
        spoke::http::Response{.status = 200,
                              .headers = {},
                              .body = R"({"kind":"NodeList","metadata":{"resourceVersion":"1"}})"},
        now);
  }
  now = std::max(now, mirror.NextAt());
  CHECK(mirror.Next(now).has_value(), "it goes on");
  if (mirror.OnPart(text.substr(0, text.size() / 2), now)) {
    static_cast<void>(mirror.OnPart(text.substr(text.size() / 2), now));
  }
  mirror.OnEnd(spoke::http::Response{.status = 200}, now);
  now = std::max(now, mirror.NextAt());
  CHECK(now < absl::InfiniteFuture(), "there is a next call");
  CHECK(mirror.Next(now).has_value(), "it goes on whatever was said");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto node = kubernetes::ParseNode(text); node.ok()) {
    CheckNode(*node, size);
  } else {
    CHECK(absl::IsInvalidArgument(node.status()), "an answer is refused as one");
  }
  if (const auto page = kubernetes::ParseNodeList(text); page.ok()) {
    for (const kubernetes::Node& node : page->nodes) CheckNode(node, size);
    CHECK(page->nodes.size() + page->unreadable <= size, "entries come from the text");
  }
  if (const auto event = kubernetes::ParseWatchEvent(text); event.ok()) {
    const bool has_node = event->kind != kubernetes::WatchEvent::Kind::kBookmark &&
                          event->kind != kubernetes::WatchEvent::Kind::kError;
    if (has_node) CheckNode(event->node, size);
  }
  CheckMirror(text);
  return 0;
}
