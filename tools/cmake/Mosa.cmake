# mosa_library(NAME SOURCES ... HEADERS ... DEPS ... TESTS ...)
#
# A static library `mosa_NAME` with the alias `mosa::NAME`; headers as a file set rooted at the repository, so that the
# include path is the disk path; warnings; a link test that proves the library links with only its declared
# dependencies; and `NAME_test` (label unit) from the sources in TESTS.
add_library(mosa_warnings INTERFACE)
target_compile_options(mosa_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual $<$<BOOL:${MOSA_WERROR}>:-Werror> $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)

function(mosa_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS;TESTS" ${ARGN})
  add_library(mosa_${name} STATIC ${ARG_SOURCES})
  add_library(mosa::${name} ALIAS mosa_${name})
  target_sources(mosa_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  set_target_properties(mosa_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(mosa_${name} PUBLIC cxx_std_20)
  target_link_libraries(mosa_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS} mosa_warnings)
  if(MOSA_BUILD_TESTS)
    add_executable(${name}_links ${PROJECT_SOURCE_DIR}/tests/support/link_main.cc)
    target_link_libraries(${name}_links PRIVATE
      -Wl,--whole-archive mosa_${name} -Wl,--no-whole-archive)
    if(ARG_TESTS)
      mosa_test(${name}_test LABEL unit SOURCES ${ARG_TESTS} DEPS mosa::${name})
    endif()
  endif()
endfunction()

# mosa_test(NAME LABEL label SOURCES ... DEPS ...): a GoogleTest program run as one test of that label.
function(mosa_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest GTest::gtest_main mosa_warnings)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# mosa_program(NAME SOURCES ... DEPS ...): an installed executable.
function(mosa_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} mosa_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  install(TARGETS ${name})
endfunction()
