#include "admin-cli/output/change_marks.h"

#include <cctype>
#include <utility>

namespace spoke::ctl {
namespace {

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsUnit(char c) { return c == 's' || c == 'm' || c == 'h' || c == 'd'; }
bool IsOfWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Returns the length of the age at the beginning of `text`, such as "5m" or "1m20s"; 0: none.
size_t AgeLength(std::string_view text) {
  size_t end = 0;
  while (true) {
    size_t next = end;
    while (next < text.size() && IsDigit(text[next])) ++next;
    if (next == end || next == text.size() || !IsUnit(text[next])) break;
    end = next + 1;
  }
  return end < text.size() && IsOfWord(text[end]) ? 0 : end;
}

// Returns what is compared of `text`: all but its ages.
std::string WithoutAges(std::string_view text) {
  std::string out;
  bool word_begins = true;
  while (!text.empty()) {
    if (const size_t age = word_begins ? AgeLength(text) : 0; age > 0) {
      out += '#';
      text.remove_prefix(age);
      word_begins = false;
      continue;
    }
    out += text.front();
    word_begins = text.front() == ' ' || text.front() == '(';
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace

void ChangeMarks::Begin() {
  if (!present_.empty()) last_ = std::exchange(present_, {});
  seen_.clear();
}

void ChangeMarks::Mark(std::string_view name, Row& row) {
  const std::string of(name);
  const Key key = {of, seen_[of]++};
  const auto before = last_.find(key);
  std::vector<std::string>& texts = present_[key];
  for (size_t i = 0; i < row.size(); ++i) {
    texts.push_back(WithoutAges(row[i].text));
    if (row[i].change == Change::kIgnored) continue;
    const bool same =
        before != last_.end() && i < before->second.size() && before->second[i] == texts.back();
    if (!last_.empty() && !same) row[i].change = Change::kMarked;
  }
}

}  // namespace spoke::ctl
