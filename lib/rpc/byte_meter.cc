#include "lib/rpc/byte_meter.h"

#include <algorithm>
#include <utility>

namespace spoke::rpc {

ByteMeter::Connection ByteMeter::Begin(const ip::Address& peer, absl::Time now) const {
  return {.peer = peer,
          .allowance = static_cast<double>(limits_.burst_bytes),
          .sent = {},
          .looked = now};
}

bool ByteMeter::Look(Connection& connection, const Sent& sent, absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(std::max(now - connection.looked, {}));
  const auto came = static_cast<double>(sent.bytes - connection.sent.bytes);
  const auto refill = static_cast<double>(limits_.bytes_per_second) * seconds;
  connection.allowance =
      std::min(static_cast<double>(limits_.burst_bytes), connection.allowance + refill) - came;
  const double finished = static_cast<double>(sent.whole - connection.sent.whole) +
                          static_cast<double>(limits_.unfinished_bytes_per_second) * seconds;
  SetUnfinished(connection, std::max(0.0, connection.unfinished + came - finished));
  connection.sent = sent;
  connection.looked = now;
  if (connection.allowance < 0) return false;
  if (limits_.unfinished_bytes == 0 || connection.unfinished <= static_cast<double>(kAnyway)) {
    return true;
  }
  const auto most = static_cast<double>(limits_.unfinished_bytes);
  const double together = most + static_cast<double>(kShare) *
                                     static_cast<double>(limits_.peers.connections_per_address);
  return connection.unfinished <= most && unfinished_.at(connection.peer) <= together;
}

void ByteMeter::SetUnfinished(Connection& connection, double bytes) {
  double& together = unfinished_[connection.peer];
  together += bytes - std::exchange(connection.unfinished, bytes);
  if (together < 1) unfinished_.erase(connection.peer);
}

}  // namespace spoke::rpc
