#include "lib/node_checks/services/dns_query.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "fmt/core.h"

namespace spoke::node_checks {
namespace {

// The numbers are those of RFC 1035, sections 2.3.4 and 4.1.
constexpr size_t kHeaderBytes = 12;
constexpr size_t kMaxNameBytes = 253;  // In text, without the dot at the end.
constexpr size_t kMaxLabelBytes = 63;
constexpr unsigned kResponse = 0x80;  // In the third byte.
constexpr unsigned kOpcode = 0x78;
constexpr unsigned kRecursionDesired = 0x01;
constexpr unsigned kResponseCode = 0x0F;  // In the fourth byte.
constexpr unsigned kNoError = 0;
constexpr unsigned kNameError = 3;

absl::Status NoName(std::string_view name) {
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no host name: it has labels of 1 to 63 letters, digits, '-' and '_' "
                  "with dots between them",
                  name));
}

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

unsigned ByteAt(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

char Lower(char c) { return absl::ascii_tolower(static_cast<unsigned char>(c)); }

std::string NameOfCode(unsigned code) {
  switch (code) {
    case 1:
      return "FORMERR";
    case 2:
      return "SERVFAIL";
    case kNameError:
      return "NXDOMAIN";
    case 4:
      return "NOTIMP";
    case 5:
      return "REFUSED";
    default:
      return fmt::format("error {}", code);
  }
}

// Whether the reply repeats the query's question, in any case of letters. A resolver that does not
// answer the question may leave it out.
bool IsAbout(std::string_view reply, std::string_view query, unsigned code) {
  const unsigned questions = ByteAt(reply, 4) << 8U | ByteAt(reply, 5);
  if (questions == 0) return code != kNoError && code != kNameError;
  const std::string_view question = query.substr(kHeaderBytes);
  const std::string_view repeated = reply.substr(kHeaderBytes, question.size());
  return questions == 1 &&
         std::equal(question.begin(), question.end(), repeated.begin(), repeated.end(),
                    [](char a, char b) { return Lower(a) == Lower(b); });
}

}  // namespace

absl::StatusOr<std::string> DnsQuery(uint16_t id, std::string_view name) {
  std::string_view rest = name;
  if (!rest.empty() && rest.back() == '.') rest.remove_suffix(1);
  if (rest.empty() || rest.size() > kMaxNameBytes) return NoName(name);
  std::string query = {static_cast<char>(id >> 8U), static_cast<char>(id & 0xFFU)};
  query += static_cast<char>(kRecursionDesired);
  query += std::string({0, 0, 1, 0, 0, 0, 0, 0, 0});  // One question, and nothing else.
  while (true) {
    const size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view label = rest.substr(0, end);
    if (label.empty() || label.size() > kMaxLabelBytes ||
        !std::all_of(label.begin(), label.end(), &IsPlain)) {
      return NoName(name);
    }
    query += static_cast<char>(label.size());
    query += label;
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  query += std::string({0, 0, 1, 0, 1});  // The root, type A, class IN.
  return query;
}

std::optional<absl::Status> JudgeDnsReply(std::string_view reply, std::string_view query,
                                          bool must_exist) {
  if (reply.size() < kHeaderBytes || query.size() < kHeaderBytes) return std::nullopt;
  if (reply.substr(0, 2) != query.substr(0, 2)) return std::nullopt;
  if ((ByteAt(reply, 2) & kResponse) == 0 || (ByteAt(reply, 2) & kOpcode) != 0) return std::nullopt;
  const unsigned code = ByteAt(reply, 3) & kResponseCode;
  if (!IsAbout(reply, query, code)) return std::nullopt;
  if (code == kNoError || (code == kNameError && !must_exist)) return absl::OkStatus();
  const std::string said = fmt::format("answers {}", NameOfCode(code));
  return code == kNameError ? absl::NotFoundError(said) : absl::UnavailableError(said);
}

}  // namespace spoke::node_checks
