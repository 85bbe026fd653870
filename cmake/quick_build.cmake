# SPDX-License-Identifier: MIT
# polyad_quick_build(target): for code that only calls the library. -O3 takes twice as long to compile as -O1 and gives
# nothing there; under a sanitizer -O0 takes a third of -O1, most of it the macros of tests. The last -O counts.
function(polyad_quick_build target)
  if(POLYAD_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()
