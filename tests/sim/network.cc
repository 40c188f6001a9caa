#include "tests/sim/network.h"

#include <algorithm>
#include <vector>

namespace spoke::sim {
namespace {

// How long an end waits for signs of life before it takes the other for dead.
constexpr absl::Duration kLeastNotice = absl::Seconds(5);
constexpr absl::Duration kMostNotice = absl::Seconds(40);

absl::Time Latest(const std::map<size_t, absl::Time>& cut, size_t key) {
  const auto it = cut.find(key);
  return it == cut.end() ? absl::InfinitePast() : it->second;
}

}  // namespace

absl::Duration Network::Delay() {
  if (random_.Chance(faults_.slow)) return random_.Between(faults_.most, faults_.slow_most);
  return random_.Between(faults_.least, faults_.most);
}

absl::Time Network::BlockedUntil(size_t node, size_t server) const {
  return std::max(Latest(nodes_cut_, node), Latest(servers_cut_, server));
}

Network::Stream* Network::Find(StreamId stream) {
  const auto it = streams_.find(stream);
  return it == streams_.end() ? nullptr : it->second.get();
}

void Network::ForEachOfNode(size_t node, const std::function<void(StreamId)>& act) {
  const auto found = streams_of_.find(node);
  if (found == streams_of_.end()) return;
  const std::set<StreamId> chosen = found->second;
  for (const StreamId id : chosen) act(id);
}

void Network::ForEachOfServer(size_t server, const std::function<void(StreamId)>& act) {
  std::vector<StreamId> chosen;
  for (const auto& [id, stream] : streams_) {
    if (stream->server == server) chosen.push_back(id);
  }
  std::sort(chosen.begin(), chosen.end());
  for (const StreamId id : chosen) act(id);
}

void Network::CutOffNode(size_t node, absl::Time until) {
  nodes_cut_[node] = std::max(until, Latest(nodes_cut_, node));
  ForEachOfNode(node, [this](StreamId id) { Notice(id); });
}

void Network::CutOffServer(size_t server, absl::Time until) {
  servers_cut_[server] = std::max(until, Latest(servers_cut_, server));
  ForEachOfServer(server, [this](StreamId id) { Notice(id); });
}

// Each end finds out by itself that nothing comes any more, if that lasts.
void Network::Notice(StreamId id) {
  const auto later = [this, id](const std::function<void()>& act) {
    schedule_.After(random_.Between(kLeastNotice, kMostNotice), [this, id, act] {
      const Stream* stream = Find(id);
      if (stream != nullptr && BlockedUntil(stream->node, stream->server) > schedule_.now()) act();
    });
  };
  later([this, id] { BreakUp(id); });
  later([this, id] { BreakDown(id, absl::UnavailableError("keepalive watchdog timeout")); });
}

StreamId Network::Open(size_t node, size_t server) {
  const StreamId id = ++last_;
  Stream& stream = *streams_.emplace(id, std::make_unique<Stream>()).first->second;
  stream.node = node;
  stream.server = server;
  streams_of_[node].insert(id);
  // Nothing that is said on it is there before the stream is.
  stream.up.arrives = std::max(schedule_.now() + Delay(), BlockedUntil(node, server));
  schedule_.At(stream.up.arrives, [this, id] {
    const Stream* opened = Find(id);
    if (opened != nullptr && opened->up.open) ends_.OnOpened(id, opened->server);
  });
  if (BlockedUntil(node, server) > schedule_.now()) Notice(id);
  return id;
}

void Network::FromAgent(StreamId id, v1::AgentMessage message) { SendUp(id, std::move(message)); }
void Network::EndOfAgent(StreamId id) { SendUp(id, std::nullopt); }
void Network::FromServer(StreamId id, v1::ServerMessage message) {
  SendDown(id, std::move(message), absl::OkStatus());
}
void Network::EndOfServer(StreamId id, absl::Status why) {
  SendDown(id, std::nullopt, std::move(why));
}

void Network::SendUp(StreamId id, std::optional<v1::AgentMessage> message) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->up.open) return;
  stream->up.waiting.emplace_back(std::move(message), absl::OkStatus());
  stream->up.arrives = std::max(stream->up.arrives, schedule_.now() + Delay());
  schedule_.At(stream->up.arrives, [this, id] { ArriveUp(id); });
}

void Network::SendDown(StreamId id, std::optional<v1::ServerMessage> message, absl::Status why) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->down.open) return;
  stream->down.waiting.emplace_back(std::move(message), std::move(why));
  stream->down.arrives = std::max(stream->down.arrives, schedule_.now() + Delay());
  schedule_.At(stream->down.arrives, [this, id] { ArriveDown(id); });
}

void Network::ArriveUp(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->up.open || stream->up.waiting.empty()) return;
  const absl::Time blocked = BlockedUntil(stream->node, stream->server);
  if (blocked > schedule_.now()) {
    schedule_.At(blocked, [this, id] { ArriveUp(id); });
    return;
  }
  auto message = std::move(stream->up.waiting.front().first);
  stream->up.waiting.pop_front();
  if (!message) return BreakUp(id);
  ends_.OnAgentMessage(id, stream->server, *std::move(message));
}

void Network::ArriveDown(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || !stream->down.open || stream->down.waiting.empty()) return;
  const absl::Time blocked = BlockedUntil(stream->node, stream->server);
  if (blocked > schedule_.now()) {
    schedule_.At(blocked, [this, id] { ArriveDown(id); });
    return;
  }
  auto [message, why] = std::move(stream->down.waiting.front());
  stream->down.waiting.pop_front();
  if (!message) return BreakDown(id, why);
  ends_.OnServerMessage(id, stream->node, *std::move(message));
}

// The server hears that its agent is gone.
void Network::BreakUp(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr || !std::exchange(stream->up.open, false)) return;
  const size_t server = stream->server;
  Forget(id);
  ends_.OnAgentEnded(id, server);
}

void Network::BreakDown(StreamId id, const absl::Status& why) {
  Stream* stream = Find(id);
  if (stream == nullptr || !std::exchange(stream->down.open, false)) return;
  const size_t node = stream->node;
  Forget(id);
  ends_.OnServerEnded(id, node, why);
}

void Network::Forget(StreamId id) {
  const auto it = streams_.find(id);
  if (it->second->up.open || it->second->down.open) return;
  const auto of_node = streams_of_.find(it->second->node);
  of_node->second.erase(id);
  if (of_node->second.empty()) streams_of_.erase(of_node);
  streams_.erase(it);
}

void Network::Cut(StreamId id) {
  Stream* stream = Find(id);
  if (stream == nullptr) return;
  // What is in the agent's own buffers goes with the stream.
  if (!stream->up.waiting.empty() && random_.Chance(0.5)) {
    stream->up.waiting.clear();
    trace_.Count("messages lost with their stream");
  }
  EndOfAgent(id);
  schedule_.After(absl::Microseconds(50),
                  [this, id] { BreakDown(id, absl::CancelledError("the stream was cut")); });
}

void Network::EndNode(size_t node, bool silent) {
  ForEachOfNode(node, [&](StreamId id) {
    Find(id)->down.open = false;
    if (silent) {
      trace_.Count("half-open stream");
      const absl::Duration notice = random_.Between(kLeastNotice, kMostNotice);
      schedule_.After(notice, [this, id] { BreakUp(id); });
    } else {
      EndOfAgent(id);
    }
  });
}

void Network::EndServer(size_t server, bool silent) {
  ForEachOfServer(server, [&](StreamId id) {
    Find(id)->up.open = false;
    const absl::Status why = absl::UnavailableError("the server's process has ended");
    if (silent) {
      trace_.Count("half-open stream");
      const absl::Duration notice = random_.Between(kLeastNotice, kMostNotice);
      schedule_.After(notice, [this, id, why] { BreakDown(id, why); });
    } else {
      EndOfServer(id, why);
    }
  });
}

}  // namespace spoke::sim
