// A FastPath in memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "netagent/fastpath/fast_path.h"

namespace spoke::netagent {

// The fake is not thread-safe. It passes the same contract suite as the real one
// (fast_path_contract.h). What the kernel would keep without an agent outlives the agent here if
// the same object is used again.
class FakeFastPath final : public FastPath {
 public:
  explicit FakeFastPath(std::vector<std::string> devices) : devices_(std::move(devices)) {}

  absl::StatusOr<bool> IsThere() override;
  absl::Status Configure(const FastPathTable& table) override;
  absl::StatusOr<uint64_t> AddPod(const TrafficPod& pod, PodWay way) override;
  absl::Status Change(uint64_t id, PodWay way,
                      const std::optional<ip::MacAddress>& pod_mac) override;
  absl::Status SetLocal(const std::set<ip::Address>& addresses) override;
  absl::Status AddLocal(const std::vector<ip::Address>& addresses) override;
  absl::Status EndPod(uint64_t id) override;
  absl::Status ForgetPod(uint64_t id) override;
  absl::StatusOr<std::vector<FastPodReading>> Read() override;
  absl::StatusOr<std::vector<RefusedCount>> ReadRefused() override;
  absl::Status SweepTranslated() override { return broken_; }
  absl::StatusOr<size_t> Repair() override;
  absl::Status Remove() override;

  // Set and return, for tests, what has passed, what is in force, and how it fails from now on (OK:
  // no more).
  void Count(uint64_t id, const FastCounts& counts) { pods_.at(id).counts = counts; }
  const std::optional<FastPathTable>& table() const { return table_; }
  // Returns the addresses to which packets go the ordinary way.
  std::set<ip::Address> ordinary() const;
  void Break(absl::Status status) { broken_ = std::move(status); }
  // Lets more of the pod's connections be translated than is remembered.
  void ExceedShare(uint64_t id) { pods_.at(id).over_share = true; }
  // Lets pods' links refuse packets, for the reason of this index.
  void Refuse(size_t reason, uint64_t packets) { refused_.at(reason) += packets; }
  // Lets somebody take programs off so many devices.
  void TakeOff(size_t devices) { missing_ = devices; }
  // Lets ForgetPod() fail.
  void KeepAll(bool keep) { keep_ = keep; }

 private:
  std::vector<std::string> devices_;
  std::optional<FastPathTable> table_;
  std::map<uint64_t, FastPodReading> pods_;
  std::set<ip::Address> ordinary_;
  std::array<uint64_t, kRefusedReasons.size()> refused_{};
  uint64_t last_id_ = 0;
  absl::Status broken_;
  bool keep_ = false;
  size_t missing_ = 0;
};

}  // namespace spoke::netagent
