#include "ipam-server/cloud/nic_request.h"

#include <algorithm>

namespace spoke::ipam {

NicAddresses NicRequest::Configured() const {
  NicAddresses nic{
      .node = node, .nic_mac = nic_mac, .configurations = configurations, .instance = instance};
  std::sort(nic.configurations.begin(), nic.configurations.end());
  return nic;
}

}  // namespace spoke::ipam
