// The network between nodes and servers: connections that are slow, break, go silent on one side or
// on both, and machines that cannot reach one another for a while.
//
// Within a connection everything keeps its order; between two of them nothing does. What is said
// while two machines are cut off from each other waits, as TCP keeps it, until they are joined
// again or an end gives up.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/sim/basis.h"

namespace spoke::sim {

// How one end of a connection hears of what the other does. Called in events of the world, never
// within a call of Connection.
struct ConnectionEnd {
  std::function<void(const std::string& bytes)> on_message;
  std::function<void(const absl::Status& why)> on_end;  // Once; nothing follows.
};

class Network;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  enum Side { kAgent = 0, kServer = 1 };

  // `ends` may be set later, by Listen(): what comes before is lost.
  Connection(Network& network, Basis& basis, std::string node, std::string server);

  void Listen(Side side, ConnectionEnd end) { ends_[side] = std::move(end); }
  // Says something to the other side.
  void Send(Side from, std::string bytes);
  // Ends it: the other side hears of it behind what was said before. The own side hears nothing.
  void Close(Side from, const absl::Status& why);
  // Says that nothing more comes from this side, which goes on listening: the other side hears that
  // as an end.
  void HalfClose(Side from);
  // This side is gone without a word, as a machine without power.
  void Vanish(Side side);

  const std::string& node() const { return node_; }
  const std::string& server() const { return server_; }
  bool over() const { return ends_[0].on_end == nullptr && ends_[1].on_end == nullptr; }

 private:
  friend class Network;
  struct Item {
    absl::Time at;
    std::function<void(ConnectionEnd&)> what;
  };
  void Enqueue(Side from, Item item);
  void EndBehind(Side from, const absl::Status& why);
  void Pump(Side to);
  // Ends one side in an event of its own.
  void EndSoon(Side side, absl::Duration after, const absl::Status& why);
  // Both sides hear sooner or later that nothing passes any more.
  void Break(absl::Duration most);

  Network& network_;
  Basis& basis_;
  const std::string node_;
  const std::string server_;
  ConnectionEnd ends_[2];
  std::deque<Item> queues_[2];  // By the side they go to.
  bool silent_ = false;         // Nothing passes any more, and nobody knows.
};

class Network {
 public:
  explicit Network(Basis& basis) : basis_(basis) {}

  bool Joined(const std::string& node, const std::string& server) const {
    return !cut_.contains({node, server});
  }
  void Cut(const std::string& node, const std::string& server);
  void Join(const std::string& node, const std::string& server);
  void JoinAll();

  std::shared_ptr<Connection> Open(const std::string& node, const std::string& server);
  // Breaks a connection, or makes it half-open. False: there is none.
  bool BreakOne(bool half_open);

  absl::Duration Latency();

 private:
  friend class Connection;
  void Forget();

  Basis& basis_;
  std::set<std::pair<std::string, std::string>> cut_;
  std::vector<std::weak_ptr<Connection>> connections_;
};

}  // namespace spoke::sim
