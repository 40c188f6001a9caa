#include "lib/node_checks/facts/network_counts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace spoke::node_checks {
namespace {

using Words = std::vector<std::string>;

Words WordsOf(const std::string& line) { return absl::StrSplit(line, ' ', absl::SkipEmpty()); }

// Returns the lines with that first word, as words.
std::vector<Words> LinesOf(std::string_view text, const std::string& first) {
  std::vector<Words> found;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(text), '\n'))) {
    Words words = WordsOf(line);
    if (!words.empty() && words[0] == first) found.push_back(std::move(words));
  }
  return found;
}

}  // namespace

std::optional<NetworkCounters> Difference(const NetworkCounters& before,
                                          const NetworkCounters& now) {
  NetworkCounters out;
  for (const auto member :
       {&NetworkCounters::packets, &NetworkCounters::errors, &NetworkCounters::missed,
        &NetworkCounters::dropped, &NetworkCounters::carrier_lost, &NetworkCounters::tcp_sent,
        &NetworkCounters::tcp_resent}) {
    if (now.*member < before.*member) return std::nullopt;
    out.*member = now.*member - before.*member;
  }
  return out;
}

void ParseTcpCounters(std::string_view snmp, NetworkCounters& out) {
  // One line has the names, the next one the numbers.
  const std::vector<Words> lines = LinesOf(snmp, "Tcp:");
  if (lines.size() != 2 || lines[0].size() != lines[1].size()) return;
  for (size_t i = 1; i < lines[0].size(); ++i) {
    uint64_t number = 0;
    if (!absl::SimpleAtoi(lines[1][i], &number)) continue;
    if (lines[0][i] == "OutSegs") out.tcp_sent = number;
    if (lines[0][i] == "RetransSegs") out.tcp_resent = number;
  }
}

std::optional<uint64_t> ParseTcpSockets(std::string_view sockstat) {
  const std::vector<Words> lines = LinesOf(sockstat, "TCP:");
  if (lines.size() != 1) return std::nullopt;
  std::optional<uint64_t> sockets;
  for (size_t i = 1; i + 1 < lines[0].size(); i += 2) {
    uint64_t number = 0;
    const bool counts = lines[0][i] == "inuse" || lines[0][i] == "tw";
    if (counts && absl::SimpleAtoi(lines[0][i + 1], &number)) {
      sockets = sockets.value_or(0) + number;
    }
  }
  return sockets;
}

// A line is "  eth0: " and sixteen numbers: bytes, packets and six more that were received, and the
// same of what was sent.
std::map<std::string, uint64_t> ParsePackets(std::string_view dev, std::string_view prefix) {
  constexpr size_t kReceived = 1;
  constexpr size_t kSent = 9;
  std::map<std::string, uint64_t> packets;
  while (!dev.empty()) {
    std::string_view line = dev.substr(0, dev.find('\n'));
    dev.remove_prefix(std::min(dev.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    const size_t colon = line.find(':');
    if (!line.starts_with(prefix) || colon == line.npos) continue;
    const Words numbers = WordsOf(std::string(line.substr(colon + 1)));
    uint64_t received = 0;
    uint64_t sent = 0;
    if (numbers.size() <= kSent || !absl::SimpleAtoi(numbers[kReceived], &received) ||
        !absl::SimpleAtoi(numbers[kSent], &sent)) {
      continue;
    }
    packets[std::string(line.substr(0, colon))] = received + sent;
  }
  return packets;
}

}  // namespace spoke::node_checks
