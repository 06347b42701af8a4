# cpack makes two packages of a build: a .deb, which depends on the libraries' packages of the distribution that it was
# built on, and a .tar.gz, which carries those libraries beside the program. Neither needs a compiler where it is
# installed. tests/checks/check_packages.py installs both into bare roots and runs them there.

# Licences of headers whose code is in the program, in both packages.
find_path(WEFT_JSON_INCLUDE NAMES nlohmann/json.hpp)
find_path(WEFT_CLI11_INCLUDE NAMES CLI/CLI.hpp)
find_path(WEFT_FMT_INCLUDE NAMES fmt/format.h)
install(CODE "
  set(docs [[${CMAKE_INSTALL_DOCDIR}]])
  include([[${PROJECT_SOURCE_DIR}/cmake/licences.cmake]])
  weft_install_licences([[${WEFT_EIGEN_INCLUDE}/Eigen/Dense]] [[${WEFT_JSON_INCLUDE}/nlohmann/json.hpp]]
    [[${WEFT_CLI11_INCLUDE}/CLI/CLI.hpp]] [[${WEFT_FMT_INCLUDE}/fmt/format.h]])"
  COMPONENT licences EXCLUDE_FROM_ALL)
# The libraries of the program with their licences, in the archive alone.
install(CODE "
  set(program [[$<TARGET_FILE:weft_program>]])
  set(library_folder [[${CMAKE_INSTALL_LIBDIR}]])
  set(llvm_folder [[${WEFT_LLVM_LIBDIR}]])
  set(docs [[${CMAKE_INSTALL_DOCDIR}]])
  include([[${PROJECT_SOURCE_DIR}/cmake/carry_libraries.cmake]])"
  COMPONENT libraries EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_CONTACT "The authors of Weft")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME weft-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # Depends is read from the programs by dpkg-shlibdeps, of dpkg-dev
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake")  # for those who use the library
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/WeftPackageKind.cmake)
include(CPack)
