#include "lib/base/dns_name.h"

#include <string>

#include "gtest/gtest.h"

namespace spoke::base {
namespace {

TEST(IsDnsName, TakesWhatKubernetesCallsNodes) {
  for (const char* name : {"a", "node-1", "aks-pool1-12345678-vmss00000a", "n1.example.org", "0"}) {
    EXPECT_TRUE(IsDnsName(name)) << name;
  }
  const std::string label(63, 'a');
  EXPECT_TRUE(IsDnsName(label + "." + label + "." + label + "." + std::string(61, 'a')));
}

TEST(IsDnsName, RefusesWhatCouldMeanSomethingElse) {
  for (const char* name : {"", ".", "a.", ".a", "a..b", "-a", "a-", "Node1", "a_b", "a b", "*.a",
                           "spoke:operator", "a/b", "a\n"}) {
    EXPECT_FALSE(IsDnsName(name)) << name;
  }
  EXPECT_FALSE(IsDnsName(std::string_view("a\0b", 3)));
  const std::string label(63, 'a');
  EXPECT_FALSE(IsDnsName(label + "a"));
  EXPECT_FALSE(IsDnsName(label + "." + label + "." + label + "." + std::string(62, 'a')));
}

}  // namespace
}  // namespace spoke::base
