// The nodes of an API server, kept in memory, with what it does to those who ask: versions that
// count, pages, watches with bookmarks, versions that are forgotten, patches that are tested,
// rights, and limits. Tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "lib/http/message.h"

namespace spoke::kubernetes {

// Thread-safe.
class FakeCluster {
 public:
  static constexpr const char* kToken = "token-of-the-server";
  using json = nlohmann::json;

  // Adds a node with these taints, as the kubelet registers it.
  void AddNode(const std::string& name, const json& taints = json::array()) {
    json node = {{"kind", "Node"},
                 {"apiVersion", "v1"},
                 {"metadata", {{"name", name}, {"uid", "uid-" + name}}},
                 {"spec", json::object()},
                 {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
    if (!taints.empty()) node["spec"]["taints"] = taints;
    absl::MutexLock lock(&mutex_);
    Store("ADDED", std::move(node));
  }
  void RemoveNode(const std::string& name) {
    absl::MutexLock lock(&mutex_);
    json node = nodes_.at(name);
    nodes_.erase(name);
    Store("DELETED", std::move(node));
  }
  // Another component changes the node.
  void Change(const std::string& name, const std::function<void(json&)>& change) {
    absl::MutexLock lock(&mutex_);
    json node = nodes_.at(name);
    change(node);
    Store("MODIFIED", std::move(node));
  }
  json Node(const std::string& name) const {
    absl::MutexLock lock(&mutex_);
    const auto it = nodes_.find(name);
    return it == nodes_.end() ? json() : it->second;
  }
  bool HasTaint(const std::string& name, const std::string& key) const {
    const json node = Node(name);
    if (!node.contains("spec") || !node["spec"].contains("taints")) return false;
    const json& taints = node["spec"]["taints"];
    return std::any_of(taints.begin(), taints.end(),
                       [&](const json& taint) { return taint["key"] == key; });
  }
  size_t CountTaint(const std::string& key) const {
    absl::MutexLock lock(&mutex_);
    size_t count = 0;
    for (const auto& [name, node] : nodes_) {
      const json& spec = node.at("spec");
      if (!spec.contains("taints")) continue;
      const json& taints = spec.at("taints");
      count += static_cast<size_t>(std::count_if(
          taints.begin(), taints.end(), [&](const json& taint) { return taint["key"] == key; }));
    }
    return count;
  }
  // Returns the condition; null: there is none.
  json ConditionOf(const std::string& name, const std::string& type) const {
    const json node = Node(name);
    for (const json& condition : node.value("/status/conditions"_json_pointer, json::array())) {
      if (condition["type"] == type) return condition;
    }
    return {};
  }

  // --- What goes wrong. ---

  // All calls end with this code until it is 0 again.
  void FailWith(int code) {
    absl::MutexLock lock(&mutex_);
    failure_ = code;
  }
  // The next calls end with this code, so many of them.
  void FailNext(int code, int times, const std::string& method = "") {
    absl::MutexLock lock(&mutex_);
    fail_next_ = {code, times, method};
  }
  // Forgets all versions but the present one: an older watch, or page, is gone.
  void Forget() {
    absl::MutexLock lock(&mutex_);
    events_.clear();
    oldest_ = version_;
    ++list_epoch_;
  }
  void SetToken(const std::string& token) {
    absl::MutexLock lock(&mutex_);
    token_ = token;
  }

  // --- Who asks. ---

  // Answers as the API server does; a watch with what has happened by now, as if it ended then.
  http::Response Answer(const http::Request& request) {
    absl::MutexLock lock(&mutex_);
    const std::vector<std::string> url =
        absl::StrSplit(PathOf(request.url), absl::MaxSplits('?', 1));
    calls_.push_back(request.method + " " + url[0]);
    if (request.headers.Find("Authorization") != "Bearer " + token_) {
      return Refuse(401, "Unauthorized");
    }
    if (failure_ != 0) return Refuse(failure_, "so it is");
    if (fail_next_.times > 0 &&
        (fail_next_.method.empty() || fail_next_.method == request.method)) {
      --fail_next_.times;
      return Refuse(fail_next_.code, "so it is, this once");
    }
    const auto query = QueryOf(url.size() > 1 ? url[1] : "");
    if (request.method == "PATCH") return Patch(url[0], request);
    if (request.method == "POST") return Created(request);
    if (query.count("watch") != 0) return Watch(query);
    return List(query);
  }
  // Returns the lines of a watch from `version` on, and where it goes on; for servers that stream.
  std::pair<std::string, uint64_t> EventsAfter(uint64_t version) const {
    absl::MutexLock lock(&mutex_);
    return {LinesAfter(version), version_};
  }

  std::vector<std::string> calls() const {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }
  uint64_t writes() const {
    absl::MutexLock lock(&mutex_);
    return writes_;
  }
  std::vector<json> events_created() const {
    absl::MutexLock lock(&mutex_);
    return created_;
  }

 private:
  struct Event {
    uint64_t version;
    std::string line;
  };
  struct FailNextCalls {
    int code = 0;
    int times = 0;
    std::string method = {};
  };

  static std::string PathOf(const std::string& url) {
    const size_t scheme = url.find("://");
    return scheme == std::string::npos ? url : url.substr(url.find('/', scheme + 3));
  }
  static std::map<std::string, std::string> QueryOf(const std::string& text) {
    std::map<std::string, std::string> query;
    for (const auto& pair : absl::StrSplit(text, '&', absl::SkipEmpty())) {
      const std::vector<std::string> parts = absl::StrSplit(pair, absl::MaxSplits('=', 1));
      query[parts[0]] = parts.size() > 1 ? parts[1] : "";
    }
    return query;
  }
  static http::Response Refuse(int code, const std::string& message) {
    http::Response response{.status = code};
    if (code == 429) response.headers.Add("Retry-After", "1");
    response.body = json{{"kind", "Status"}, {"code", code}, {"message", message}}.dump();
    return response;
  }

  void Store(const std::string& type, json node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    node["metadata"]["resourceVersion"] = std::to_string(++version_);
    events_.push_back({version_, json{{"type", type}, {"object", node}}.dump() + "\n"});
    constexpr size_t kKeptEvents = 100'000;
    if (events_.size() > kKeptEvents) {
      oldest_ = events_.front().version;
      events_.pop_front();
    }
    if (type == "DELETED") return;
    std::string name = node["metadata"]["name"];
    nodes_[std::move(name)] = std::move(node);
  }

  http::Response List(const std::map<std::string, std::string>& query)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    size_t limit = nodes_.size();
    if (const auto it = query.find("limit"); it != query.end()) {
      static_cast<void>(absl::SimpleAtoi(it->second, &limit));
    }
    auto node = nodes_.begin();
    if (const auto it = query.find("continue"); it != query.end()) {
      const std::vector<std::string> token = absl::StrSplit(it->second, absl::MaxSplits('_', 1));
      if (token[0] != std::to_string(list_epoch_)) return Refuse(410, "the token is too old");
      node = nodes_.upper_bound(token.at(1));
    }
    json list = {{"kind", "NodeList"}, {"apiVersion", "v1"}, {"items", json::array()}};
    std::string last;
    for (; node != nodes_.end() && list["items"].size() < limit; ++node) {
      list["items"].push_back(node->second);
      last = node->first;
    }
    list["metadata"]["resourceVersion"] = std::to_string(version_);
    if (node != nodes_.end()) {
      list["metadata"]["continue"] = fmt::format("{}_{}", list_epoch_, last);
    }
    return {.status = 200, .headers = {}, .body = list.dump()};
  }

  std::string LinesAfter(uint64_t version) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string lines;
    const auto behind =
        std::upper_bound(events_.begin(), events_.end(), version,
                         [](uint64_t asked, const Event& event) { return asked < event.version; });
    for (auto it = behind; it != events_.end(); ++it) lines += it->line;
    return lines;
  }

  http::Response Watch(const std::map<std::string, std::string>& query)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    uint64_t version = 0;
    static_cast<void>(absl::SimpleAtoi(query.at("resourceVersion"), &version));
    if (version < oldest_) {
      const json error = {{"type", "ERROR"},
                          {"object", {{"kind", "Status"}, {"code", 410}, {"message", "too old"}}}};
      return {.status = 200, .headers = {}, .body = error.dump() + "\n"};
    }
    const json bookmark = {
        {"type", "BOOKMARK"},
        {"object",
         {{"kind", "Node"}, {"metadata", {{"resourceVersion", std::to_string(version_)}}}}}};
    return {.status = 200, .headers = {}, .body = LinesAfter(version) + bookmark.dump() + "\n"};
  }

  http::Response Patch(const std::string& path, const http::Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::vector<std::string> parts = absl::StrSplit(path, '/');
    const auto it = nodes_.find(parts.at(4));
    if (it == nodes_.end()) return Refuse(404, "not found");
    const json patch = json::parse(request.body);
    json node = it->second;
    if (parts.size() > 5) {
      MergeConditions(patch["status"]["conditions"], node);
    } else {
      try {
        node = node.patch(patch);
      } catch (const json::exception& error) {
        return Refuse(422, error.what());
      }
    }
    ++writes_;
    Store("MODIFIED", std::move(node));
    return {.status = 200, .headers = {}, .body = nodes_.at(parts[4]).dump()};
  }

  static void MergeConditions(const json& changes, json& node) {
    json& conditions = node["status"]["conditions"];
    for (const json& change : changes) {
      auto known = std::find_if(conditions.begin(), conditions.end(), [&](const json& condition) {
        return condition["type"] == change["type"];
      });
      if (known == conditions.end()) {
        conditions.push_back(change);
      } else {
        known->update(change);
      }
    }
  }

  http::Response Created(const http::Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++writes_;
    created_.push_back(json::parse(request.body));
    return {.status = 201, .headers = {}, .body = request.body};
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, json> nodes_ ABSL_GUARDED_BY(mutex_);
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 100;
  uint64_t oldest_ ABSL_GUARDED_BY(mutex_) = 100;
  int list_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
  int failure_ ABSL_GUARDED_BY(mutex_) = 0;
  FailNextCalls fail_next_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_) = kToken;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<json> created_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::kubernetes
