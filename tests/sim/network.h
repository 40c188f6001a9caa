// The network between agents and servers: streams that are slow, stand still, break at one end
// before the other, and are told of late. Within a stream nothing overtakes and nothing is lost,
// as with TCP; between two streams everything may happen.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "proto/spoke/v1/node.pb.h"
#include "tests/sim/schedule.h"
#include "tests/sim/trace.h"

namespace spoke::sim {

using StreamId = uint64_t;

// What a stream's two ends hear. A process that has ended hears nothing.
class StreamEnds {
 public:
  virtual ~StreamEnds() = default;
  virtual void OnOpened(StreamId stream, size_t server) = 0;
  virtual void OnAgentMessage(StreamId stream, size_t server, v1::AgentMessage message) = 0;
  virtual void OnAgentEnded(StreamId stream, size_t server) = 0;
  virtual void OnServerMessage(StreamId stream, size_t node, v1::ServerMessage message) = 0;
  virtual void OnServerEnded(StreamId stream, size_t node, const absl::Status& why) = 0;
};

struct NetworkFaults {
  absl::Duration least = absl::Microseconds(200);  // How long a message is on its way.
  absl::Duration most = absl::Milliseconds(2);
  double slow = 0;  // The share of messages that take up to:
  absl::Duration slow_most = absl::Seconds(3);
};

// Not thread-safe.
class Network {
 public:
  // Borrows all of it.
  Network(Schedule& schedule, Random& random, Trace& trace, const NetworkFaults& faults,
          StreamEnds& ends)
      : schedule_(schedule), random_(random), trace_(trace), faults_(faults), ends_(ends) {}

  // Cuts off a node, or a server, from all others until `until`.
  void CutOffNode(size_t node, absl::Time until);
  void CutOffServer(size_t server, absl::Time until);
  // Returns until when nothing gets from one to the other; the past: it does.
  absl::Time BlockedUntil(size_t node, size_t server) const;
  absl::Duration Delay();

  StreamId Open(size_t node, size_t server);
  // What the two ends do. Each end may end the stream; what it has sent before may still arrive.
  void FromAgent(StreamId stream, v1::AgentMessage message);
  void EndOfAgent(StreamId stream);
  void FromServer(StreamId stream, v1::ServerMessage message);
  void EndOfServer(StreamId stream, absl::Status why);
  // The agent breaks the stream: nothing more is taken from the server, and what was sent may be
  // lost.
  void Cut(StreamId stream);

  // A process has ended, and its kernel says so to the others; `silent`: its machine has.
  void EndNode(size_t node, bool silent);
  void EndServer(size_t server, bool silent);

 private:
  template <typename Message>
  struct Way {
    // No message: the end of what is sent.
    std::deque<std::pair<std::optional<Message>, absl::Status>> waiting;
    absl::Time arrives = absl::InfinitePast();  // The last one's.
    bool open = true;                           // The receiver listens.
  };
  struct Stream {
    size_t node = 0;
    size_t server = 0;
    Way<v1::AgentMessage> up;
    Way<v1::ServerMessage> down;
  };

  Stream* Find(StreamId stream);
  void SendUp(StreamId id, std::optional<v1::AgentMessage> message);
  void SendDown(StreamId id, std::optional<v1::ServerMessage> message, absl::Status why);
  void ArriveUp(StreamId id);
  void ArriveDown(StreamId id);
  void Notice(StreamId id);
  void BreakUp(StreamId id);
  void BreakDown(StreamId id, const absl::Status& why);
  void Forget(StreamId id);
  // Both call `act` with each stream that there is when they are called, the oldest first.
  void ForEachOfNode(size_t node, const std::function<void(StreamId)>& act);
  void ForEachOfServer(size_t server, const std::function<void(StreamId)>& act);

  Schedule& schedule_;
  Random& random_;
  Trace& trace_;
  const NetworkFaults& faults_;
  StreamEnds& ends_;
  StreamId last_ = 0;
  absl::flat_hash_map<StreamId, std::unique_ptr<Stream>> streams_;
  std::map<size_t, std::set<StreamId>> streams_of_;  // Keyed by node.
  std::map<size_t, absl::Time> nodes_cut_;
  std::map<size_t, absl::Time> servers_cut_;
};

}  // namespace spoke::sim
