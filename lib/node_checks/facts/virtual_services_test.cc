#include "lib/node_checks/facts/virtual_services.h"

#include <string>

#include "gtest/gtest.h"

namespace spoke::node_checks {
namespace {

// The text is as the kernel prints it: net/netfilter/ipvs/ip_vs_ctl.c.
constexpr std::string_view kAvailable =
    "IP Virtual Server version 1.2.1 (size=4096)\n"
    "Prot LocalAddress:Port Scheduler Flags\n"
    "  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n";

TEST(VirtualServices, AreTheLinesThatBeginWithAProtocolOrAMark) {
  EXPECT_FALSE(HasVirtualServices(kAvailable));
  EXPECT_FALSE(HasVirtualServices(""));
  for (const char* service :
       {"TCP  0A600001:01BB rr \n  -> 0A000104:192B      Masq    1      0          0\n",
        "UDP  0A60000A:0035 rr", "FWM  0000000A rr\n"}) {
    EXPECT_TRUE(HasVirtualServices(std::string(kAvailable) + service));
  }
}

}  // namespace
}  // namespace spoke::node_checks
