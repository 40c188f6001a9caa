// One page of a list from Azure: {"value":[...],"nextLink":"..."}. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::ipam::azure {

struct ListPage {
  std::vector<nlohmann::json> items;  // All are objects.
  std::string next_link;              // The link for FollowUrl(); empty: this was the last page.
};

// Errors: kInvalidArgument for anything else, a `value` of null and a nextLink that is no text
// included: what is taken for an empty list would be read as "everything is gone".
absl::StatusOr<ListPage> DecodeListPage(std::string_view body);

}  // namespace spoke::ipam::azure
