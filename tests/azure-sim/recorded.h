// Reads what is in testdata/, and compares two JSON values by their shape. For tests.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/file.h"
#include "tests/azure-sim/world.h"

namespace spoke::azure_sim {

inline std::string TestdataPath(std::string_view name) {
  return std::string(SPOKE_SOURCE_DIR "/tests/azure-sim/testdata/") + std::string(name);
}

inline std::string ReadTestdata(std::string_view name) {
  const auto text = os::ReadFile(TestdataPath(name));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

inline Json ReadTestdataJson(std::string_view name) {
  Json json = Json::parse(ReadTestdata(name), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << name;
  return json;
}

// Returns every path of a value with the types found there: "properties.ipConfigurations[].name" is
// text. All items of a list share a path.
using Shape = std::map<std::string, std::set<std::string>>;

// NOLINTNEXTLINE(misc-no-recursion): as deep as a recorded answer.
inline void AddShape(const Json& value, const std::string& path, Shape* shape) {
  (*shape)[path].insert(value.type_name());
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      AddShape(item, path.empty() ? key : path + "." + key, shape);
    }
  }
  for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
    AddShape(value[i], path + "[]", shape);
  }
}

inline Shape ShapeOf(const Json& value) {
  Shape shape;
  AddShape(value, "", &shape);
  return shape;
}

// Returns where two shapes differ, except for paths that contain one of `left_out`. Lists that are
// empty in the recording say nothing about their items.
inline std::vector<std::string> Differences(const Json& recorded, const Json& ours,
                                            const std::vector<std::string>& left_out) {
  const Shape want = ShapeOf(recorded);
  const Shape have = ShapeOf(ours);
  const auto skipped = [&](const std::string& path) {
    return std::any_of(left_out.begin(), left_out.end(), [&path](const std::string& part) {
      return path.find(part) != std::string::npos;
    });
  };
  const auto below_empty_list = [&](const std::string& path) {
    for (size_t at = path.find("[]"); at != std::string::npos; at = path.find("[]", at + 1)) {
      const std::string list = path.substr(0, at);
      if (want.count(list) != 0 && want.count(list + "[]") == 0) return true;
    }
    return false;
  };
  std::vector<std::string> differences;
  for (const auto& [path, types] : want) {
    if (skipped(path)) continue;
    const auto found = have.find(path);
    if (found == have.end()) {
      differences.push_back("missing: " + path);
    } else if (found->second != types) {
      differences.push_back("another type: " + path);
    }
  }
  for (const auto& [path, types] : have) {
    if (want.count(path) == 0 && !skipped(path) && !below_empty_list(path)) {
      differences.push_back("made up: " + path);
    }
  }
  return differences;
}

}  // namespace spoke::azure_sim
