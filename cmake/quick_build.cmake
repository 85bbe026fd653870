# SPDX-License-Identifier: MIT
# polyad_quick_build(target): for code that only calls the library. -O3 takes twice as long to compile as -O1 and gives
# nothing there. The last -O counts; sanitizer builds are -O1 as they are.
function(polyad_quick_build target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# polyad_quickest_build(target): under a sanitizer -O0, a third of the time of -O1 with the macros of tests. What
# computes much by itself, as the oracles of tests do, would lose more than that when it runs.
function(polyad_quickest_build target)
  polyad_quick_build(${target})
  if(POLYAD_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
