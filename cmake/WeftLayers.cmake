# One object library a layer, in the order of docs/design.md §1: a layer sees itself and the layers below it.
# tests/checks/check_layers.py holds the includes against the same list.
set(WEFT_LAYERS base runtime kernel target kernels target/null target/cpu target/cuda graph compiler array transforms io
  text data optim nn c models)
include(WeftOperators)
set(WEFT_LAYER_OBJECTS "")
set(WEFT_LAYER_LIBRARIES "")

function(weft_layer layer)
  string(REPLACE "/" "_" name weft_${layer})
  if(layer STREQUAL "models")
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.cpp)
  elseif(layer STREQUAL "target")  # its folders are layers of their own
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp)
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(${name} OBJECT ${sources})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_compile_definitions(${name} PRIVATE WEFT_BUILDING=1 WEFT_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PRIVATE weft_options fmt::fmt Threads::Threads)
  weft_unity(${name})
  set(WEFT_LAYER_LIBRARIES ${WEFT_LAYER_LIBRARIES} ${name} PARENT_SCOPE)
endfunction()
foreach(layer ${WEFT_LAYERS})
  weft_layer(${layer})
endforeach()

# The CUDA C++ that the CUDA target hands to NVRTC is part of the library: one C++ file with the text of all .cu and
# .cuh.
if(TARGET weft_target_cuda)
  file(GLOB_RECURSE WEFT_CUDA_TEXTS CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/src/target/cuda/*.cu ${PROJECT_SOURCE_DIR}/src/target/cuda/*.cuh)
  set(WEFT_CUDA_SOURCES ${PROJECT_BINARY_DIR}/cuda_sources.cpp)
  add_custom_command(OUTPUT ${WEFT_CUDA_SOURCES} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${WEFT_CUDA_SOURCES} -D ROOT=${PROJECT_SOURCE_DIR}/src
      "-DFILES=${WEFT_CUDA_TEXTS}" -P ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${WEFT_CUDA_TEXTS} ${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake)
  target_sources(weft_target_cuda PRIVATE ${WEFT_CUDA_SOURCES})
endif()

# The C interface of the operations is made of the C++ headers: its header, which is installed, and its source.
if(TARGET weft_c)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(WEFT_C_INCLUDE ${PROJECT_BINARY_DIR}/generated/include)
  set(WEFT_C_HEADER ${WEFT_C_INCLUDE}/weft/c/operations.h)
  set(WEFT_C_SYMBOLS ${PROJECT_BINARY_DIR}/generated/c/symbols.txt)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/weft/*.h)
  add_custom_command(OUTPUT ${WEFT_C_HEADER} ${PROJECT_BINARY_DIR}/generated/c/operations.cpp ${WEFT_C_SYMBOLS} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/generated/c
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bindings/c.py ${WEFT_C_HEADER}
      ${PROJECT_BINARY_DIR}/generated/c/operations.cpp ${WEFT_C_SYMBOLS}
    DEPENDS ${PROJECT_SOURCE_DIR}/bindings/c.py ${PROJECT_SOURCE_DIR}/bindings/signatures.py ${headers})
  add_custom_target(weft_c_header DEPENDS ${WEFT_C_HEADER})
  target_sources(weft_c PRIVATE ${PROJECT_BINARY_DIR}/generated/c/operations.cpp ${WEFT_C_HEADER})
  set_source_files_properties(${PROJECT_BINARY_DIR}/generated/c/operations.cpp PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON)
  target_include_directories(weft_c PRIVATE ${WEFT_C_INCLUDE})
endif()

# External packages are named where they are used, and nowhere else.
if(TARGET weft_runtime AND WEFT_ONEDNN)  # oneDNN brings OpenMP along; the runtime tells it to stay on one thread
  target_link_libraries(weft_runtime PRIVATE OpenMP::OpenMP_CXX)
  target_compile_definitions(weft_runtime PRIVATE WEFT_OPENMP=1)
endif()
if(TARGET weft_target_cpu)
  target_link_libraries(weft_target_cpu PRIVATE weft_llvm weft_onednn weft_eigen)
  weft_generator_digest(cpu)
endif()
if(TARGET weft_target_cuda)
  weft_generator_digest(cuda)
endif()
if(TARGET weft_compiler AND WEFT_VERIFY)
  target_compile_definitions(weft_compiler PRIVATE WEFT_VERIFY=1)
elseif(TARGET weft_compiler)
  target_compile_definitions(weft_compiler PRIVATE $<$<CONFIG:Debug>:WEFT_VERIFY=1>)
endif()
if(TARGET weft_io)
  target_link_libraries(weft_io PRIVATE nlohmann_json::nlohmann_json ZLIB::ZLIB)
endif()
if(TARGET weft_data)
  target_link_libraries(weft_data PRIVATE ZLIB::ZLIB)
endif()
if(TARGET weft_text)
  target_link_libraries(weft_text PRIVATE nlohmann_json::nlohmann_json)
endif()
if(TARGET weft_models)
  target_link_libraries(weft_models PRIVATE nlohmann_json::nlohmann_json)
endif()

set(WEFT_EXTERNAL weft_llvm weft_onednn fmt::fmt ZLIB::ZLIB Threads::Threads)
if(WEFT_ONEDNN)
  list(APPEND WEFT_EXTERNAL OpenMP::OpenMP_CXX)
endif()

# `weft` is what users link; `weft_internal` carries the same objects with every symbol in reach, for the tests.
if(PROJECT_IS_TOP_LEVEL)
  option(BUILD_SHARED_LIBS "Build libweft as a shared library" ON)
elseif(NOT DEFINED BUILD_SHARED_LIBS)
  set(BUILD_SHARED_LIBS ON)  # for this folder only: a project around this one keeps its own default
endif()
add_library(weft)
add_library(weft::weft ALIAS weft)
add_library(weft_internal INTERFACE)
foreach(library ${WEFT_LAYER_LIBRARIES})
  target_sources(weft PRIVATE $<TARGET_OBJECTS:${library}>)
  target_sources(weft_internal INTERFACE $<TARGET_OBJECTS:${library}>)
endforeach()
set_target_properties(weft PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
get_target_property(weft_type weft TYPE)
if(weft_type STREQUAL "SHARED_LIBRARY")
  # Hidden visibility does not reach the standard library's templates, whose namespace is declared visible: the linker
  # hides them.
  target_link_options(weft PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  if(NOT WEFT_SANITIZE)  # a sanitizer's runtime comes with the program
    target_link_options(weft PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(weft PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endif()
target_compile_features(weft PUBLIC cxx_std_20)
target_include_directories(weft PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/generated/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(weft PRIVATE ${WEFT_EXTERNAL})
# MLX's headers and namespace over Weft's (docs/mlx.md): only for those who ask for them.
add_library(weft_mlx INTERFACE)
add_library(weft::mlx ALIAS weft_mlx)
set_target_properties(weft_mlx PROPERTIES EXPORT_NAME mlx)
target_include_directories(weft_mlx INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/weft/compat>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft/compat>)
target_link_libraries(weft_mlx INTERFACE weft)
target_include_directories(weft_internal INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated ${WEFT_C_INCLUDE})
target_link_libraries(weft_internal INTERFACE ${WEFT_EXTERNAL} weft_options)
