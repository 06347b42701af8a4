# Writes HEADER with a digest of the files in SOURCES.
foreach(source ${SOURCES})
  file(SHA256 ${source} one)
  string(APPEND all ${one})
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${HEADER} "#pragma once\ninline constexpr const char* generator_digest = \"${digest}\";\n")
