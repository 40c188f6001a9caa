// A model with its clock, as the tests of this folder use it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "fmt/core.h"
#include "gtest/gtest.h"
#include "tests/azure-sim/arm_model.h"

namespace spoke::azure_sim {

inline constexpr const char* kInstanceApi = "2025-04-01";
inline constexpr const char* kBlockApi = "2026-07-02";
inline constexpr const char* kNicApi = "2018-10-01";
inline constexpr const char* kNetworkApi = "2025-05-01";
inline constexpr const char* kHost = "https://management.azure.com";
inline constexpr const char* kGroup = "/subscriptions/sub/resourceGroups/rg";
inline constexpr const char* kSet =
    "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/pool";
inline constexpr const char* kSubnet =
    "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/"
    "pods";

class ModelTest : public testing::Test {
 protected:
  void Make(const SimSpec& spec, Knobs knobs = {}) {
    auto built = ArmModel::Build(spec, now_, std::move(knobs));
    ASSERT_TRUE(built.ok()) << built.status();
    model_ = *std::move(built);
  }
  void Make(int instances, Knobs knobs = {}) { Make(SmallSpec(instances), std::move(knobs)); }

  http::Response Send(std::string_view method, std::string_view path, const Json& body = {},
                      http::Headers headers = {}) {
    http::Request request;
    request.method = std::string(method);
    request.url = path.substr(0, 4) == "http" ? std::string(path) : kHost + std::string(path);
    request.headers = std::move(headers);
    if (!body.is_null()) request.body = body.dump();
    return model_->Handle(request, now_);
  }
  http::Response Get(std::string_view path) { return Send("GET", path); }
  Json GetJson(std::string_view path) {
    const http::Response response = Get(path);
    EXPECT_EQ(response.status, 200) << path << ": " << response.body;
    return Json::parse(response.body, nullptr, false);
  }

  static std::string InstancePath(int number, std::string_view api = kInstanceApi) {
    return fmt::format("{}/virtualMachines/{}?api-version={}", kSet, number, api);
  }
  static std::string NicsPath(int number) {
    return fmt::format("{}/virtualMachines/{}/networkInterfaces?api-version={}", kSet, number,
                       kNicApi);
  }

  // Returns a body that adds `names` to what the instance's first NIC has now. With `block` each is
  // a /28.
  Json BodyWith(int number, const std::vector<std::string>& names, bool block = false) {
    const Json instance = GetJson(InstancePath(number, block ? kBlockApi : kInstanceApi));
    Json profile = instance["properties"]["networkProfileConfiguration"];
    Json& configs = profile["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"];
    configs[0]["properties"]["primary"] = true;
    for (const std::string& name : names) {
      Json properties = {{"primary", false},
                         {"subnet", configs[0]["properties"]["subnet"]},
                         {"privateIPAddressVersion", "IPv4"}};
      if (block) properties["privateIPAddressPrefixLength"] = 28;
      configs.push_back({{"name", name}, {"properties", properties}});
    }
    return {{"properties", {{"networkProfileConfiguration", profile}}}};
  }
  http::Response Put(int number, const Json& body, http::Headers headers = {}) {
    return Send("PUT", InstancePath(number), body, std::move(headers));
  }

  // Returns name to address, as the NIC resource shows them.
  std::map<std::string, std::string> AddressesOf(int number) {
    std::map<std::string, std::string> addresses;
    const Json nics = GetJson(NicsPath(number));
    for (const Json& nic : nics["value"]) {
      for (const Json& entry : nic["properties"]["ipConfigurations"]) {
        addresses[entry["name"]] = entry["properties"]["privateIPAddress"];
      }
    }
    return addresses;
  }

  // Returns what the operation that `response` started says now.
  Json Poll(const http::Response& response) {
    const auto url = response.headers.Find("Azure-AsyncOperation");
    EXPECT_TRUE(url.has_value());
    return url.has_value() ? GetJson(*url) : Json();
  }
  static std::string CodeOf(const http::Response& response) {
    const Json body = Json::parse(response.body, nullptr, false);
    return body.is_object() && body.contains("error") ? body["error"]["code"].get<std::string>()
                                                      : "";
  }

  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);  // The time is a whole minute.
  std::unique_ptr<ArmModel> model_;
};

}  // namespace spoke::azure_sim
