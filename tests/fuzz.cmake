# One libFuzzer program for each target of tests/fuzz, with clang's runtime (preset `fuzz`; CONTRIBUTING.md says how
# they are run).
option(WEFT_BUILD_FUZZERS "Build the fuzzers (clang only)" OFF)
if(WEFT_BUILD_FUZZERS)
  add_custom_target(fuzzers)
  foreach(name npy npz zip safetensors gguf torch pickle idx tokenizer utf8 config state model_config program tape
      kernel)
    add_executable(fuzz_${name} fuzz_main.cpp fuzz/targets.cpp)
    target_compile_definitions(fuzz_${name} PRIVATE WEFT_FUZZ_TARGET="${name}")
    target_include_directories(fuzz_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(fuzz_${name} PRIVATE weft_internal)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${name})
  endforeach()
endif()
