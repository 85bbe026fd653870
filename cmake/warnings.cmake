# SPDX-License-Identifier: MIT
# polyad_warnings(target): all warnings of our own code are errors.
function(polyad_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                           -Wcast-align -Wformat=2 -Wnull-dereference -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms of g++ 12 in std::string and std::vector at -O3.
    target_compile_options(${target} PRIVATE -Wno-null-dereference -Wno-restrict -Wno-stringop-overflow
                                             -Wno-stringop-overread -Wno-array-bounds -Wno-maybe-uninitialized)
  endif()
endfunction()
