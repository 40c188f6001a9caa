#include "ipam-server/cloud/cloud.h"

#include <algorithm>

namespace spoke::ipam {

std::string_view NameOf(CloudLane lane) {
  switch (lane) {
    case CloudLane::kBlocking:
      return "blocking";
    case CloudLane::kWarmUp:
      return "warm-up";
    case CloudLane::kRelease:
      return "release";
  }
  return "";
}

NicAddresses NicRequest::Configured() const {
  NicAddresses nic{
      .node = node, .nic_mac = nic_mac, .configurations = configurations, .instance = instance};
  std::sort(nic.configurations.begin(), nic.configurations.end());
  return nic;
}

}  // namespace spoke::ipam
