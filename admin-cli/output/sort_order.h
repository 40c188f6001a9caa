// The order in which --sort-by has the items of a list. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace spoke::ctl {

// What --sort-by names: a key of the list's JSON, and which end comes first.
struct SortOrder {
  std::string key;
  bool descending = false;

  bool operator==(const SortOrder&) const = default;
};

// Reads "in_use", ".in_use" as kubectl has it, or "in_use:desc". Errors: kInvalidArgument (no key,
// or another word behind the colon).
absl::StatusOr<SortOrder> ParseSortOrder(std::string_view text);

// Returns the value of `order.key` in an item, also where it is written as the title of a column:
// IN-USE. Errors: kInvalidArgument (it has no such key; the
// message lists those that it has).
absl::StatusOr<nlohmann::ordered_json> SortValueOf(const nlohmann::ordered_json& item,
                                                   const SortOrder& order);

// Returns the places of `values` in their order. Those that are equal stay as they were. Numbers go
// by their value; texts as people count, so that node9 comes before node10 and 10.1.0.9 before
// 10.1.0.10.
std::vector<size_t> PlacesInOrder(const std::vector<nlohmann::ordered_json>& values,
                                  bool descending);

}  // namespace spoke::ctl
