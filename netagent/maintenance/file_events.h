// Maintenance that others announce in a file, for clouds and machine rooms with a way of their own.
// The file has the form of Azure's document (scheduled_events.h); the shortest that says something:
//   {"Events": [{"EventId": "1", "EventType": "Reboot", "EventStatus": "Scheduled"}]}
#pragma once

#include <string>
#include <vector>

#include "netagent/maintenance/maintenance_source.h"

namespace spoke::netagent {

class FileEvents final : public MaintenanceSource {
 public:
  // `self`: the node's name among an event's resources.
  FileEvents(std::string path, std::string self);

  // A file that is not there announces nothing.
  absl::StatusOr<node_api::Maintenance> Read() override;
  // Writes the ids as {"StartRequests": [{"EventId": "1"}]} to the file's name with ".start", for
  // whoever wrote it.
  absl::Status Begin(const std::vector<std::string>& events) override;
  void Interrupt() override {}

 private:
  const std::string path_;
  const std::string self_;
};

}  // namespace spoke::netagent
