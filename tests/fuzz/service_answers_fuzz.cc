// What resolvers and the metadata service answer, and the names and URLs that they are asked by:
// never a crash, and a verdict that more of the same answer does not take back. The first byte says
// what the rest is.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/node_checks/services/dns_query.h"
#include "lib/node_checks/services/metadata_reply.h"

namespace {

namespace node_checks = spoke::node_checks;

void AsDnsReply(std::string_view reply) {
  const std::string query = node_checks::DnsQuery(0x1234, "a.example").value();
  const auto strict = node_checks::JudgeDnsReply(reply, query, true);
  const auto lenient = node_checks::JudgeDnsReply(reply, query, false);
  CHECK(strict.has_value() == lenient.has_value(), "it is an answer whatever is asked of it");
  CHECK(!strict || !strict->ok() || lenient->ok(), "what exists is an answer as well");
  CHECK(!strict || reply.substr(0, 2) == query.substr(0, 2), "an answer has the query's number");
}

void AsMetadataReply(std::string_view reply) {
  CHECK(node_checks::JudgeMetadataReply(reply, true).has_value(), "the end brings a verdict");
  const auto so_far = node_checks::JudgeMetadataReply(reply, false);
  CHECK(!so_far || so_far == node_checks::JudgeMetadataReply(reply, true), "a verdict stands");
  const auto longer = node_checks::JudgeMetadataReply(std::string(reply) + "more", false);
  CHECK(!so_far || so_far == longer, "a verdict stands when more comes");
}

void AsUrl(std::string_view url) {
  const auto service = node_checks::ParseMetadataUrl(url);
  CHECK(!service || "http://" + service->host == url, "the host is what the URL names");
  CHECK(!service || service->port != 0, "a port can be connected to");
}

void AsName(std::string_view name) {
  const auto query = node_checks::DnsQuery(7, name);
  if (!query.ok()) return;
  CHECK(query->size() <= node_checks::kMaxDnsReplyBytes, "a query fits a packet");
  std::string reply = *query;
  reply[2] = static_cast<char>(0x81);
  CHECK(node_checks::JudgeDnsReply(reply, *query, true) == absl::OkStatus(), "it is its answer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      AsDnsReply(rest);
      break;
    case 1:
      AsMetadataReply(rest);
      break;
    case 2:
      AsUrl(rest);
      break;
    default:
      AsName(rest);
      break;
  }
  return 0;
}
