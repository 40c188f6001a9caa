// Who had an address, from the history in the store.
#pragma once

#include "absl/status/status.h"
#include "ipam-server/store/store.h"
#include "proto/spoke/v1/admin.pb.h"

namespace spoke::ipam {

// Reads the store's chunks, beside its commits. Errors: kInvalidArgument (not an address); as
// Store::List() and DecodeHistory().
absl::Status QueryHistory(Store& store, const v1::GetAddressHistoryRequest& request,
                          v1::GetAddressHistoryResponse& response);

}  // namespace spoke::ipam
