#include "netagent/maintenance/file_events.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/os/file.h"
#include "netagent/maintenance/scheduled_events.h"

namespace spoke::netagent {

FileEvents::FileEvents(std::string path, std::string self)
    : path_(std::move(path)), self_(std::move(self)) {}

absl::StatusOr<node_api::Maintenance> FileEvents::Read() {
  const auto text = os::ReadFile(path_, kMaxScheduledEventsBytes);
  if (absl::IsNotFound(text.status())) return node_api::Maintenance();
  if (!text.ok()) return text.status();
  auto maintenance = ParseScheduledEvents(*text, self_);
  if (!maintenance.ok()) return base::Annotate(maintenance.status(), path_);
  return maintenance;
}

absl::Status FileEvents::Begin(const std::vector<std::string>& events) {
  return os::WriteFileAtomic(path_ + ".start", StartRequestsOf(events) + "\n",
                             os::Durability::kVisible);
}

}  // namespace spoke::netagent
