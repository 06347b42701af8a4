# Read by cpack for each kind of package: the archive alone carries the libraries, in a folder of its own.
set(CPACK_COMPONENTS_ALL Unspecified licences)
if(CPACK_GENERATOR STREQUAL "TGZ")
  list(APPEND CPACK_COMPONENTS_ALL libraries)
  set(CPACK_PACKAGING_INSTALL_PREFIX /)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
endif()
