// Answers the dashboard's page from the server's answers, which are kept for the interval at which
// the page asks, or longer where they take long (answer_cache.h). Only calls that read are made, by
// the operator's own right. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "admin-cli/client.h"
#include "admin-cli/dashboard/answer_cache.h"
#include "admin-cli/dashboard/present_rates.h"
#include "admin-cli/output/list_form.h"
#include "lib/os/clock.h"

namespace spoke::ctl {

class Answers {
 public:
  // Borrows the client and the clock.
  Answers(const Client& client, const os::Clock& clock, absl::Duration interval)
      : client_(client), clock_(clock), interval_(interval), cache_(clock, interval) {}

  // Answers `name`, the path below "api/": fleet, pools, nodes, traffic, budgets, rollout, events
  // or story. `argument` is the traffic class of traffic ("external" when empty), and the subject
  // of a story. The body is {"at": when the server was asked, "data": ...}, or with the error of
  // the call
  // {"at", "error", "message"}. nullptr: nothing has that name.
  std::shared_ptr<const PageAnswer> Of(const std::string& name, const std::string& argument);

 private:
  using Ask = absl::StatusOr<Json> (Answers::*)(const std::string& argument);
  // Returns the member that answers `name`; nullptr: none does.
  static Ask AskOf(std::string_view name);

  absl::StatusOr<Json> Fleet(const std::string& argument);
  absl::StatusOr<Json> Pools(const std::string& argument);
  absl::StatusOr<Json> Nodes(const std::string& argument);
  absl::StatusOr<Json> Traffic(const std::string& argument);
  absl::StatusOr<Json> Budgets(const std::string& argument);
  absl::StatusOr<Json> Rollout(const std::string& argument);
  absl::StatusOr<Json> Events(const std::string& argument);
  absl::StatusOr<Json> Story(const std::string& argument);

  const Client& client_;
  const os::Clock& clock_;
  const absl::Duration interval_;
  AnswerCache cache_;
  absl::Mutex mutex_;
  PresentRates node_rates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spoke::ctl
