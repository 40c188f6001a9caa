#include "lib/http/curl_transport.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <unordered_map>
#include <utility>

#include "lib/base/check.h"
#include "lib/http/curl_call.h"
#include "lib/ip/prefix.h"

namespace spoke::http {
namespace {

using SteadyClock = std::chrono::steady_clock;

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
    waiting_.push_back({std::make_unique<CurlCall>(id, std::move(request)),
                        SteadyClock::now() + absl::ToChronoNanoseconds(timeout)});
  }

  std::vector<Completion> Wait(absl::Duration wait) {
    const auto until = SteadyClock::now() + absl::ToChronoNanoseconds(wait);
    for (;;) {
      Start();
      Perform();
      const auto now = SteadyClock::now();
      // This is read before the calls are looked at: a wake must not be lost, whatever else there
      // is.
      const bool woken = woken_.exchange(false);
      if (woken || !completed_.empty() || now >= until) return std::exchange(completed_, {});
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
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
  transport.Send(1, std::move(request), timeout);
  for (;;) {
    std::vector<Completion> completed = transport.Wait(timeout);
    if (!completed.empty()) return std::move(completed.front().response);
  }
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
