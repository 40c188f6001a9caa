# yaml-cpp of two packages: the headers of the building machine's libyaml-cpp-dev, which are the same for
# each architecture, and the shared library of libyaml-cpp0.7:arm64. Debian 12 does not let
# libyaml-cpp-dev:arm64 be installed beside the machine's own.
find_path(YAML_CPP_INCLUDE yaml-cpp/yaml.h REQUIRED)
find_library(YAML_CPP_LIBRARY libyaml-cpp.so.0.7 REQUIRED)

add_library(yaml-cpp SHARED IMPORTED)
set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${YAML_CPP_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${YAML_CPP_INCLUDE})
