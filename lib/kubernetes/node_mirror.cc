#include "lib/kubernetes/node_mirror.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/kubernetes/answer.h"
#include "lib/kubernetes/node_requests.h"

namespace spoke::kubernetes {
namespace {

constexpr base::Backoff kBackoff{.initial = absl::Seconds(1), .max = absl::Seconds(30)};
// A watch that ends sooner, though well, is not begun anew at once: it would be done in a circle.
constexpr absl::Duration kShortWatch = absl::Seconds(1);

}  // namespace

// xorshift64*: the attempts of one client, which nobody could profit from foreseeing.
double NodeMirror::Jitter() {
  random_ ^= random_ >> 12U;
  random_ ^= random_ << 25U;
  random_ ^= random_ >> 27U;
  constexpr uint64_t kMultiplier = 2685821657736338717U;
  constexpr double kRange = 9007199254740992.0;  // 2^53
  return static_cast<double>((random_ * kMultiplier) >> 11U) / kRange;
}

std::optional<http::Request> NodeMirror::Next(absl::Time now) {
  if (call_ != Call::kNone || now < not_before_) return std::nullopt;
  begun_ = now;
  if (version_.empty()) {
    call_ = Call::kList;
    return ListNodesRequest(next_page_);
  }
  call_ = Call::kWatch;
  line_.clear();
  ++counters_.watches;
  return WatchNodesRequest(version_);
}

absl::Time NodeMirror::NextAt() const {
  return call_ == Call::kNone ? not_before_ : absl::InfiniteFuture();
}

bool NodeMirror::OnPart(std::string_view body, absl::Time now) {
  if (call_ != Call::kWatch) return false;
  const absl::Status status = OnLines(body, now);
  if (status.ok()) return true;
  call_ = Call::kNone;
  // Some of its events are lost, so only a list tells what they were about.
  Fail(status, /*list_anew=*/true, now, now);
  return false;
}

absl::Status NodeMirror::OnLines(std::string_view body, absl::Time now) {
  for (size_t end = body.find('\n'); end != std::string_view::npos; end = body.find('\n')) {
    line_ += body.substr(0, end);
    body.remove_prefix(end + 1);
    RETURN_IF_ERROR(OnLine(std::exchange(line_, std::string()), now));
  }
  line_ += body;
  if (line_.size() <= kMaxLineBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError("an event of the watch is too long");
}

absl::Status NodeMirror::OnLine(std::string_view line, absl::Time now) {
  if (line.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(WatchEvent event, ParseWatchEvent(line));
  if (event.kind == WatchEvent::Kind::kError) return StatusOfCode(event.code, event.message);
  heard_ = now;
  failures_ = 0;
  trouble_ = absl::OkStatus();
  version_ = event.node.resource_version;
  switch (event.kind) {
    case WatchEvent::Kind::kAdded:
    case WatchEvent::Kind::kModified:
      Put(std::move(event.node));
      break;
    case WatchEvent::Kind::kDeleted:
      nodes_.erase(event.node.name);
      break;
    case WatchEvent::Kind::kBookmark:
    case WatchEvent::Kind::kError:
      break;
  }
  return absl::OkStatus();
}

void NodeMirror::OnEnd(const absl::StatusOr<http::Response>& response, absl::Time now) {
  const Call call = std::exchange(call_, Call::kNone);
  if (call == Call::kNone) return;
  const bool watching = call == Call::kWatch;
  if (!response.ok()) {
    // A watch that has brought something and was cut is begun again like one that has ended.
    if (!watching || heard_ <= begun_) return Fail(response.status(), false, now, now);
    not_before_ = begun_ + kShortWatch;
    return;
  }
  if (const absl::Status status =
          StatusOfAnswer(*response, watching ? "watch nodes" : "list nodes");
      !status.ok()) {
    // The version, or the token of the page, is no good any more.
    const bool anew = response->status == 400 || response->status == 410 || response->status == 422;
    const auto wait = http::RetryAfter(response->headers, now).value_or(absl::ZeroDuration());
    return Fail(status, anew, now + wait, now);
  }
  if (!watching) return OnListPage(*response, now);
  if (const absl::Status status = OnLines(response->body, now); !status.ok()) {
    return Fail(status, /*list_anew=*/true, now, now);
  }
  heard_ = now;
  failures_ = 0;
  trouble_ = absl::OkStatus();
  not_before_ = begun_ + kShortWatch;
}

void NodeMirror::OnListPage(const http::Response& response, absl::Time now) {
  auto page = ParseNodeList(response.body);
  if (!page.ok()) return Fail(page.status(), /*list_anew=*/true, now, now);
  counters_.unreadable += page->unreadable;
  for (Node& node : page->nodes) {
    std::string name = node.name;
    listing_.insert_or_assign(std::move(name), std::move(node));
  }
  next_page_ = std::move(page->next);
  heard_ = now;
  if (!next_page_.empty()) return;
  // What a patch has told since may be newer than the list.
  for (auto& [name, node] : listing_) {
    const auto known = nodes_.find(name);
    if (known != nodes_.end() && IsOlder(node.resource_version, known->second.resource_version) &&
        node.uid == known->second.uid) {
      node = std::move(known->second);
    }
  }
  nodes_ = std::exchange(listing_, {});
  version_ = std::move(page->resource_version);
  complete_ = true;
  trouble_ = absl::OkStatus();
  ++counters_.lists;
}

void NodeMirror::ListAnew() {
  version_.clear();
  next_page_.clear();
  listing_.clear();
}

void NodeMirror::Fail(const absl::Status& why, bool list_anew, absl::Time not_before,
                      absl::Time now) {
  trouble_ = why;
  if (absl::IsOutOfRange(why)) ++counters_.forgotten;
  if (list_anew) ListAnew();
  not_before_ = std::max(not_before, now + kBackoff.Delay(failures_, Jitter()));
  ++failures_;
}

void NodeMirror::Put(Node node) {
  const auto it = nodes_.find(node.name);
  if (it == nodes_.end()) {
    std::string name = node.name;
    nodes_.emplace(std::move(name), std::move(node));
    return;
  }
  const bool is_same = it->second.uid == node.uid;
  if (is_same && IsOlder(node.resource_version, it->second.resource_version)) return;
  it->second = std::move(node);
}

void NodeMirror::Take(Node node) {
  if (nodes_.contains(node.name)) Put(std::move(node));
}

absl::Status NodeMirror::Trouble(absl::Time now) const {
  if (!trouble_.ok()) return trouble_;
  if (now - heard_ > kLongestSilence) {
    return absl::UnavailableError("the API server has said nothing of nodes for minutes");
  }
  return absl::OkStatus();
}

}  // namespace spoke::kubernetes
