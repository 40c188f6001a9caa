// The part one pod may have of what a node's pods share: the kernel's table of tracked connections,
// and the ports that its connections are translated to. Pure: no I/O, no clock.
//
// The kernel can count a pod's connections itself (nf_conncount), at the price of a walk through
// all of them for a new one: 0.6 ms at 50,000. So the table is listed now and then, which also
// shows who has how many, and a pod that has more than its share begins no more until it has less.
// Between two lists a rate holds it (share_rules.h), so that it cannot take everything meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/connections/connection_tally.h"

namespace spoke::netagent {

// How full the kernel's table is.
struct TableUse {
  uint64_t entries = 0;
  uint64_t limit = 0;  // 0: there is no limit.
};

// The shares that the configuration sets; nothing: the usual ones.
struct ShareSettings {
  bool bounded = true;
  std::optional<uint32_t> connections;
  std::optional<uint32_t> ports;

  bool operator==(const ShareSettings&) const = default;
};

struct ConnectionShares {
  uint32_t connections = 0;  // Connections that a pod has begun.
  uint32_t ports = 0;        // Ports of translated ones with one target.

  // The rate and the burst at which a pod may begin connections while nobody looks.
  uint32_t per_second() const;
  uint32_t burst() const;

  bool operator==(const ConnectionShares&) const = default;
};

// Returns the usual shares, a quarter of the table (131,072 at most) and half of the ports that the
// kernel chooses from, or those that are set. Nothing where the settings bound nothing.
std::optional<ConnectionShares> SharesOf(const ShareSettings& settings, const TableUse& table);

// The pods that begin no more connections.
struct OverShare {
  struct WithTarget {
    uint32_t link = 0;
    ip::Address address;
    uint8_t protocol = 0;

    auto operator<=>(const WithTarget&) const = default;
  };
  std::set<uint32_t> links;          // Those that begin none at all.
  std::set<WithTarget> with_target;  // Those that begin none to the target.

  bool operator==(const OverShare&) const = default;
};

// A pod that is over so many targets begins no connection at all.
inline constexpr size_t kMaxTargetsOver = 16;

// Returns who has more than a share, or had and still has more than seven eighths of it.
OverShare FindOver(const std::vector<PodConnections>& pods, const ConnectionShares& shares,
                   const OverShare& before);

// Decides when to list the table. Nothing is ever listed while it is empty.
class TallyPasses {
 public:
  // The pause between glances at how many entries there are, which cost one small file.
  static constexpr absl::Duration kGlance = absl::Seconds(5);
  // The pause between lists for whoever asks for the counts.
  static constexpr absl::Duration kPause = absl::Seconds(30);
  // A pause is never shorter than so many times what the last list took: 2 % of a processor.
  static constexpr int kTimesTheLast = 50;
  // The pause where somebody may come to have more than a share. It is longer for a list that takes
  // long, but within these limits.
  static constexpr absl::Duration kShortestPause = absl::Seconds(5);
  static constexpr absl::Duration kLongestPause = absl::Seconds(7);
  static constexpr int kTimesTheLastInNeed = 20;

  // When to glance next; nothing while a pass is under way.
  std::optional<absl::Time> NextGlance() const;
  // Whether to begin a pass now.
  bool Glance(absl::Time now, const TableUse& table, const std::optional<ConnectionShares>& shares);
  void OnBegun(absl::Time now, const TableUse& table);
  void OnEnded(absl::Time now);
  // Takes what the pass found.
  void OnTally(const ConnectionTally& tally, const std::optional<ConnectionShares>& shares);

 private:
  bool IsNeeded(const TableUse& table, const std::optional<ConnectionShares>& shares) const;

  absl::Time next_glance_ = absl::InfinitePast();
  std::optional<absl::Time> begun_;
  absl::Time ended_ = absl::InfinitePast();
  absl::Duration took_;
  uint64_t entries_ = 0;  // The number when the last pass began.
  bool near_ = false;     // Whether somebody had half of a share then.
};

}  // namespace spoke::netagent
