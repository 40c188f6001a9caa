#include "tests/azure-sim/resources/api_versions.h"

#include <algorithm>
#include <cctype>
#include <span>

namespace spoke::azure_sim {
namespace {

constexpr std::string_view kFirstWithBlocks = "2026-07-02";

// The versions as Microsoft lists them for each resource type, without preview versions. What came
// after the newest here is refused, as a cloud that has not got it yet refuses it.
// https://learn.microsoft.com/azure/templates/microsoft.compute/allversions
constexpr std::string_view kCompute[] = {
    "2015-06-15", "2016-03-30", "2017-03-30", "2017-12-01", "2018-04-01",    "2018-06-01",
    "2018-10-01", "2019-03-01", "2019-07-01", "2019-12-01", "2020-06-01",    "2020-12-01",
    "2021-03-01", "2021-04-01", "2021-07-01", "2021-11-01", "2022-03-01",    "2022-08-01",
    "2022-11-01", "2023-03-01", "2023-07-01", "2023-09-01", "2024-03-01",    "2024-07-01",
    "2024-11-01", "2025-04-01", "2026-03-01", "2026-04-01", kFirstWithBlocks};

// The versions of https://learn.microsoft.com/azure/templates/microsoft.network/networkinterfaces
constexpr std::string_view kNetwork[] = {
    "2015-06-15", "2016-03-30", "2016-06-01", "2016-09-01", "2016-12-01", "2017-03-01",
    "2017-03-30", "2017-06-01", "2017-08-01", "2017-09-01", "2017-10-01", "2017-11-01",
    "2018-01-01", "2018-02-01", "2018-04-01", "2018-06-01", "2018-07-01", "2018-08-01",
    "2018-10-01", "2018-11-01", "2018-12-01", "2019-02-01", "2019-04-01", "2019-06-01",
    "2019-07-01", "2019-08-01", "2019-09-01", "2019-11-01", "2019-12-01", "2020-03-01",
    "2020-04-01", "2020-05-01", "2020-06-01", "2020-07-01", "2020-08-01", "2020-11-01",
    "2021-02-01", "2021-03-01", "2021-05-01", "2021-08-01", "2022-01-01", "2022-05-01",
    "2022-07-01", "2022-09-01", "2022-11-01", "2023-02-01", "2023-04-01", "2023-05-01",
    "2023-06-01", "2023-09-01", "2023-11-01", "2024-01-01", "2024-03-01", "2024-05-01",
    "2024-07-01", "2024-10-01", "2025-01-01", "2025-03-01", "2025-05-01"};

// The versions published for these paths. Resource Manager has been seen to take others, too.
constexpr std::string_view kScaleSetNics[] = {"2017-03-30", "2018-10-01"};

// Some of many versions.
constexpr std::string_view kResourceManager[] = {"2020-06-01", "2021-01-01", "2021-04-01",
                                                 "2022-09-01", "2023-07-01", "2024-03-01"};

std::span<const std::string_view> AllOf(Api api) {
  switch (api) {
    case Api::kCompute:
      return kCompute;
    case Api::kNetwork:
      return kNetwork;
    case Api::kScaleSetNics:
      return kScaleSetNics;
    case Api::kResourceManager:
      return kResourceManager;
  }
  return {};
}

std::span<const std::string_view> VersionsOf(Api api, const Knobs& knobs) {
  const auto all = AllOf(api);
  if (api != Api::kCompute || knobs.compute_blocks != ComputeBlocks::kNoVersion) return all;
  const auto first = std::find(all.begin(), all.end(), kFirstWithBlocks);
  return all.first(static_cast<size_t>(first - all.begin()));
}

}  // namespace

std::string_view NamespaceOf(Api api) {
  switch (api) {
    case Api::kCompute:
    case Api::kScaleSetNics:
      return "Microsoft.Compute";
    case Api::kNetwork:
      return "Microsoft.Network";
    case Api::kResourceManager:
      return "Microsoft.Resources";
  }
  return "";
}

bool HasVersion(Api api, std::string_view version, const Knobs& knobs) {
  const auto versions = VersionsOf(api, knobs);
  return std::find(versions.begin(), versions.end(), version) != versions.end();
}

std::string VersionsText(Api api, const Knobs& knobs) {
  std::string text;
  for (const std::string_view version : VersionsOf(api, knobs)) {
    if (!text.empty()) text += ", ";
    text += version;
  }
  return text;
}

bool IsVersionForm(std::string_view version) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  constexpr std::string_view kPreview = "-preview";
  if (version.size() < kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(version[i])) != 0;
    if (kForm[i] == 'd' ? !digit : version[i] != '-') return false;
  }
  version.remove_prefix(kForm.size());
  return version.empty() || version == kPreview;
}

bool HasComputeBlocks(std::string_view version, const Knobs& knobs) {
  return version >= kFirstWithBlocks && knobs.compute_blocks == ComputeBlocks::kPresent;
}

}  // namespace spoke::azure_sim
