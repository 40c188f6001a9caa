#include "admin-cli/output/unified_diff.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "admin-cli/output/table.h"
#include "fmt/core.h"

namespace spoke::ctl {
namespace {

using Lines = std::vector<std::string_view>;

// The most changes; the search takes their square in time and memory.
constexpr int kMaxChanges = 1000;
constexpr size_t kContext = 3;

// One line and what becomes of it: ' ' stays, '-' goes, '+' comes.
struct Edit {
  char kind;
  std::string_view line;
};

Lines SplitLines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Myers' greedy search. Step d holds, for each diagonal k = x - y in [-d, d], the furthest x that d
// changes reach. Empty when more than kMaxChanges are needed.
using Furthest = std::vector<int>;
std::vector<Furthest> SearchSteps(const Lines& a, const Lines& b) {
  const int n = static_cast<int>(a.size());
  const int m = static_cast<int>(b.size());
  std::vector<Furthest> steps;
  for (int d = 0; d <= std::min(n + m, kMaxChanges); ++d) {
    Furthest now(static_cast<size_t>(2 * d + 1), -1);
    for (int k = -d; k <= d; k += 2) {
      int x = 0;
      if (d > 0) {
        const Furthest& last = steps.back();
        const auto reached = [&](int diagonal) {
          return diagonal < 1 - d || diagonal > d - 1 ? -1
                                                      : last[static_cast<size_t>(diagonal + d - 1)];
        };
        // Down (a line comes) keeps x, right (a line goes) adds one.
        x = std::max(reached(k + 1), reached(k - 1) < 0 ? -1 : reached(k - 1) + 1);
      }
      if (x < 0) continue;
      int y = x - k;
      while (x < n && y < m && y >= 0 && a[static_cast<size_t>(x)] == b[static_cast<size_t>(y)]) {
        ++x;
        ++y;
      }
      now[static_cast<size_t>(k + d)] = x > n || y > m || y < 0 ? -1 : x;
      if (x == n && y == m) {
        steps.push_back(std::move(now));
        return steps;
      }
    }
    steps.push_back(std::move(now));
  }
  return {};
}

std::vector<Edit> ReplaceAll(const Lines& a, const Lines& b) {
  std::vector<Edit> edits;
  for (const std::string_view line : a) edits.push_back({'-', line});
  for (const std::string_view line : b) edits.push_back({'+', line});
  return edits;
}

std::vector<Edit> FindEdits(const Lines& a, const Lines& b) {
  const std::vector<Furthest> steps = SearchSteps(a, b);
  if (steps.empty()) return ReplaceAll(a, b);
  std::vector<Edit> edits;  // The edits, from the end.
  int x = static_cast<int>(a.size());
  int y = static_cast<int>(b.size());
  const auto keep_down_to = [&](int target) {
    while (x > target) {
      edits.push_back({' ', a[static_cast<size_t>(x - 1)]});
      --x;
      --y;
    }
  };
  for (int d = static_cast<int>(steps.size()) - 1; d > 0; --d) {
    const Furthest& last = steps[static_cast<size_t>(d - 1)];
    const int k = x - y;
    const auto reached = [&](int diagonal) {
      return diagonal < 1 - d || diagonal > d - 1 ? -1
                                                  : last[static_cast<size_t>(diagonal + d - 1)];
    };
    const bool came = reached(k + 1) >= (reached(k - 1) < 0 ? -1 : reached(k - 1) + 1);
    if (came) {
      keep_down_to(reached(k + 1));
      edits.push_back({'+', b[static_cast<size_t>(--y)]});
    } else {
      keep_down_to(reached(k - 1) + 1);
      edits.push_back({'-', a[static_cast<size_t>(--x)]});
    }
  }
  keep_down_to(0);
  std::reverse(edits.begin(), edits.end());
  return edits;
}

// Returns "12,3", "12" for one line, "11,0" for none after line 11: as diff counts.
std::string RangeOf(size_t first, size_t count) {
  if (count == 1) return fmt::format("{}", first + 1);
  return fmt::format("{},{}", count == 0 ? first : first + 1, count);
}

void AppendHunk(const std::vector<Edit>& edits, std::pair<size_t, size_t> piece,
                std::pair<size_t, size_t> first_lines, bool colours, std::string& out) {
  size_t before = 0;
  size_t after = 0;
  std::string body;
  for (size_t i = piece.first; i < piece.second; ++i) {
    const Edit& edit = edits[i];
    if (edit.kind != '+') ++before;
    if (edit.kind != '-') ++after;
    const Tone tone = edit.kind == '+' ? Tone::kGood : edit.kind == '-' ? Tone::kBad : Tone::kPlain;
    body += Coloured(edit.kind + PrintableLines(edit.line), tone, colours) + '\n';
  }
  out += Coloured(fmt::format("@@ -{} +{} @@", RangeOf(first_lines.first, before),
                              RangeOf(first_lines.second, after)),
                  Tone::kNote, colours) +
         '\n' + body;
}

}  // namespace

std::string UnifiedDiff(std::string_view before, std::string_view after, const DiffNames& names,
                        bool colours) {
  const std::vector<Edit> edits = FindEdits(SplitLines(before), SplitLines(after));
  std::string out;
  size_t before_line = 0;
  size_t after_line = 0;
  size_t counted = 0;  // The number up to which the two lines are counted.
  const auto count_to = [&](size_t end) {
    for (; counted < end; ++counted) {
      if (edits[counted].kind != '+') ++before_line;
      if (edits[counted].kind != '-') ++after_line;
    }
  };
  size_t i = 0;
  while (i < edits.size()) {
    if (edits[i].kind == ' ') {
      ++i;
      continue;
    }
    const size_t first = std::max(counted, i < kContext ? 0 : i - kContext);
    size_t last_change = i;
    for (size_t j = i; j < edits.size() && j <= last_change + 2 * kContext + 1; ++j) {
      if (edits[j].kind != ' ') last_change = j;
    }
    const size_t end = std::min(edits.size(), last_change + kContext + 1);
    count_to(first);
    if (out.empty()) {
      out += Coloured("--- " + Printable(names.before), Tone::kBold, colours) + '\n';
      out += Coloured("+++ " + Printable(names.after), Tone::kBold, colours) + '\n';
    }
    AppendHunk(edits, {first, end}, {before_line, after_line}, colours, out);
    count_to(end);
    i = end;
  }
  return out;
}

}  // namespace spoke::ctl
