#include "netagent/fastpath/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"
#include "netagent/fastpath/layout.h"

// What clang made of programs.bpf.c.
// clang-format off
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    "spoke_fast_path_object:\n"
    ".incbin \"" SPOKE_FAST_PATH_OBJECT "\"\n"
    "spoke_fast_path_object_end:\n"
    ".byte 0\n"
    ".previous\n");
// clang-format on
// NOLINTBEGIN(readability-identifier-naming): as the assembler has them.
extern const char spoke_fast_path_object[] __asm__("spoke_fast_path_object");
extern const char spoke_fast_path_object_end[] __asm__("spoke_fast_path_object_end");
// NOLINTEND(readability-identifier-naming)

namespace spoke::netagent {
namespace {

constexpr std::array kMaps = {"spoke_turn",    "spoke_tables",  "spoke_ports",
                              "spoke_places4", "spoke_places6", "spoke_slots",
                              "spoke_count",   "spoke_pairs4",  "spoke_pairs6"};
constexpr size_t kMaxWords = 600;

// What libbpf says on the way, the kernel's verifier included; the last of it explains a refusal.
thread_local std::string last_words;

int KeepWords(enum libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  std::array<char, 512> line{};
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  last_words.append(line.data());
  if (last_words.size() > kMaxWords) last_words.erase(0, last_words.size() - kMaxWords);
  return length;
}

absl::Status Refusal(int error, std::string_view what) {
  std::string words = std::exchange(last_words, {});
  std::replace(words.begin(), words.end(), '\n', ' ');
  const std::string text =
      fmt::format("{}: {}{}{}", what, std::strerror(error), words.empty() ? "" : "; ", words);
  switch (error) {
    case EPERM:
    case EACCES:
      return absl::PermissionDeniedError(text);
    case EINVAL:
    case ENOSYS:
    case EOPNOTSUPP:
      return absl::UnimplementedError(text);
    default:
      return absl::InternalError(text);
  }
}

struct FoundMap {
  os::UniqueFd fd;
  bpf_map_info info{};
};

// The maps that the program with this id uses, by name. Empty when it is gone.
std::map<std::string, FoundMap> MapsOf(uint32_t program_id) {
  std::map<std::string, FoundMap> found;
  const os::UniqueFd program(bpf_prog_get_fd_by_id(program_id));
  if (!program.valid()) return found;
  std::array<uint32_t, 2 * kMaps.size()> ids{};
  bpf_prog_info info{};
  info.nr_map_ids = ids.size();
  info.map_ids = reinterpret_cast<uint64_t>(ids.data());
  uint32_t length = sizeof(info);
  if (bpf_obj_get_info_by_fd(program.get(), &info, &length) != 0) return found;
  for (size_t i = 0; i < std::min<size_t>(info.nr_map_ids, ids.size()); ++i) {
    FoundMap map{.fd = os::UniqueFd(bpf_map_get_fd_by_id(ids[i]))};
    uint32_t size = sizeof(map.info);
    if (!map.fd.valid() || bpf_obj_get_info_by_fd(map.fd.get(), &map.info, &size) != 0) continue;
    found.emplace(map.info.name, std::move(map));
  }
  return found;
}

bool SameShape(const bpf_map* wanted, const bpf_map_info& found) {
  return found.type == bpf_map__type(wanted) && found.key_size == bpf_map__key_size(wanted) &&
         found.value_size == bpf_map__value_size(wanted) &&
         found.max_entries == bpf_map__max_entries(wanted);
}

// Whether the table in force was written by an agent with this layout.
bool SameLayout(const FoundMap& tables) {
  for (uint32_t which = 0; which < 2; ++which) {
    spoke_table table{};
    if (bpf_map_lookup_elem(tables.fd.get(), &which, &table) != 0) return false;
    if (table.layout != 0 && table.layout != SPOKE_LAYOUT) return false;
  }
  return true;
}

// Lets the object use the maps that are there, all or none of them.
bool TakeOverMaps(bpf_object* object, uint32_t program_id) {
  if (program_id == 0) return false;
  const std::map<std::string, FoundMap> found = MapsOf(program_id);
  for (const char* name : kMaps) {
    const auto at = found.find(name);
    if (at == found.end()) return false;
    if (!SameShape(bpf_object__find_map_by_name(object, name), at->second.info)) return false;
  }
  if (!SameLayout(found.at("spoke_tables"))) return false;
  return std::all_of(kMaps.begin(), kMaps.end(), [&](const char* name) {
    return bpf_map__reuse_fd(bpf_object__find_map_by_name(object, name), found.at(name).fd.get()) ==
           0;
  });
}

// Lets the programs that sit at an ingress hold all maps, also those that only the agent uses: maps
// live as long as the programs, without the agent, and the next one finds them by any of the two.
absl::Status BindMaps(const Programs& programs) {
  for (const char* program : {kFromPod, kFromWire}) {
    for (const char* map : kMaps) {
      if (bpf_prog_bind_map(programs.program(program), programs.map(map), nullptr) == 0) continue;
      if (errno != EEXIST) return Refusal(errno, "let the fast path's programs hold a map");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Programs> Programs::Load(uint32_t found) {
  libbpf_set_print(&KeepWords);
  last_words.clear();
  Programs programs;
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.object_name = "spoke_fast_path";
  const auto size = static_cast<size_t>(spoke_fast_path_object_end - spoke_fast_path_object);
  programs.object_ = bpf_object__open_mem(spoke_fast_path_object, size, &options);
  if (programs.object_ == nullptr) return Refusal(errno, "read the fast path's programs");
  programs.fresh_ = !TakeOverMaps(programs.object_, found);
  const int error = -bpf_object__load(programs.object_);
  if (error != 0) return Refusal(error, "load the fast path's programs");
  RETURN_IF_ERROR(BindMaps(programs));
  return programs;
}

Programs::~Programs() { bpf_object__close(object_); }

Programs::Programs(Programs&& other) noexcept
    : object_(std::exchange(other.object_, nullptr)), fresh_(other.fresh_) {}

Programs& Programs::operator=(Programs&& other) noexcept {
  std::swap(object_, other.object_);
  std::swap(fresh_, other.fresh_);
  return *this;
}

int Programs::program(const char* name) const {
  const bpf_program* program = bpf_object__find_program_by_name(object_, name);
  CHECK(program != nullptr, "the object has this program");
  return bpf_program__fd(program);
}

int Programs::map(const char* name) const {
  const int fd = bpf_object__find_map_fd_by_name(object_, name);
  CHECK(fd >= 0, "the object has this map");
  return fd;
}

}  // namespace spoke::netagent
