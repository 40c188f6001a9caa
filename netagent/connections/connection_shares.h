// What one pod may have of what all pods of a node share: of the kernel's table of tracked
// connections, and of the ports that its connections are translated to. Pure: no I/O, no clock.
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
  uint64_t limit = 0;  // 0: there is none.
};

// What the configuration says; nothing: as much as is usual.
struct ShareSettings {
  bool bounded = true;
  std::optional<uint32_t> connections;
  std::optional<uint32_t> ports;

  bool operator==(const ShareSettings&) const = default;
};

struct ConnectionShares {
  uint32_t connections = 0;  // That a pod has begun.
  uint32_t ports = 0;        // Of these, translated ones with one target.

  // What it may begin while nobody looks: so many a second, and so many at once.
  uint32_t per_second() const;
  uint32_t burst() const;

  bool operator==(const ConnectionShares&) const = default;
};

// A quarter of the table, but not more than 131,072, and half of the ports that the kernel chooses
// from. Nothing where the settings bound nothing.
std::optional<ConnectionShares> SharesOf(const ShareSettings& settings, const TableUse& table);

// Who begins no more connections.
struct OverShare {
  struct WithTarget {
    uint32_t link = 0;
    ip::Address address;
    uint8_t protocol = 0;

    auto operator<=>(const WithTarget&) const = default;
  };
  std::set<uint32_t> links;          // None at all.
  std::set<WithTarget> with_target;  // None of the protocol to the address.

  bool operator==(const OverShare&) const = default;
};

// A pod that is over so many targets begins no connection at all.
inline constexpr size_t kMaxTargetsOver = 16;

// Whoever has more than a share; or had, and still has more than seven eighths of it.
OverShare FindOver(const std::vector<PodConnections>& pods, const ConnectionShares& shares,
                   const OverShare& before);

// When to list the table. Nothing is ever listed while it is empty.
class TallyPasses {
 public:
  // A glance at how many entries there are, which costs one small file.
  static constexpr absl::Duration kGlance = absl::Seconds(5);
  // Lists for whoever asks for the counts.
  static constexpr absl::Duration kPause = absl::Seconds(30);
  // A pause is never shorter than so many times what the last list took: 2 % of a processor.
  static constexpr int kTimesTheLast = 50;
  // Where somebody may come to have more than a share: so long, or longer for a list that takes
  // long, but within these.
  static constexpr absl::Duration kShortestPause = absl::Seconds(5);
  static constexpr absl::Duration kLongestPause = absl::Seconds(7);
  static constexpr int kTimesTheLastInNeed = 20;

  // When to glance next; nothing while a pass is under way.
  std::optional<absl::Time> NextGlance() const;
  // Whether to begin a pass now.
  bool Glance(absl::Time now, const TableUse& table, const std::optional<ConnectionShares>& shares);
  void OnBegun(absl::Time now, const TableUse& table);
  void OnEnded(absl::Time now);
  // What the pass found.
  void OnTally(const ConnectionTally& tally, const std::optional<ConnectionShares>& shares);

 private:
  bool IsNeeded(const TableUse& table, const std::optional<ConnectionShares>& shares) const;

  absl::Time next_glance_ = absl::InfinitePast();
  std::optional<absl::Time> begun_;
  absl::Time ended_ = absl::InfinitePast();
  absl::Duration took_;
  uint64_t entries_ = 0;  // When the last pass began.
  bool near_ = false;     // Somebody had half of a share then.
};

}  // namespace spoke::netagent
