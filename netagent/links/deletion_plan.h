// Which detached links are unregistered together, and when. Pure.
//
// To unregister a link takes the kernel some 20 ms, nearly all of it waiting, and a whole group of
// links hardly more. So a detached link is only put into a link group; groups are unregistered one
// at a time, with pauses, so that attachments made meanwhile find the network lock free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "lib/ip/address.h"
#include "netagent/links/attach_plan.h"

namespace spoke::netagent {

// A link that carries no traffic any more and waits to be unregistered.
struct DeferredLink {
  std::string host_link;
  std::vector<ip::Address> addresses;  // The addresses it had; empty when they are not known.

  bool operator==(const DeferredLink&) const = default;
};

// Links that are unregistered by one request.
struct DeletionBatch {
  uint32_t group = 0;  // One of the groups from claims::kFirstDeletionGroup on.
  std::vector<DeferredLink> links;
  absl::Time first_at;

  bool operator==(const DeletionBatch&) const = default;
};

// Not thread-safe; the DeferredDeletion owns it and serialises calls.
class DeletionPlan {
 public:
  // The most links in a batch: each holds the network lock for some 0.2 ms.
  static constexpr size_t kMaxBatch = 32;
  // The longest time that a batch which does not fill up waits for others.
  static constexpr absl::Duration kMaxWait = absl::Milliseconds(250);
  // The pause between two batches, in which attachments get the lock. Hurry() leaves it out.
  static constexpr absl::Duration kPause = absl::Milliseconds(100);
  // The pause before a batch that the kernel refused is tried again.
  static constexpr absl::Duration kRetry = absl::Seconds(1);
  // The most links that may wait at once. Batches of them, the open one and the one under way all
  // have groups of their own.
  static constexpr size_t kMaxLinks = 512;

  // Returns the group that the next link goes into; it is the same until Add().
  uint32_t NextGroup() const;
  // Takes a link that has been put into NextGroup().
  void Add(DeferredLink link, absl::Time now);

  // Returns the batch that is to be unregistered now, or nothing: none is due, or one is under way.
  // The caller unregisters it and calls Finish().
  std::optional<DeletionBatch> TakeDue(absl::Time now);
  // Ends the batch that was taken. `gone`: it is unregistered; if not, it is tried again later.
  void Finish(bool gone, absl::Time now);
  // When TakeDue() may have something; nothing while there is none, or one is under way.
  std::optional<absl::Time> NextDue() const;

  // Makes all that is deferred now due at once, without pauses, since somebody waits.
  void Hurry();

  // How many links wait, those of the batch under way included.
  size_t size() const { return size_; }
  bool full() const { return size_ >= kMaxLinks; }
  bool Has(const std::string& host_link) const;
  // Whether the spec's host link or one of its addresses belongs to a deferred link.
  bool Clashes(const AttachSpec& spec) const;

 private:
  template <typename Predicate>
  bool AnyLink(Predicate matches) const;

  std::deque<DeletionBatch> waiting_;  // Oldest first; only the last may have room.
  std::optional<DeletionBatch> under_way_;
  size_t size_ = 0;
  uint32_t next_group_ = 0;  // The next batch's, counted from the first of ours.
  size_t hurried_ = 0;       // This many batches, from the oldest on, are due at once.
  absl::Time not_before_ = absl::InfinitePast();
};

}  // namespace spoke::netagent
