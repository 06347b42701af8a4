# Lists the scalar operators for the preprocessor: kernel/operator_list.h, written from the rows of
# src/kernel/operators, one file after the other. Enumerations and array functions are made of the lists, so that a new
# operator is its row alone. The file changes only where an operator comes or goes: what a row says is read by few
# files.
#
#   WEFT_SCALAR_OPERATORS(X)       every row
#   WEFT_ELEMENTWISE_OPERATORS(X)  those that are operators of the graph: all kinds but Instruction
#   WEFT_UNARY_FUNCTIONS(X), WEFT_BINARY_FUNCTIONS(X)  those that are array functions of the same name
function(weft_operator_lists)
  set(folder ${PROJECT_SOURCE_DIR}/src/kernel/operators)
  foreach(family instructions functions special random)
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${family}.h)
    file(STRINGS ${folder}/${family}.h rows REGEX "^struct Row<ScalarOp::")
    foreach(row ${rows})
      set(kinds "Instruction|Elementwise|UnaryFunction|BinaryFunction")
      if(NOT row MATCHES "^struct Row<ScalarOp::([a-z0-9_]+)> : (${kinds})[ ,]")
        message(FATAL_ERROR
          "${folder}/${family}.h: a row begins as `struct Row<ScalarOp::name> : Kind {`, not as ${row}")
      endif()
      string(APPEND all " X(${CMAKE_MATCH_1})")
      if(NOT CMAKE_MATCH_2 STREQUAL "Instruction")
        string(APPEND elementwise " X(${CMAKE_MATCH_1})")
      endif()
      string(APPEND ${CMAKE_MATCH_2} " X(${CMAKE_MATCH_1})")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/kernel/operator_list.h CONTENT
"#pragma once
// Written by cmake/WeftOperators.cmake from the rows of src/kernel/operators.
#define WEFT_SCALAR_OPERATORS(X)${all}
#define WEFT_ELEMENTWISE_OPERATORS(X)${elementwise}
#define WEFT_UNARY_FUNCTIONS(X)${UnaryFunction}
#define WEFT_BINARY_FUNCTIONS(X)${BinaryFunction}
" @ONLY)
endfunction()
weft_operator_lists()

# target/KIND/generator_digest.h: what code in the cache on disk depends on beside the kernel it was made from (its
# digest is of expanded operators): the sources of the code generator, and of the tile IR.
function(weft_generator_digest kind)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/target/${kind}/codegen/*.cpp
                                              ${PROJECT_SOURCE_DIR}/src/target/${kind}/codegen/*.h)
  list(APPEND sources ${PROJECT_SOURCE_DIR}/src/kernel/tile.h ${PROJECT_SOURCE_DIR}/src/kernel/canonical.cpp
       ${PROJECT_BINARY_DIR}/generated/kernel/operator_list.h)
  if(kind STREQUAL "cuda")
    list(APPEND sources ${PROJECT_SOURCE_DIR}/src/target/cuda/driver/nvrtc.cpp)  # the compiler's options
  endif()
  set(header ${PROJECT_BINARY_DIR}/generated/target/${kind}/generator_digest.h)
  add_custom_command(
    OUTPUT ${header} DEPENDS ${sources} ${PROJECT_SOURCE_DIR}/cmake/digest.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DSOURCES=${sources}" -DHEADER=${header} -P ${PROJECT_SOURCE_DIR}/cmake/digest.cmake)
  target_sources(weft_target_${kind} PRIVATE ${header})
endfunction()
