// Tests of the codec against protobuf's own, field by field.
#include "lib/cni_api/wire.h"

#include "gtest/gtest.h"
#include "proto/spoke/v1/cni.pb.h"

namespace spoke::cni {
namespace {

Request FullRequest() {
  Request request;
  request.verb = Verb::kCheck;
  request.container_id = std::string(200, 'c');
  request.ifname = "eth0";
  request.network_name = "spoke";
  request.pod = {"prod", "web-0", "uid"};
  request.deadline_monotonic_ms = INT64_MAX;
  request.attempt = UINT64_MAX;
  request.netns = "/run/netns/é";
  request.plugin_version = "1.2.3";
  request.trace_parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  request.options = {
      "0e:11:22:33:44:55",
      {"10.1.0.5", "fd00::5/128"},
      9000,
      {units::BitRate(1), units::BitCount(2), units::BitRate(3), units::BitCount(UINT64_MAX)},
      {units::BitRate(4), units::BitRate(UINT64_MAX), 100}};
  request.expected = Attachment{
      "spk1", "0a:00:00:00:00:01", "0e:00:00:00:00:01", 1500, {{"10.1.0.5/32", "169.254.1.1"}, {}}};
  request.valid = std::vector<AttachmentRef>{{"aaa", "eth0"}, {"bbb", "net1"}};
  return request;
}

v1::CniRequest Parsed(const Request& request) {
  v1::CniRequest parsed;
  EXPECT_TRUE(parsed.ParseFromString(EncodeRequest(request)));
  return parsed;
}

TEST(EncodeRequest, ProtobufReadsEachField) {
  const v1::CniRequest parsed = Parsed(FullRequest());
  v1::CniRequest want;
  want.set_verb(v1::CniRequest::VERB_CHECK);
  want.set_container_id(std::string(200, 'c'));
  want.set_ifname("eth0");
  want.set_network_name("spoke");
  want.mutable_pod()->set_namespace_("prod");
  want.mutable_pod()->set_name("web-0");
  want.mutable_pod()->set_uid("uid");
  want.set_deadline_monotonic_ms(INT64_MAX);
  want.set_attempt(UINT64_MAX);
  want.set_netns_path("/run/netns/é");
  want.set_plugin_version("1.2.3");
  want.set_trace_parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  want.mutable_options()->set_mac("0e:11:22:33:44:55");
  want.mutable_options()->add_addresses("10.1.0.5");
  want.mutable_options()->add_addresses("fd00::5/128");
  want.mutable_options()->set_mtu(9000);
  want.mutable_options()->mutable_bandwidth()->set_ingress_rate(1);
  want.mutable_options()->mutable_bandwidth()->set_ingress_burst(2);
  want.mutable_options()->mutable_bandwidth()->set_egress_rate(3);
  want.mutable_options()->mutable_bandwidth()->set_egress_burst(UINT64_MAX);
  want.mutable_options()->mutable_internet()->set_ingress(4);
  want.mutable_options()->mutable_internet()->set_egress(UINT64_MAX);
  want.mutable_options()->mutable_internet()->set_weight(100);
  v1::CniAttachment& expected = *want.mutable_expected();
  expected.set_host_link("spk1");
  expected.set_host_mac("0a:00:00:00:00:01");
  expected.set_pod_mac("0e:00:00:00:00:01");
  expected.set_mtu(1500);
  expected.add_addresses()->set_address("10.1.0.5/32");
  expected.mutable_addresses(0)->set_gateway("169.254.1.1");
  expected.add_addresses();
  want.add_valid()->set_container_id("aaa");
  want.mutable_valid(0)->set_ifname("eth0");
  want.add_valid()->set_container_id("bbb");
  want.mutable_valid(1)->set_ifname("net1");
  EXPECT_EQ(parsed.SerializeAsString(), want.SerializeAsString());
  // For these messages, what protobuf writes is what we write.
  EXPECT_EQ(EncodeRequest(FullRequest()), want.SerializeAsString());
}

TEST(EncodeRequest, WhatIsEmptyIsNotThere) {
  Request request;
  request.verb = Verb::kDel;
  const v1::CniRequest parsed = Parsed(request);
  EXPECT_EQ(EncodeRequest(request), std::string("\x08\x02"));
  EXPECT_FALSE(parsed.has_pod() || parsed.has_options() || parsed.has_expected());
  request.expected = Attachment();
  EXPECT_TRUE(Parsed(request).has_expected());
}

TEST(EncodeRequest, VerbsHaveTheNumbersOfTheProtocol) {
  EXPECT_EQ(static_cast<int>(Verb::kAdd), v1::CniRequest::VERB_ADD);
  EXPECT_EQ(static_cast<int>(Verb::kDel), v1::CniRequest::VERB_DEL);
  EXPECT_EQ(static_cast<int>(Verb::kCheck), v1::CniRequest::VERB_CHECK);
  EXPECT_EQ(static_cast<int>(Verb::kGc), v1::CniRequest::VERB_GC);
  EXPECT_EQ(static_cast<int>(Verb::kStatus), v1::CniRequest::VERB_STATUS);
}

TEST(DecodeRequest, ReadsEachFieldThatIsWritten) {
  EXPECT_EQ(DecodeRequest(EncodeRequest(FullRequest())), FullRequest());
  EXPECT_EQ(DecodeRequest(""), Request());
}

TEST(DecodeRequest, SaysAVerbThatOnlyANewerPluginKnows) {
  EXPECT_EQ(DecodeRequest("\x08\x85\x02")->verb, static_cast<Verb>(261));
}

TEST(DecodeRequest, AWeightOfNothingIsOne) {
  v1::CniRequest request;
  request.mutable_options()->mutable_internet()->set_ingress(5);
  EXPECT_EQ(DecodeRequest(request.SerializeAsString())->options.internet.weight, 1U);
  EXPECT_EQ(DecodeRequest("\x52\x04\x2A\x02\x18" + std::string(1, '\0'))->options.internet.weight,
            1U);
}

TEST(DecodeRequest, RefusesTextThatIsNotUtf8AndWhatIsCutOff) {
  for (const std::string& bytes :
       {std::string("\x12\x01\xFF"), std::string("\x2A\x03\x0A\x01\xFF"),
        std::string("\x52\x03\x12\x01\xFF"), std::string("\x62\x05\x0A\x01"),
        std::string("\x5A\x02\x2A\x05"), std::string("\x52\x02\x22\x01")}) {
    EXPECT_FALSE(DecodeRequest(bytes)) << testing::PrintToString(bytes);
  }
  const std::string whole = EncodeRequest(FullRequest());
  EXPECT_FALSE(DecodeRequest(whole.substr(0, whole.size() - 1)));
}

TEST(DecodeRequest, AMessageThatComesTwiceIsMerged) {
  v1::CniRequest first;
  first.mutable_options()->add_addresses("a");
  first.mutable_expected()->set_mtu(1);
  v1::CniRequest second;
  second.mutable_options()->add_addresses("b");
  second.mutable_expected()->set_host_link("spk1");
  const auto merged = DecodeRequest(first.SerializeAsString() + second.SerializeAsString());
  EXPECT_EQ(merged->options.addresses, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(merged->expected->mtu, 1U);
  EXPECT_EQ(merged->expected->host_link, "spk1");
}

TEST(EncodeResponse, ProtobufReadsEachField) {
  const auto parsed = [](const Response& response) {
    v1::CniResponse message;
    EXPECT_TRUE(message.ParseFromString(EncodeResponse(response)));
    return message;
  };
  v1::CniResponse want;
  want.mutable_attachment()->set_host_link("spk1");
  want.mutable_attachment()->set_host_mac("h");
  want.mutable_attachment()->set_pod_mac("p");
  want.mutable_attachment()->set_mtu(UINT32_MAX);
  want.mutable_attachment()->add_addresses()->set_address("10.1.0.5/32");
  want.mutable_attachment()->mutable_addresses(0)->set_gateway("169.254.1.1");
  const Attachment attachment{"spk1", "h", "p", UINT32_MAX, {{"10.1.0.5/32", "169.254.1.1"}}};
  EXPECT_EQ(parsed({.outcome = Response::Outcome::kAttachment, .attachment = attachment})
                .SerializeAsString(),
            want.SerializeAsString());
  want.mutable_error()->set_code(11);
  want.mutable_error()->set_message("m");
  want.mutable_error()->set_details("d");
  EXPECT_EQ(
      parsed({.outcome = Response::Outcome::kError, .error = {11, "m", "d"}}).SerializeAsString(),
      want.SerializeAsString());
  EXPECT_TRUE(parsed({.outcome = Response::Outcome::kDone}).has_done());
  EXPECT_EQ(EncodeResponse({}), "");
}

TEST(DecodeResponse, ReadsWhatProtobufWrites) {
  v1::CniResponse response;
  v1::CniAttachment& attachment = *response.mutable_attachment();
  attachment.set_host_link("spk1");
  attachment.set_host_mac("h");
  attachment.set_pod_mac("p");
  attachment.set_mtu(UINT32_MAX);
  attachment.add_addresses()->set_address("10.1.0.5/32");
  attachment.mutable_addresses(0)->set_gateway("169.254.1.1");
  attachment.add_addresses();
  auto decoded = DecodeResponse(response.SerializeAsString());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->outcome, Response::Outcome::kAttachment);
  EXPECT_EQ(decoded->attachment,
            (Attachment{"spk1", "h", "p", UINT32_MAX, {{"10.1.0.5/32", "169.254.1.1"}, {}}}));

  response.mutable_error()->set_code(11);
  response.mutable_error()->set_message("m");
  response.mutable_error()->set_details("d");
  decoded = DecodeResponse(response.SerializeAsString());
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->outcome, Response::Outcome::kError);
  EXPECT_EQ(decoded->error, (Error{11, "m", "d"}));

  response.mutable_error()->Clear();  // An error without a code has code 0, not our default.
  EXPECT_EQ(DecodeResponse(response.SerializeAsString())->error.code, 0U);

  response.mutable_done();
  EXPECT_EQ(DecodeResponse(response.SerializeAsString())->outcome, Response::Outcome::kDone);
  EXPECT_EQ(DecodeResponse("")->outcome, Response::Outcome::kNone);
}

TEST(DecodeResponse, PassesOverFieldsOfLaterReleases) {
  const std::string done = DecodeResponse("") ? "\x1A\x00" : "";
  for (const std::string& unknown :
       {std::string("\xA0\x06\x96\x01"), std::string("\xA2\x06\x02xy"),
        std::string("\xA5\x06\x01\x02\x03\x04"),
        std::string("\xA1\x06\x01\x02\x03\x04\x05\x06\x07\x08"),
        std::string("\x08\x01")}) {  // The last one is a known field of another type.
    const auto decoded = DecodeResponse(unknown + std::string("\x1A\x00", 2));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->outcome, Response::Outcome::kDone);
  }
}

TEST(DecodeResponse, RefusesWhatIsMalformed) {
  const std::string cases[] = {
      "\xFF",                                                  // A tag that does not end.
      std::string("\x00", 1),                                  // Field 0.
      "\x12\x05\x08",                                          // This is longer than there is.
      "\x12\x02\x12\x05",                                      // This is the same inside.
      "\x12\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",          // A length near 2^64.
      "\x12\x0B\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F",  // A varint over 64 bits.
      "\x12\x03\x12\x01\xFF",                                  // Text that is not UTF-8.
      "\x0B\x0C",                                              // A group.
      "\xA5\x06\x01\x02",                              // Four bytes, of which two are there.
      std::string("\x9A\x80\x80\x80\x80\x00\x00", 7),  // A tag, and a length, in six bytes.
      std::string("\x1A\x80\x80\x80\x80\x80\x00", 7),
      "\xFF\xFF\xFF\xFF\xFF\x01",  // A tag over 32 bits.
  };
  for (const std::string& bytes : cases) {
    EXPECT_FALSE(DecodeResponse(bytes)) << testing::PrintToString(bytes);
  }
}

TEST(DecodeResponse, TheLastOutcomeCountsAndARepeatedOneIsMerged) {
  v1::CniResponse first;
  first.mutable_attachment()->add_addresses()->set_address("a");
  v1::CniResponse second;
  second.mutable_attachment()->add_addresses()->set_address("b");
  v1::CniResponse error;
  error.mutable_error()->set_code(7);
  const std::string merged = first.SerializeAsString() + second.SerializeAsString();
  EXPECT_EQ(DecodeResponse(merged)->attachment.addresses.size(), 2U);
  const auto replaced = DecodeResponse(first.SerializeAsString() + error.SerializeAsString() +
                                       second.SerializeAsString());
  EXPECT_EQ(replaced->attachment.addresses, (std::vector<PodAddress>{{"b", ""}}));
}

}  // namespace
}  // namespace spoke::cni
