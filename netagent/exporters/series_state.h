// The state of a node's traffic series as text, kept on tmpfs from one agent to the next. Pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "netagent/exporters/traffic_series.h"

namespace spoke::netagent {

inline constexpr size_t kMaxSeriesStateBytes = size_t{1} << 20U;

std::string EncodeSeriesState(const SeriesState& state);
// Decodes the state. Errors: kInvalidArgument (not such a text, or too long).
absl::StatusOr<SeriesState> DecodeSeriesState(std::string_view text);

}  // namespace spoke::netagent
