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
    for (const Cell& cell : row) line.push_back({Printable(cell.text), cell.tone});
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
        out += Coloured(text, line[i].tone, style.colours);
        blanks = 0;
      }
      blanks += widths[i] - WidthOf(text) + 2;
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
    out += fmt::format("{:<{}}  {}\n", name + ":", width + 1,
                       Coloured(Printable(value.text), value.tone, colours));
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

std::string FormatAge(int64_t seconds) { return base::AgeText(absl::Seconds(seconds)); }

}  // namespace spoke::ctl
