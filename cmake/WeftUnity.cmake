# With WEFT_UNITY the compiler reads the .cpp files of a folder as one, so that headers and templates are compiled once
# a folder. Names in unnamed namespaces are therefore unique within a folder, not only within a file.
# docs/notes/build-time.md has the measurements.
function(weft_unity target)
  if(NOT WEFT_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    if(source MATCHES "\\.cpp$")
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(REPLACE "/" "_" folder "${folder}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
    endif()
  endforeach()
endfunction()
