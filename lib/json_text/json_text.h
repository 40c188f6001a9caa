// JSON that others send (ARM, Kubernetes' API server): parsed within limits, and read without an
// exception or a surprise when a field is missing or of another type. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace spoke::json_text {

// What either sends is ten levels deep; nlohmann::json prints by recursion, so depth must be
// bounded.
inline constexpr size_t kMaxJsonDepth = 64;
// The longest text: ARM itself refuses to pass on responses of more than some megabytes.
inline constexpr size_t kMaxJsonBytes = size_t{64} << 20U;

// Parses JSON. Errors: kInvalidArgument (not one JSON value in UTF-8, too deep, too long), with the
// beginning of the text.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text);

// Parses a JSON value that is an object. Errors: kInvalidArgument.
absl::StatusOr<nlohmann::json> ParseJsonObject(std::string_view text);

// Returns text for a request body. What is no UTF-8 is replaced.
std::string PrintJson(const nlohmann::json& value);

// The member of that name; nullptr when `object` is no object, has none, or has null there, which
// both treat alike. Valid as long as `object` is not changed.
const nlohmann::json* FindMember(const nlohmann::json& object, std::string_view name);

// Returns a member of one type; one of another type is as good as none.
std::string StringMember(const nlohmann::json& object, std::string_view name);
std::optional<bool> BoolMember(const nlohmann::json& object, std::string_view name);
// Returns a number within int without a fraction.
std::optional<int> IntMember(const nlohmann::json& object, std::string_view name);

// The first `most` bytes of `text`, without control characters, for an error or a log line.
std::string Excerpt(std::string_view text, size_t most = 200);

}  // namespace spoke::json_text
