// Tests of what must never be believed: bodies that are none, lists that are not whole, redirects,
// silence. No crash, nothing taken for gone, and an error that says what was wrong.
#include "absl/strings/ascii.h"
#include "gmock/gmock.h"
#include "tests/azure/machine_world.h"

namespace spoke::ipam::azure {
namespace {

using testing::HasSubstr;
using Answer = absl::StatusOr<http::Response>;

struct Bad {
  std::string name;
  std::function<Answer(http::Response)> spoil;  // Spoils what Azure would have said.
};

http::Response WithBody(http::Response response, std::string body) {
  response.body = std::move(body);
  return response;
}

const std::vector<Bad>& AllBad() {
  static const auto* const bad = new std::vector<Bad>{
      {"NoJson", [](auto r) { return WithBody(r, "<html>gateway</html>"); }},
      {"Empty", [](auto r) { return WithBody(r, ""); }},
      {"Null", [](auto r) { return WithBody(r, "null"); }},
      {"EmptyObject", [](auto r) { return WithBody(r, "{}"); }},
      {"NullValue", [](auto r) { return WithBody(r, R"({"value":null})"); }},
      {"ValueOfNulls", [](auto r) { return WithBody(r, R"({"value":[null]})"); }},
      {"WrongTypes",
       [](auto r) { return WithBody(r, R"({"value":[{"id":1,"name":[],"properties":"x"}]})"); }},
      {"Truncated", [](auto r) { return WithBody(r, r.body.substr(0, r.body.size() * 2 / 3)); }},
      {"Latin1", [](auto r) { return WithBody(r, r.body + "\xff\xfe"); }},
      {"Redirect",
       [](auto) {
         return http::Response{
             .status = 302, .headers = {{"Location", "https://evil.example/"}}, .body = ""};
       }},
      {"NextLinkElsewhere",
       [](auto r) { return WithBody(r, R"({"value":[],"nextLink":"https://evil.example/"})"); }},
      {"NextLinkOfAnotherType", [](auto r) { return WithBody(r, R"({"value":[],"nextLink":7})"); }},
      {"ServerError",
       [](auto) { return http::Response{.status = 500, .headers = {}, .body = ""}; }},
      {"StrangeStatus",
       [](auto) { return http::Response{.status = 299, .headers = {}, .body = ""}; }},
      {"Reset", [](auto) { return Answer(absl::UnavailableError("connection reset")); }},
      {"Stall", [](auto) { return Answer(absl::DeadlineExceededError("no byte for 20 s")); }},
  };
  return *bad;
}

class BadInputTest : public testing::TestWithParam<Bad> {
 protected:
  // Makes all answers to requests with `part` in their URL bad, until Heal().
  void Spoil(AzureStateWorld& world, std::string method, std::string part) {
    world.set_intercept(
        [this, &world, method,
         part](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
          EXPECT_THAT(request.url, testing::StartsWith("https://management.azure.com/"));
          if (healed_ || request.method != method || request.url.find(part) == std::string::npos) {
            return std::nullopt;
          }
          return GetParam().spoil(world.arm().Handle(request, world.now()));
        });
  }
  bool healed_ = false;
};

TEST_P(BadInputTest, AListingIsNeverShort) {
  AzureStateWorld world(azure_sim::SmallSpec(3));
  ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
  Spoil(world, "GET", "networkinterfaces");
  const auto listing = world.List();
  EXPECT_EQ(listing.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(listing.status().message()), HasSubstr("scalesets/pool"));
  healed_ = true;
  const auto healed = world.List();
  ASSERT_TRUE(healed.ok()) << healed.status();
  EXPECT_EQ(healed->size(), 3U);
}

TEST_P(BadInputTest, AnObservationFailsClearlyAndWorksLater) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
  Spoil(world, "GET", "networkinterfaces");
  const auto bad = world.AskAndWait(VmId(0), {});
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message(), "");
  healed_ = true;
  const auto nic = world.AskAndWait(VmId(0), {});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 1U);
}

TEST_P(BadInputTest, AModelThatCannotBeReadIsNotWritten) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  Spoil(world, "GET", "virtualmachines/0?");
  EXPECT_FALSE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
  EXPECT_EQ(world.CountSent("PUT"), 0U);
  healed_ = true;
  EXPECT_TRUE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
}

// Whatever the answer to a PUT was, what the NIC shows decides.
TEST_P(BadInputTest, AWriteWithoutAProperAnswerIsFoundByReading) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  Spoil(world, "PUT", "");
  const auto nic = world.AskAndWait(VmId(0), {"spoke-a"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 1U);
  EXPECT_EQ(world.CountSent("PUT"), 1U);
}

TEST_P(BadInputTest, AnOperationThatCannotBeReadEndsInReadingTheNic) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  Spoil(world, "GET", "/operations/");
  const auto bad = world.AskAndWait(VmId(0), {"spoke-a"});
  healed_ = true;
  const auto nic = world.AskAndWait(VmId(0), {"spoke-a"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(nic->configurations.size(), 1U);
  EXPECT_EQ(world.CountSent("PUT"), 1U);
}

TEST_P(BadInputTest, AScaleSetThatCannotBeReadIsAnErrorForAllThatWait) {
  AzureStateWorld world(azure_sim::SmallSpec(2));
  Spoil(world, "GET", "virtualmachinescalesets/pool?");
  for (int i = 0; i < 2; ++i) world.Request(world.Ask(VmId(i), {}));
  EXPECT_FALSE(world.Answer(VmId(0)).ok());
  EXPECT_FALSE(world.Answer(VmId(1)).ok());
  EXPECT_EQ(world.List().status().code(), absl::StatusCode::kUnavailable);
  healed_ = true;
  EXPECT_TRUE(world.AskAndWait(VmId(0), {}).ok());
}

INSTANTIATE_TEST_SUITE_P(All, BadInputTest, testing::ValuesIn(AllBad()),
                         [](const auto& test) { return test.param.name; });

TEST(BadInput, NicsWithNullListsSpoilTheListing) {
  azure_sim::Knobs knobs;
  knobs.nic_list_null = 0.3;
  AzureStateWorld world(azure_sim::SmallSpec(30), knobs);
  EXPECT_EQ(world.List().status().code(), absl::StatusCode::kUnavailable);
}

TEST(BadInput, AnEmptyListOfASetWithInstancesIsNoListing) {
  azure_sim::Knobs knobs;
  knobs.nic_list_empty = 1;
  AzureStateWorld world(azure_sim::SmallSpec(3), knobs);
  EXPECT_EQ(world.List().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(world.AskAndWait(VmId(0), {}).ok());
}

TEST(BadInput, ANicWithoutAnyEntryIsNotBelieved) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  ASSERT_TRUE(world.AskAndWait(VmId(0), {"spoke-a"}).ok());
  world.set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        if (request.url.find("networkinterfaces") == std::string::npos) return std::nullopt;
        http::Response response = world.arm().Handle(request, world.now());
        azure_sim::Json body = azure_sim::Json::parse(response.body);
        body["value"][0]["properties"]["ipConfigurations"] = azure_sim::Json::array();
        response.body = body.dump();
        return response;
      });
  EXPECT_EQ(world.List().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(world.AskAndWait(VmId(0), {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST(BadInput, AnEmptySetIsEmptyOnlyWhenItSaysSo) {
  AzureStateWorld world(azure_sim::SmallSpec(0));
  const auto empty = world.List();
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_TRUE(empty->empty());

  AzureStateWorld other(azure_sim::SmallSpec(3));
  other.set_intercept(
      [](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        if (request.url.find("networkinterfaces") == std::string::npos) return std::nullopt;
        return http::Response{.status = 404,
                              .headers = {},
                              .body = R"({"error":{"code":"NotFound","message":"not found"}})"};
      });
  EXPECT_EQ(other.List().status().code(), absl::StatusCode::kUnavailable);
}

TEST(BadInput, IdsThatDifferInCaseAreTheSame) {
  azure_sim::Knobs knobs;
  knobs.vary_id_case = true;
  AzureStateWorld world(azure_sim::SmallSpec(10), knobs);
  for (int i = 0; i < 10; ++i) {
    NicRequest request = world.Ask(VmId(i), {"spoke-a"});
    for (char& c : request.instance) {
      c = i % 2 == 0 ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c;
    }
    world.Request(request);
  }
  world.RunUntil([&] { return world.answers() == 10; });
  for (int i = 0; i < 10; ++i) {
    const auto nic = world.Answer(VmId(i));
    ASSERT_TRUE(nic.ok()) << nic.status();
    EXPECT_EQ(nic->instance, VmId(i));
  }
}

TEST(BadInput, OperationUrlsThatLeadElsewhereAreNotCalled) {
  AzureStateWorld world(azure_sim::SmallSpec(1));
  world.set_intercept(
      [&](const http::Request& request) -> std::optional<absl::StatusOr<http::Response>> {
        EXPECT_THAT(request.url, testing::StartsWith("https://management.azure.com/"));
        if (request.method != "PUT") return std::nullopt;
        http::Response response = world.arm().Handle(request, world.now());
        response.headers = {{"Azure-AsyncOperation", "https://evil.example/operations/1"}};
        return response;
      });
  const auto nic = world.AskAndWait(VmId(0), {"spoke-a"});
  ASSERT_TRUE(nic.ok()) << nic.status();
  EXPECT_EQ(world.CountSent("PUT"), 1U);
}

}  // namespace
}  // namespace spoke::ipam::azure
