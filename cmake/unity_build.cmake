# SPDX-License-Identifier: MIT
# polyad_unity_build(target): several files of a target are compiled as one. Most of the time of a small file goes to
# headers and to templates that its neighbours use as well; together they take 0.6 of it (g++ and clang, with precompiled
# headers as without). POLYAD_UNITY=OFF compiles each by itself, for those who change one file again and again.
#
# Not for what is measured: a file with loops over nonzeros keeps a translation unit of its own, so that what is inlined
# there does not depend on its neighbours. Names in unnamed namespaces must differ within a target, or their file is named
# in polyad_alone. That every file includes what it names is proved by clang-tidy, which reads them one by one.
function(polyad_unity_build target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${POLYAD_UNITY} UNITY_BUILD_BATCH_SIZE 6)
endfunction()

# polyad_alone(files...): translation units of their own.
function(polyad_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
