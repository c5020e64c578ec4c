add_library(mosa_warnings INTERFACE)
target_compile_options(mosa_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual $<$<BOOL:${MOSA_WERROR}>:-Werror> $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
# Designated initializers name what a test is about and leave the rest at its default.
add_library(mosa_test_warnings INTERFACE)
target_compile_options(mosa_test_warnings INTERFACE -Wno-missing-field-initializers)

# GCC collects its garbage from 128 MB on, and a precompiled header is as large: a tenth of the compile time, for up to
# 512 MB in each compiler.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)

# mosa_precompile(TARGET KIND): spares TARGET the parsing of headers that are not ours, which is most of a small source's
# compile time. Kinds: `std` (standard library, fmt, absl::Status), and that with more: `test` (GoogleTest), `wire`
# (gRPC), `json` (JSON), `cli` (CLI11, JSON). One precompiled header per kind serves all targets, so TARGET must have the same flags
# and definitions: only warnings may differ, and it must link fmt.
option(MOSA_PRECOMPILE "Precompile the headers of other projects" ON)
set(mosa_std_headers <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <deque> <filesystem> <fstream>
  <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <variant>
  <vector> <fmt/format.h> <absl/status/status.h> <absl/status/statusor.h>)

function(mosa_precompiled_header kind)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled_${kind}.cc CONTENT "")
  add_library(mosa_precompiled_${kind} OBJECT ${PROJECT_BINARY_DIR}/precompiled_${kind}.cc)
  target_link_libraries(mosa_precompiled_${kind} PRIVATE fmt::fmt absl::status absl::statusor ${ARG_DEPS} mosa_warnings)
  target_precompile_headers(mosa_precompiled_${kind} PRIVATE ${mosa_std_headers} ${ARG_HEADERS})
endfunction()

if(MOSA_PRECOMPILE)
  # Some dependencies ask for these (-DNOMINMAX comes from Abseil by the pkg-config file of RE2), and both define macros:
  # all targets or none, as GCC takes a precompiled header only if it was made with the same macros.
  add_compile_options(-pthread -DNOMINMAX)
  # What ccache needs to see through a precompiled header.
  target_compile_options(mosa_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  mosa_precompiled_header(std)
  mosa_precompiled_header(wire HEADERS <google/protobuf/message.h> <grpcpp/grpcpp.h> DEPS gRPC::grpc++)
  mosa_precompiled_header(json HEADERS <nlohmann/json.hpp> DEPS nlohmann_json::nlohmann_json)
  mosa_precompiled_header(cli HEADERS <CLI/CLI.hpp> <nlohmann/json.hpp> DEPS CLI11::CLI11 nlohmann_json::nlohmann_json)
  if(MOSA_BUILD_TESTS)
    mosa_precompiled_header(test HEADERS <gmock/gmock.h> <gtest/gtest.h> DEPS GTest::gmock GTest::gtest)
  endif()
endif()

function(mosa_precompile target kind)
  if(MOSA_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM mosa_precompiled_${kind})
  endif()
endfunction()

# mosa_unity(TARGET KIND): compiles sources of TARGET as one, since headers and templates that they share are most of their
# compile time. Sources of one unit share their anonymous namespaces, so names in these must be unique in the folder. Kinds:
# `batches` (of eight, in the order in which TARGET names them), and `families` (those whose names are alike up to the first
# underscore: for a folder in which each family has names of its own, and one without a family is compiled alone).
option(MOSA_UNITY "Compile several sources at once, which is much faster from scratch" ON)
if(MOSA_UNITY)
  # To GCC a source that a unit includes is a header, whose types must not have members from anonymous namespaces.
  target_compile_options(mosa_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

function(mosa_unity target kind)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(NOT MOSA_UNITY OR count LESS 2)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 8)
  if(kind STREQUAL "families")
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    foreach(source IN LISTS sources)
      get_filename_component(family ${source} NAME)
      string(REGEX REPLACE "[_.].*" "" family ${family})
      set(members ${sources})
      list(FILTER members INCLUDE REGEX "(^|/)${family}[_.][^/]*$")
      list(LENGTH members count)
      if(count GREATER 1)
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${family})
      endif()
    endforeach()
  endif()
endfunction()

# mosa_library(NAME SOURCES ... HEADERS ... DEPS ... TESTS ... PRECOMPILED kind UNITY kind)
#
# A static library `mosa_NAME` with the alias `mosa::NAME`; headers as a file set rooted at the repository, so that the
# include path is the disk path; warnings; a link test that proves the library links with only its declared
# dependencies; and `NAME_test` (label unit) from the sources in TESTS. PRECOMPILED is a kind of mosa_precompile, `std`
# unless given; UNITY is one of mosa_unity, `batches` unless given.
function(mosa_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED;UNITY" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS;TESTS" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED std)
  endif()
  if(NOT ARG_UNITY)
    set(ARG_UNITY batches)
  endif()
  add_library(mosa_${name} STATIC ${ARG_SOURCES})
  add_library(mosa::${name} ALIAS mosa_${name})
  target_sources(mosa_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  set_target_properties(mosa_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(mosa_${name} PUBLIC cxx_std_20)
  target_link_libraries(mosa_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS} mosa_warnings)
  mosa_precompile(mosa_${name} ${ARG_PRECOMPILED})
  mosa_unity(mosa_${name} ${ARG_UNITY})
  if(MOSA_BUILD_TESTS)
    add_executable(${name}_links ${PROJECT_SOURCE_DIR}/tests/support/link_main.cc)
    target_link_libraries(${name}_links PRIVATE
      -Wl,--whole-archive mosa_${name} -Wl,--no-whole-archive)
    if(ARG_TESTS)
      mosa_test(${name}_test LABEL unit SOURCES ${ARG_TESTS} DEPS mosa::${name})
    endif()
  endif()
endfunction()

# mosa_commit(VARIABLE): the commit that is checked out, abbreviated; "unknown" if this is no git checkout of its own or git
# does not read it. Another commit configures anew, so that programs never name an old one.
function(mosa_commit variable)
  set(${variable} unknown PARENT_SCOPE)
  find_package(Git QUIET)
  if(NOT Git_FOUND OR NOT EXISTS ${PROJECT_SOURCE_DIR}/.git)
    return()
  endif()
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --git-path logs/HEAD --short=12 HEAD
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} RESULT_VARIABLE failed OUTPUT_VARIABLE lines
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(failed OR NOT lines MATCHES "^(.+)\n([0-9a-f]+)$")
    return()
  endif()
  set(${variable} ${CMAKE_MATCH_2} PARENT_SCOPE)
  get_filename_component(log "${CMAKE_MATCH_1}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  if(EXISTS "${log}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${log}")
  endif()
endfunction()

# mosa_more_time(): with sanitizers, the tests of this directory get five times their TIMEOUT.
function(mosa_more_time)
  get_property(is_asked DIRECTORY PROPERTY mosa_more_time)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=" AND NOT is_asked)
    set_property(DIRECTORY PROPERTY mosa_more_time ON)
    cmake_language(DEFER CALL mosa_multiply_timeouts)
  endif()
endfunction()

function(mosa_multiply_timeouts)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    get_property(seconds TEST ${test} PROPERTY TIMEOUT)
    if(seconds)
      math(EXPR seconds "${seconds} * 5")
      set_property(TEST ${test} PROPERTY TIMEOUT ${seconds})
    endif()
  endforeach()
endfunction()

# mosa_test(NAME LABEL label [SHARDS count] [TIMEOUT seconds] SOURCES ... DEPS ...): a GoogleTest program run as one test of
# that label, or as `count` tests NAME_1, NAME_2, ... that share its cases and may run at the same time: for a program that
# mostly waits.
function(mosa_test name)
  mosa_more_time()
  cmake_parse_arguments(ARG "" "LABEL;SHARDS;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main mosa_warnings
    mosa_test_warnings)
  mosa_precompile(${name} test)
  mosa_unity(${name} batches)
  if(ARG_SHARDS)
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${name}_${shard} COMMAND ${name})
      set_tests_properties(${name}_${shard} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  endif()
endfunction()

# mosa_fuzz_replay(NAME ROUNDS count SOURCE source DEPS ...): the libFuzzer entry in SOURCE, replayed as the test
# NAME_fuzz_replay (label fuzz): the seeds in tests/fuzz/seeds/NAME, and ROUNDS mutations of them.
function(mosa_fuzz_replay name)
  mosa_more_time()
  cmake_parse_arguments(ARG "" "ROUNDS;SOURCE" "DEPS" ${ARGN})
  add_executable(${name}_fuzz_replay ${ARG_SOURCE} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
  target_link_libraries(${name}_fuzz_replay PRIVATE ${ARG_DEPS} mosa_warnings)
  add_test(NAME ${name}_fuzz_replay
    COMMAND ${name}_fuzz_replay ${PROJECT_SOURCE_DIR}/tests/fuzz/seeds/${name} ${ARG_ROUNDS})
  set_tests_properties(${name}_fuzz_replay PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()

# mosa_take_archives(PACKAGE...): what links the imported libraries of these packages takes their archives, if each shared
# library has one beside it: with some, programs would have the same library twice. A program then starts in half the
# processor time, which goes into loading some 50 libraries and looking up their symbols: for `mosa predict`, most of what it
# takes. Call it where they were found.
function(mosa_take_archives)
  get_directory_property(targets IMPORTED_TARGETS)
  list(JOIN ARGN "|" packages)
  list(FILTER targets INCLUDE REGEX "^(${packages})::")
  list(JOIN ARGN ", " names)
  set(changes "")
  foreach(target IN LISTS targets)
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    set(properties IMPORTED_LOCATION)
    foreach(configuration IN LISTS configurations)
      list(APPEND properties IMPORTED_LOCATION_${configuration})
    endforeach()
    foreach(property IN LISTS properties)
      get_target_property(library ${target} ${property})
      string(REGEX REPLACE "[.]so[.0-9]*$" ".a" archive "${library}")
      if(archive STREQUAL library)
        continue()  # No shared library, or not at all.
      endif()
      if(NOT EXISTS "${archive}")
        message(STATUS "Linking ${names} as shared libraries: there is no ${archive}")
        return()
      endif()
      list(APPEND changes ${target} ${property} "${archive}")
    endforeach()
  endforeach()
  while(changes)
    list(POP_FRONT changes target property archive)
    set_target_properties(${target} PROPERTIES ${property} "${archive}")
  endwhile()
  message(STATUS "Linking ${names} as archives")
endfunction()

# mosa_program(NAME SOURCES ... DEPS ...): an installed executable.
function(mosa_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} fmt::fmt mosa_warnings)
  mosa_precompile(${name} cli)
  mosa_unity(${name} batches)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name})
endfunction()
