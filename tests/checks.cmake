# Tests that are no doctest programs: of the tree itself, of what the build exports and installs, of the program from
# outside.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(checks ${CMAKE_CURRENT_SOURCE_DIR}/checks)

# weft_check(NAME TIMEOUT COMMAND…)
function(weft_check name timeout)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout}
    ENVIRONMENT "${WEFT_TEST_ENVIRONMENT};${WEFT_TEST_CACHE}")
endfunction()

# What scripts/test builds under a sanitizer: all that the tests run, and nothing else.
get_property(targets DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} PROPERTY BUILDSYSTEM_TARGETS)
list(FILTER targets INCLUDE REGEX "^test_")
if(WEFT_BUILD_EXAMPLES)
  list(APPEND targets examples)
endif()
if(TARGET weft_program)
  list(APPEND targets weft_program)
endif()
add_custom_target(test_programs)
if(targets)
  add_dependencies(test_programs ${targets})
endif()

weft_check(check_layers 300 ${Python3_EXECUTABLE} ${checks}/check_layers.py ${PROJECT_SOURCE_DIR})
weft_check(check_lines 300 ${Python3_EXECUTABLE} ${checks}/check_lines.py ${PROJECT_SOURCE_DIR})
weft_check(check_unity 300 ${Python3_EXECUTABLE} ${checks}/check_unity.py ${PROJECT_SOURCE_DIR})
weft_check(check_must_not_compile 300 ${Python3_EXECUTABLE} ${checks}/check_must_not_compile.py ${PROJECT_SOURCE_DIR}
  ${CMAKE_CXX_COMPILER})
set_tests_properties(check_must_not_compile PROPERTIES COST 30)
weft_check(check_words 300 ${Python3_EXECUTABLE} ${checks}/check_words.py ${PROJECT_SOURCE_DIR})
weft_check(check_headers 300 ${Python3_EXECUTABLE} ${checks}/check_headers.py ${PROJECT_SOURCE_DIR})
weft_check(check_format 300 ${PROJECT_SOURCE_DIR}/scripts/format --check)
# How each file is compiled by itself, which a unity build does not say: for the next check, and for check_warnings.
weft_check(check_commands 120 ${Python3_EXECUTABLE} ${checks}/single_commands.py ${PROJECT_SOURCE_DIR}
  ${PROJECT_BINARY_DIR})
set_tests_properties(check_commands PROPERTIES FIXTURES_SETUP single_commands COST 500)
# All files take a quarter of an hour: these have the most moves of their folders. listing.cpp instantiates the rows of
# all scalar operators.
set(moving models/llama.cpp src/array/array.cpp src/base/index_sum.cpp src/compiler/fusion/group.cpp
  src/compiler/pipeline.cpp src/compiler/plan/step_maker.cpp src/data/images.cpp src/graph/build.cpp
  src/graph/walks/listing.cpp src/io/program/tape.cpp src/kernel/builder.cpp src/nn/transformer.cpp
  src/optim/adaptive.cpp src/runtime/executor.cpp src/target/cpu/codegen/render_tile.cpp
  src/target/cuda/libraries/cudnn_graph.cpp src/text/tokenizer.cpp src/transforms/control.cpp
  tools/weft/train/optimizers.cpp)
list(TRANSFORM moving PREPEND ${PROJECT_SOURCE_DIR}/)
weft_check(check_tidy 300 ${PROJECT_SOURCE_DIR}/scripts/tidy --build ${PROJECT_BINARY_DIR}/single ${moving})
set_tests_properties(check_tidy PROPERTIES COST 30 FIXTURES_REQUIRED single_commands SKIP_RETURN_CODE 3)  # no tool
weft_check(check_excerpts 300 ${Python3_EXECUTABLE} ${checks}/check_excerpts.py ${PROJECT_SOURCE_DIR})
weft_check(check_readme 300 ${Python3_EXECUTABLE} ${checks}/check_readme.py ${PROJECT_SOURCE_DIR})
weft_check(check_the_checks 120 ${Python3_EXECUTABLE} ${checks}/test_checks.py)
weft_check(check_the_reference 300 ${Python3_EXECUTABLE} ${checks}/test_reference.py)
weft_check(check_figures 300 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/figures --check)
weft_check(check_workloads 300 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/workloads.py --check)
weft_check(check_parity 300 ${Python3_EXECUTABLE} ${checks}/test_parity.py)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT WEFT_SANITIZE)
  weft_check(check_warnings 600 ${Python3_EXECUTABLE} ${checks}/check_warnings.py ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR}/single)
  set_tests_properties(check_warnings PROPERTIES COST 60 FIXTURES_REQUIRED single_commands)
endif()
get_target_property(weft_type weft TYPE)
# A sanitizer exports its own names, and its runtime must be linked by all.
if(weft_type STREQUAL "SHARED_LIBRARY" AND NOT WEFT_SANITIZE)
  weft_check(check_exports 300 ${Python3_EXECUTABLE} ${checks}/check_exports.py $<TARGET_FILE:weft> ${CMAKE_NM}
    ${checks}/c_symbols.txt)
  weft_check(check_consumer 300 ${checks}/check_consumer.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
endif()
if(TARGET weft_program AND PROJECT_IS_TOP_LEVEL AND WEFT_INSTALL AND NOT WEFT_SANITIZE AND NOT WEFT_PORTABLE)
  weft_check(check_packages 600 ${Python3_EXECUTABLE} ${checks}/check_packages.py ${PROJECT_BINARY_DIR})
  set_tests_properties(check_packages PROPERTIES SKIP_RETURN_CODE 77)  # where no bare root can be made
endif()
# The Python package's own tests, in two parts that run beside each other.
if(TARGET weft_python)
  file(GLOB parts RELATIVE ${PROJECT_SOURCE_DIR}/tests/python CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/tests/python/test_*.py)
  set(python_slow test_operations.py test_operations_shapes.py test_optimizers.py)
  set(python_core ${parts})
  list(REMOVE_ITEM python_core ${python_slow})
  foreach(part core slow)
    list(TRANSFORM python_${part} PREPEND ${PROJECT_SOURCE_DIR}/tests/python/)
    weft_check(python_${part} 900 ${WEFT_PYTHON_EXECUTABLE} -m pytest -q -p no:cacheprovider ${python_${part}})
    set_property(TEST python_${part} APPEND PROPERTY ENVIRONMENT
      "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${WEFT_PYTHON_PACKAGES}")
    set_tests_properties(python_${part} PROPERTIES COST 100 WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  endforeach()
endif()
if(TARGET weft_program AND TARGET example_export_layer)
  weft_check(check_worked_example 120 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/worked-example --check
    --build ${PROJECT_BINARY_DIR})
  set_tests_properties(check_worked_example PROPERTIES SKIP_RETURN_CODE 77)  # a machine without AVX2
endif()
if(TARGET weft_program)
  weft_check(demo_small 600 ${Python3_EXECUTABLE} ${checks}/check_demo.py $<TARGET_FILE:weft_program>
    ${PROJECT_SOURCE_DIR})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_cli.py)
    weft_check(tools_cli 1200 ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tools/test_cli.py
      $<TARGET_FILE:weft_program> ${WEFT_TEST_DATA})
    set_tests_properties(tools_cli PROPERTIES COST 100)
  endif()
endif()
# With the Python package, and what it takes, to be found.
if(TARGET weft_python AND NOT WEFT_SANITIZE)
  function(weft_python_check name timeout)
    weft_check(${name} ${timeout} ${WEFT_PYTHON_EXECUTABLE} ${ARGN})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
      "PYTHONPATH=${PROJECT_BINARY_DIR}/python:${WEFT_PYTHON_PACKAGES}:$ENV{PYTHONPATH}")
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  endfunction()
  weft_python_check(check_types 120 ${checks}/check_types.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/python)
  weft_python_check(check_python_page 120 ${checks}/check_python_page.py ${PROJECT_SOURCE_DIR}/docs/python.md
    ${PROJECT_SOURCE_DIR}/docs/mlx.md)
  weft_python_check(check_coverage 300 ${PROJECT_SOURCE_DIR}/scripts/coverage --check)
  set_tests_properties(check_coverage PROPERTIES COST 40)
  weft_python_check(check_reference 120 ${PROJECT_SOURCE_DIR}/scripts/reference --build ${PROJECT_BINARY_DIR})
else()
  weft_check(check_coverage 300 ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/coverage --check)
endif()
