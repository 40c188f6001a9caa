// Rows for people and for programs: an aligned table, JSON or YAML. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spoke::ctl {

enum class Format { kTable, kWide, kJson, kYaml, kName };

// The tone is said in colour where colours are wanted; the text says the same without.
enum class Tone { kPlain, kGood, kWarning, kBad, kFaint, kBold, kNote };

// Whether --watch marks a cell: inverse, where colours are wanted.
enum class Change {
  kNone,
  kMarked,
  kIgnored  // It changes with each reading, and is never marked.
};

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
  Change change = Change::kNone;
};
using Row = std::vector<Cell>;

// The columns of a terminal that a table is made for, unless it is wide.
inline constexpr size_t kTableWidth = 100;

// How a column is made narrower when the table is not wide. Only the last one may be.
enum class Fit {
  kWhole,   // Nothing is cut: names and numbers, which are copied from tables.
  kWidth,   // It has what is left of kTableWidth.
  kClause,  // It has what is before the first semicolon, and that much of it.
};

struct TableStyle {
  bool colours = false;
  bool header = true;
};

// Formats a table. Columns are as wide as their widest cell, two blanks apart; nothing is cut, and
// nothing stands behind the last. Cells are made Printable().
std::string FormatTable(const std::vector<std::string>& header, const std::vector<Row>& rows,
                        TableStyle style);

// Cuts the last cell of each row so that the table fits kTableWidth, as far as 12 columns are left
// for it. "..." says that something is left out.
void FitLastColumn(const std::vector<std::string>& header, Fit fit, std::vector<Row>& rows);

// Formats one "Name:  value" a line, values aligned; rows with an empty value are left out. A
// value that does not fit kTableWidth goes on below, after a semicolon in it.
std::string FormatFields(const std::vector<std::pair<std::string, Cell>>& fields, bool colours);

// Returns `text` for a terminal: control characters (those of Unicode's second block too) and bytes
// that are not UTF-8 become "?", since names come from elsewhere and terminals obey them.
std::string Printable(std::string_view text);

// Returns what Printable() returns, except that line breaks and tabs stay: for text of several
// lines.
std::string PrintableLines(std::string_view text);

// Returns how many columns Printable() text takes when each character takes one.
size_t WidthOf(std::string_view text);

// Returns `text` in the colour of `tone`; as it is when `colours` is false.
std::string Coloured(std::string_view text, Tone tone, bool colours);
// Returns the cell's text so, and inverse where it has changed.
std::string Coloured(const Cell& cell, bool colours);

// Returns block-style YAML that a YAML 1.2 parser reads back as the same value. Texts are quoted as
// JSON strings, which YAML takes.
std::string FormatYaml(const nlohmann::ordered_json& value);

// Returns JSON indented by two blanks, with a final line break.
std::string FormatJson(const nlohmann::ordered_json& value);

// Returns "1 node", "2 nodes": a number with what it counts.
std::string Counted(uint64_t number, std::string_view one, std::string_view many);

// Returns "12s", "5m", "3h", "2d": how long ago, in one unit. Negative is "0s".
std::string FormatAge(int64_t seconds);

}  // namespace spoke::ctl
