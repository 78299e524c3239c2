# What leaves the build tree, made from the layers that iwarp_layer() has recorded. Included once, after the layers.
#   - the target iwarp::iwarp, which stands for all layers;
#   - the CMake package (find_package(iwarp)) and the pkg-config file iwarp.pc, both relocatable;
#   - lists for the checks of .ci/: public-headers.txt, pure-archives.txt.
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY IWARP_LAYERS)
get_property(pure_layers GLOBAL PROPERTY IWARP_PURE_LAYERS)
get_property(public_headers GLOBAL PROPERTY IWARP_PUBLIC_HEADERS)

add_library(iwarp INTERFACE)
add_library(iwarp::iwarp ALIAS iwarp)
list(TRANSFORM layers PREPEND iwarp:: OUTPUT_VARIABLE layer_targets)
target_link_libraries(iwarp INTERFACE ${layer_targets})
install(TARGETS iwarp EXPORT iwarpTargets)

# What the layers need from outside, found in what they link: a line for iwarpConfig.cmake and a word for iwarp.pc each.
set(package_dependencies "")
set(pc_libs "")
set(pc_requires "")
set(link_everything "")
foreach(layer IN LISTS layers)
  get_target_property(type iwarp_${layer} TYPE)
  get_target_property(links iwarp_${layer} INTERFACE_LINK_LIBRARIES)
  list(APPEND link_everything ${links})
  if(type STREQUAL STATIC_LIBRARY)
    list(PREPEND pc_libs -liwarp_${layer})  # a layer links only earlier ones, so the linker wants them in reverse
  endif()
endforeach()
set(known_packages
  "Threads::Threads|find_dependency(Threads)|"
  "OpenSSL::|find_dependency(OpenSSL)|libcrypto"
  "Boost::|find_dependency(Boost ${Boost_VERSION_STRING})|"
  "fmt::|find_dependency(fmt)|fmt"
  "nlohmann_json::|find_dependency(nlohmann_json)|nlohmann_json"
  "spdlog::|find_dependency(spdlog)|spdlog"
  "PkgConfig::ISAL|find_dependency(PkgConfig)\npkg_check_modules(ISAL REQUIRED QUIET IMPORTED_TARGET libisal)|libisal")
foreach(entry IN LISTS known_packages)
  string(REPLACE "|" ";" entry "${entry}")
  list(GET entry 0 link_name)
  list(GET entry 1 find_line)
  list(GET entry 2 pc_name)
  if("${link_everything}" MATCHES "${link_name}")
    string(APPEND package_dependencies "${find_line}\n")
    list(APPEND pc_requires ${pc_name})
  endif()
endforeach()
list(JOIN layers " " layers)
list(JOIN layer_targets ", " layer_targets)
list(JOIN pc_libs " " pc_libs)
list(JOIN pc_requires " " pc_requires)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/iwarp)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/iwarpConfig.cmake.in ${PROJECT_BINARY_DIR}/iwarpConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/iwarpConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/iwarpConfig.cmake ${PROJECT_BINARY_DIR}/iwarpConfigVersion.cmake DESTINATION ${package_dir})
install(EXPORT iwarpTargets NAMESPACE iwarp:: DESTINATION ${package_dir})

file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/iwarp.pc.in ${PROJECT_BINARY_DIR}/iwarp.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/iwarp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

list(JOIN public_headers "\n" header_lines)
file(WRITE ${PROJECT_BINARY_DIR}/public-headers.txt "${header_lines}\n")
set(archive_lines "")
foreach(layer IN LISTS pure_layers)
  get_target_property(type iwarp_${layer} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    string(APPEND archive_lines "$<TARGET_FILE:iwarp_${layer}>\n")
  endif()
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/pure-archives.txt CONTENT "${archive_lines}")
