# One function makes a layer: a folder, a namespace and a target (ARCHITECTURE.md, "Layers").
#   iwarp_layer(mpa HEADERS a.h b.h SOURCES a.cc b.cc DEPENDS iwarp::base PRIVATE_DEPENDS PkgConfig::ISAL [PURE])
# gives iwarp_mpa (static library, or interface library without SOURCES) and the alias iwarp::mpa.
# Headers are spelled "iwarp/mpa/a.h" everywhere: in the build tree through a link, in the install tree by location.
# A second target of the same folder (the binding of a pure protocol to I/O) names it: FOLDER rpcrdma. FOLDER . is the
# folder "iwarp" itself: "iwarp/a.h".
# PURE layers may use no socket, clock, thread or random function: .ci/purity proves it.
# NOT_INSTALLED names those of HEADERS that no user needs; HIDDEN means all of them: the layer is there for others. An INTERNAL layer is
# not installed at all, and no part of the shared library.
function(iwarp_layer name)
  cmake_parse_arguments(L "PURE;HIDDEN;INTERNAL" "FOLDER" "HEADERS;NOT_INSTALLED;SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target iwarp_${name})
  set(folder ${name})
  if(L_FOLDER)
    set(folder ${L_FOLDER})
  endif()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/iwarp)
  if(folder STREQUAL ".")
    foreach(header IN LISTS L_HEADERS)
      file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${header} ${PROJECT_BINARY_DIR}/include/iwarp/${header} SYMBOLIC)
    endforeach()
  else()
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include/iwarp/${folder} SYMBOLIC)
  endif()

  if(L_SOURCES)
    add_library(${target} STATIC ${L_SOURCES})
    set(scope PUBLIC)
    iwarp_compile_options(${target})
    target_link_libraries(${target} PRIVATE ${L_PRIVATE_DEPENDS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(iwarp::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} ${scope} ${L_DEPENDS})
  list(TRANSFORM L_HEADERS PREPEND iwarp/${folder}/ OUTPUT_VARIABLE spelled)
  set_property(GLOBAL APPEND PROPERTY IWARP_HEADERS ${spelled})
  if(NOT L_INTERNAL)
    set(public ${L_HEADERS})
    if(L_NOT_INSTALLED)
      list(REMOVE_ITEM public ${L_NOT_INSTALLED})
    endif()
    if(L_HIDDEN)
      set(public "")
    endif()
    install(TARGETS ${target} EXPORT iwarpTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(FILES ${public} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/iwarp/${folder})
    set_property(GLOBAL APPEND PROPERTY IWARP_LAYERS ${name})
    list(TRANSFORM public PREPEND iwarp/${folder}/)
    set_property(GLOBAL APPEND PROPERTY IWARP_PUBLIC_HEADERS ${public})
  endif()
  if(L_PURE)
    set_property(GLOBAL APPEND PROPERTY IWARP_PURE_LAYERS ${name})
  endif()
endfunction()

function(iwarp_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor)
  # Position-independent code, but nobody puts other functions in place of ours: what a file calls in itself is inlined.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  if(IWARP_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(IWARP_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${IWARP_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${IWARP_SANITIZE})
    # What sanitizers add to the code makes gcc see uninitialised variables where there are none, in Asio for one.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    if(IWARP_SANITIZE MATCHES "thread")
      # gcc's thread sanitizer does not see fences. Asio's are beside mutexes, which it does see, and in reference counts.
      target_compile_definitions(${target} PRIVATE BOOST_ASIO_DISABLE_FENCED_BLOCK)
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
  endif()
endfunction()

# Sources of the current folder whose names inside would clash with those of others: CMAKE_UNITY_BUILD, which the sanitizers' presets
# set because several sources in one compile in a third of the time, leaves them alone.
function(iwarp_compile_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
