// The cloud of a fleet: it makes and deletes machines, changes what is on their NICs, for servers
// and for others, and is slow, fails, answers late, and lists what was.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ipam-server/cloud/cloud.h"
#include "tests/sim/cloud/fabric.h"
#include "tests/sim/process.h"
#include "tests/sim/schedule.h"
#include "tests/sim/trace.h"

namespace spoke::sim {

// What may go wrong with the cloud at present.
struct CloudFaults {
  absl::Duration least = absl::Milliseconds(200);  // How long an operation takes.
  absl::Duration most = absl::Seconds(3);
  double refused = 0;         // The share of operations that fail and change nothing.
  double answers_lost = 0;    // The share that are carried out and answer with an error.
  double listings_stale = 0;  // The share of listings that show what was a minute ago.
  double listings_failed = 0;
};

struct Vm {
  std::string id;
  ip::MacAddress mac;
  std::string instance;  // The cloud's own name of it, in lower case; empty: it has none.
};

// Not thread-safe.
class Provider {
 public:
  struct Edges {
    Fabric& fabric;
    Schedule& schedule;
    Trace& trace;
    const CloudFaults& faults;
    // Somebody else than the servers has changed the NIC of the VM, and has taken these off it.
    std::function<void(const std::string& vm, const std::vector<ip::Prefix>& lost)>
        changed_by_others;
    // A server has overwritten what somebody else had written of a machine, unread.
    std::function<void()> overwritten;
  };
  // One process of a server, as the cloud's client has it.
  struct Client {
    Life& life;
    Random& random;
    const MachineClock& clock;
    // How long nobody else can lead, from now on: only then anything is written.
    std::function<absl::Duration()> write_margin;
  };

  virtual ~Provider() = default;

  // Makes the machine of the node, at `index` of the fleet; its NIC has no address for pods.
  virtual Vm AddVm(const std::string& node, size_t index, Random& random) = 0;
  // Deletes it, if it is there.
  virtual void RemoveVm(const std::string& vm) = 0;
  // The machine gets a new disk, and what was on its NIC may go.
  virtual void Reimage(const std::string& vm) = 0;
  // Somebody else than the servers takes the address at `which` off the NIC.
  virtual void TakeOff(const std::string& vm, size_t which) = 0;
  // Or reads the NIC, and writes back what it had after a while.
  virtual void WriteBack(const std::string& vm, absl::Duration after) = 0;
  // Borrows what is in `client`.
  virtual std::unique_ptr<ipam::Cloud> Connect(const Client& client, ipam::CloudAnswer answer) = 0;
};

}  // namespace spoke::sim
