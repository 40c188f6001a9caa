// Tests of the small values: subnets, URLs, knobs, specs, tokens; and of how the local services
// behave.
#include "gmock/gmock.h"
#include "tests/azure-sim/imds_model.h"
#include "tests/azure-sim/model_for_test.h"
#include "tests/azure-sim/tokens.h"
#include "tests/azure-sim/wireserver_model.h"

namespace spoke::azure_sim {
namespace {

TEST(SubnetPool, GivesTheLowestAndKeepsWhatAzureKeeps) {
  SubnetPool pool(*ip::Prefix::Parse("10.0.0.0/28"));
  EXPECT_EQ(pool.free(), 11);
  EXPECT_EQ(pool.Take(*ip::Address::Parse("10.0.0.3")), SubnetPool::Taken::kReserved);
  EXPECT_EQ(pool.Take(*ip::Address::Parse("10.0.0.15")), SubnetPool::Taken::kReserved);
  EXPECT_EQ(pool.Take(*ip::Address::Parse("10.0.1.0")), SubnetPool::Taken::kOutside);
  EXPECT_EQ(pool.Take(*ip::Address::Parse("10.0.0.5")), SubnetPool::Taken::kYes);
  EXPECT_EQ(pool.Take(*ip::Address::Parse("10.0.0.5")), SubnetPool::Taken::kInUse);
  EXPECT_EQ(pool.TakeLowest()->ToString(), "10.0.0.4");
  EXPECT_EQ(pool.TakeLowest()->ToString(), "10.0.0.6");
  pool.Free(*ip::Address::Parse("10.0.0.4"), 1);
  EXPECT_EQ(pool.TakeLowest()->ToString(), "10.0.0.4");
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(pool.TakeLowest().has_value());
  EXPECT_FALSE(pool.TakeLowest().has_value());
  EXPECT_EQ(pool.free(), 0);
}

TEST(SubnetPool, BlocksAreAlignedAndWhole) {
  SubnetPool pool(*ip::Prefix::Parse("10.0.0.0/25"));
  EXPECT_EQ(pool.TakeBlock()->ToString(), "10.0.0.16");
  EXPECT_EQ(pool.Take(*ip::Address::Parse("10.0.0.40")), SubnetPool::Taken::kYes);
  EXPECT_EQ(pool.TakeBlock()->ToString(), "10.0.0.48");
  pool.Free(*ip::Address::Parse("10.0.0.16"), 16);
  EXPECT_EQ(pool.TakeBlock()->ToString(), "10.0.0.16");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.TakeBlock().has_value());
  EXPECT_FALSE(pool.TakeBlock().has_value());  // The last block has the broadcast address.
}

TEST(Target, IsTakenApart) {
  const Target target = ParseTarget("https://host:1/A/b%20C//d?Api-Version=1&$x=%2F&x&x=2");
  EXPECT_EQ(target.host, "https://host:1");
  EXPECT_THAT(target.segments, testing::ElementsAre("A", "b C", "d"));
  EXPECT_EQ(target.Key(1), "b c");
  EXPECT_EQ(target.Key(9), "");
  EXPECT_EQ(target.api_version(), "1");
  EXPECT_EQ(target.Query("$x"), "/");
  EXPECT_TRUE(target.has_duplicates);
  EXPECT_EQ(PercentDecode(PercentEncode("a/b c%é")), "a/b c%é");
  for (const char* odd : {"", "?", "%", "%2", "http://", "/?&=&", "/%zz"}) ParseTarget(odd);
}

TEST(Knobs, AreMergedWholeOrNotAtAll) {
  Knobs knobs;
  ASSERT_TRUE(MergeKnobs(R"({"latency_least_s": 0.5, "retry_after": "http-date",
                             "limits": {"UpdateVMScaleSetVMs": {"resource": [1, 2]}}})",
                         &knobs)
                  .ok());
  EXPECT_EQ(knobs.latency.least, absl::Milliseconds(500));
  EXPECT_EQ(knobs.retry_after, RetryAfter::kHttpDate);
  EXPECT_EQ(knobs.limits[Policy::kUpdateScaleSetVms].resource, (Bucket{1, 2}));
  const std::string before = FormatKnobs(knobs);
  for (const char* bad : {"", "[]", R"({"page_size": 3, "no such": 1})", R"({"page_size": "3"})",
                          R"({"page_size": 3, "full_subnet": "maybe"})", R"({"limits": {"X": {}}})",
                          R"({"page_size": 3, "limits": {"GetOperation": {"resource": [1]}}})"}) {
    EXPECT_FALSE(MergeKnobs(bad, &knobs).ok()) << bad;
    EXPECT_EQ(FormatKnobs(knobs), before) << bad;
  }
  Knobs copy;
  ASSERT_TRUE(MergeKnobs(before, &copy).ok());
  EXPECT_EQ(FormatKnobs(copy), before);
}

TEST(Spec, IsReadOrSaysWhatIsWrong) {
  const auto spec = ParseSpec(R"({"seed": 7, "subnets": [{"id": "/a", "prefix": "10.0.0.0/24"}],
      "scale_sets": [{"subscription": "s", "resource_group": "g", "name": "n",
        "orchestration": "Flexible", "instances": 2, "zones": ["1"],
        "first": [{"node": "x", "mac": "02:00:00:00:00:01", "address": "10.0.0.4"}]}]})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->seed, 7);
  EXPECT_EQ(spec->scale_sets[0].orchestration, Orchestration::kFlexible);
  EXPECT_EQ(spec->scale_sets[0].first[0].address->ToString(), "10.0.0.4");
  struct Bad {
    const char* json;
    const char* part;
  };
  for (const Bad& bad : {
           Bad{"", "not JSON"},
           Bad{"[]", "is not an object"},
           Bad{R"({"seeds": 1})", "seeds: is not known"},
           Bad{R"({"subnets": [{"id": "/a", "prefix": "10.0.0.0/30"}]})", "subnets[0].prefix"},
           Bad{R"({"scale_sets": [{"name": 7}]})", "scale_sets[0].name: is not text"},
           Bad{R"({"scale_sets": [{"first": [{"mac": "x"}]}]})", "scale_sets[0].first[0].mac"},
       }) {
    const auto parsed = ParseSpec(bad.json);
    ASSERT_FALSE(parsed.ok()) << bad.json;
    EXPECT_THAT(std::string(parsed.status().message()), testing::HasSubstr(bad.part));
  }
}

TEST(Tokens, SurviveARoundTrip) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const auto token = ParseToken(FormatToken({"agent", now, now + absl::Hours(1)}));
  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->principal, "agent");
  EXPECT_EQ(token->expires, now + absl::Hours(1));
  for (const char* bad : {"", "sim", "sim.a.b.c", "a.b.c.d", "sim.a.1.2.3", "..."}) {
    EXPECT_FALSE(ParseToken(bad).has_value()) << bad;
  }
}

class ImdsTest : public ModelTest {
 protected:
  void SetUp() override {
    Make(1);
    imds_ = std::make_unique<ImdsModel>(model_->backend());
  }
  http::Response Ask(const std::string& path, http::Headers headers = {{"Metadata", "true"}}) {
    now_ += absl::Seconds(1);
    return imds_->Handle({"GET", "http://169.254.169.254" + path, std::move(headers), ""},
                         fmt::format("{}/virtualMachines/0", kSet), now_);
  }
  std::unique_ptr<ImdsModel> imds_;
};

TEST_F(ImdsTest, WantsItsHeaderAndNoProxy) {
  const std::string path = "/metadata/instance?api-version=2021-02-01";
  EXPECT_EQ(Ask(path).status, 200);
  EXPECT_EQ(Ask(path, {}).status, 400);
  EXPECT_EQ(Ask(path, {{"Metadata", "true"}, {"X-Forwarded-For", "1.2.3.4"}}).status, 400);
  EXPECT_EQ(Ask(path + "&api-version=2021-02-01").status, 400);
  EXPECT_EQ(Ask("/metadata/instance?api-version=1999-01-01").status, 400);
  EXPECT_EQ(Ask("/metadata/nothing?api-version=2021-02-01").status, 404);
  EXPECT_EQ(Ask("/metadata/versions").status, 200);
  EXPECT_EQ(imds_->Handle({"GET", "http://x/metadata/versions", {}, ""}, "/no/such", now_).status,
            0);
}

TEST_F(ImdsTest, LeavesAreText) {
  const std::string tail = "?api-version=2021-02-01&format=text";
  EXPECT_EQ(Ask("/metadata/instance/compute/vmScaleSetName" + tail).body, "pool");
  EXPECT_EQ(
      Ask("/metadata/instance/network/interface/0/ipv4/ipAddress/0/privateIpAddress" + tail).body,
      "10.0.0.4");
  EXPECT_EQ(Ask("/metadata/instance/network/interface/0" + tail).body, "ipv4/\nipv6/\nmacAddress");
  EXPECT_EQ(Ask("/metadata/instance/compute/name?api-version=2021-02-01").status, 400);
  EXPECT_EQ(Ask("/metadata/instance/network/interface/7" + tail).status, 404);
}

TEST_F(ImdsTest, AnswersFiveTimesASecondAndCanBeGone) {
  const http::Request request{"GET", "http://x/metadata/versions", {{"Metadata", "true"}}, ""};
  const std::string id = fmt::format("{}/virtualMachines/0", kSet);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(imds_->Handle(request, id, now_).status, 200);
  EXPECT_EQ(imds_->Handle(request, id, now_).status, 429);
  EXPECT_EQ(Ask("/metadata/versions").status, 200);
  model_->knobs().imds_gone = true;
  EXPECT_EQ(Ask("/metadata/versions").status, 410);
  model_->knobs().imds_gone = false;
  model_->knobs().imds_fails_status = 500;
  EXPECT_EQ(Ask("/metadata/versions").status, 500);
}

TEST_F(ImdsTest, LagsBehindTheFabric) {
  model_->knobs().imds_lag = absl::Minutes(2);
  Put(0, BodyWith(0, {"spoke-a"}));
  now_ += absl::Minutes(1);
  const auto addresses = [&] {
    const http::Response response =
        Ask("/metadata/instance/network/interface/0?api-version=2021-02-01");
    return Json::parse(response.body)["ipv4"]["ipAddress"].size();
  };
  EXPECT_EQ(addresses(), 1);
  WireserverModel wireserver(model_->backend());
  EXPECT_THAT(wireserver.InterfaceInfo(
                  *model_->world().FindInstance(fmt::format("{}/virtualMachines/0", kSet))),
              testing::HasSubstr("10.0.0.5"));
  now_ += absl::Minutes(2);
  EXPECT_EQ(addresses(), 2);
}

TEST_F(ImdsTest, TokensAreForArmAndNamedForTheirIdentity) {
  const std::string path = "/metadata/identity/oauth2/token?api-version=2018-02-01";
  EXPECT_EQ(Ask(path).status, 400);
  const Json body = Json::parse(Ask(path + "&resource=x&client_id=abc").body);
  EXPECT_EQ(ParseToken(body["access_token"].get<std::string>())->principal, "abc");
  model_->knobs().require_token = true;
  EXPECT_EQ(Send("GET", InstancePath(0), {},
                 {{"Authorization", "Bearer " + body["access_token"].get<std::string>()}})
                .status,
            200);
  model_->knobs().identity_missing = true;
  const http::Response missing = Ask(path + "&resource=x");
  EXPECT_EQ(missing.status, 400);
  EXPECT_EQ(Json::parse(missing.body)["error_description"], "Identity not found");
}

}  // namespace
}  // namespace spoke::azure_sim
