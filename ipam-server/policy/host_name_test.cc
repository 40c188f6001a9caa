#include "ipam-server/policy/host_name.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using ::testing::HasSubstr;

TEST(ParseHostPattern, TakesNamesInLowerCase) {
  EXPECT_EQ(ParseHostPattern("data.example.org").value(), "data.example.org");
  EXPECT_EQ(ParseHostPattern("Data.Example.ORG").value(), "data.example.org");
  EXPECT_EQ(ParseHostPattern("*.cdn.example.org").value(), "*.cdn.example.org");
  EXPECT_EQ(ParseHostPattern("1.2.3.4a").value(), "1.2.3.4a");
  EXPECT_EQ(ParseHostPattern("xn--bcher-kva.example").value(), "xn--bcher-kva.example");
  EXPECT_EQ(ParseHostPattern("svc.example.org").value(), "svc.example.org");
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'b');
  EXPECT_EQ(ParseHostPattern(longest).value(), longest);
  EXPECT_FALSE(ParseHostPattern(longest + "b").ok());
}

TEST(ParseHostPattern, SaysWhatToWriteInstead) {
  const struct {
    const char* text;
    const char* want;
  } cases[] = {{"192.0.2.1", "is an address: list its block in cidrs"},
               {"192.0.2.0/24", "is an address: list its block in cidrs"},
               {"2001:db8::1", "is an address: list its block in cidrs"},
               {"mirror", "has no domain"},
               {"*.org", "is a whole top-level domain"},
               {"api.default.svc", "is inside the cluster"},
               {"API.default.svc.Cluster.Local", "is inside the cluster"},
               {"*.cluster.local", "is inside the cluster"},
               {"localhost", "is inside the cluster or the pod"},
               {"a.localhost", "is inside the cluster or the pod"},
               {"", "is no name of a host"},
               {"*", "is no name of a host"},
               {"*.", "is no name of a host"},
               {"a.*.example.org", "is no name of a host"},
               {"*a.example.org", "is no name of a host"},
               {"*.*.example.org", "is no name of a host"},
               {"data.example.org.", "is no name of a host"},
               {".example.org", "is no name of a host"},
               {"a..example.org", "is no name of a host"},
               {"-a.example.org", "is no name of a host"},
               {"a_b.example.org", "is no name of a host"},
               {"a b.example.org", "is no name of a host"},
               {"https://example.org", "is no name of a host"},
               {"b\xC3\xBC"
                "cher.example",
                "is no name of a host"},
               {"1.2.3.400", "is no name of a host"},
               {"1.2.3", "is no name of a host"}};
  for (const auto& c : cases) {
    const auto pattern = ParseHostPattern(c.text);
    EXPECT_EQ(pattern.status().code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(base::MessageOf(pattern.status()),
                HasSubstr("\"" + std::string(c.text) + "\" " + c.want));
  }
}

TEST(IsWildcard, IsOfManyNames) {
  EXPECT_TRUE(IsWildcard("*.example.org"));
  EXPECT_FALSE(IsWildcard("data.example.org"));
}

}  // namespace
}  // namespace spoke::ipam
