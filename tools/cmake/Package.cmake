# What is installed besides the programs, and the packages that CPack makes of it all: mosa_VERSION_ARCHITECTURE.deb, and an
# archive that can be unpacked anywhere. They hold what is below bin in the build directory: build the programs first.
include(GNUInstallDirs)

# README's links lead to the rest; the units of systemd name it.
install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE CITATION.cff
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY deploy/config deploy/slurm deploy/prometheus deploy/grafana
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples USE_SOURCE_PERMISSIONS)
install(DIRECTORY tools/python/snakemake-scheduler-plugin-mosa DESTINATION ${CMAKE_INSTALL_DATADIR}/mosa
  PATTERN tests EXCLUDE PATTERN __pycache__ EXCLUDE PATTERN build EXCLUDE PATTERN *.egg-info EXCLUDE)
install(PROGRAMS deploy/mosa-hosts DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY deploy/systemd/ DESTINATION lib/systemd/system)
install(FILES tools/man/mosa.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES tools/man/mosa-manager.8 tools/man/mosa-storage.8 tools/man/mosa-mount.8
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
install(FILES tools/completion/mosa.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME mosa)
install(FILES tools/completion/_mosa DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
if(MOSA_ARCHIVES)
  # Of what is inside the programs then, where the system has not left them out.
  foreach(library grpc protobuf absl)
    install(FILES /usr/share/doc/lib${library}-dev/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR}
      RENAME copyright.${library} OPTIONAL)
  endforeach()
endif()

# Only the .deb has these: `cmake --install` writes nothing outside its prefix.
file(GLOB configuration CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/deploy/config deploy/config/*.conf)
install(DIRECTORY deploy/config/ DESTINATION /etc/mosa COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT debian EXCLUDE_FROM_ALL)
# Debian's zsh looks here, not into site-functions.
install(FILES tools/completion/_mosa DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT debian
  EXCLUDE_FROM_ALL)
list(TRANSFORM configuration REPLACE "(.+)" "/etc/mosa/\\1\n")
string(CONCAT configuration ${configuration})
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/conffiles CONTENT "${configuration}")

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# The first paragraph of README up to its first full stop; what CITATION.cff has in one line.
file(READ README.md readme)
string(REGEX MATCH "\n\n([^.]+[.])" found "${readme}")
string(REPLACE "\n" " " CPACK_PACKAGE_DESCRIPTION "${CMAKE_MATCH_1}")
file(READ CITATION.cff citation)
string(REGEX MATCH "title: \"Mosa: ([^\"]+)\"" found "${citation}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_MATCH_1}")
string(REGEX MATCH "authors:\n  - name: ([^\n]+)" found "${citation}")
set(CPACK_PACKAGE_VENDOR "${CMAKE_MATCH_1}")
set(CPACK_PACKAGE_CONTACT "${CMAKE_MATCH_1}")
if(citation MATCHES "\nrepository-code: \"?([^\"\n]+)")
  set(CPACK_PACKAGE_HOMEPAGE_URL "${CMAKE_MATCH_1}")
endif()

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME mosa)
set(CPACK_PACKAGE_FILE_NAME mosa-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/tools/cmake/PackageKind.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS fuse3)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, attr, iproute2")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
