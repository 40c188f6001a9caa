#include "lib/config/host_port.h"

#include "gtest/gtest.h"

namespace spoke::config {
namespace {

TEST(HostPort, IsAHostAndAPort) {
  for (const char* text : {"ipam.example:7443", "10.0.0.1:1", "[fd00::1]:65535", "localhost:80"}) {
    EXPECT_TRUE(IsHostPort(text)) << text;
  }
}

TEST(HostPort, NothingElseIs) {
  for (const char* text : {"",
                           ":",
                           ":7443",
                           "host",
                           "host:",
                           "host:0",
                           "host:65536",
                           "host:-1",
                           "host:7443 ",
                           "a b:1",
                           "http://host:80",
                           "a,b:1",
                           "fd00::1:7443",
                           "::1:7443",
                           "[fd00::1]",
                           "[fd00::1]:",
                           "[]:1",
                           "[host]:1",
                           "fd00::1]:1",
                           "[fd00::1:1",
                           "host:1:2"}) {
    EXPECT_FALSE(IsHostPort(text)) << text;
  }
}

TEST(HostPort, ZeroIsForWhoListens) {
  EXPECT_FALSE(IsHostPort("127.0.0.1:0"));
  EXPECT_TRUE(IsHostPort("127.0.0.1:0", PortZero::kTaken));
  EXPECT_TRUE(IsHostPort("[::]:0", PortZero::kTaken));
}

}  // namespace
}  // namespace spoke::config
