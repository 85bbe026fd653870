// SPDX-License-Identifier: MIT
/// \file NVRTC of the test double: compiles kernel texts for the processor (cuda_on_host.h).
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "fake_cuda.hpp"

extern "C" {

struct FakeProgram {
  std::string source;
  std::string name;
  std::string log;
  std::string binary;
};

int nvrtcVersion(int* major, int* minor) {
  const char* text = getenv("FAKE_NVRTC");
  const long version = text == nullptr ? 13000 : strtol(text, nullptr, 10);
  *major = static_cast<int>(version / 1000);
  *minor = static_cast<int>(version % 1000 / 10);
  return 0;
}
const char* nvrtcGetErrorString(int code) { return code == 0 ? "success" : "compilation failed"; }
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return 0;
}
int nvrtcGetSupportedArchs(int* all) {
  all[0] = 75;
  all[1] = 80;
  all[2] = 90;
  return 0;
}
int nvrtcCreateProgram(FakeProgram** program, const char* source, const char* name, int, const char* const*,
                       const char* const*) {
  *program = new FakeProgram{source, name, {}, {}};
  return 0;
}
int nvrtcDestroyProgram(FakeProgram** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

static std::string all_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

int nvrtcCompileProgram(FakeProgram* program, int, const char* const*) {
  char folder_name[] = "/tmp/fake-nvrtc-XXXXXX";
  if (mkdtemp(folder_name) == nullptr) return 1;
  const std::string folder = folder_name;
  std::ofstream(folder + "/in.cpp") << "#include \"" FAKE_CUDA_FOLDER "/cuda_on_host.h\"\n" << program->source;
  const auto compile = [&](const std::string& options) {
    const std::string command = std::string(FAKE_CUDA_COMPILER " -std=c++20 -w ") + options + " 2>>" + folder + "/log";
    return system(command.c_str());
  };
  // Twice: first without its macros, to see which kernels there are, then to compile it.
  int code = compile("-E -P -D__global__=FAKE_GLOBAL " + folder + "/in.cpp -o " + folder + "/plain.cpp");
  std::string kernels;
  if (code == 0) {
    const std::string plain = all_of(folder + "/plain.cpp");
    const std::regex kernel(R"(FAKE_GLOBAL\s+void\s+(\w+)\s*\()");
    for (auto at = std::sregex_iterator(plain.begin(), plain.end(), kernel); at != std::sregex_iterator(); ++at)
      kernels += "FAKE_KERNEL(" + (*at)[1].str() + ")\n";
    std::ofstream(folder + "/in.cpp", std::ios::app) << "\n" << kernels;
    code = compile("-O1 -shared -fPIC -ffp-contract=off -D__global__= " + folder + "/in.cpp -o " + folder + "/out.so");
  }
  program->log = all_of(folder + "/log");
  if (code == 0) {
    const std::string library = all_of(folder + "/out.so");
    program->binary = fake_image_head + std::to_string(library.size()) + "\n" + library;
  }
  for (const char* file : {"/in.cpp", "/plain.cpp", "/log", "/out.so"}) unlink((folder + file).c_str());
  rmdir(folder.c_str());
  return code == 0 ? 0 : 6;
}
int nvrtcGetProgramLogSize(FakeProgram* program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(FakeProgram* program, char* to) {
  memcpy(to, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(FakeProgram* program, std::size_t* bytes) {
  *bytes = program->binary.size();
  return 0;
}
int nvrtcGetCUBIN(FakeProgram* program, char* to) {
  memcpy(to, program->binary.data(), program->binary.size());
  return 0;
}
int nvrtcGetPTXSize(FakeProgram* program, std::size_t* bytes) { return nvrtcGetCUBINSize(program, bytes); }
int nvrtcGetPTX(FakeProgram* program, char* to) { return nvrtcGetCUBIN(program, to); }
}
