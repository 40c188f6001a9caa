// The Shaper by tc and BPF.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/socket.h"
#include "netagent/shaping/queues/queue_device.h"
#include "netagent/shaping/queues/shape_maps.h"
#include "netagent/shaping/queues/shaped_links.h"
#include "netagent/shaping/shaper.h"

namespace spoke::netagent {

// Works in the network namespace it was made in. Needs CAP_NET_ADMIN and CAP_BPF; Linux 5.11.
//
// What the kernel has is read at first use and by Repair(), and known in between. Devices and
// programs stay when there is nothing more to shape: only Remove() takes them off, since the kernel
// waits long for a device to go.
class TcShaper final : public Shaper {
 public:
  // Makes a shaper for the calling thread's network namespace. Changes nothing yet. Errors:
  // kUnavailable, kPermissionDenied.
  static absl::StatusOr<std::unique_ptr<TcShaper>> Create();

  absl::Status Apply(const ShapingTables& tables) override;
  absl::StatusOr<ShapingReading> Read() override;
  absl::StatusOr<size_t> Repair() override;
  absl::Status Remove() override;

 private:
  using Blocks = std::vector<ShapeMaps::ScopeBlock>;

  explicit TcShaper(netlink::Socket socket) : socket_(std::move(socket)) {}

  // Loads programs and maps, those of an earlier agent where one of its programs was found.
  absl::Status Load(uint32_t found);
  // Reads what the kernel has, and takes over the programs of an earlier agent.
  absl::Status Observe(const ShapingTables& tables);
  // Makes the kernel as `tables` says, from what is known of it; returns how many things were
  // different.
  absl::StatusOr<size_t> Reconcile(const ShapingTables& tables, const Blocks& blocks);
  // Mends devices, their roots and programs; returns how many things were missing.
  absl::StatusOr<size_t> MendDevices();
  // Makes devices where none was there before: tries what comes later, and takes all off again if
  // it fails.
  absl::StatusOr<size_t> BeginDevices();
  absl::StatusOr<size_t> ChangeClasses(const ShapingTables& tables, const Blocks& blocks);
  absl::Status DoRemove();
  bool IsThere() const;
  ShapedLinks::Ends ends() const;
  // Returns which links the tables need, and as what.
  ShapedLinks::Wanted LinksFor(const ShapingTables& tables) const;

  netlink::Socket socket_;
  std::optional<ShapeMaps> maps_;
  std::array<QueueDevice, 2> devices_;  // The devices, by direction.
  ShapedLinks links_;
  std::set<uint32_t> outer_;  // Links that lead out of the node.
  bool known_ = false;        // Whether what is above is what the kernel has.
  bool maps_known_ = false;   // Whether the maps too are known, which nobody else changes.
  std::optional<ShapingTables> applied_;
  Blocks blocks_;  // The blocks of `applied_`.
};

}  // namespace spoke::netagent
