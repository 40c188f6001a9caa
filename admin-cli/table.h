// Rows for people and for programs: an aligned table, JSON or YAML. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace spoke::ctl {

enum class Format { kTable, kJson, kYaml };

// Columns are as wide as their widest cell, two blanks apart; nothing stands behind the last.
// Control characters in cells become "?", since names come from elsewhere and terminals obey them.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows);

// Block-style YAML that a YAML 1.2 parser reads back as the same value. Texts are quoted as JSON
// strings, which YAML takes.
std::string FormatYaml(const nlohmann::ordered_json& value);

// Two-blank indented, with a final line break.
std::string FormatJson(const nlohmann::ordered_json& value);

// "12s", "5m", "3h", "2d": how long ago, in one unit. Negative is "0s".
std::string FormatAge(int64_t seconds);

}  // namespace spoke::ctl
