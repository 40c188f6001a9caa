#include "tests/azure-sim/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "fmt/core.h"

namespace spoke::azure_sim {
namespace {

// Idle connections end after that many seconds, and so does a server that is to stop.
constexpr time_t kKeepAliveSeconds = 2;
constexpr size_t kCallsOfAConnection = 1'000'000;
constexpr int kMostDescriptors = 4096;
constexpr double kLongestStall = 600;

// The library does not say which socket a request came from: look for the one with that peer.
int DescriptorOf(const httplib::Request& request) {
  for (int fd = 3; fd < kMostDescriptors; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.ss_family != AF_INET) continue;
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&peer);
    if (ntohs(v4->sin_port) == request.remote_port) return fd;
  }
  return -1;
}

void CutOff(const httplib::Request& request, bool with_reset) {
  const int fd = DescriptorOf(request);
  if (fd < 0) return;
  if (with_reset) {
    const linger at_once{1, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return;  // The library closes it soon.
  }
  ::shutdown(fd, SHUT_RDWR);
}

http::Request FromHttplib(const httplib::Request& request, const char* scheme) {
  http::Request plain;
  plain.method = request.method;
  plain.url = fmt::format("{}://{}{}", scheme, request.get_header_value("Host"), request.target);
  for (const auto& [name, value] : request.headers) plain.headers.Add(name, value);
  plain.body = request.body;
  return plain;
}

void SendHalf(const httplib::Request& request, const std::string& body, const std::string& type,
              bool with_reset, httplib::Response* response) {
  // The body has some length at least, so that there is a middle.
  std::string whole = body.size() < 2 ? std::string("{\"value\":[]}") : body;
  response->set_content_provider(
      whole.size(), type,
      [whole, request, with_reset](size_t offset, size_t, httplib::DataSink& sink) {
        if (offset > 0) {
          CutOff(request, with_reset);
          return false;
        }
        return sink.write(whole.data(), whole.size() / 2);
      });
}

void Write(const httplib::Request& request, Answer answer, httplib::Response* response) {
  std::string type = "application/octet-stream";
  response->status = answer.response.status;
  for (const http::Header& header : answer.response.headers) {
    if (header.name == "Content-Type") {
      type = header.value;
    } else {
      response->headers.emplace(header.name, header.value);
    }
  }
  std::string& body = answer.response.body;
  using Kind = TransportFault::Kind;
  switch (answer.fault.kind) {
    case Kind::kNone:
      break;
    case Kind::kStall:
      absl::SleepFor(absl::Seconds(std::clamp(answer.fault.seconds, 0.0, kLongestStall)));
      break;
    case Kind::kDrop:
      answer.response.status = 0;
      break;
    case Kind::kTruncate:
    case Kind::kReset:
      return SendHalf(request, body, type, answer.fault.kind == Kind::kReset, response);
    case Kind::kMalformed:
      body.resize(body.size() / 2);
      break;
    case Kind::kHtml:
      response->status = 200;
      type = "text/html";
      body = "<html><body>Please sign in.</body></html>";
      break;
    case Kind::kRedirect:
      response->status = 307;
      response->headers.emplace("Location", answer.fault.location);
      break;
  }
  if (answer.response.status == 0) {
    response->status = 500;  // It goes nowhere.
    CutOff(request, false);
  }
  if (!body.empty()) response->set_content(body, type);
}

class LibraryServer final : public HttpServer {
 public:
  LibraryServer(std::unique_ptr<httplib::Server> server, Handler handler, const char* scheme,
                int threads)
      : server_(std::move(server)), handler_(std::move(handler)), scheme_(scheme) {
    const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
      Write(request, handler_(FromHttplib(request, scheme_)), &response);
    };
    server_->Get(".*", answer);
    server_->Post(".*", answer);
    server_->Put(".*", answer);
    server_->Patch(".*", answer);
    server_->Delete(".*", answer);
    server_->set_keep_alive_max_count(kCallsOfAConnection);
    server_->set_keep_alive_timeout(kKeepAliveSeconds);
    server_->set_tcp_nodelay(true);
    server_->new_task_queue = [threads] {
      return new httplib::ThreadPool(static_cast<size_t>(threads));  // The library deletes it.
    };
  }

  ~LibraryServer() override {
    server_->stop();
    if (thread_.joinable()) thread_.join();
  }

  bool Bind(const ListenOptions& options) {
    if (options.port == 0) {
      port_ = server_->bind_to_any_port(options.host);
      return port_ > 0;
    }
    port_ = options.port;
    return server_->bind_to_port(options.host, options.port);
  }
  void Start() {
    thread_ = std::thread([this] { server_->listen_after_bind(); });
    // stop() of a server that does not run yet does nothing.
    while (!server_->is_running()) absl::SleepFor(absl::Milliseconds(1));
  }
  int port() const override { return port_; }

 private:
  std::unique_ptr<httplib::Server> server_;
  Handler handler_;
  const char* scheme_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Open(const ListenOptions& options,
                                                             Handler handler) {
  const bool tls = !options.tls_cert.empty();
  std::unique_ptr<httplib::Server> server;
  if (tls) {
    server =
        std::make_unique<httplib::SSLServer>(options.tls_cert.c_str(), options.tls_key.c_str());
  } else {
    server = std::make_unique<httplib::Server>();
  }
  if (!server->is_valid()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: certificate or key cannot be used", options.tls_cert));
  }
  auto made = std::make_unique<LibraryServer>(std::move(server), std::move(handler),
                                              tls ? "https" : "http", options.threads);
  if (!made->Bind(options)) {
    return absl::UnavailableError(fmt::format("listen on {}:{}", options.host, options.port));
  }
  made->Start();
  return made;
}

}  // namespace spoke::azure_sim
