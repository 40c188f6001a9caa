// GET of a few pages, as /metrics, over plain HTTP/1.1, one request a connection, and an end that
// waits for nobody: for a program that has to be gone at once when it is told to go.
//
// This machine itself asks without more. Everybody else, a pod too, has to show a token, since
// metrics name namespaces; without one, and while there is none, the answer is 401. Strangers have
// limits: four connections at once and two new ones a second an address.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/os/unique_fd.h"
#include "lib/rpc/peer_gate.h"
#include "lib/rpc/refusal_counter.h"

namespace spoke::telemetry {

// The time that somebody may take to ask, and then to read the answer. Nobody else waits for that;
// when too many do it, those who have asked for nothing are cut off first, the oldest before the
// others.
inline constexpr absl::Duration kRequestPatience = absl::Seconds(1);

struct TextPage {
  enum class Status { kOk, kServiceUnavailable };

  Status status = Status::kOk;
  std::string body;
  bool metrics = false;  // The body is in Prometheus' text format.
};

class TextEndpoint {
 public:
  // The pages by path ("/metrics"), each made anew for whoever asks, on the endpoint's own thread.
  using Pages = std::map<std::string, std::function<TextPage()>, std::less<>>;

  struct Settings {
    // The address, "HOST:PORT" with a numeric host ("127.0.0.1:9465", "[::1]:9465"; port 0: any
    // free one).
    std::string address;
    // The file with tokens, one a line, of which any will do; read at each request that shows one.
    // Empty: nobody from elsewhere gets in.
    std::string token_file;
    // Whether this machine is trusted; false: everybody is a stranger. For tests, which have no
    // other machine.
    bool trust_this_machine = true;
  };
  // Opens the endpoint. There is no TLS. Errors: kInvalidArgument (no such address), kUnavailable
  // (cannot listen there: in use, or not an address of this machine).
  static absl::StatusOr<std::unique_ptr<TextEndpoint>> Open(Settings settings, Pages pages);
  // Waits for a page that is being made, not for its reader.
  ~TextEndpoint();

  int port() const { return port_; }
  std::shared_ptr<const rpc::RefusalCounter> refusals() const { return refusals_; }

 private:
  TextEndpoint(Settings settings, os::UniqueFd listener, os::UniqueFd wake, Pages pages);
  class Connection;
  using Connections = std::list<Connection>;
  void Run();
  void Accept(Connections& connections);
  Connections::iterator Erase(Connections& connections, Connections::iterator connection);
  static Connections::iterator Victim(Connections& connections, bool for_stranger);
  bool IsStranger(int fd, const ip::Address& peer) const;
  std::string AnswerTo(std::string_view head, bool stranger);

  const Settings settings_;
  const os::UniqueFd listener_;
  const os::UniqueFd wake_;  // An eventfd that says that the end has come.
  const int port_;
  const Pages pages_;
  const std::shared_ptr<rpc::RefusalCounter> refusals_ = std::make_shared<rpc::RefusalCounter>();
  rpc::PeerGate gate_;  // The gate for strangers, on the thread.
  std::thread thread_;
};

// Returns the one page of an endpoint for metrics: /metrics, with the text that `render` returns.
TextEndpoint::Pages MetricsPage(std::function<std::string()> render);

}  // namespace spoke::telemetry
