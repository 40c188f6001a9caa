# The core of prometheus-cpp, as yaml-cpp in yaml-cpp-config.cmake: prometheus-cpp-dev wants the program
# civetweb of its own architecture, and the machine has its own.
find_path(PROMETHEUS_CPP_INCLUDE prometheus/registry.h REQUIRED)
find_library(PROMETHEUS_CPP_LIBRARY libprometheus-cpp-core.so.1.0 REQUIRED)

add_library(prometheus-cpp::core SHARED IMPORTED)
set_target_properties(prometheus-cpp::core PROPERTIES IMPORTED_LOCATION ${PROMETHEUS_CPP_LIBRARY}
                      INTERFACE_INCLUDE_DIRECTORIES ${PROMETHEUS_CPP_INCLUDE})
