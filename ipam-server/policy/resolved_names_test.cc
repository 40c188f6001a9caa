#include "ipam-server/policy/resolved_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ipam-server/policy/testing/kinds_for_test.h"
#include "lib/base/status.h"

namespace spoke::ipam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Resolved = std::map<std::string, std::vector<ip::Address>>;

ip::Address A(const char* text) { return ip::Address::Parse(text).value(); }

ParsedFiles Parsed(const std::string& text) {
  return ParsePolicyFiles(std::vector<PolicyFileText>{{"f", text}});
}

absl::Status Judge(const ObjectSet& set, const std::string& text, const Resolved& resolved) {
  ParsedFiles parsed = Parsed(text);
  AddResolved(resolved, parsed);
  return PlanApply(set, parsed, {}, KindsTime()).status();
}

const char* const kGroup = "\n  names:\n  - data.example.org\n  - mirror.example.org";

TEST(NamesToResolve, AreThoseThatCanBe) {
  const ParsedFiles parsed =
      Parsed(Document("DestinationGroup", "a", "{names: [b.example.org, \"*.cdn.example.org\"]}") +
             "---\n" + Document("DestinationGroup", "b", "{names: [A.example.org]}") + "---\n" +
             Document("DestinationGroup", "c", "{names: [c.example.org, x_y]}") + "---\n" +
             Document("Team", "t", "{namespaces: [n]}"));
  EXPECT_THAT(NamesToResolve(parsed), ElementsAre("a.example.org", "b.example.org"));
}

TEST(AddResolved, RefusesANameOfAHostInsideWithItsLine) {
  for (const std::string share :
       {"cluster", "hub", "peerSpoke", "platform", "storage", "services"}) {
    const ObjectSet set =
        Applied(Document("ClusterNetwork", "main", "{" + share + ": [10.0.0.0/8, \"fd00::/8\"]}"));
    const absl::Status status = Judge(set, Document("DestinationGroup", "g", kGroup),
                                      {{"data.example.org", {A("192.0.2.1"), A("10.1.0.5")}},
                                       {"mirror.example.org", {A("fd00::1")}}});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(
        base::MessageOf(status),
        "f:6: spec.names: data.example.org resolves to 10.1.0.5, which lies in 10.0.0.0/8, "
        "a block of " +
            share +
            " of ClusterNetwork \"main\" (applied before): groups are "
            "for the Internet, so nothing would be counted there; take it out\n"
            "f:7: spec.names: mirror.example.org resolves to fd00::1, which lies in fd00::/8, "
            "a block of " +
            share +
            " of ClusterNetwork \"main\" (applied before): groups are "
            "for the Internet, so nothing would be counted there; take it out");
  }
}

TEST(AddResolved, SeesNetworksAndPoolsOfTheSameFiles) {
  const absl::Status status = Judge({},
                                    Document("DestinationGroup", "g", kGroup) + "---\n" +
                                        Document("Pool", "p", "{cidr: 10.1.0.0/16}"),
                                    {{"data.example.org", {A("10.1.0.5")}}});
  EXPECT_THAT(base::MessageOf(status),
              HasSubstr("f:6: spec.names: data.example.org resolves to 10.1.0.5, which lies in "
                        "10.1.0.0/16, the cidr of Pool \"p\" (f:12)"));
}

TEST(AddResolved, RefusesThePlatform) {
  const absl::Status status = Judge({}, Document("DestinationGroup", "g", kGroup),
                                    {{"mirror.example.org", {A("169.254.169.254")}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(base::MessageOf(status),
            "f:7: spec.names: mirror.example.org resolves to 169.254.169.254: 169.254.169.254/32 "
            "lies in 169.254.0.0/16, which is the platform's or the node's own in every cluster, "
            "and comes before any policy: take it out");
}

TEST(AddResolved, TakesWhatIsOnTheInternetOrNotKnown) {
  const ObjectSet set = Applied(Document("ClusterNetwork", "main", "{cluster: [10.0.0.0/8]}"));
  EXPECT_TRUE(Judge(set, Document("DestinationGroup", "g", kGroup), {}).ok());
  EXPECT_TRUE(Judge(set, Document("DestinationGroup", "g", kGroup),
                    {{"data.example.org", {A("192.0.2.1"), A("2001:db8::1")}},
                     {"other.example.org", {A("10.1.0.5")}}})
                  .ok());
}

}  // namespace
}  // namespace spoke::ipam
