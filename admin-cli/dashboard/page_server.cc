#include "admin-cli/dashboard/page_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "admin-cli/dashboard/page_files.h"
#include "fmt/core.h"

namespace spoke::ctl {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::string_view kApi = "api/";
// Ten browsers with six connections each find a thread after a moment; an answer takes
// milliseconds.
constexpr size_t kThreads = 16;
// A browser opens connections before it has a use for them; each holds a thread for so long.
constexpr time_t kReadSeconds = 3;
constexpr time_t kWriteSeconds = 10;

// Everything comes from here, and nothing runs that is not a file of ours. Names from elsewhere are
// text even if the page made a mistake, since no script within it would run.
constexpr const char* kPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void SetHeaders(httplib::Response& response) {
  response.set_header("Content-Security-Policy", kPolicy);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
  response.set_header("Cache-Control", "no-store");
}

// Sends what `owner` keeps alive. A provider of known length is sent as it is: the library would
// compress a body, as hard as it can, for a browser on the same machine.
template <typename Owner>
void Send(httplib::Response& response, std::string_view text, std::string_view type, Owner owner) {
  if (text.empty()) return response.set_content("", std::string(type));
  response.set_content_provider(
      text.size(), std::string(type),
      [text, owner = std::move(owner)](size_t offset, size_t length, httplib::DataSink& sink) {
        const std::string_view piece = text.substr(offset, length);
        return sink.write(piece.data(), piece.size());
      });
}

void Refuse(httplib::Response& response, int status, const char* why) {
  response.status = status;
  response.set_content(fmt::format("spokectl dashboard: {}\n", why), "text/plain; charset=utf-8");
}

class LibraryServer final : public PageServer {
 public:
  LibraryServer(DashboardKeys keys, Answers& answers) : keys_(std::move(keys)), answers_(answers) {
    server_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          SetHeaders(response);
          Handle(request, response);
          return httplib::Server::HandlerResponse::Handled;
        });
    // A connection carries one request: what a refused one has not read goes with it.
    server_.set_keep_alive_max_count(1);
    server_.set_read_timeout(kReadSeconds, 0);
    server_.set_write_timeout(kWriteSeconds, 0);
    server_.set_payload_max_length(0);
    server_.set_tcp_nodelay(true);
    server_.new_task_queue = [] {
      return new httplib::ThreadPool(kThreads);  // The library deletes it.
    };
    // The library's own options would let another process of this user listen at the same port.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
  }

  ~LibraryServer() override {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

  bool Start(uint16_t port) {
    port_ = port;
    if (port == 0) {
      port_ = server_.bind_to_any_port(kLoopback);
      if (port_ <= 0) return false;
    } else if (!server_.bind_to_port(kLoopback, port)) {
      return false;
    }
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    // stop() of a server that does not run yet does nothing.
    while (!server_.is_running()) absl::SleepFor(absl::Milliseconds(1));
    return true;
  }

  std::string url() const override {
    return fmt::format("http://{}:{}{}?token={}", kLoopback, port_, RootOf(keys_), keys_.token);
  }

 private:
  void Handle(const httplib::Request& request, httplib::Response& response) {
    const std::string token = request.get_param_value("token");
    const std::string host = request.get_header_value("Host");
    const std::string cookie = request.get_header_value("Cookie");
    const std::string fetch_site = request.get_header_value("Sec-Fetch-Site");
    switch (Admit(keys_, {.method = request.method,
                          .path = request.path,
                          .token = token,
                          .host = host,
                          .cookie = cookie,
                          .fetch_site = fetch_site})) {
      case Admission::kShown:
        return Show(request, response);
      case Admission::kLogIn:
        response.set_header("Set-Cookie", CookieOf(keys_));
        response.set_redirect(RootOf(keys_), 303);
        return;
      case Admission::kWrongHost:
        return Refuse(response, 403, "ask for it by 127.0.0.1 or localhost");
      case Admission::kWrongPlace:
        return Refuse(response, 404, "there is nothing here; open the URL that spokectl printed");
      case Admission::kWrongMethod:
        response.set_header("Allow", "GET, HEAD");
        return Refuse(response, 405, "it shows, and changes nothing");
      case Admission::kWrongOrigin:
        return Refuse(response, 403, "a page from elsewhere may not ask for it");
      case Admission::kWrongToken:
        return Refuse(response, 403, "open the URL that spokectl printed, with its token");
    }
  }

  void Show(const httplib::Request& request, httplib::Response& response) {
    const std::string_view path = PathBelow(keys_, request.path);
    if (path.starts_with(kApi)) {
      const auto answer =
          answers_.Of(std::string(path.substr(kApi.size())), request.get_param_value("of"));
      if (answer == nullptr) return Refuse(response, 404, "there is no such answer");
      response.status = answer->status;
      return Send(response, answer->body, "application/json", answer);
    }
    const PageFile* file = FindPageFile(path);
    if (file == nullptr) return Refuse(response, 404, "there is no such file");
    response.status = 200;
    Send(response, file->text, file->type, 0);
  }

  const DashboardKeys keys_;
  Answers& answers_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Open(uint16_t port, DashboardKeys keys,
                                                             Answers& answers) {
  auto made = std::make_unique<LibraryServer>(std::move(keys), answers);
  if (!made->Start(port)) {
    return absl::FailedPreconditionError(
        port == 0 ? fmt::format("no port of {} is free", kLoopback)
                  : fmt::format("port {} of {} cannot be had: does another program listen there? "
                                "Without --port one that is free is chosen",
                                port, kLoopback));
  }
  return made;
}

}  // namespace spoke::ctl
