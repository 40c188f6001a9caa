// A FakeCluster over HTTP on a port of this machine, with streamed watches, a latency for each
// call, and a limit on the calls that change something at once, as the API server has. Tests only.
#pragma once

#include <httplib.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "fmt/core.h"
#include "lib/kubernetes/testing/fake_cluster.h"

namespace spoke::kubernetes {

class FakeClusterServer {
 public:
  struct Settings {
    std::chrono::microseconds latency{0};
    // kube-apiserver's --max-mutating-requests-inflight; what is more is told to wait.
    int most_changes_at_once = 200;
    size_t threads = 16;
  };

  // Borrows the cluster.
  FakeClusterServer(FakeCluster& cluster, const Settings& settings)
      : cluster_(cluster), settings_(settings) {
    for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}) {
      ::unsetenv(name);  // It is on this machine, whatever proxy its user has.
    }
    server_.new_task_queue = [threads = settings.threads] {
      return new httplib::ThreadPool(threads);
    };
    server_.set_keep_alive_max_count(1'000'000);
    server_.set_tcp_nodelay(true);
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      if (request.has_param("watch")) return Watch(request, response);
      Answer(request, response);
    };
    server_.Get("/api/v1/nodes", answer);
    server_.Patch(R"(/api/v1/nodes/[^/]+(/status)?)", answer);
    server_.Post("/api/v1/namespaces/default/events", answer);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakeClusterServer() {
    stopping_ = true;
    server_.stop();
    thread_.join();
  }
  FakeClusterServer(const FakeClusterServer&) = delete;
  FakeClusterServer& operator=(const FakeClusterServer&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  uint64_t refused() const { return refused_; }

 private:
  static http::Request RequestOf(const httplib::Request& request) {
    http::Request asked{.method = request.method, .url = request.target, .headers = {}};
    for (const auto& [name, value] : request.headers) asked.headers.Add(name, value);
    asked.body = request.body;
    return asked;
  }
  static void Send(const http::Response& answer, httplib::Response& response) {
    response.status = answer.status;
    for (const http::Header& header : answer.headers) {
      response.set_header(header.name, header.value);
    }
    response.set_content(answer.body, "application/json");
  }

  void Answer(const httplib::Request& request, httplib::Response& response) {
    const bool changes = request.method != "GET";
    if (changes && ++changing_ > settings_.most_changes_at_once) {
      --changing_;
      ++refused_;
      response.status = 429;
      response.set_header("Retry-After", "1");
      return response.set_content(R"({"kind":"Status","message":"too many"})", "application/json");
    }
    std::this_thread::sleep_for(settings_.latency);
    Send(cluster_.Answer(RequestOf(request)), response);
    if (changes) --changing_;
  }

  // The refusals of a watch come at once; what happens is streamed as it does.
  void Watch(const httplib::Request& request, httplib::Response& response) {
    const http::Response first = cluster_.Answer(RequestOf(request));
    if (first.status != 200 || first.body.find("\"ERROR\"") != std::string::npos) {
      return Send(first, response);
    }
    uint64_t version = 0;
    static_cast<void>(absl::SimpleAtoi(request.get_param_value("resourceVersion"), &version));
    response.set_chunked_content_provider(
        "application/json", [this, version](size_t, httplib::DataSink& sink) mutable {
          while (!stopping_) {
            const auto [lines, next] = cluster_.EventsAfter(version);
            version = next;
            if (!lines.empty()) return sink.write(lines.data(), lines.size());
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            if (!sink.is_writable()) return false;
          }
          sink.done();
          return true;
        });
  }

  FakeCluster& cluster_;
  const Settings settings_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> changing_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace spoke::kubernetes
