// The store on etcd: a key a record, for several servers of which one leads.
//
// Opening the store is winning the leadership; a server that does not lead has no store, only a
// Mirror (mirror.h), from which it goes on when it takes over. Every transaction compares the
// leader's key, so that nothing is written by a server that was deposed, and nothing arrives late
// that was given up before.
//
// Keys below `prefix`: data/<key> (the records), leader (who leads), receipt/<n> (which transaction
// was the last on its way number n: by it a repeated one knows whether it has happened).
// The cluster belongs to Spoke: its history is compacted within seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ipam-server/store/etcd/connection.h"
#include "ipam-server/store/etcd/leadership.h"
#include "ipam-server/store/etcd/mirror.h"
#include "ipam-server/store/etcd/upkeep.h"
#include "ipam-server/store/store.h"

namespace spoke::ipam {

struct EtcdOptions {
  etcd::Access access;
  std::string prefix = "/spoke/";
  // Where the cluster's id is remembered, in the file etcd-cluster: another one is refused. Empty:
  // nowhere.
  std::string directory;
  // The key is set by Open().
  etcd::LeadershipSettings leadership;
  etcd::UpkeepSettings upkeep;
};

class EtcdStore : public Store {
 public:
  // Connects, and becomes the leader. Blocks for as long as some seconds where no member answers.
  // Errors, each with a message of its own that says what to do: kAlreadyExists (another server
  // leads); kNotFound (no endpoint has an address; a file is missing); kUnavailable (no member
  // answers, or they have no quorum); kPermissionDenied (authentication is missing, on either side,
  // or the user may not write); kUnimplemented (too old); kFailedPrecondition (another cluster than
  // the one remembered); kResourceExhausted (the database is full, and stays so).
  static absl::StatusOr<std::unique_ptr<EtcdStore>> Open(EtcdOptions options);

  // Connects and follows the records, for a server that stands by. `options.leadership` does not
  // matter. Errors: as Open(), but for kAlreadyExists and kResourceExhausted.
  static absl::StatusOr<std::unique_ptr<etcd::Mirror>> Follow(EtcdOptions options);

  // Becomes the leader with the mirror's connection. On success it takes `mirror`, and answers
  // Get() and List() from it until the first Commit(): so whoever has followed the records need not
  // read them. Where the mirror does not have everything within a second, it is dropped, and the
  // members are asked. After an error `mirror` is as it was. Errors: as Open();
  // kAlreadyExists is no fault: another one leads.
  static absl::StatusOr<std::unique_ptr<EtcdStore>> TakeOver(EtcdOptions options,
                                                             std::unique_ptr<etcd::Mirror>& mirror);

  // How long no other server can lead, from now on: what is done outside the store, where no fence
  // protects it, needs a margin. Zero and less: another one may.
  virtual absl::Duration LeadershipMargin() const = 0;

  // Why etcd refuses this server's calls (Connection::Trouble()); OK while it takes them.
  virtual absl::Status Trouble() const = 0;

  // The fence that this leadership began with or was raised to: rises with every leader.
  virtual int64_t Fence() const = 0;
  // Names this leadership: no other one has or had the same. It is that of etcd::Leader::lease.
  virtual int64_t Leadership() const = 0;
};

}  // namespace spoke::ipam
