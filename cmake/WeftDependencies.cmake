# External packages. Each is found once here; targets name what they need.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
if(WEFT_ONEDNN)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()

# LLVM through its C API. 19 is what Weft is measured with; 16 to 22 have the same C API for all that is used here.
foreach(version 19 20 21 22 18 17 16)
  find_program(WEFT_LLVM_CONFIG NAMES llvm-config-${version})
  if(WEFT_LLVM_CONFIG)
    break()
  endif()
endforeach()
if(NOT WEFT_LLVM_CONFIG)
  message(FATAL_ERROR "llvm-config-16 … 22 not found: install llvm-19-dev (scripts/setup does)")
endif()
# weft_llvm_config(VARIABLE ARGUMENT…): what llvm-config says.
function(weft_llvm_config variable)
  execute_process(COMMAND ${WEFT_LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE said OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(${variable} ${said} PARENT_SCOPE)
endfunction()
weft_llvm_config(WEFT_LLVM_INCLUDE --includedir)
weft_llvm_config(WEFT_LLVM_LIBDIR --libdir)
# A portable build runs on machines that have no LLVM: it carries what it uses of it.
if(WEFT_PORTABLE)
  weft_llvm_config(WEFT_LLVM_LIBS --link-static --libs core native orcjit passes)
  string(APPEND WEFT_LLVM_LIBS " -lz -lzstd")
  separate_arguments(WEFT_LLVM_LIBS)
else()
  weft_llvm_config(WEFT_LLVM_LIBS --link-shared --libs)
endif()
add_library(weft_llvm INTERFACE)
target_include_directories(weft_llvm SYSTEM INTERFACE ${WEFT_LLVM_INCLUDE})
target_link_directories(weft_llvm INTERFACE ${WEFT_LLVM_LIBDIR})
target_link_libraries(weft_llvm INTERFACE ${WEFT_LLVM_LIBS})

# oneDNN by header and library: Debian's package configuration also asks for the OpenCL development files, which nothing
# here needs.
add_library(weft_onednn INTERFACE)
if(WEFT_ONEDNN)
  find_path(WEFT_DNNL_INCLUDE NAMES dnnl.hpp oneapi/dnnl/dnnl.hpp)
  find_library(WEFT_DNNL_LIBRARY NAMES dnnl)
  if(NOT WEFT_DNNL_INCLUDE OR NOT WEFT_DNNL_LIBRARY)
    message(FATAL_ERROR
      "oneDNN not found: install libdnnl-dev (scripts/setup does), or configure with -DWEFT_ONEDNN=OFF")
  endif()
  target_include_directories(weft_onednn SYSTEM INTERFACE ${WEFT_DNNL_INCLUDE})
  target_link_libraries(weft_onednn INTERFACE ${WEFT_DNNL_LIBRARY})
  target_compile_definitions(weft_onednn INTERFACE WEFT_HAVE_ONEDNN=1)
endif()

# Eigen for decompositions on the CPU: headers alone, by their place, so that no package configuration is asked for. Its
# own threads stay off: batches run on ours.
find_path(WEFT_EIGEN_INCLUDE NAMES Eigen/Dense PATH_SUFFIXES eigen3)
if(NOT WEFT_EIGEN_INCLUDE)
  message(FATAL_ERROR "Eigen not found: install libeigen3-dev (scripts/setup does)")
endif()
add_library(weft_eigen INTERFACE)
target_include_directories(weft_eigen SYSTEM INTERFACE ${WEFT_EIGEN_INCLUDE})
target_compile_definitions(weft_eigen INTERFACE EIGEN_DONT_PARALLELIZE EIGEN_MPL2_ONLY)
if(WEFT_SANITIZE)
  # Eigen 3.4's SSE code loads a complex64 as a double from 4-byte alignment, which UBSan reports.
  target_compile_definitions(weft_eigen INTERFACE EIGEN_DONT_VECTORIZE)
endif()
