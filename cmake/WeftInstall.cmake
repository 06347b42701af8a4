# install + find_package(weft): the library, weft::weft, and weft::mlx, which adds MLX's headers over it.
include(CMakePackageConfigHelpers)
install(TARGETS weft weft_mlx EXPORT weft-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${WEFT_C_HEADER} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/c)
# Names relative to the file itself, so that the installed tree can be moved. DT_RPATH rather than DT_RUNPATH: it holds
# for the libraries' libraries too, which an archive carries beside libweft (WeftPackage).
set_target_properties(weft PROPERTIES INSTALL_RPATH "$ORIGIN")
target_link_options(weft PRIVATE -Wl,--disable-new-dtags)
file(RELATIVE_PATH to_library /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
foreach(program weft_program weft_try)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_library}")
    target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
if(BUILD_SHARED_LIBS)  # a static libweft would need its private packages again: not offered yet as an installed package
  install(EXPORT weft-targets NAMESPACE weft:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weft-config.cmake.in ${PROJECT_BINARY_DIR}/weft-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/weft-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/weft-config.cmake ${PROJECT_BINARY_DIR}/weft-config-version.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
endif()
