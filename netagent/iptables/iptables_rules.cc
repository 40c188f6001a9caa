#include "netagent/iptables/iptables_rules.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

bool TakeNumber(std::string_view& text, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// Takes "[12:3400]", which are packets and bytes.
bool TakeCounters(std::string_view& text, uint64_t* packets, uint64_t* bytes) {
  return TakeChar(text, '[') && TakeNumber(text, packets) && TakeChar(text, ':') &&
         TakeNumber(text, bytes) && TakeChar(text, ']');
}

// Takes the text up to the next blank, which goes as well.
std::string_view TakeWord(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// Takes the next argument of a rule, without quotes and backslashes; nullopt at the end, and where
// a quote is never closed.
std::optional<std::string> TakeArgument(std::string_view& text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  std::string out;
  if (text.front() != '"') {
    const size_t end = std::min(text.find(' '), text.size());
    out = std::string(text.substr(0, end));
    text.remove_prefix(end);
    return out;
  }
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return std::nullopt;
}

std::string CommentOf(std::string_view rule) {
  while (const auto argument = TakeArgument(rule)) {
    if (*argument == "--comment") return TakeArgument(rule).value_or("");
  }
  return "";
}

// Returns where the line ends that begins at `start`: a comment may hold line breaks.
size_t EndOfLine(std::string_view text, size_t start) {
  bool quoted = false;
  for (size_t i = start; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == '\n' && !quoted) {
      return i;
    }
  }
  return text.size();
}

absl::Status Wrong(size_t line, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("line {}: {}", line, what));
}

// Parses ":FORWARD ACCEPT [0:0]", without the colon.
absl::StatusOr<IptablesChain> ParseChain(std::string_view text, size_t line) {
  IptablesChain chain;
  chain.name = std::string(TakeWord(text));
  chain.policy = std::string(TakeWord(text));
  if (chain.name.empty() || chain.policy.empty()) return Wrong(line, "a chain without a policy");
  if (!text.empty() && (!TakeCounters(text, &chain.packets, &chain.bytes) || !text.empty())) {
    return Wrong(line, "a chain's counters are unreadable");
  }
  return chain;
}

// Parses "[0:0] -A FORWARD -j ACCEPT".
absl::StatusOr<IptablesRule> ParseRule(std::string_view text, size_t line) {
  IptablesRule rule;
  if (text.front() == '[') {
    if (!TakeCounters(text, &rule.packets, &rule.bytes) || !TakeChar(text, ' ')) {
      return Wrong(line, "a rule's counters are unreadable");
    }
  }
  if (TakeWord(text) != "-A") return Wrong(line, "neither a table, a chain nor a rule");
  rule.chain = std::string(TakeWord(text));
  if (rule.chain.empty()) return Wrong(line, "a rule without a chain");
  rule.text = std::string(text);
  rule.comment = CommentOf(text);
  return rule;
}

}  // namespace

std::string_view NameOf(IptablesBackend backend) {
  switch (backend) {
    case IptablesBackend::kNft:
      return "nft";
    case IptablesBackend::kLegacy:
      return "legacy";
  }
  return "";
}

const IptablesTable* FindTable(const std::vector<IptablesTable>& tables, std::string_view name) {
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const IptablesTable& table) { return table.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

absl::StatusOr<std::vector<IptablesTable>> ParseIptablesSave(std::string_view text) {
  if (text.size() > kMaxIptablesText) {
    return absl::ResourceExhaustedError(
        fmt::format("{} bytes of rules; at most {} are read", text.size(), kMaxIptablesText));
  }
  std::vector<IptablesTable> tables;
  bool in_table = false;
  size_t number = 0;
  for (size_t start = 0; start < text.size();) {
    ++number;
    // Only a rule has quotes that may hold a line break.
    const bool is_rule = text[start] == '[' || text[start] == '-';
    const size_t end =
        is_rule ? EndOfLine(text, start) : std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '*') {
      if (in_table || line.size() == 1) return Wrong(number, "a table begins where none can");
      tables.push_back({.name = std::string(line.substr(1))});
      in_table = true;
    } else if (line == "COMMIT") {
      if (!in_table) return Wrong(number, "no table ends here");
      in_table = false;
    } else if (!in_table) {
      return Wrong(number, "outside of every table");
    } else if (line.front() == ':') {
      ASSIGN_OR_RETURN(IptablesChain chain, ParseChain(line.substr(1), number));
      tables.back().chains.push_back(std::move(chain));
    } else {
      ASSIGN_OR_RETURN(IptablesRule rule, ParseRule(line, number));
      tables.back().rules.push_back(std::move(rule));
    }
  }
  if (in_table) return Wrong(number, "the last table has no end");
  return tables;
}

std::string QuoteForIptables(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '/' || c == '.' || c == ':';
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '\'') out += '\\';
    out += c;
  }
  return out + '"';
}

std::vector<IptablesTable> MergeBackends(std::vector<IptablesTable> nft,
                                         const std::vector<IptablesTable>& legacy) {
  for (const IptablesTable& other : legacy) {
    const auto found = std::find_if(nft.begin(), nft.end(),
                                    [&](const IptablesTable& t) { return t.name == other.name; });
    if (found == nft.end()) {
      nft.push_back(other);
      continue;
    }
    IptablesTable& table = *found;
    for (const IptablesChain& chain : other.chains) {
      const bool known = std::any_of(table.chains.begin(), table.chains.end(),
                                     [&](const IptablesChain& c) { return c.name == chain.name; });
      if (!known) table.chains.push_back(chain);
    }
    // The nth rule of one wording in one chain is the nth there.
    std::multimap<std::pair<std::string, std::string>, size_t> twins;
    for (size_t i = 0; i < table.rules.size(); ++i) {
      if (table.rules[i].abridged) continue;
      twins.emplace(std::pair(table.rules[i].chain, table.rules[i].text), i);
    }
    for (const IptablesRule& rule : other.rules) {
      const auto twin = twins.find({rule.chain, rule.text});
      if (twin == twins.end()) {
        table.rules.push_back(rule);
        continue;
      }
      IptablesRule& first = table.rules[twin->second];
      if (rule.bytes > first.bytes) {
        first.packets = rule.packets;
        first.bytes = rule.bytes;
      }
      twins.erase(twin);
    }
  }
  return nft;
}

}  // namespace spoke::netagent
