#include "tests/sim/network.h"

#include <algorithm>

namespace spoke::sim {
namespace {

// How long the ends of a connection wait for a sign of each other.
constexpr absl::Duration kKeepaliveLeast = absl::Seconds(15);
constexpr absl::Duration kKeepaliveMost = absl::Seconds(40);

absl::Status NoAnswer() { return absl::UnavailableError("the other end does not answer"); }

}  // namespace

Connection::Connection(Network& network, Basis& basis, std::string node, std::string server)
    : network_(network), basis_(basis), node_(std::move(node)), server_(std::move(server)) {}

void Connection::Enqueue(Side from, Item item) {
  const Side to = from == kAgent ? kServer : kAgent;
  item.at = basis_.schedule.now() + network_.Latency();
  if (!queues_[to].empty()) item.at = std::max(item.at, queues_[to].back().at);
  basis_.schedule.At(item.at, [self = shared_from_this(), to] { self->Pump(to); });
  queues_[to].push_back(std::move(item));
}

void Connection::Send(Side from, std::string bytes) {
  Enqueue(from, {.what = [bytes = std::move(bytes)](ConnectionEnd& end) {
            if (end.on_message) end.on_message(bytes);
          }});
}

void Connection::Close(Side from, const absl::Status& why) {
  ends_[from] = {};
  EndBehind(from, why);
}

void Connection::HalfClose(Side from) { EndBehind(from, absl::OkStatus()); }

void Connection::EndBehind(Side from, const absl::Status& why) {
  Enqueue(from, {.what = [why](ConnectionEnd& end) {
            const auto on_end = std::exchange(end, {}).on_end;
            if (on_end) on_end(why);
          }});
}

void Connection::Vanish(Side side) {
  ends_[side] = {};
  silent_ = true;
  EndSoon(side == kAgent ? kServer : kAgent, basis_.random.Between(kKeepaliveLeast, kKeepaliveMost),
          NoAnswer());
}

void Connection::Pump(Side to) {
  while (!queues_[to].empty() && queues_[to].front().at <= basis_.schedule.now()) {
    if (silent_ || !network_.Joined(node_, server_)) return;
    const Item item = std::move(queues_[to].front());
    queues_[to].pop_front();
    item.what(ends_[to]);
  }
}

void Connection::EndSoon(Side side, absl::Duration after, const absl::Status& why) {
  basis_.schedule.After(after, [self = shared_from_this(), side, why] {
    const auto on_end = std::exchange(self->ends_[side], {}).on_end;
    if (on_end) on_end(why);
  });
}

void Connection::Break(absl::Duration most) {
  silent_ = true;
  for (const Side side : {kAgent, kServer}) {
    EndSoon(side, basis_.random.Between(absl::ZeroDuration(), most), NoAnswer());
  }
}

absl::Duration Network::Latency() {
  // Most messages are fast; some meet a queue.
  if (basis_.random.Chance(0.02)) {
    return basis_.random.Between(absl::Milliseconds(1), absl::Milliseconds(800));
  }
  return basis_.random.Between(absl::Microseconds(100), absl::Milliseconds(3));
}

std::shared_ptr<Connection> Network::Open(const std::string& node, const std::string& server) {
  Forget();
  auto connection = std::make_shared<Connection>(*this, basis_, node, server);
  connections_.push_back(connection);
  return connection;
}

void Network::Forget() {
  std::erase_if(connections_, [](const auto& weak) {
    const auto connection = weak.lock();
    return connection == nullptr || connection->over();
  });
}

void Network::Cut(const std::string& node, const std::string& server) {
  if (!cut_.insert({node, server}).second) return;
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (connection == nullptr || connection->node() != node || connection->server() != server) {
      continue;
    }
    // Each end gives up in its own time, unless they are joined again before.
    for (const auto side : {Connection::kAgent, Connection::kServer}) {
      basis_.schedule.After(basis_.random.Between(kKeepaliveLeast, kKeepaliveMost),
                            [this, connection, side] {
                              const bool joined = Joined(connection->node(), connection->server());
                              if (joined && !connection->silent_) return;
                              connection->silent_ = true;
                              connection->EndSoon(side, absl::ZeroDuration(), NoAnswer());
                            });
    }
  }
}

void Network::Join(const std::string& node, const std::string& server) {
  if (cut_.erase({node, server}) == 0) return;
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (connection == nullptr || connection->node() != node || connection->server() != server) {
      continue;
    }
    connection->Pump(Connection::kAgent);
    connection->Pump(Connection::kServer);
  }
}

void Network::JoinAll() {
  const auto cut = cut_;
  for (const auto& [node, server] : cut) Join(node, server);
}

bool Network::BreakOne(bool half_open) {
  Forget();
  if (connections_.empty()) return false;
  const auto connection = connections_[basis_.random.Below(connections_.size())].lock();
  if (connection == nullptr || connection->silent_) return false;
  connection->Break(half_open ? kKeepaliveMost : absl::Milliseconds(200));
  return true;
}

}  // namespace spoke::sim
