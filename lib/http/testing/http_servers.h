// HTTP servers for tests of transports, on ports of this machine.
#pragma once

#include <arpa/inet.h>
#include <fmt/core.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/http/transport.h"
#include "lib/os/unique_fd.h"

namespace spoke::http {

inline constexpr absl::Duration kPatience = absl::Seconds(20);

// The tests' servers are on this machine, whatever proxy its user has.
class NoProxies : public testing::Environment {
  void SetUp() override {
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                             "no_proxy", "NO_PROXY"}) {
      ::unsetenv(name);
    }
  }
};
// An HTTP server on a port of its own, for the time of a test.
template <typename Server>
class Serving {
 public:
  explicit Serving(Server& server) : server_(server) {
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Serving() {
    server_.stop();
    thread_.join();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  int port() const { return port_; }
  std::string Url(std::string_view path, std::string_view scheme = "http") const {
    return fmt::format("{}://127.0.0.1:{}{}", scheme, port_, path);
  }

 private:
  Server& server_;
  int port_ = 0;
  std::thread thread_;
};

// Answers one connection with bytes that no HTTP library would send.
class RawServer {
 public:
  using Talk = std::function<void(int connection)>;

  explicit RawServer(Talk talk) : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in self{};
    self.sin_family = AF_INET;
    self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(self);
    auto* address = reinterpret_cast<sockaddr*>(&self);
    EXPECT_EQ(::bind(listener_.get(), address, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), address, &size), 0);
    port_ = ntohs(self.sin_port);
    thread_ = std::thread([this, talk = std::move(talk)] {
      const os::UniqueFd connection(::accept(listener_.get(), nullptr, nullptr));
      char request[4096];
      if (::recv(connection.get(), request, sizeof(request), 0) > 0) talk(connection.get());
    });
  }
  ~RawServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);  // Ends accept() if nobody came.
    thread_.join();
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::string Url() const { return fmt::format("http://127.0.0.1:{}/", port_); }

 private:
  os::UniqueFd listener_;
  int port_ = 0;
  std::thread thread_;
};

inline void Say(int connection, std::string_view text) {
  EXPECT_EQ(::send(connection, text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

inline std::string CodeOf(const absl::StatusOr<Response>& response) {
  return absl::StatusCodeToString(response.status().code());
}

// Waits until `count` calls have completed.
inline std::map<uint64_t, absl::StatusOr<Response>> WaitFor(Transport& transport, size_t count) {
  std::map<uint64_t, absl::StatusOr<Response>> all;
  while (all.size() < count) {
    std::vector<Completion> some = transport.Wait(kPatience);
    if (some.empty()) break;
    for (Completion& one : some) all.emplace(one.id, std::move(one.response));
  }
  return all;
}

}  // namespace spoke::http
