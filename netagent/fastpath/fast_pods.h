// Guards the links of all pods, and decides which of them go by the fast path: it is the one who
// tells it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/telemetry/log.h"
#include "netagent/classes/traffic_pod.h"
#include "netagent/fastpath/fast_hop.h"
#include "netagent/fastpath/fast_path.h"

namespace spoke::netagent {

// The object is not thread-safe; Traffic owns it.
//
// A connection that somebody translates must not come here with one of its directions. The fast
// path learns of it from its packets, but not of one that began before the fast path did. So, where
// connections are tracked, a pod that is older than the fast path keeps to the ordinary way until
// it ends.
class FastPods {
 public:
  using Pods = std::map<std::string, TrafficPod>;  // The pods, by host link.

  // Borrows all; without a `path` nothing is ever fast. `tracks` says whether the kernel tracks any
  // connection now.
  FastPods(FastPath* path, std::function<bool()> tracks, telemetry::Log& log)
      : path_(path), tracks_(std::move(tracks)), log_(log) {}

  // Takes over what an earlier agent has left, if any: pods that are still there go on, the others
  // end. Errors: those of FastPath; nothing is taken over then.
  absl::Status TakeOver(const FastPathTable& table, const Pods& live);

  // Makes sure that the kernel can do it, before anything relies on it. Without an uplink it makes
  // sure only that it can guard. Errors: those of FastPath::Configure().
  absl::Status Prepare(const std::string& uplink);

  // Returns whether the pod goes by the fast path now.
  bool IsFast(const std::string& host_link) const;

  // Goes by `table` from now on, guards all of `live`, and lets those go by it that `is_fast` says
  // and that may, none without an uplink; one that the kernel refuses is treated as by Add(). To
  // the others, and to `local`, packets of pods go the ordinary way. Does nothing before Prepare().
  // Errors: those of FastPath::Configure(), SetLocal() and Change().
  absl::Status Put(const FastPathTable& table, const std::set<ip::Address>& local, const Pods& live,
                   const std::function<bool(const TrafficPod&)>& is_fast);

  // Adds a pod, which is fast, or is not. If the kernel refuses, it goes the ordinary way
  // unguarded, and that is logged.
  void Add(const TrafficPod& pod, bool is_fast);
  // Lets the guard go by this MAC from now on. Does nothing where the pod is not known or has it
  // already; errors are logged.
  void SetMac(const std::string& host_link, const ip::MacAddress& mac);
  // Ends the pod. OK when it is not known.
  absl::Status End(const std::string& host_link);

  // Reads all that was counted, and forgets those that are `folded`. Returns nothing without a
  // path.
  absl::StatusOr<std::vector<FastPodReading>> Read(std::set<uint64_t>& folded);
  // Reads what was refused at pods' links. Returns nothing without a path.
  absl::StatusOr<std::vector<RefusedCount>> ReadRefused();
  // Forgets pods whose counts are kept elsewhere. Those that cannot be forgotten now stay in
  // `folded` of Read().
  void Forget(const std::vector<uint64_t>& ids);
  // Forgets what is old, says anew which addresses are this node's, and puts back what somebody has
  // taken off. Returns the number of devices, or why it could not be looked at.
  absl::StatusOr<size_t> Look(const std::set<ip::Address>& local, const Pods& live);

  // Returns how many links are guarded.
  size_t size() const { return known_.size(); }

 private:
  struct Known {
    uint64_t id = 0;
    PodWay way = PodWay::kOrdinary;
    std::optional<ip::MacAddress> mac = std::nullopt;
  };
  absl::Status SetLocal(std::set<ip::Address> local, const Pods& live);
  // Puts the pod. Errors: those of FastPath::Change(); a new one that is refused is logged.
  absl::Status PutPod(const TrafficPod& pod, PodWay way);

  FastPath* const path_;
  const std::function<bool()> tracks_;
  telemetry::Log& log_;
  std::map<std::string, Known> known_;  // The pods that are known, by host link.
  std::set<std::string> too_old_;
  uint64_t looks_ = 0;
  bool on_ = false;
  bool loaded_ = false;
};

}  // namespace spoke::netagent
