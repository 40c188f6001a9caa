#include "admin-cli/output/table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fmt/core.h"
#include "lib/base/time_text.h"
#include "lib/base/utf8.h"

namespace spoke::ctl {
namespace {

using Json = nlohmann::ordered_json;

std::string MakePrintable(std::string_view text, bool keep_layout) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t character = 0;
    const size_t length = base::DecodeUtf8(text, character);
    const bool layout = keep_layout && (character == '\n' || character == '\t');
    // U+0080 to U+009F are controls as well.
    const bool control = character < 0x20 || (character >= 0x7F && character < 0xA0);
    if (length == 0 || (control && !layout)) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string_view EscapeOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      break;
    case Tone::kGood:
      return "\x1b[32m";
    case Tone::kWarning:
      return "\x1b[33m";
    case Tone::kBad:
      return "\x1b[31m";
    case Tone::kFaint:
      return "\x1b[2m";
    case Tone::kBold:
      return "\x1b[1m";
    case Tone::kNote:
      return "\x1b[36m";
  }
  return "";
}

constexpr size_t kBetweenColumns = 2;
constexpr size_t kLeastWidth = 12;  // Less of a sentence says nothing.
constexpr std::string_view kLeftOut = "...";

std::string CutTo(std::string text, size_t width) {
  if (WidthOf(text) <= width) return text;
  size_t end = 0;
  for (size_t columns = kLeftOut.size(); end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && columns++ == width) break;
  }
  while (end > 0 && text[end - 1] == ' ') --end;
  text.resize(end);
  return text.append(kLeftOut);
}

std::string FirstClause(std::string text) {
  const size_t end = text.find(';');
  if (end == std::string::npos) return text;
  text.resize(end);
  return text.append(kLeftOut);
}

// Returns the lines of a value that stands behind `margin` columns: one if it fits, else as many
// whole clauses in each as fit.
std::vector<std::string> ClausesOf(std::string_view text, size_t margin) {
  constexpr std::string_view kEnd = "; ";
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(kEnd), text.size());
    const std::string_view clause = text.substr(0, end + 1);
    if (!lines.back().empty() &&
        margin + WidthOf(lines.back()) + 1 + WidthOf(clause) > kTableWidth) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + std::string(clause);
    text.remove_prefix(std::min(end + kEnd.size(), text.size()));
  }
  return lines;
}

std::string Scalar(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AppendYaml(const Json& value, int indent, std::string& out);

// Appends a member. It is as deep as our own messages, which are a few levels.
// NOLINTNEXTLINE(misc-no-recursion)
void AppendMember(const Json& value, int indent, std::string& out) {
  if (value.is_structured() && !value.empty()) {
    out += '\n';
    AppendYaml(value, indent, out);
  } else {
    out += ' ' + Scalar(value) + '\n';
  }
}

// NOLINTNEXTLINE(misc-no-recursion)
void AppendYaml(const Json& value, int indent, std::string& out) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items()) {
      out += margin + key + ":";
      AppendMember(member, indent + 2, out);
    }
  } else if (value.is_array() && !value.empty()) {
    for (const Json& item : value) {
      if (!item.is_structured() || item.empty()) {
        out += margin + "- " + Scalar(item) + '\n';
        continue;
      }
      std::string nested;
      AppendYaml(item, indent + 2, nested);
      // The first line of the item goes behind its dash.
      out += margin + "- " + nested.substr(static_cast<size_t>(indent) + 2);
    }
  } else {
    out += margin + Scalar(value) + '\n';
  }
}

}  // namespace

std::string Printable(std::string_view text) { return MakePrintable(text, false); }

std::string PrintableLines(std::string_view text) { return MakePrintable(text, true); }

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string Coloured(std::string_view text, Tone tone, bool colours) {
  const std::string_view escape = EscapeOf(tone);
  if (!colours || escape.empty() || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape, text);
}

std::string Coloured(const Cell& cell, bool colours) {
  std::string text = Coloured(cell.text, cell.tone, colours);
  if (!colours || cell.change != Change::kMarked || cell.text.empty()) return text;
  const bool ends = !EscapeOf(cell.tone).empty();
  return fmt::format("\x1b[7m{}{}", text, ends ? "" : "\x1b[0m");
}

void FitLastColumn(const std::vector<std::string>& header, Fit fit, std::vector<Row>& rows) {
  if (fit == Fit::kWhole || header.empty()) return;
  const size_t last = header.size() - 1;
  size_t before = 0;
  for (size_t i = 0; i < last; ++i) {
    size_t width = WidthOf(header[i]);
    for (const Row& row : rows) width = std::max(width, WidthOf(Printable(row.at(i).text)));
    before += width + kBetweenColumns;
  }
  const size_t left = kTableWidth - std::min(before, kTableWidth - kLeastWidth);
  for (Row& row : rows) {
    std::string& text = row.at(last).text;
    text = CutTo(fit == Fit::kClause ? FirstClause(Printable(text)) : Printable(text), left);
  }
}

std::string FormatTable(const std::vector<std::string>& header, const std::vector<Row>& rows,
                        TableStyle style) {
  std::vector<Row> lines;
  lines.reserve(rows.size() + 1);
  if (style.header) {
    Row& titles = lines.emplace_back();
    for (const std::string& title : header) titles.push_back({title, Tone::kBold});
  }
  for (const Row& row : rows) {
    Row& line = lines.emplace_back();
    for (const Cell& cell : row) line.push_back({Printable(cell.text), cell.tone, cell.change});
  }
  std::vector<size_t> widths(header.size());
  for (const Row& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths.at(i) = std::max(widths.at(i), WidthOf(line[i].text));
    }
  }
  std::string out;
  for (const Row& line : lines) {
    // The blanks that are due before the next text, so that none stand at the end.
    size_t blanks = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string& text = line[i].text;
      if (!text.empty()) {
        out.append(blanks, ' ');
        out += Coloured(line[i], style.colours);
        blanks = 0;
      }
      blanks += widths[i] - WidthOf(text) + kBetweenColumns;
    }
    out += '\n';
  }
  return out;
}

std::string FormatFields(const std::vector<std::pair<std::string, Cell>>& fields, bool colours) {
  size_t width = 0;
  for (const auto& [name, value] : fields) {
    if (!value.text.empty()) width = std::max(width, name.size());
  }
  std::string out;
  for (const auto& [name, value] : fields) {
    if (value.text.empty()) continue;
    std::string before = fmt::format("{:<{}}  ", name + ":", width + 1);
    const size_t margin = before.size();
    for (std::string& line : ClausesOf(Printable(value.text), margin)) {
      out += before + Coloured(Cell{std::move(line), value.tone, value.change}, colours) + "\n";
      before = std::string(margin, ' ');
    }
  }
  return out;
}

std::string FormatYaml(const Json& value) {
  std::string out;
  AppendYaml(value, 0, out);
  return out;
}

std::string FormatJson(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string Counted(uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", number, number == 1 ? one : many);
}

std::string FormatAge(int64_t seconds) { return base::AgeText(absl::Seconds(seconds)); }

}  // namespace spoke::ctl
