#include "lib/http/plain_transport.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"
#include "lib/os/unique_fd.h"

namespace spoke::http {
namespace {

// The patience with an address that does not answer: a machine that has such a service has it
// nearby.
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);
constexpr absl::Duration kLongestWait = absl::Hours(24);

struct BaseDeleter {
  void operator()(event_base* base) const { event_base_free(base); }
};
struct EventDeleter {
  void operator()(event* event) const { event_free(event); }
};
struct ConnectionDeleter {
  void operator()(evhttp_connection* connection) const { evhttp_connection_free(connection); }
};
struct UriDeleter {
  void operator()(evhttp_uri* uri) const { evhttp_uri_free(uri); }
};
using EventPtr = std::unique_ptr<event, EventDeleter>;

timeval TimevalOf(absl::Duration duration) {
  return absl::ToTimeval(std::clamp(duration, absl::Microseconds(1), kLongestWait));
}

// Where a request goes.
struct Destination {
  std::string address;
  uint16_t port = 80;
  std::string host;    // As the header Host has it.
  std::string target;  // Path and query.
};

absl::StatusOr<Destination> DestinationOf(const std::string& url) {
  const std::unique_ptr<evhttp_uri, UriDeleter> uri(evhttp_uri_parse(url.c_str()));
  const char* const scheme = uri == nullptr ? nullptr : evhttp_uri_get_scheme(uri.get());
  const char* const host = uri == nullptr ? nullptr : evhttp_uri_get_host(uri.get());
  if (scheme == nullptr || host == nullptr || std::string_view(scheme) != "http") {
    return absl::InvalidArgumentError("the URL has to be \"http://ADDRESS[:PORT]/...\"");
  }
  Destination destination{.host = host};
  std::string_view bare = host;
  if (bare.size() > 1 && bare.front() == '[') bare = bare.substr(1, bare.size() - 2);
  const auto address = ip::Address::Parse(bare);
  if (!address.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is no address, and names are not resolved here", bare));
  }
  destination.address = address->ToString();
  if (const int port = evhttp_uri_get_port(uri.get()); port >= 0) {
    destination.port = static_cast<uint16_t>(port);
    destination.host += fmt::format(":{}", port);
  }
  const char* const path = evhttp_uri_get_path(uri.get());
  const char* const query = evhttp_uri_get_query(uri.get());
  destination.target = path == nullptr || *path == '\0' ? "/" : path;
  if (query != nullptr) destination.target += fmt::format("?{}", query);
  return destination;
}

absl::StatusOr<evhttp_cmd_type> MethodOf(std::string_view method) {
  constexpr std::array<std::pair<std::string_view, evhttp_cmd_type>, 6> kMethods = {
      {{"GET", EVHTTP_REQ_GET},
       {"HEAD", EVHTTP_REQ_HEAD},
       {"POST", EVHTTP_REQ_POST},
       {"PUT", EVHTTP_REQ_PUT},
       {"PATCH", EVHTTP_REQ_PATCH},
       {"DELETE", EVHTTP_REQ_DELETE}}};
  for (const auto& [name, value] : kMethods) {
    if (name == method) return value;
  }
  return absl::InvalidArgumentError(fmt::format("the method {} is not sent here", method));
}

// A call under way. Its address must not change while libevent has it.
struct Call {
  uint64_t id = 0;
  std::string target;   // For errors.
  absl::Duration left;  // Of its time, once the timer has gone off.
  size_t max_body = 0;
  std::vector<Completion>* completed = nullptr;  // Where it is put when it is over.
  // Destroyed before the connection, which it looks at.
  std::unique_ptr<evhttp_connection, ConnectionDeleter> connection;
  EventPtr timer;
  std::optional<evhttp_request_error> error;
  bool answered = false;  // All headers have arrived.
  bool over = false;

  void Complete(absl::StatusOr<Response> response) {
    if (std::exchange(over, true)) return;
    if (!response.ok()) response = base::Annotate(response.status(), target);
    completed->push_back({id, std::move(response)});
  }

  bool IsConnected() const {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(connection.get()));
    return fd >= 0 && ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  }

  void StartTimer(absl::Duration wait) const {
    const timeval time = TimevalOf(wait);
    event_add(timer.get(), &time);
  }
};

Response ResponseOf(evhttp_request* request) {
  Response response{.status = evhttp_request_get_response_code(request)};
  const evkeyvalq* const headers = evhttp_request_get_input_headers(request);
  for (const evkeyval* header = headers->tqh_first; header != nullptr;
       header = header->next.tqe_next) {
    response.headers.Add(header->key, header->value);
  }
  evbuffer* const body = evhttp_request_get_input_buffer(request);
  response.body.resize(evbuffer_get_length(body));
  evbuffer_remove(body, response.body.data(), response.body.size());
  return response;
}

absl::Status ErrorOf(const Call& call) {
  if (!call.error) return absl::UnavailableError("the connection broke");
  switch (*call.error) {
    case EVREQ_HTTP_TIMEOUT:
      return absl::DeadlineExceededError("no answer in time");
    case EVREQ_HTTP_EOF:
      return absl::UnavailableError(call.answered ? "the answer was cut short"
                                                  : "not reached, or reset before it answered");
    case EVREQ_HTTP_INVALID_HEADER:
      return absl::UnavailableError(fmt::format(
          "the answer is no HTTP, or its headers are longer than {} bytes", kMaxPlainHeaderBytes));
    case EVREQ_HTTP_DATA_TOO_LONG:
      return absl::ResourceExhaustedError(
          fmt::format("the answer is larger than {} bytes", call.max_body));
    case EVREQ_HTTP_BUFFER_ERROR:
    case EVREQ_HTTP_REQUEST_CANCEL:
      break;
  }
  return absl::UnavailableError("the connection broke");
}

int OnHeaders(evhttp_request*, void* self) {
  static_cast<Call*>(self)->answered = true;
  return 0;
}

void OnError(evhttp_request_error error, void* self) { static_cast<Call*>(self)->error = error; }

// libevent gives no request for one that has failed, and one without a status for one that never
// left.
void OnDone(evhttp_request* request, void* self) {
  auto& call = *static_cast<Call*>(self);
  if (request == nullptr) {
    call.Complete(ErrorOf(call));
  } else if (evhttp_request_get_response_code(request) == 0) {
    call.Complete(absl::UnavailableError("not reached"));
  } else {
    call.Complete(ResponseOf(request));
  }
}

void OnTimer(evutil_socket_t, short, void* self) {
  auto& call = *static_cast<Call*>(self);
  if (!call.IsConnected()) {
    call.Complete(absl::UnavailableError("not reached in time"));
  } else if (call.left <= absl::ZeroDuration()) {
    call.Complete(absl::DeadlineExceededError("no answer in time"));
  } else {
    call.StartTimer(std::exchange(call.left, absl::ZeroDuration()));
  }
}

// Errors: kInvalidArgument.
absl::Status AddHeaders(const Request& request, const Destination& destination,
                        evkeyvalq* headers) {
  std::vector<Header> all = {
      {"Host", destination.host}, {"User-Agent", "spoke"}, {"Connection", "close"}};
  if (!request.body.empty() || MayHaveBody(request.method)) {
    all.push_back({"Content-Length", std::to_string(request.body.size())});
  }
  all.insert(all.end(), request.headers.begin(), request.headers.end());
  for (const Header& header : all) {
    if (evhttp_add_header(headers, header.name.c_str(), header.value.c_str()) != 0) {
      return absl::InvalidArgumentError(fmt::format("header {} cannot be sent", header.name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

class PlainTransport::Impl {
 public:
  static absl::StatusOr<std::unique_ptr<Impl>> Create(size_t max_response_bytes) {
    // It writes to the standard error otherwise; what matters is in our errors.
    event_set_log_callback([](int, const char*) {});
    auto impl = std::make_unique<Impl>();
    impl->max_response_bytes_ = max_response_bytes;
    impl->wake_ = os::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!impl->wake_.valid()) return base::ErrnoToStatus(errno, "eventfd");
    impl->base_.reset(event_base_new());
    if (impl->base_ == nullptr) {
      return absl::ResourceExhaustedError("libevent has no memory or descriptor");
    }
    event_base* const base = impl->base_.get();
    impl->woken_.reset(
        event_new(base, impl->wake_.get(), EV_READ | EV_PERSIST, &OnWake, impl.get()));
    impl->end_.reset(event_new(base, -1, 0, &OnEnd, impl.get()));
    if (impl->woken_ == nullptr || impl->end_ == nullptr ||
        event_add(impl->woken_.get(), nullptr) != 0) {
      return absl::ResourceExhaustedError("libevent has no memory");
    }
    return impl;
  }

  void Send(uint64_t id, const Request& request, absl::Duration timeout) {
    if (absl::Status status = Start(id, request, timeout); !status.ok()) {
      completed_.push_back({id, base::Annotate(status, TargetOf(request))});
    }
  }

  std::vector<Completion> Wait(absl::Duration wait) {
    over_ = wait <= absl::ZeroDuration();
    if (!over_) {
      const timeval time = TimevalOf(wait);
      event_add(end_.get(), &time);
    }
    do {
      const bool look_only = over_ || !completed_.empty();
      event_base_loop(base_.get(), look_only ? EVLOOP_NONBLOCK : EVLOOP_ONCE);
    } while (!over_ && completed_.empty());
    event_del(end_.get());
    // libevent still has them while it calls us.
    std::erase_if(calls_, [](const auto& call) { return call.second->over; });
    return std::exchange(completed_, {});
  }

  void Wake() const {
    const uint64_t one = 1;
    // It fails only if it has been woken 2^64 times.
    static_cast<void>(::write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  }

 private:
  static void OnWake(evutil_socket_t fd, short, void* self) {
    uint64_t times = 0;
    static_cast<void>(::read(fd, &times, sizeof(times)) == sizeof(times));
    static_cast<Impl*>(self)->over_ = true;
  }
  static void OnEnd(evutil_socket_t, short, void* self) { static_cast<Impl*>(self)->over_ = true; }

  absl::Status Start(uint64_t id, const Request& request, absl::Duration timeout) {
    RETURN_IF_ERROR(CheckRequest(request));
    if (request.streamed || request.send_within != absl::InfiniteDuration()) {
      return absl::InvalidArgumentError("such a request is not sent here");
    }
    ASSIGN_OR_RETURN(const evhttp_cmd_type method, MethodOf(request.method));
    ASSIGN_OR_RETURN(const Destination destination, DestinationOf(request.url));
    auto owned = std::make_unique<Call>();
    Call& call = *owned;
    call.id = id;
    call.target = TargetOf(request);
    call.max_body = max_response_bytes_;
    call.completed = &completed_;
    call.connection.reset(evhttp_connection_base_new(
        base_.get(), nullptr, destination.address.c_str(), destination.port));
    call.timer.reset(event_new(base_.get(), -1, 0, &OnTimer, &call));
    evhttp_request* const out = evhttp_request_new(&OnDone, &call);
    if (call.connection == nullptr || call.timer == nullptr || out == nullptr) {
      if (out != nullptr) evhttp_request_free(out);
      return absl::ResourceExhaustedError("libevent has no memory");
    }
    evhttp_request_set_error_cb(out, &OnError);
    evhttp_request_set_header_cb(out, &OnHeaders);
    if (absl::Status status =
            AddHeaders(request, destination, evhttp_request_get_output_headers(out));
        !status.ok()) {
      evhttp_request_free(out);
      return status;
    }
    evbuffer_add(evhttp_request_get_output_buffer(out), request.body.data(), request.body.size());
    Limit(call, timeout);
    calls_[id] = std::move(owned);
    // The connection owns the request from here on, and may complete it at once.
    if (evhttp_make_request(call.connection.get(), out, method, destination.target.c_str()) != 0) {
      call.Complete(absl::UnavailableError("not reached"));
    }
    return absl::OkStatus();
  }

  void Limit(Call& call, absl::Duration timeout) const {
    evhttp_connection* const connection = call.connection.get();
    evhttp_connection_set_max_headers_size(connection, kMaxPlainHeaderBytes);
    evhttp_connection_set_max_body_size(connection, static_cast<ev_ssize_t>(max_response_bytes_));
    evhttp_connection_set_retries(connection, 0);
    // Ours come first.
    const timeval later = TimevalOf(timeout + kConnectTimeout);
    evhttp_connection_set_timeout_tv(connection, &later);
    const absl::Duration first = std::min(timeout, kConnectTimeout);
    call.left = timeout - first;
    call.StartTimer(first);
  }

  size_t max_response_bytes_ = 0;
  os::UniqueFd wake_;
  std::vector<Completion> completed_;
  // In this order: events and calls are destroyed before what they belong to.
  std::unique_ptr<event_base, BaseDeleter> base_;
  EventPtr woken_;
  EventPtr end_;
  std::map<uint64_t, std::unique_ptr<Call>> calls_;
  bool over_ = false;
};

absl::StatusOr<std::unique_ptr<PlainTransport>> PlainTransport::Create(size_t max_response_bytes) {
  ASSIGN_OR_RETURN(auto impl, Impl::Create(max_response_bytes));
  return std::unique_ptr<PlainTransport>(new PlainTransport(std::move(impl)));
}

PlainTransport::PlainTransport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PlainTransport::~PlainTransport() = default;

void PlainTransport::Send(uint64_t id, Request request, absl::Duration timeout) {
  impl_->Send(id, request, timeout);
}
std::vector<Completion> PlainTransport::Wait(absl::Duration wait) { return impl_->Wait(wait); }
void PlainTransport::Wake() { impl_->Wake(); }

}  // namespace spoke::http
