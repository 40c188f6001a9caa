#include "ipam-server/cloud/azure/endpoints.h"

#include <fmt/core.h>

#include "lib/json_text/json_text.h"

namespace spoke::ipam::azure {

absl::StatusOr<Endpoints> EndpointsOf(std::string_view cloud) {
  if (cloud == "public") {
    return Endpoints{.resource_manager = "https://management.azure.com",
                     .authority = "https://login.microsoftonline.com"};
  }
  if (cloud == "usgovernment") {
    return Endpoints{.resource_manager = "https://management.usgovcloudapi.net",
                     .authority = "https://login.microsoftonline.us"};
  }
  if (cloud == "china") {
    return Endpoints{.resource_manager = "https://management.chinacloudapi.cn",
                     .authority = "https://login.chinacloudapi.cn"};
  }
  return absl::InvalidArgumentError(fmt::format(
      "\"{}\" is no cloud of Azure: public, usgovernment or china", json_text::Excerpt(cloud)));
}

}  // namespace spoke::ipam::azure
