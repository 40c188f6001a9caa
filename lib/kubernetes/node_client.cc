#include "lib/kubernetes/node_client.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/kubernetes/answer.h"
#include "lib/kubernetes/node_requests.h"

namespace spoke::kubernetes {
namespace {

// How long a watch may take beyond the time that the API server ends it after.
constexpr absl::Duration kWatchGrace = absl::Seconds(30);
// The wait when the API server has no room and does not say for how long: its own is a second.
constexpr absl::Duration kThrottledWait = absl::Seconds(1);
constexpr int kTooManyRequests = 429;
constexpr int kUnprocessable = 422;

}  // namespace

size_t NodeClient::room() const {
  if (clock_.Now() < paused_until_) return 0;
  return options_.max_writes - std::min(options_.max_writes, writing_.size());
}

std::optional<uint64_t> NodeClient::Send(http::Request request, absl::Duration timeout,
                                         absl::Status& why) {
  why = Authorize(options_.access, request);
  if (!why.ok()) return std::nullopt;
  request.url = options_.access.url + request.url;
  const uint64_t id = ++last_id_;
  transport_.Send(id, std::move(request), timeout);
  return id;
}

void NodeClient::Write(std::string node, http::Request request) {
  const bool is_json_patch = request.headers.Find("Content-Type") == "application/json-patch+json";
  absl::Status why;
  if (const auto id = Send(std::move(request), options_.patience, why); id) {
    writing_.emplace(*id, Writing{std::move(node), is_json_patch});
  } else {
    unsent_.push_back({.node = std::move(node), .status = why});
  }
}

void NodeClient::Observe() {
  const absl::Time now = clock_.Now();
  auto request = mirror_.Next(now);
  if (!request) return;
  const absl::Duration timeout = request->streamed ? kWatchTime + kWatchGrace : options_.patience;
  absl::Status why;
  observing_ = Send(*std::move(request), timeout, why);
  if (!observing_) mirror_.OnEnd(why, now);
}

std::vector<NodeClient::Written> NodeClient::Step(absl::Duration wait) {
  Observe();
  const absl::Duration until_next = mirror_.NextAt() - clock_.Now();
  if (!unsent_.empty()) wait = absl::ZeroDuration();
  const auto completed =
      transport_.Wait(std::max(absl::ZeroDuration(), std::min(wait, until_next)));
  std::vector<Written> ends = std::exchange(unsent_, {});
  for (const http::Completion& completion : completed) {
    const absl::Time now = clock_.Now();
    if (completion.id == observing_) {
      if (completion.more && completion.response.ok()) {
        // What is of no use any more ends by itself, and is not listened to.
        if (!mirror_.OnPart(completion.response->body, now)) observing_.reset();
      } else {
        observing_.reset();
        mirror_.OnEnd(completion.response, now);
      }
      continue;
    }
    const auto it = writing_.find(completion.id);
    if (it == writing_.end()) continue;
    ends.push_back(EndOf(it->second, completion.response));
    writing_.erase(it);
  }
  Observe();
  return ends;
}

NodeClient::Written NodeClient::EndOf(const Writing& writing,
                                      const absl::StatusOr<http::Response>& response) {
  Written end{.node = writing.node};
  if (!response.ok()) {
    end.status = base::Annotate(response.status(), "the cluster's API server");
    return end;
  }
  end.status = StatusOfAnswer(*response, "patch node " + writing.node);
  end.throttled = response->status == kTooManyRequests;
  const absl::Time now = clock_.Now();
  if (end.throttled) {
    const auto wait = http::RetryAfter(response->headers, now).value_or(kThrottledWait);
    paused_until_ = std::max(paused_until_, now + wait);
  }
  // The taints are not where the patch expected them.
  if (writing.is_json_patch && response->status == kUnprocessable) {
    end.status = absl::AbortedError(end.status.message());
  }
  if (end.status.ok()) {
    if (auto node = ParseNode(response->body); node.ok()) mirror_.Take(*std::move(node));
  }
  return end;
}

}  // namespace spoke::kubernetes
