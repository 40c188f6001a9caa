#include "netagent/bpf/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <map>
#include <utility>

#include "fmt/core.h"
#include "lib/base/check.h"
#include "lib/base/status.h"

namespace spoke::netagent {
namespace {

constexpr size_t kMaxMaps = 32;  // The most maps of a program that was found.
constexpr size_t kMaxWords = 600;

// The words that libbpf says on the way, the kernel's verifier included; the last of it explains a
// refusal.
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

// Returns the maps that the program with this id uses, by name. Empty when it is gone.
std::map<std::string, FoundMap> MapsOf(uint32_t program_id) {
  std::map<std::string, FoundMap> found;
  const os::UniqueFd program(bpf_prog_get_fd_by_id(program_id));
  if (!program.valid()) return found;
  std::array<uint32_t, kMaxMaps> ids{};
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

// Lets the object use the maps that are there: all of them, or, where they are of another layout,
// those that last. Returns whether it was all.
bool TakeOverMaps(const ProgramSet& set, bpf_object* object, uint32_t program_id) {
  // The kernel cuts longer names off, under which none would be found.
  CHECK(std::all_of(set.maps.begin(), set.maps.end(),
                    [](std::string_view name) { return name.size() < BPF_OBJ_NAME_LEN; }),
        "names of maps are as long as the kernel keeps them");
  if (program_id == 0) return false;
  const std::map<std::string, FoundMap> found = MapsOf(program_id);
  const auto fits = [&](const char* name) {
    const auto at = found.find(name);
    return at != found.end() &&
           SameShape(bpf_object__find_map_by_name(object, name), at->second.info);
  };
  const auto reuse = [&](const char* name) {
    return fits(name) && bpf_map__reuse_fd(bpf_object__find_map_by_name(object, name),
                                           found.at(name).fd.get()) == 0;
  };
  if (std::all_of(set.maps.begin(), set.maps.end(), fits) &&
      set.is_same_layout(found.at(set.layout_map).fd.get())) {
    return std::all_of(set.maps.begin(), set.maps.end(), reuse);
  }
  std::for_each(set.lasting_maps.begin(), set.lasting_maps.end(), reuse);
  return false;
}

absl::Status BindMaps(const ProgramSet& set, const Programs& programs) {
  for (const char* program : set.holders) {
    for (const char* map : set.maps) {
      if (bpf_prog_bind_map(programs.program(program), programs.map(map), nullptr) == 0) continue;
      if (errno != EEXIST) return Refusal(errno, fmt::format("let {} hold a map", set.what));
    }
  }
  return absl::OkStatus();
}

}  // namespace

os::UniqueFd FindMap(uint32_t program_id, const std::string& name, uint32_t value_size) {
  auto found = MapsOf(program_id);
  const auto at = found.find(name);
  if (at == found.end() || at->second.info.value_size != value_size) return {};
  return std::move(at->second.fd);
}

absl::StatusOr<Programs> Programs::Load(const ProgramSet& set, uint32_t found) {
  libbpf_set_print(&KeepWords);
  last_words.clear();
  Programs programs;
  bpf_object_open_opts options{};
  options.sz = sizeof(options);
  options.object_name = set.name;
  programs.object_ = bpf_object__open_mem(set.object.data(), set.object.size(), &options);
  if (programs.object_ == nullptr) return Refusal(errno, fmt::format("read {}", set.what));
  programs.fresh_ = !TakeOverMaps(set, programs.object_, found);
  const int error = -bpf_object__load(programs.object_);
  if (error != 0) return Refusal(error, fmt::format("load {}", set.what));
  RETURN_IF_ERROR(BindMaps(set, programs));
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

uint32_t Programs::program_id(const char* name) const {
  bpf_prog_info info{};
  uint32_t length = sizeof(info);
  return bpf_obj_get_info_by_fd(program(name), &info, &length) == 0 ? info.id : 0;
}

}  // namespace spoke::netagent
