# What leaves the build tree, made from the layers that iwarp_layer() has recorded. Included once, after the layers.
#   - the targets iwarp::iwarp, which stands for all public layers, and iwarp::shared, all of them as one shared library;
#   - the CMake package (find_package(iwarp)) and the pkg-config file iwarp.pc, both relocatable;
#   - the target `uninstall`;
#   - lists for the checks of .ci/: headers.txt, public-headers.txt, pure-archives.txt, shared-libraries.txt.
include(CMakePackageConfigHelpers)

get_property(layers GLOBAL PROPERTY IWARP_LAYERS)
get_property(pure_layers GLOBAL PROPERTY IWARP_PURE_LAYERS)
get_property(headers GLOBAL PROPERTY IWARP_HEADERS)
get_property(public_headers GLOBAL PROPERTY IWARP_PUBLIC_HEADERS)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/iwarp)

add_library(iwarp INTERFACE)
add_library(iwarp::iwarp ALIAS iwarp)
list(TRANSFORM layers PREPEND iwarp:: OUTPUT_VARIABLE layer_targets)
target_link_libraries(iwarp INTERFACE ${layer_targets})
install(TARGETS iwarp EXPORT iwarpTargets)
install(EXPORT iwarpTargets NAMESPACE iwarp:: DESTINATION ${package_dir})

# What the layers need from outside: what users of their headers see, and what only the code needs.
set(objects "")
set(seen_links "")
set(hidden_links "")
set(seen_definitions "")
foreach(layer IN LISTS layers)
  get_target_property(type iwarp_${layer} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    list(APPEND objects $<TARGET_OBJECTS:iwarp_${layer}>)
  endif()
  get_target_property(links iwarp_${layer} INTERFACE_LINK_LIBRARIES)
  foreach(link IN LISTS links)
    if(NOT link OR link MATCHES "iwarp::")
      continue()
    elseif(link MATCHES "^\\$<LINK_ONLY:(.*)>$")
      list(APPEND hidden_links ${CMAKE_MATCH_1})
    else()
      list(APPEND seen_links ${link})
    endif()
  endforeach()
  get_target_property(definitions iwarp_${layer} INTERFACE_COMPILE_DEFINITIONS)
  if(definitions)
    list(APPEND seen_definitions ${definitions})
  endif()
endforeach()
foreach(list IN ITEMS seen_links hidden_links seen_definitions)
  list(REMOVE_DUPLICATES ${list})
endforeach()

# All layers as one archive: what -liwarp stands for where there is no shared library, or the program is to be static.
add_library(iwarp_archive STATIC ${objects})
set_target_properties(iwarp_archive PROPERTIES OUTPUT_NAME iwarp LINKER_LANGUAGE CXX)
install(TARGETS iwarp_archive ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

if(IWARP_BUILD_SHARED)
  # The objects of the static libraries, so that nothing is compiled twice. Only names of iwarp leave it: exports.map.
  add_library(iwarp_shared SHARED ${objects})
  add_library(iwarp::shared ALIAS iwarp_shared)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/exports.map.in ${PROJECT_BINARY_DIR}/exports.map @ONLY)
  # Before 1.0 every minor version may change the binary interface, so it is part of the soname.
  set_target_properties(iwarp_shared PROPERTIES
    OUTPUT_NAME iwarp EXPORT_NAME shared LINKER_LANGUAGE CXX LINK_DEPENDS ${PROJECT_BINARY_DIR}/exports.map
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(iwarp_shared INTERFACE cxx_std_20)
  target_compile_definitions(iwarp_shared INTERFACE ${seen_definitions})
  target_include_directories(iwarp_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(iwarp_shared PUBLIC ${seen_links})
  # By name: users of a shared library need not have what only its code needs.
  target_link_libraries(iwarp_shared PRIVATE "$<BUILD_INTERFACE:${hidden_links}>")
  target_link_options(iwarp_shared PRIVATE LINKER:--version-script=${PROJECT_BINARY_DIR}/exports.map
    LINKER:-z,defs LINKER:-z,relro LINKER:-z,now LINKER:--as-needed LINKER:-Bsymbolic-functions)
  install(TARGETS iwarp_shared EXPORT iwarpSharedTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT iwarpSharedTargets NAMESPACE iwarp:: DESTINATION ${package_dir})
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/shared-libraries.txt CONTENT "$<TARGET_FILE:iwarp_shared>\n")
endif()

# All that is installed but the command: for scripts/package.
add_custom_target(libraries)
list(TRANSFORM layers PREPEND iwarp_ OUTPUT_VARIABLE library_targets)
list(APPEND library_targets iwarp_archive)
if(IWARP_BUILD_SHARED)
  list(APPEND library_targets iwarp_shared)
endif()
add_dependencies(libraries ${library_targets})

# Each dependency as a line of iwarpConfig.cmake, and as a word of iwarp.pc. Types of Boost.Asio go from the application into the
# library and back, with what is inlined in both: so both need the same version of it. dlopen() is part of libc since glibc 2.34.
set(known_packages
  "${CMAKE_DL_LIBS}||"
  "Threads::Threads|find_dependency(Threads)|"
  "OpenSSL::Crypto|find_dependency(OpenSSL)|libcrypto"
  "Boost::headers|find_dependency(Boost ${Boost_VERSION_STRING} EXACT)|"
  "PkgConfig::ISAL|find_dependency(PkgConfig)\n  pkg_check_modules(ISAL REQUIRED QUIET IMPORTED_TARGET libisal)|libisal"
  "PkgConfig::USRSCTP|find_dependency(PkgConfig)\n  pkg_check_modules(USRSCTP REQUIRED QUIET IMPORTED_TARGET usrsctp)|usrsctp")
set(find_seen "")
set(find_hidden "")
set(pc_private "")
foreach(entry IN LISTS known_packages)
  string(REPLACE "|" ";" entry "${entry}")
  list(GET entry 0 link_name)
  list(GET entry 1 find_line)
  list(GET entry 2 pc_name)
  if(link_name IN_LIST seen_links)
    string(APPEND find_seen "${find_line}\n")
  elseif(link_name IN_LIST hidden_links)
    string(APPEND find_hidden "  ${find_line}\n")
    list(APPEND pc_private ${pc_name})
  endif()
  list(REMOVE_ITEM seen_links ${link_name})
  list(REMOVE_ITEM hidden_links ${link_name})
endforeach()
if(seen_links OR hidden_links)
  message(FATAL_ERROR "IwarpPackage.cmake does not know how users find: ${seen_links} ${hidden_links}")
endif()

set(components ${layers} static)
if(IWARP_BUILD_SHARED)
  list(APPEND components shared)
endif()
list(JOIN components " " components)
list(JOIN layer_targets ", " layer_targets)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/iwarpConfig.cmake.in ${PROJECT_BINARY_DIR}/iwarpConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/iwarpConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/iwarpConfig.cmake ${PROJECT_BINARY_DIR}/iwarpConfigVersion.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
list(TRANSFORM seen_definitions PREPEND -D OUTPUT_VARIABLE pc_definitions)
list(JOIN pc_definitions " " pc_definitions)
list(JOIN pc_private " " pc_requires_private)
set(pc_requires "")
if(NOT IWARP_BUILD_SHARED)
  set(pc_requires ${pc_requires_private})
  set(pc_requires_private "")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/iwarp.pc.in ${PROJECT_BINARY_DIR}/iwarp.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/iwarp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall
    COMMAND ${CMAKE_COMMAND} -D MANIFESTS=${PROJECT_BINARY_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake
    COMMENT "Removing what install_manifest.txt lists" VERBATIM)
endif()

list(JOIN headers "\n" lines)
file(WRITE ${PROJECT_BINARY_DIR}/headers.txt "${lines}\n")
list(JOIN public_headers "\n" lines)
file(WRITE ${PROJECT_BINARY_DIR}/public-headers.txt "${lines}\n")
set(archive_lines "")
foreach(layer IN LISTS pure_layers)
  get_target_property(type iwarp_${layer} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    string(APPEND archive_lines "$<TARGET_FILE:iwarp_${layer}>\n")
  endif()
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/pure-archives.txt CONTENT "${archive_lines}")
