// Tells whether something listens at TCP ports: many at once, without waiting.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "lib/os/unique_fd.h"

namespace spoke::netagent {

struct TcpProbeTarget {
  ip::Address address;
  uint16_t port = 0;
  // The mark of the packets, so that they take the route that it leads to; 0: none.
  uint32_t mark = 0;

  auto operator<=>(const TcpProbeTarget&) const = default;
};

// Implementations are not thread-safe.
class TcpProbe {
 public:
  virtual ~TcpProbe() = default;

  // Begins to connect; one that is under way to the target is given up.
  virtual void Begin(const TcpProbeTarget& target, absl::Time now) = 0;
  // Returns the targets whose probes have ended, and whether they reached somebody. One that has
  // not within kPatience has failed. Returns at once.
  virtual std::vector<std::pair<TcpProbeTarget, bool>> Collect(absl::Time now) = 0;

  static constexpr absl::Duration kPatience = absl::Seconds(1);
};

class SocketTcpProbe final : public TcpProbe {
 public:
  void Begin(const TcpProbeTarget& target, absl::Time now) override;
  std::vector<std::pair<TcpProbeTarget, bool>> Collect(absl::Time now) override;

 private:
  struct Attempt {
    os::UniqueFd fd;  // Invalid when it has failed already.
    absl::Time began;
  };
  std::map<TcpProbeTarget, Attempt> attempts_;
};

}  // namespace spoke::netagent
