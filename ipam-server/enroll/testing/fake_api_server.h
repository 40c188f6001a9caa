// The part of a cluster's API server that enrollment asks, over HTTP on a port of this machine.
// Tests only.
#pragma once

#include <httplib.h>
#include <stdlib.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "fmt/core.h"
#include "ipam-server/enroll/testing/fake_token_reviewer.h"
#include "lib/kubernetes/api.h"
#include "lib/os/file.h"
#include "tests/support/temp_dir.h"

namespace spoke::ipam {

// Thread-safe.
class FakeApiServer {
 public:
  static constexpr const char* kOwnToken = "token-of-the-server";

  FakeApiServer() {
    for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}) {
      ::unsetenv(name);  // It is on this machine, whatever proxy its user has.
    }
    SetToken(kOwnToken);
    server_.Post("/apis/authentication.k8s.io/v1/tokenreviews",
                 [this](const httplib::Request& request, httplib::Response& response) {
                   Answer(request, response, [&] { ReviewToken(request, response); });
                 });
    server_.Get(R"(/api/v1/namespaces/([^/]+)/pods/([^/]+))",
                [this](const httplib::Request& request, httplib::Response& response) {
                  Answer(request, response, [&] { SendPod(request, response); });
                });
    server_.Get(R"(/api/v1/nodes/([^/]+))",
                [this](const httplib::Request& request, httplib::Response& response) {
                  Answer(request, response, [&] { SendNode(request, response); });
                });
    const auto object = [this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, response, [&] { TakeObject(request, response); });
    };
    server_.Get(R"(/api/v1/namespaces/[^/]+/(configmaps|secrets)/[^/]+)", object);
    server_.Put(R"(/api/v1/namespaces/[^/]+/(configmaps|secrets)/[^/]+)", object);
    server_.Post(R"(/api/v1/namespaces/[^/]+/(configmaps|secrets))", object);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakeApiServer() {
    server_.stop();
    thread_.join();
  }
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  // The cluster whose tokens, pods and nodes it serves.
  FakeTokenReviewer& cluster() { return cluster_; }
  kubernetes::ClusterAccess access() const {
    return {.url = fmt::format("http://127.0.0.1:{}", port_),
            .ca_file = "",
            .token_file = dir_.File("token"),
            .k8s_namespace = "spoke-system"};
  }
  // What we show from now on.
  void SetToken(const std::string& token) {
    static_cast<void>(
        os::WriteFileAtomic(dir_.File("token"), token + "\n", os::Durability::kVisible));
  }
  // Makes all calls end with this HTTP status, and this body, until it is 0 again.
  void FailWith(int status, const std::string& body = R"({"kind":"Status","message":"so it is"})") {
    absl::MutexLock lock(&mutex_);
    failure_ = status;
    failure_body_ = body;
  }

  // Returns "METHOD path" of the calls, in their order.
  std::vector<std::string> calls() {
    absl::MutexLock lock(&mutex_);
    return calls_;
  }
  // Returns the object; null: there is none.
  nlohmann::json Object(const std::string& path) {
    absl::MutexLock lock(&mutex_);
    const auto it = objects_.find(path);
    return it == objects_.end() ? nlohmann::json() : it->second;
  }
  void SetObject(const std::string& path, const nlohmann::json& object) {
    absl::MutexLock lock(&mutex_);
    objects_[path] = object;
  }

 private:
  template <typename Act>
  void Answer(const httplib::Request& request, httplib::Response& response, const Act& act) {
    {
      absl::MutexLock lock(&mutex_);
      calls_.push_back(request.method + " " + request.path);
      if (failure_ != 0) {
        response.status = failure_;
        response.set_content(failure_body_, "application/json");
        return;
      }
    }
    if (request.get_header_value("Authorization") != fmt::format("Bearer {}", kOwnToken)) {
      return Refuse(response, 401, "Unauthorized");
    }
    act();
  }

  static void Refuse(httplib::Response& response, int status, const std::string& message) {
    response.status = status;
    response.set_content(nlohmann::json{{"kind", "Status"}, {"message", message}}.dump(),
                         "application/json");
  }

  void ReviewToken(const httplib::Request& request, httplib::Response& response) {
    auto review = nlohmann::json::parse(request.body);
    const auto facts =
        cluster_.Review(review["spec"]["token"], review["spec"]["audiences"][0]).value();
    auto& status = review["status"];
    if (facts.authenticated) {
      status = {{"authenticated", true},
                {"audiences", facts.audiences},
                {"user", {{"username", facts.user}, {"uid", "u"}, {"groups", facts.groups}}}};
      if (!facts.pod_name.empty()) {
        status["user"]["extra"] = {{"authentication.kubernetes.io/pod-name", {facts.pod_name}},
                                   {"authentication.kubernetes.io/pod-uid", {facts.pod_uid}}};
      }
    } else {
      status = {{"user", nlohmann::json::object()}, {"error", facts.error}};
    }
    response.status = 201;
    response.set_content(review.dump(), "application/json");
  }

  void SendPod(const httplib::Request& request, httplib::Response& response) {
    const auto pod = cluster_.ReadPod(request.matches[1], request.matches[2]);
    if (!pod.ok()) return Refuse(response, 404, "pods not found");
    nlohmann::json object = {
        {"kind", "Pod"},
        {"apiVersion", "v1"},
        {"metadata", {{"name", pod->name}, {"namespace", pod->k8s_namespace}, {"uid", pod->uid}}},
        {"spec", {{"serviceAccountName", pod->service_account}, {"containers", {}}}}};
    if (!pod->node_name.empty()) object["spec"]["nodeName"] = pod->node_name;
    response.set_content(object.dump(), "application/json");
  }

  void SendNode(const httplib::Request& request, httplib::Response& response) {
    const auto node = cluster_.ReadNode(request.matches[1]);
    if (!node.ok()) return Refuse(response, 404, "nodes not found");
    nlohmann::json object = {{"kind", "Node"},
                             {"apiVersion", "v1"},
                             {"metadata", {{"name", node->name}, {"uid", "uid"}}},
                             {"spec", nlohmann::json::object()}};
    if (!node->labels.empty()) object["metadata"]["labels"] = node->labels;
    if (!node->provider_id.empty()) object["spec"]["providerID"] = node->provider_id;
    response.set_content(object.dump(), "application/json");
  }

  void TakeObject(const httplib::Request& request, httplib::Response& response) {
    absl::MutexLock lock(&mutex_);
    std::string path = request.path;
    nlohmann::json object;
    if (request.method != "GET") object = nlohmann::json::parse(request.body);
    if (request.method == "POST") {
      path += "/" + object["metadata"]["name"].get<std::string>();
      if (objects_.count(path) != 0) return Refuse(response, 409, "already exists");
    } else if (objects_.count(path) == 0) {
      return Refuse(response, 404, "not found");
    }
    if (request.method == "PUT" && object["metadata"].value("resourceVersion", "") !=
                                       objects_[path]["metadata"].value("resourceVersion", "")) {
      return Refuse(response, 409, "the object has been modified");
    }
    if (request.method != "GET") {
      object["metadata"]["resourceVersion"] = std::to_string(++version_);
      objects_[path] = object;
    }
    response.set_content(objects_[path].dump(), "application/json");
  }

  const testing_support::TempDir dir_;
  FakeTokenReviewer cluster_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  absl::Mutex mutex_;
  int failure_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string failure_body_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, nlohmann::json> objects_ ABSL_GUARDED_BY(mutex_);
  int version_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spoke::ipam
