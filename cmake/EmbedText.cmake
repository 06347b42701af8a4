# Writes a C++ file with the text of other files (cmake -D OUTPUT=… -D ROOT=… -D FILES=a;b -P EmbedText.cmake): an array
# of their names, relative to ROOT, and contents, as declared in src/target/cuda/codegen/text/source.h.
set(text "// Made by cmake/EmbedText.cmake.\n#include \"target/cuda/codegen/text/source.h\"\n\n")
string(APPEND text "namespace weft::target::cuda {\n\n")
string(APPEND text "const EmbeddedFile embedded_files[] = {\n")
list(LENGTH FILES count)
foreach(file IN LISTS FILES)
  file(READ ${file} content)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${ROOT} OUTPUT_VARIABLE name)
  string(APPEND text "    {\"${name}\", R\"embedded(${content})embedded\"},\n")
endforeach()
string(APPEND text "};\nconst size_t embedded_file_count = ${count};\n\n}  // namespace weft::target::cuda\n")
file(WRITE ${OUTPUT} "${text}")
