// The maintenance that a cloud announces for a node, such as Azure's Scheduled Events, and an
// operator's word that it may begin. Values and their codec. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace spoke::v1 {
class Maintenance;
class MaintenanceEvent;
class MaintenanceStart;
}  // namespace spoke::v1

namespace spoke::node_api {

// What happens to the machine. The words are Azure's ("Azure Metadata Service: Scheduled Events for
// Linux VMs", EventType).
enum class MaintenanceKind : uint8_t {
  kFreeze,     // It stands still for some seconds; memory and connections stay.
  kReboot,     // It boots anew.
  kRedeploy,   // It moves to another host and boots anew.
  kPreempt,    // A spot machine is deleted.
  kTerminate,  // The machine is deleted.
};
inline constexpr size_t kMaintenanceKinds = 5;
std::string_view NameOf(MaintenanceKind kind);  // "Freeze".
// Whether nothing is left of the machine afterwards.
inline bool Deletes(MaintenanceKind kind) { return kind >= MaintenanceKind::kPreempt; }

struct MaintenanceEvent {
  std::string id;  // The source's own.
  MaintenanceKind kind = MaintenanceKind::kFreeze;
  bool started = false;
  // It does not begin before this time; InfinitePast: unknown, or it has begun.
  absl::Time not_before = absl::InfinitePast();
  absl::Duration duration = absl::ZeroDuration();  // How long it interrupts; 0: unknown.
  std::string description = {};
  std::string origin = {};  // Who wanted it: "Platform", "User".
  // The other machines that it is for: how many, and the first of them by name.
  uint32_t other_machines = 0;
  std::vector<std::string> others = {};

  bool operator==(const MaintenanceEvent&) const = default;
};

// All that is announced now, in place of what was said before; the next to come first. The server
// keeps it in memory.
struct Maintenance {
  std::vector<MaintenanceEvent> events;

  bool operator==(const Maintenance&) const = default;
};

// An operator agrees that these events begin now. There is no answer: what they become is seen in
// the node's next Maintenance.
struct MaintenanceStart {
  uint64_t id = 0;
  std::vector<std::string> events = {};  // Their ids.

  bool operator==(const MaintenanceStart&) const = default;
};

inline constexpr int kMaxMaintenanceEvents = 16;
inline constexpr int kMaxMaintenanceOthers = 100;

// Says the first of what is too much; texts for people are cut.
void ToWire(const Maintenance& in, v1::Maintenance& out);
void ToWire(const MaintenanceEvent& in, v1::MaintenanceEvent& out);
// Takes the first of what is too much. An event of a kind that is unknown here is left out: it is
// of a newer agent. Errors: kInvalidArgument (an id or a machine that is no name).
absl::StatusOr<Maintenance> FromWire(const v1::Maintenance& in);

void ToWire(const MaintenanceStart& in, v1::MaintenanceStart& out);
// Errors: kInvalidArgument (more than kMaxMaintenanceEvents, or one that is no name).
absl::StatusOr<MaintenanceStart> FromWire(const v1::MaintenanceStart& in);

}  // namespace spoke::node_api
