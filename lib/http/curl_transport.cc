#include "lib/http/curl_transport.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/ip/prefix.h"

namespace spoke::http {
namespace {

struct CurlEasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

using SteadyClock = std::chrono::steady_clock;

SteadyClock::time_point After(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return SteadyClock::time_point::max();
  return SteadyClock::now() + absl::ToChronoNanoseconds(duration);
}

// A call, whose address must not change while libcurl has the handle.
class CurlCall {
 public:
  CurlCall(uint64_t id, Request request)
      : id_(id), request_(std::move(request)), leave_by_(After(request_.send_within)) {}
  CurlCall(const CurlCall&) = delete;
  CurlCall& operator=(const CurlCall&) = delete;

  // Makes the handle ready. Errors: kInvalidArgument (what no request may hold),
  // kResourceExhausted (libcurl has no memory).
  absl::Status Prepare(const CurlOptions& options, absl::Duration timeout);
  // Returns what the call came to; takes the response out.
  absl::StatusOr<Response> Finish(CURLcode code);
  // Takes out what has arrived of a streamed body; nullopt: nothing, or it is not streamed.
  std::optional<Response> TakePart();
  // Returns when to give the call up unless the whole request has left; the latest time: it has, or
  // may take as long as it likes.
  SteadyClock::time_point LeaveBy() const;
  // Returns what the call came to, whose time to leave is over.
  absl::Status Late() const;

  uint64_t id() const { return id_; }
  CURL* handle() const { return handle_.get(); }
  const Request& request() const { return request_; }

 private:
  static size_t OnHeader(char* data, size_t size, size_t count, void* self);
  static size_t OnBody(char* data, size_t size, size_t count, void* self);
  absl::Status PrepareHeaders();
  void PrepareMethod();
  void PrepareStall(const CurlOptions& options);
  void PrepareTls(const CurlOptions& options);
  void PrepareProxy(const CurlOptions& options);
  absl::Status ErrorOf(CURLcode code) const;
  curl_off_t Info(CURLINFO info) const;

  const uint64_t id_;
  const Request request_;
  const SteadyClock::time_point leave_by_;
  std::unique_ptr<CURL, CurlEasyDeleter> handle_;
  std::unique_ptr<curl_slist, CurlListDeleter> headers_;
  Response response_;
  size_t max_body_ = 0;
  size_t header_bytes_ = 0;
  bool too_large_ = false;
  char error_[CURL_ERROR_SIZE] = {};
};

long Milliseconds(absl::Duration duration) {
  // Zero would mean "no limit" to libcurl.
  return static_cast<long>(std::max<int64_t>(1, absl::ToInt64Milliseconds(duration)));
}

bool IsTlsRefusal(CURLcode code, std::string_view text) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_CLIENTCERT:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
      return true;
    case CURLE_SSL_CONNECT_ERROR:
      // A connection that breaks during the handshake has the same code.
      return text.find("SYSCALL") == std::string_view::npos &&
             text.find("reset") == std::string_view::npos &&
             text.find("unexpected eof") == std::string_view::npos;
    default:
      return false;
  }
}

struct CurlMultiDeleter {
  void operator()(CURLM* multi) const { static_cast<void>(curl_multi_cleanup(multi)); }
};
struct CurlUrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

// Initializes libcurl once for the process; there is nothing to undo at its end.
void InitializeCurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(code == CURLE_OK, "libcurl can be used");
}

// Returns the host as libcurl itself would read it; empty: none. IPv6 has no brackets.
std::string HostOf(std::string_view url) {
  InitializeCurl();
  const std::unique_ptr<CURLU, CurlUrlDeleter> parsed(curl_url());
  if (curl_url_set(parsed.get(), CURLUPART_URL, std::string(url).c_str(), 0) != CURLUE_OK) {
    return {};
  }
  char* part = nullptr;
  if (curl_url_get(parsed.get(), CURLUPART_HOST, &part, 0) != CURLUE_OK) return {};
  std::string host = part;
  curl_free(part);
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host.substr(0, host.find('%'));
}

}  // namespace

absl::Status CurlCall::Prepare(const CurlOptions& options, absl::Duration timeout) {
  handle_.reset(curl_easy_init());
  if (handle_ == nullptr) return absl::ResourceExhaustedError("libcurl gives no handle");
  RETURN_IF_ERROR(CheckRequest(request_));
  max_body_ = options.max_response_bytes;
  CURL* handle = handle_.get();
  curl_easy_setopt(handle, CURLOPT_PRIVATE, this);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error_);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // What compresses a stream may keep its parts back until there are more.
  if (!request_.streamed) curl_easy_setopt(handle, CURLOPT_ACCEPT_ENCODING, "gzip");
  curl_easy_setopt(handle, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  // A resolver that hangs must not hold up the end of the program.
  curl_easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, Milliseconds(timeout));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, Milliseconds(options.connect_timeout));
  PrepareStall(options);
  curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &CurlCall::OnHeader);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &CurlCall::OnBody);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
  PrepareMethod();
  PrepareTls(options);
  PrepareProxy(options);
  return PrepareHeaders();
}

// What is streamed may be silent for long, so that the kernel has to find out whether the other
// side is still there.
void CurlCall::PrepareStall(const CurlOptions& options) {
  CURL* handle = handle_.get();
  if (request_.streamed) {
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, 20L);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, 10L);
    return;
  }
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(
      handle, CURLOPT_LOW_SPEED_TIME,
      static_cast<long>(std::max<int64_t>(1, absl::ToInt64Seconds(options.stall_timeout))));
}

absl::Status CurlCall::PrepareHeaders() {
  // Libcurl does not know our content, and we do not wait for a "100 Continue".
  bool has_type = false;
  std::vector<std::string> lines = {"Expect:"};
  for (const Header& header : request_.headers) {
    has_type = has_type || absl::EqualsIgnoreCase(header.name, "Content-Type");
    // libcurl takes "Name:" for "leave it out".
    lines.push_back(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  }
  if (!has_type) lines.emplace_back("Content-Type:");
  for (const std::string& line : lines) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) return absl::ResourceExhaustedError("libcurl keeps no header");
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }
  curl_easy_setopt(handle_.get(), CURLOPT_HTTPHEADER, headers_.get());
  return absl::OkStatus();
}

void CurlCall::PrepareMethod() {
  CURL* handle = handle_.get();
  if (request_.method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (!request_.body.empty() || MayHaveBody(request_.method)) {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_.body.size()));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request_.body.c_str());
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  } else if (request_.method != "GET") {
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
}

void CurlCall::PrepareTls(const CurlOptions& options) {
  CURL* handle = handle_.get();
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  // This takes the place of the system's bundle, but not of the system's folder, which has the
  // same.
  if (!options.ca_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, options.ca_file.c_str());
  }
}

void CurlCall::PrepareProxy(const CurlOptions& options) {
  if (NeverProxied(request_.url)) {
    // An empty name also keeps libcurl from looking at the environment.
    curl_easy_setopt(handle_.get(), CURLOPT_PROXY, "");
  } else if (!options.proxy.empty()) {
    curl_easy_setopt(handle_.get(), CURLOPT_PROXY, options.proxy.c_str());
  }
}

size_t CurlCall::OnHeader(char* data, size_t size, size_t count, void* self) {
  auto& call = *static_cast<CurlCall*>(self);
  const absl::string_view line = absl::StripAsciiWhitespace({data, size * count});
  call.header_bytes_ += size * count;
  if (call.header_bytes_ > kMaxHeaderBytes) {
    call.too_large_ = true;
    return 0;
  }
  if (absl::StartsWith(line, "HTTP/")) {  // What came before was "100 Continue" or the like.
    call.response_.headers = Headers();
    return size * count;
  }
  const size_t colon = line.find(':');
  if (colon != absl::string_view::npos) {
    call.response_.headers.Add(std::string(line.substr(0, colon)),
                               std::string(absl::StripAsciiWhitespace(line.substr(colon + 1))));
  }
  return size * count;
}

size_t CurlCall::OnBody(char* data, size_t size, size_t count, void* self) {
  auto& call = *static_cast<CurlCall*>(self);
  if (call.response_.body.size() + size * count > call.max_body_) {
    call.too_large_ = true;
    return 0;
  }
  call.response_.body.append(data, size * count);
  return size * count;
}

absl::StatusOr<Response> CurlCall::Finish(CURLcode code) {
  if (code != CURLE_OK) return base::Annotate(ErrorOf(code), TargetOf(request_));
  long status = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  response_.status = static_cast<int>(status);
  return std::move(response_);
}

std::optional<Response> CurlCall::TakePart() {
  constexpr long kOk = 200;
  if (!request_.streamed || response_.body.empty()) return std::nullopt;
  long status = 0;
  curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != kOk) return std::nullopt;
  return Response{.status = static_cast<int>(status),
                  .headers = response_.headers,
                  .body = std::exchange(response_.body, std::string())};
}

absl::Status CurlCall::ErrorOf(CURLcode code) const {
  const std::string text = error_[0] != '\0' ? std::string(error_) : curl_easy_strerror(code);
  if (too_large_) {
    return absl::ResourceExhaustedError(
        fmt::format("the answer is larger than {} bytes", max_body_));
  }
  if (IsTlsRefusal(code, text)) {
    return absl::FailedPreconditionError(fmt::format("no trust over TLS: {}", text));
  }
  // As long as it is not ready to send, nothing can have happened.
  const curl_off_t ready_us = Info(CURLINFO_PRETRANSFER_TIME_T);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return ready_us == 0 ? absl::UnavailableError(fmt::format("not reached: {}", text))
                           : absl::DeadlineExceededError(text);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      // The latter is also the code for an answer in no version of HTTP.
      return ready_us == 0 ? absl::InvalidArgumentError(text) : absl::UnavailableError(text);
    case CURLE_PARTIAL_FILE:
      return absl::UnavailableError(fmt::format("the answer was cut short: {}", text));
    default:
      return absl::UnavailableError(text);
  }
}

// Returns 0 for a call that libcurl has not seen yet.
curl_off_t CurlCall::Info(CURLINFO info) const {
  curl_off_t value = 0;
  if (handle_ != nullptr) curl_easy_getinfo(handle_.get(), info, &value);
  return value;
}

SteadyClock::time_point CurlCall::LeaveBy() const {
  constexpr auto kNever = SteadyClock::time_point::max();
  if (leave_by_ == kNever || Info(CURLINFO_PRETRANSFER_TIME_T) == 0) return leave_by_;
  const auto left = static_cast<size_t>(Info(CURLINFO_SIZE_UPLOAD_T));
  return left >= request_.body.size() ? kNever : leave_by_;
}

absl::Status CurlCall::Late() const {
  const std::string target = TargetOf(request_);
  if (Info(CURLINFO_PRETRANSFER_TIME_T) == 0) {
    return absl::UnavailableError(fmt::format("{}: not sent in its time to leave", target));
  }
  return absl::DeadlineExceededError(fmt::format("{}: {} of {} bytes had left in its time to leave",
                                                 target, Info(CURLINFO_SIZE_UPLOAD_T),
                                                 request_.body.size()));
}

class CurlTransport::Impl {
 public:
  explicit Impl(CurlOptions options) : options_(std::move(options)) {
    InitializeCurl();
    multi_.reset(curl_multi_init());
    CHECK(multi_ != nullptr, "libcurl has memory");
    const auto connections = static_cast<long>(options_.max_connections);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, connections);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, connections);
  }

  ~Impl() {
    for (const auto& [handle, call] : running_) curl_multi_remove_handle(multi_.get(), handle);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Send(uint64_t id, Request request, absl::Duration timeout) {
    if (waiting_.size() >= options_.max_waiting) {
      completed_.push_back({id, absl::ResourceExhaustedError(
                                    fmt::format("{} HTTP calls wait already", waiting_.size()))});
      return;
    }
    waiting_.push_back({std::make_unique<CurlCall>(id, std::move(request)), After(timeout)});
  }

  std::vector<Completion> Wait(absl::Duration wait) {
    const auto until = After(wait);
    for (;;) {
      // This comes right before libcurl may send: a program that was stopped meanwhile sends
      // nothing that it should not any more.
      const auto leave_by = GiveUpLate(SteadyClock::now());
      Start();
      Perform();
      const auto now = SteadyClock::now();
      // This is read before the calls are looked at: a wake must not be lost, whatever else there
      // is.
      const bool woken = woken_.exchange(false);
      if (woken || !completed_.empty() || now >= until) return std::exchange(completed_, {});
      const auto end = std::max(now, std::min(until, leave_by));
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now).count();
      constexpr int64_t kLongestPoll = 60000;
      curl_multi_poll(multi_.get(), nullptr, 0,
                      static_cast<int>(std::min<int64_t>(left, kLongestPoll)), nullptr);
    }
  }

  void Wake() {
    woken_.store(true);
    curl_multi_wakeup(multi_.get());
  }

 private:
  struct Waiting {
    std::unique_ptr<CurlCall> call;
    SteadyClock::time_point deadline;
  };

  // Gives up the calls that have not left in full in their time. Returns when to look again.
  SteadyClock::time_point GiveUpLate(SteadyClock::time_point now) {
    auto next = SteadyClock::time_point::max();
    const auto is_late = [&](const CurlCall& call) {
      const auto leave_by = call.LeaveBy();
      if (leave_by > now) next = std::min(next, leave_by);
      return leave_by <= now;
    };
    std::erase_if(waiting_, [&](const Waiting& waiting) {
      const bool late = is_late(*waiting.call);
      if (late) completed_.push_back({waiting.call->id(), waiting.call->Late()});
      return late;
    });
    for (auto it = running_.begin(); it != running_.end();) {
      if (!is_late(*it->second)) {
        ++it;
        continue;
      }
      completed_.push_back({it->second->id(), it->second->Late()});
      curl_multi_remove_handle(multi_.get(), it->first);
      it = running_.erase(it);
    }
    return next;
  }

  // Starts as many calls as there may be. Those whose time is over have never been sent.
  void Start() {
    while (!waiting_.empty() && running_.size() < options_.max_connections) {
      Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      const auto left = next.deadline - SteadyClock::now();
      const uint64_t id = next.call->id();
      if (left <= SteadyClock::duration::zero()) {
        completed_.push_back({id, absl::UnavailableError("no turn came in time: not sent")});
        continue;
      }
      const absl::Status status = next.call->Prepare(options_, absl::FromChrono(left));
      if (!status.ok()) {
        completed_.push_back({id, status});
        continue;
      }
      CURL* handle = next.call->handle();
      CHECK(curl_multi_add_handle(multi_.get(), handle) == CURLM_OK, "a new handle can be added");
      running_.emplace(handle, std::move(next.call));
    }
  }

  void Perform() {
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    for (const auto& [handle, call] : running_) {
      if (auto part = call->TakePart()) {
        completed_.push_back({call->id(), *std::move(part), /*more=*/true});
      }
    }
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* handle = message->easy_handle;
      curl_multi_remove_handle(multi_.get(), handle);  // `message` is gone from here on.
      const auto found = running_.find(handle);
      CHECK(found != running_.end(), "libcurl completes what we gave it");
      completed_.push_back({found->second->id(), found->second->Finish(code)});
      running_.erase(found);
    }
  }

  const CurlOptions options_;
  std::unique_ptr<CURLM, CurlMultiDeleter> multi_;
  std::deque<Waiting> waiting_;
  std::unordered_map<CURL*, std::unique_ptr<CurlCall>> running_;
  std::vector<Completion> completed_;
  std::atomic<bool> woken_{false};
};

CurlTransport::CurlTransport(CurlOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
CurlTransport::~CurlTransport() = default;

void CurlTransport::Send(uint64_t id, Request request, absl::Duration timeout) {
  impl_->Send(id, std::move(request), timeout);
}
std::vector<Completion> CurlTransport::Wait(absl::Duration wait) { return impl_->Wait(wait); }
void CurlTransport::Wake() { impl_->Wake(); }

absl::StatusOr<Response> Fetch(Request request, absl::Duration timeout,
                               const CurlOptions& options) {
  CurlTransport transport(options);
  return Fetch(transport, std::move(request), timeout);
}

bool NeverProxied(std::string_view url) {
  const auto host = ip::Address::Parse(HostOf(url));
  if (!host.ok()) return false;
  if (!host->is_v4()) return (host->high() >> 54U) == 0x3FA;  // fe80::/10
  constexpr uint64_t kLinkLocal = 0xA9FE0000;                 // 169.254.0.0/16
  constexpr uint64_t kAzurePlatform = 0xA83F8110;             // 168.63.129.16
  return (host->low() & 0xFFFF0000U) == kLinkLocal || host->low() == kAzurePlatform;
}

}  // namespace spoke::http
