#include "lib/kubernetes/node_requests.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "fmt/core.h"
#include "lib/json_text/json_text.h"

namespace spoke::kubernetes {
namespace {

using nlohmann::json;

constexpr const char* kNodes = "/api/v1/nodes";

// Tokens and versions are opaque: all but letters and digits is escaped.
std::string QueryValue(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                       (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_' || byte == '.';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

http::Request WithBody(std::string method, std::string path, const char* type, const json& body) {
  http::Request request{.method = std::move(method), .url = std::move(path), .headers = {}};
  request.headers.Add("Accept", "application/json");
  request.headers.Add("Content-Type", type);
  request.body = json_text::PrintJson(body);
  return request;
}

http::Request Get(std::string path) {
  http::Request request{.url = std::move(path), .headers = {}};
  request.headers.Add("Accept", "application/json");
  return request;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone());
}

json JsonOf(const Taint& taint) {
  json object = {{"key", taint.key}, {"effect", taint.effect}};
  if (!taint.value.empty()) object["value"] = taint.value;
  return object;
}

}  // namespace

http::Request ListNodesRequest(std::string_view next) {
  std::string path = fmt::format("{}?limit={}", kNodes, kPageNodes);
  if (!next.empty()) path += "&continue=" + QueryValue(next);
  return Get(std::move(path));
}

http::Request WatchNodesRequest(std::string_view resource_version) {
  http::Request request =
      Get(fmt::format("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
                      kNodes, absl::ToInt64Seconds(kWatchTime), QueryValue(resource_version)));
  request.streamed = true;
  return request;
}

http::Request TaintPatch(const Node& node, const std::vector<std::string>& remove,
                         const std::vector<Taint>& add) {
  json patch = json::array();
  const auto test = [&](const std::string& path, const std::string& value) {
    patch.push_back({{"op", "test"}, {"path", path}, {"value", value}});
  };
  // From the last: what is removed moves those behind it.
  for (size_t i = node.taints.size(); i-- > 0;) {
    const Taint& taint = node.taints[i];
    if (std::find(remove.begin(), remove.end(), taint.key) == remove.end()) continue;
    const std::string path = fmt::format("/spec/taints/{}", i);
    test(path + "/key", taint.key);
    test(path + "/effect", taint.effect);
    patch.push_back({{"op", "remove"}, {"path", path}});
  }
  if (node.taints.empty() && !add.empty()) {
    // There is no list to add to. Whoever makes one meanwhile makes a new version as well.
    test("/metadata/resourceVersion", node.resource_version);
    json list = json::array();
    for (const Taint& taint : add) list.push_back(JsonOf(taint));
    patch.push_back({{"op", "add"}, {"path", "/spec/taints"}, {"value", std::move(list)}});
  } else {
    for (const Taint& taint : add) {
      patch.push_back({{"op", "add"}, {"path", "/spec/taints/-"}, {"value", JsonOf(taint)}});
    }
  }
  return WithBody("PATCH", fmt::format("{}/{}", kNodes, node.name), "application/json-patch+json",
                  patch);
}

http::Request ConditionPatch(const std::string& node, const std::vector<ConditionChange>& changes,
                             absl::Time now) {
  json conditions = json::array();
  for (const auto& [condition, status_changed] : changes) {
    json object = {{"type", condition.type},
                   {"status", condition.status},
                   {"reason", condition.reason},
                   {"message", condition.message},
                   {"lastHeartbeatTime", TimeText(now)}};
    if (status_changed) object["lastTransitionTime"] = TimeText(now);
    conditions.push_back(std::move(object));
  }
  return WithBody("PATCH", fmt::format("{}/{}/status", kNodes, node),
                  "application/strategic-merge-patch+json",
                  {{"status", {{"conditions", std::move(conditions)}}}});
}

http::Request NodeEventRequest(const Node& node, std::string_view reason, std::string_view message,
                               absl::Time now) {
  const std::string time = TimeText(now);
  return WithBody(
      "POST", "/api/v1/namespaces/default/events", "application/json",
      {{"kind", "Event"},
       {"apiVersion", "v1"},
       {"metadata", {{"generateName", node.name + "."}, {"namespace", "default"}}},
       {"involvedObject",
        {{"kind", "Node"}, {"apiVersion", "v1"}, {"name", node.name}, {"uid", node.uid}}},
       {"reason", reason},
       {"message", message},
       {"type", "Warning"},
       {"source", {{"component", "spoke-ipam-server"}}},
       {"firstTimestamp", time},
       {"lastTimestamp", time},
       {"count", 1}});
}

}  // namespace spoke::kubernetes
