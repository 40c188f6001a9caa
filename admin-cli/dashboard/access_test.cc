#include "admin-cli/dashboard/access.h"

#include <ostream>
#include <string>

#include "gtest/gtest.h"

namespace spoke::ctl {
namespace {

const DashboardKeys kKeys = {.place = "aa11", .token = "0123456789abcdef"};

struct Case {
  const char* name;
  PageRequest request;
  Admission want;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class AdmitTest : public testing::TestWithParam<Case> {};

TEST_P(AdmitTest, IsDecidedByHostPathMethodOriginAndToken) {
  EXPECT_EQ(Admit(kKeys, GetParam().request), GetParam().want);
}

constexpr const char* kCookie = "spoke_dashboard=0123456789abcdef";

INSTANTIATE_TEST_SUITE_P(
    Cases, AdmitTest,
    testing::Values(
        Case{"Token", {"GET", "/aa11/", "0123456789abcdef", "127.0.0.1:8", ""}, Admission::kLogIn},
        Case{"WrongToken",
             {"GET", "/aa11/", "0123456789abcdee", "127.0.0.1:8", kCookie},
             Admission::kWrongToken},
        Case{"ShortToken", {"GET", "/aa11/", "0", "127.0.0.1:8", ""}, Admission::kWrongToken},
        Case{"TokenOfAnotherPath",
             {"GET", "/aa11/api/fleet", "0123456789abcdef", "localhost", ""},
             Admission::kWrongToken},
        Case{"Cookie", {"GET", "/aa11/api/fleet", "", "127.0.0.1:8", kCookie}, Admission::kShown},
        Case{"CookieAmongOthers",
             {"GET", "/aa11/", "", "LocalHost:8", "a=b; spoke_dashboard=0123456789abcdef; c=d"},
             Admission::kShown},
        Case{"CookieOfAnotherName",
             {"GET", "/aa11/", "", "localhost:8", "spoke_dashboards=0123456789abcdef"},
             Admission::kWrongToken},
        Case{"WrongCookie",
             {"GET", "/aa11/", "", "localhost:8", "spoke_dashboard=0123"},
             Admission::kWrongToken},
        Case{"EmptyCookie",
             {"GET", "/aa11/", "", "localhost:8", "spoke_dashboard="},
             Admission::kWrongToken},
        Case{"Nothing", {"GET", "/aa11/", "", "localhost:8", ""}, Admission::kWrongToken},
        Case{"Head", {"HEAD", "/aa11/", "", "localhost", kCookie}, Admission::kShown},
        Case{"Post", {"POST", "/aa11/", "", "localhost", kCookie}, Admission::kWrongMethod},
        Case{"Delete", {"DELETE", "/aa11/", "", "localhost", kCookie}, Admission::kWrongMethod},
        Case{"Root", {"GET", "/", "", "localhost", kCookie}, Admission::kWrongPlace},
        Case{"OtherPlace",
             {"GET", "/bb22/", "0123456789abcdef", "localhost", kCookie},
             Admission::kWrongPlace},
        Case{"PlaceWithoutSlash",
             {"GET", "/aa11", "", "localhost", kCookie},
             Admission::kWrongPlace},
        Case{"ForeignHost",
             {"GET", "/aa11/", "0123456789abcdef", "evil.example:8", kCookie},
             Admission::kWrongHost},
        Case{"HostThatBeginsLikeOurs",
             {"GET", "/aa11/", "", "127.0.0.1.evil.example:8", kCookie},
             Admission::kWrongHost},
        Case{"HostWithoutName", {"GET", "/aa11/", "", "", kCookie}, Admission::kWrongHost},
        Case{"HostWithPortThatIsNone",
             {"GET", "/aa11/", "", "localhost:8@evil", kCookie},
             Admission::kWrongHost},
        Case{"SameOrigin",
             {"GET", "/aa11/", "", "localhost", kCookie, "same-origin"},
             Admission::kShown},
        Case{"TypedIn", {"GET", "/aa11/", "", "localhost", kCookie, "none"}, Admission::kShown},
        Case{"OtherPortOfTheMachine",
             {"GET", "/aa11/", "", "localhost", kCookie, "same-site"},
             Admission::kWrongOrigin},
        Case{"OtherSite",
             {"GET", "/aa11/", "", "localhost", kCookie, "cross-site"},
             Admission::kWrongOrigin}),
    [](const auto& test) { return test.param.name; });

TEST(AccessTest, WithoutKeysNobodyIsLetIn) {
  EXPECT_EQ(Admit({}, {"GET", "//", "", "localhost", "spoke_dashboard="}), Admission::kWrongToken);
}

TEST(AccessTest, TheCookieIsForThePlaceAloneAndOutOfReachOfScripts) {
  EXPECT_EQ(CookieOf(kKeys),
            "spoke_dashboard=0123456789abcdef; Path=/aa11/; HttpOnly; SameSite=Strict");
}

TEST(AccessTest, PathsAreTakenBelowThePlace) {
  EXPECT_EQ(PathBelow(kKeys, "/aa11/api/fleet"), "api/fleet");
  EXPECT_EQ(PathBelow(kKeys, "/aa11/"), "");
  EXPECT_EQ(PathBelow(kKeys, "/bb22/api/fleet"), "");
}

}  // namespace
}  // namespace spoke::ctl
