// One way to print lists, so that every noun has the same forms: a table, a wider one, JSON, YAML,
// and bare names. Not thread-safe.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "admin-cli/output/sort_order.h"
#include "admin-cli/output/table.h"
#include "admin-cli/session.h"
#include "fmt/core.h"
#include "lib/base/status.h"

namespace spoke::ctl {

using Json = nlohmann::ordered_json;

// Returns a JSON list of the items, or of what `json` makes of each.
template <typename Items, typename ToValue = std::identity>
Json JsonList(const Items& items, const ToValue& json = {}) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(json(item));
  return list;
}

template <typename Item>
struct Column {
  const char* title;
  std::function<Cell(const Item&)> cell;
  bool wide = false;  // Whether it is there only with -o wide.
  Fit fit = Fit::kWhole;
  // The key of the JSON that --sort-by takes for it; nullptr: that of its title, else the cell.
  const char* key = nullptr;
};

template <typename Item>
struct ListForm {
  std::string what;  // The plural, such as "nodes", for the note that there are none.
  std::function<std::string(const Item&)> name;  // Returns what -o name prints.
  std::function<Json(const Item&)> json;
  std::vector<Column<Item>> columns;
};

// A list that is made item by item, since a cluster has 200,000 addresses and only what its form
// needs is kept of each.
template <typename Item>
class ListPrinter {
 public:
  ListPrinter(const Session& session, ListForm<Item> form)
      : session_(session), form_(std::move(form)) {
    if (sorts()) order_ = ParseSortOrder(session.arguments.Text("sort-by"));
    if (session.format != Format::kWide) {
      std::erase_if(form_.columns, [](const Column<Item>& column) { return column.wide; });
    }
  }

  void Add(const Item& item) {
    Json value;
    if (sorts() || !(session_.is_table() || session_.format == Format::kName)) {
      value = form_.json(item);
    }
    if (sorts()) AddSortValue(item, value);
    if (session_.format == Format::kName) {
      names_.push_back(Printable(form_.name(item)) + "\n");
    } else if (session_.is_table()) {
      if (session_.marks != nullptr) names_.push_back(form_.name(item));
      Row& row = rows_.emplace_back();
      for (const Column<Item>& column : form_.columns) row.push_back(column.cell(item));
    } else {
      values_.push_back(std::move(value));
    }
  }

  // Prints the end, in the order of --sort-by. An empty list is a note on standard error, and with
  // JSON or YAML an empty list as well. Errors: kInvalidArgument (--sort-by says no order).
  absl::Status Print() {
    if (sorts()) RETURN_IF_ERROR(Sort());
    if (session_.format == Format::kName) {
      for (const std::string& name : names_) session_.Out(name);
      return absl::OkStatus();
    }
    if (!session_.is_table()) return session_.PrintValue(Json(values_));
    if (rows_.empty()) {
      session_.Note(fmt::format("there are no {}", form_.what));
      return absl::OkStatus();
    }
    std::vector<std::string> titles;
    for (const Column<Item>& column : form_.columns) titles.emplace_back(column.title);
    if (session_.format == Format::kTable) FitLastColumn(titles, form_.columns.back().fit, rows_);
    session_.Out(session_.Table(titles, std::move(rows_), names_));
    return absl::OkStatus();
  }

 private:
  bool sorts() const { return session_.arguments.Has("sort-by"); }

  void AddSortValue(const Item& item, const Json& value) {
    if (!order_.ok()) return;
    auto by_key = SortValueOf(value, *order_);
    for (const Column<Item>& column : form_.columns) {
      if (by_key.ok() || !absl::EqualsIgnoreCase(order_->key, column.title)) continue;
      const auto found = column.key == nullptr ? value.end() : value.find(column.key);
      by_key = found == value.end() ? Json(column.cell(item).text) : *found;
    }
    if (by_key.ok()) {
      sort_values_.push_back(*std::move(by_key));
      return;
    }
    std::vector<std::string> keys;
    for (const auto& [key, ignored] : value.items()) keys.push_back(key);
    for (const auto& column : form_.columns) keys.push_back(absl::AsciiStrToLower(column.title));
    const std::string nearest = Nearest(absl::AsciiStrToLower(order_->key), keys);
    order_ = absl::InvalidArgumentError(
        fmt::format("{}{}", base::MessageOf(by_key.status()),
                    nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
  }

  absl::Status Sort() {
    RETURN_IF_ERROR(order_.status());
    const std::vector<size_t> places = PlacesInOrder(sort_values_, order_->descending);
    PutInOrder(places, names_);
    PutInOrder(places, rows_);
    PutInOrder(places, values_);
    return absl::OkStatus();
  }

  template <typename Lines>
  static void PutInOrder(const std::vector<size_t>& places, Lines& lines) {
    if (lines.empty()) return;
    Lines sorted;
    sorted.reserve(places.size());
    for (const size_t place : places) sorted.push_back(std::move(lines[place]));
    lines = std::move(sorted);
  }

  const Session& session_;
  ListForm<Item> form_;
  absl::StatusOr<SortOrder> order_ = SortOrder();
  // One of the first two has what is printed, or the third, which has the rows' names when --watch
  // compares them; the fourth, beside it, by what it is sorted.
  std::vector<Row> rows_;
  std::vector<Json> values_;
  std::vector<std::string> names_;
  std::vector<Json> sort_values_;
};

template <typename Item, typename Items>
absl::Status PrintList(const Session& session, ListForm<Item> form, const Items& items) {
  ListPrinter<Item> printer(session, std::move(form));
  for (const Item& item : items) printer.Add(item);
  return printer.Print();
}

// Returns a cell that holds a number; 0 is faint.
inline Cell NumberCell(uint64_t number) {
  return {std::to_string(number), number == 0 ? Tone::kFaint : Tone::kPlain};
}

}  // namespace spoke::ctl
