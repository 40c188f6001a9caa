# Writes the source that embed_files() promises: OUT from FILES, which commas separate.
string(REPLACE "," ";" files "${FILES}")
set(types_html "text/html; charset=utf-8")
set(types_css "text/css; charset=utf-8")
set(types_js "text/javascript; charset=utf-8")
set(types_svg "image/svg+xml")

set(arrays "")
set(table "")
list(LENGTH files count)
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  if(NOT DEFINED types_${extension})
    message(FATAL_ERROR "${file}: name the type of .${extension} in cmake/write_embedded.cmake")
  endif()
  file(READ ${file} bytes HEX)
  # A literal of a character is a char whatever its sign, so that nothing narrows.
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}'\\0'};\n")
  string(APPEND table "    {\"${name}\", \"${types_${extension}}\",\n"
                      "     std::string_view(kFile${number}, sizeof(kFile${number}) - 1)},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE ${OUT} "// Made by cmake/write_embedded.cmake.
#include \"admin-cli/dashboard/page_files.h\"

namespace spoke::ctl {
namespace {

${arrays}
constexpr PageFile kFiles[] = {
${table}};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace spoke::ctl
")
