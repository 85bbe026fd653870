# SPDX-License-Identifier: MIT
# polyad_embed(target namespace name file): the bytes of a file as `const std::string_view namespace::name` in a target.
#
# The file becomes an array of character constants. That is plain C++ for every compiler and object format; .incbin would
# be assembly for one of them, and string literals have length limits that -Wpedantic of clang knows. For the 200 kB of
# Chart.js, writing the array takes 0.3 s and compiling it 0.5 s. It is made again when the file changes.
if(CMAKE_SCRIPT_MODE_FILE)  # cmake -DFILE=.. -DOUT=.. -DNAMESPACE=.. -DNAME=.. -P polyad_embed.cmake
  file(READ ${FILE} bytes HEX)
  if(bytes STREQUAL "")
    message(FATAL_ERROR "${FILE} is empty")
  endif()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  get_filename_component(source ${FILE} NAME)
  file(WRITE ${OUT} "// Made from ${source}.\n"
                    "#include <string_view>\n"
                    "namespace ${NAMESPACE} {\n"
                    "namespace {\nconstexpr char bytes_of_${NAME}[] = {${bytes}};\n}\n"
                    "extern const std::string_view ${NAME};\n"
                    "constinit const std::string_view ${NAME}{bytes_of_${NAME}, sizeof bytes_of_${NAME}};\n"
                    "}\n")
  return()
endif()

set(POLYAD_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(polyad_embed target namespace name file)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DOUT=${out} -DNAMESPACE=${namespace} -DNAME=${name} -P ${POLYAD_EMBED_SCRIPT}
    DEPENDS ${file} ${POLYAD_EMBED_SCRIPT}
    COMMENT "Embedding ${name}"
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

# polyad_embed_table(target namespace function header type files...): the files as `std::span<const type> function()` of
# {name without ending, pointer to the text}, sorted by name. The header declares the type and the function.
function(polyad_embed_table target namespace function header type)
  set(files ${ARGN})
  list(SORT files)
  set(externs "")
  set(rows "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    polyad_embed(${target} ${namespace}::${function}_embedded ${name} ${file})
    string(APPEND externs "extern const std::string_view ${name};\n")
    string(APPEND rows "  {\"${name}\", &${function}_embedded::${name}},\n")
  endforeach()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/${function}_table.cpp)
  file(GENERATE OUTPUT ${out} CONTENT "// Made by CMake.
#include <span>
#include <string_view>
#include \"${header}\"
namespace ${namespace} {
namespace ${function}_embedded {
${externs}}
namespace {
constexpr ${type} table[] = {
${rows}};
}
std::span<const ${type}> ${function}() { return table; }
}
")
  target_sources(${target} PRIVATE ${out})
endfunction()
