#include "ipam-server/policy/object_text.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ipam-server/policy/policy_file.h"

namespace spoke::ipam {
namespace {

PolicyObject Read(const std::string& text) {
  const ParsedFiles parsed = ParsePolicyFiles(std::vector<PolicyFileText>{{"f", text}});
  EXPECT_TRUE(parsed.problems.empty()) << ToStatus(parsed.problems, {});
  EXPECT_EQ(parsed.objects.size(), 1U);
  return {.key = parsed.objects.at(0).key, .spec = parsed.objects.at(0).spec};
}

const std::string kPool =
    "apiVersion: spoke/v1\n"
    "kind: Pool\n"
    "metadata:\n"
    "  name: \"007\"\n"
    "spec:\n"
    "  cidr: 10.1.0.0/16\n"
    "  namespaces:\n"
    "    - \"1e3\"\n"
    "    - \"on\"\n"
    "    - plain\n"
    "  nodeLabels:\n"
    "    \"0x1f\": \"true\"\n"
    "    example.com/gpu: h100\n"
    "    zone: \"2\"\n"
    "  reserveFirst: 4\n"
    "  reserveLast: 1\n"
    "  vnet: /subscriptions/x/vnet-1\n";

TEST(ObjectYaml, IsWhatAnOperatorWouldWriteAndIsSafeForAnyReader) {
  EXPECT_EQ(ObjectYaml(Read(kPool)), kPool);
}

TEST(ObjectYaml, SurvivesARoundTripWhateverTextSays) {
  for (const char* vnet :
       {"'a:'", "'#x'", "'-a'", "'a\"b'", "'{x}'", "'a\\b'", "'~'", "'&x'", "'1.5'", "'null'",
        "'::1/128'", "'2001-01-01'", "'a,b'", "'?'", "'%x'"}) {
    const PolicyObject object =
        Read(std::string("{apiVersion: spoke/v1, kind: Pool, metadata: {name: p}, spec: {cidr: "
                         "fd00::/64, vnet: ") +
             vnet + "}}");
    const PolicyObject again = Read(ObjectYaml(object));
    EXPECT_EQ(again.key, object.key);
    EXPECT_EQ(again.spec->ToJson(), object.spec->ToJson()) << vnet;
  }
}

TEST(ObjectJson, HasTheWholeObjectWithSortedKeys) {
  const PolicyObject object =
      Read("{spec: {namespaces: [b, a]}, kind: Team, metadata: {name: t}, apiVersion: spoke/v1}");
  EXPECT_EQ(ObjectJson(object),
            "{\"apiVersion\":\"spoke/v1\",\"kind\":\"Team\",\"metadata\":{\"name\":\"t\"},"
            "\"spec\":{\"namespaces\":[\"a\",\"b\"]}}");
  EXPECT_EQ(ObjectJson(Read(ObjectJson(object))), ObjectJson(object));
}

}  // namespace
}  // namespace spoke::ipam
