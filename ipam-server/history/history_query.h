// Who had an address, from the history in the store.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ipam-server/history/history.h"
#include "ipam-server/store/store.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// Reads the store's chunks, beside its commits. Errors: kInvalidArgument (not an address); as
// Store::List() and DecodeHistory().
absl::Status QueryHistory(Store& store, const v1::GetAddressHistoryRequest& request,
                          v1::GetAddressHistoryResponse& response);

// The last assignment to the pod that is remembered; nullopt: none is. Errors: as Store::List();
// kDataLoss.
absl::StatusOr<std::optional<HistoryEntry>> LastAssignmentTo(Store& store,
                                                             const std::string& pod_namespace,
                                                             const std::string& pod_name);

}  // namespace spoke::ipam
