// The FastPath by BPF programs at tc's hooks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/netlink/queueing/filter.h"
#include "lib/netlink/socket.h"
#include "netagent/bpf/programs.h"
#include "netagent/fastpath/fast_path.h"
#include "netagent/fastpath/layout.h"
#include "netagent/fastpath/slot_table.h"
#include "netagent/fastpath/translated_pairs.h"

namespace spoke::netagent {

// Works in the network namespace it was made in. Not thread-safe. Needs CAP_NET_ADMIN and CAP_BPF;
// Linux 5.10 for bpf_redirect_peer, 5.11 that maps are not charged to RLIMIT_MEMLOCK.
class BpfFastPath final : public FastPath {
 public:
  // Makes one for the calling thread's network namespace. Loads nothing yet. Errors: kUnavailable,
  // kPermissionDenied.
  static absl::StatusOr<std::unique_ptr<BpfFastPath>> Create();

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
  absl::Status SweepTranslated() override;
  absl::StatusOr<size_t> Repair() override;
  absl::Status Remove() override;

 private:
  explicit BpfFastPath(netlink::Socket socket) : socket_(std::move(socket)) {}

  // Loads programs and maps, those of an earlier agent where there are any.
  absl::Status Load();
  // Returns the id of a program of ours that a device runs; 0: there is none.
  absl::StatusOr<uint32_t> FindProgram();
  absl::Status ReadSlots();
  // Carries over the pods of an agent of a layout before, of whose programs this is one; takes all
  // programs off when it knows none of its layout. The counts of the pods stay. They go the
  // ordinary way until FinishCarryOver().
  absl::Status CarryOver(uint32_t program_id);
  // Lets pods that are carried over be fast again, if there are any: every link runs this agent's
  // programs now, and so all pairs that were learned meanwhile are found.
  absl::Status FinishCarryOver();
  absl::Status ReadOrdinary();
  // Returns the addresses of all pods that have not ended.
  std::set<ip::Address> PodAddresses() const;
  absl::Status WriteOrdinary(const ip::Address& address);
  absl::Status EraseOrdinary(const ip::Address& address);
  absl::Status PutOnto(uint32_t link, const char* at_ingress);
  absl::Status TakeOff(uint32_t link, std::initializer_list<netlink::Direction> directions);
  absl::Status TakeOffAllBut(const std::set<uint32_t>& kept);
  // Closes programs and maps.
  void Forget();
  absl::StatusOr<bool> HasProgram(int32_t link, netlink::Direction direction);
  // Puts what is missing onto `link`. Returns false when nothing was.
  absl::StatusOr<bool> RepairOne(uint32_t link, const char* at_ingress);
  // Lets the pods' links, those of an earlier agent too, run just this agent's programs.
  absl::Status RefreshPods();
  absl::StatusOr<uint64_t> NextId();
  // Ends the pods of this link: the device that they were behind has gone, and its index is
  // another's now.
  absl::Status EndPodsOf(uint32_t link);
  absl::Status WritePod(uint32_t slot);
  absl::Status WritePort(uint32_t slot);
  absl::Status WritePlaces(uint32_t slot);
  absl::Status WriteWay(uint32_t slot);
  absl::Status WriteSlot(uint32_t slot);
  // Returns the pairs; may be called once the maps are loaded.
  TranslatedPairs pairs() const;
  // Returns whether packets of the pod in `slot` go by the fast path: it should, and may.
  bool IsFast(uint32_t slot) const;

  netlink::Socket socket_;
  std::optional<Programs> programs_;
  // The pairs of the earlier agent, while pods are carried over: links may still run the programs
  // that write these.
  std::optional<FormerPairs> former_;
  uint32_t uplink_ = 0;
  // Whether programs at the egress learn whose connections are translated: there is an uplink, so
  // that pods may be fast.
  bool learns_ = false;
  SlotTable slots_;  // The slots in use; the maps have the same.
  // The addresses of this node that are no pod's; the maps have the same.
  std::set<ip::Address> ordinary_;
  int processors_ = 0;        // The number of processors: a slot has as many counts.
  uint32_t repaired_to_ = 0;  // The slot that was looked at last.
};

}  // namespace spoke::netagent
