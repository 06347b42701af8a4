# Run while an archive is made: installs the shared libraries that `program` needs, except those that every machine has,
# into `library_folder`, each under the name that it is asked for by, with their licences under `docs`.
include(${CMAKE_CURRENT_LIST_DIR}/licences.cmake)
# What stays out is the C library, and the C++ library, which must not be older than what libraries that are opened
# while the program runs ask for.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program} RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR missing DIRECTORIES ${llvm_folder}
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|mvec|dl|rt|pthread|resolv|gcc_s|stdc\\+\\+)\\.so")
if(missing)
  message(FATAL_ERROR "not found: ${missing}, which ${program} needs")
endif()
set(files "")
foreach(library ${libraries})
  # Not install(RUNTIME_DEPENDENCY_SET): where a link has the name of the file in another folder that it leads to, as
  # Debian's libLLVM does, it installs a link to itself.
  file(REAL_PATH ${library} file)
  get_filename_component(name ${library} NAME)
  file(INSTALL ${file} DESTINATION ${CMAKE_INSTALL_PREFIX}/${library_folder} RENAME ${name})
  list(APPEND files ${file})
endforeach()
weft_install_licences(${files})
