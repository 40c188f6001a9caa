// Tests the table of operations: what it finds, and that the page for readers says the same.
#include "tests/azure-sim/resources/operations.h"

#include <algorithm>
#include <map>
#include <set>

#include "gmock/gmock.h"
#include "lib/os/file.h"
#include "tests/azure-sim/model_for_test.h"

namespace spoke::azure_sim {
namespace {

using testing::HasSubstr;

std::string_view WordOf(Simulated simulated) {
  switch (simulated) {
    case Simulated::kYes:
      return "yes";
    case Simulated::kInPart:
      return "in part";
    case Simulated::kNo:
      return "no";
  }
  return "";
}

std::string RowOf(const ApiOperation& operation) {
  return fmt::format("| `{}` | `{} {}` | {} | {} |", operation.name, operation.method,
                     operation.path, operation.scope == Scope::kGroup ? "group" : "subscription",
                     WordOf(operation.simulated));
}

TEST(Operations, ThePageForReadersHasAllOfThemAndNoOthers) {
  const auto page = os::ReadFile(SPOKE_SOURCE_DIR "/docs/AZURE_SIMULATOR.md");
  ASSERT_TRUE(page.ok()) << page.status();
  std::set<std::string> wanted;
  for (const ApiOperation& operation : ApiOperations()) {
    EXPECT_TRUE(wanted.insert(RowOf(operation)).second) << operation.name << " is there twice";
  }
  std::set<std::string> said;
  std::string_view rest = *page;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const bool is_row = line.substr(0, 3) == "| `" && line.find('_') != std::string_view::npos;
    if (is_row) said.insert(std::string(line));
  }
  for (const std::string& row : wanted) EXPECT_TRUE(said.contains(row)) << "not said: " << row;
  for (const std::string& row : said) EXPECT_TRUE(wanted.contains(row)) << "not so: " << row;
}

class OperationsTest : public ModelTest {
 protected:
  void SetUp() override { Make(2); }
  // Returns the path of something that is there, where the table has a name.
  static std::string PathOf(const ApiOperation& operation) {
    const std::map<std::string, std::string> names = {
        {"virtualMachineScaleSets/*", "pool"}, {"virtualMachines/*", "0"},
        {"virtualNetworks/*", "vnet"},         {"subnets/*", "pods"},
        {"networkInterfaces/*", "nic"},        {"locations/*", "eastus2"},
    };
    std::string path(operation.path);
    for (const auto& [part, name] : names) {
      const size_t at = path.find(part);
      if (at != std::string::npos) path.replace(at + part.size() - 1, 1, name);
    }
    for (size_t at = path.find('*'); at != std::string::npos; at = path.find('*')) {
      path.replace(at, 1, "x");
    }
    std::string_view version = kInstanceApi;
    if (operation.api == Api::kNetwork) version = kNetworkApi;
    if (operation.api == Api::kScaleSetNics) version = kNicApi;
    return fmt::format("{}/providers/{}/{}?api-version={}",
                       operation.scope == Scope::kGroup ? kGroup : "/subscriptions/sub",
                       NamespaceOf(operation.api), path, version);
  }
};

TEST_F(OperationsTest, WhatIsNotSimulatedSaysSoByName) {
  size_t refused = 0;
  model_->knobs().limits.enabled = false;
  for (const ApiOperation& operation : ApiOperations()) {
    const http::Response response = Send(operation.method, PathOf(operation));
    const bool not_simulated = CodeOf(response) == "NotSimulated";
    if (operation.simulated != Simulated::kInPart) {
      EXPECT_EQ(not_simulated, operation.simulated == Simulated::kNo)
          << operation.name << ": " << response.status << " " << response.body;
    }
    // Only a path that the table does not have is of an unknown type.
    EXPECT_NE(CodeOf(response), "InvalidResourceType") << operation.name;
    EXPECT_NE(response.status, 405) << operation.name;
    if (!not_simulated) continue;
    EXPECT_EQ(response.status, 501);
    EXPECT_THAT(response.body, HasSubstr(std::string(operation.name)));
    ++refused;
  }
  EXPECT_GT(refused, 50U);
}

TEST_F(OperationsTest, AMethodThatThePathDoesNotHaveIsRefusedWithThoseItHas) {
  model_->knobs().limits.enabled = false;
  for (const ApiOperation& operation : ApiOperations()) {
    const std::string path = PathOf(operation);
    const PathOperations& all =
        OperationsAt(ParseTarget(path), operation.scope == Scope::kGroup ? 5 : 3, operation.scope);
    for (const char* method : {"GET", "PUT", "PATCH", "POST", "DELETE"}) {
      if (all.Of(method) != nullptr) continue;
      const http::Response response = Send(method, path, Json::object());
      EXPECT_EQ(response.status, 405) << method << " " << path;
      EXPECT_EQ(response.headers.Find("Allow"), all.Methods());
    }
  }
}

TEST_F(OperationsTest, PathsAreFoundInAnyCase) {
  const Target target = ParseTarget(
      "/subscriptions/S/resourceGroups/G/providers/MICROSOFT.COMPUTE/virtualMachineScaleSets/a/"
      "VIRTUALMACHINES/0/instanceView");
  const PathOperations& path = OperationsAt(target, 5, Scope::kGroup);
  ASSERT_NE(path.Of("GET"), nullptr);
  EXPECT_EQ(path.Of("GET")->name, "VirtualMachineScaleSetVMs_GetInstanceView");
  EXPECT_EQ(path.Of("PUT"), nullptr);
  EXPECT_TRUE(OperationsAt(target, 5, Scope::kSubscription).empty());
}

TEST_F(OperationsTest, TypesAreNamedAsAzureDoes) {
  for (const ApiOperation& operation : ApiOperations()) {
    if (operation.name == "VirtualMachineScaleSetVMs_Start") {
      EXPECT_EQ(TypeOf(operation), "virtualMachineScaleSets/virtualMachines");
    }
    if (operation.name == "Subnets_Get") {
      EXPECT_EQ(TypeOf(operation), "virtualNetworks/subnets");
    }
  }
}

}  // namespace
}  // namespace spoke::azure_sim
