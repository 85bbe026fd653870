// SPDX-License-Identifier: MIT
/// \file A test double of NVIDIA's driver: streams are threads that begin each command
/// after a random while (FAKE_CUDA_SEED), memory is really copied, and kernels run: fake_cuda_nvrtc.cpp compiles the
/// text, with the real prelude for CUDA, by the host's compiler.
///
/// It also keeps the books: by vector clocks it knows which commands are ordered by streams, events and waits of the
/// host, and reports every two that use the same memory without being ordered, whatever the delays happened to be.
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fake_cuda.hpp"

namespace {

constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int out_of_memory = 2;
constexpr int invalid_image = 200;
constexpr int invalid_context = 201;
constexpr int not_found = 500;
constexpr int not_ready = 600;

using Clock = std::map<int, std::uint64_t>;  // stream -> how many of its commands are known to be over

void merge(Clock& to, const Clock& from) {
  for (const auto& [stream, tick] : from) to[stream] = std::max(to[stream], tick);
}

struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t completed = 0;
  std::chrono::steady_clock::time_point when;
  Clock clock;
};

/// A use of device memory by a command.
struct Access {
  std::uint64_t begin;
  std::uint64_t end;
  bool writes;
  int stream;
  std::uint64_t tick;
  std::string what;
};

struct Allocation {
  std::uint64_t bytes = 0;
  std::vector<Access> accesses;
};

struct Stream {
  explicit Stream(int number, unsigned seed) : id(number), random(seed * 7919U + static_cast<unsigned>(number)) {
    thread = std::thread([this] { serve(); });
  }
  ~Stream() {
    {
      const std::scoped_lock lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }
  void put(std::function<void()> command) {
    {
      const std::scoped_lock lock(mutex);
      commands.push_back(std::move(command));
    }
    changed.notify_all();
  }
  void drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return commands.empty() && !busy; });
  }
  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return stopping || !commands.empty(); });
      if (commands.empty()) return;
      const std::function<void()> command = std::move(commands.front());
      commands.pop_front();
      busy = true;
      lock.unlock();
      // Mostly nothing, now and then long enough for everything else to overtake.
      if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
      command();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  int id;
  std::mt19937 random;
  Clock clock;  // guarded by the state's mutex
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> commands;
  bool stopping = false;
  bool busy = false;
  std::thread thread;
};

struct Module {
  void* library = nullptr;  // null: a program for a real GPU, which does nothing here
  std::mutex running;       // kernels of a module share their __shared__ arrays
  std::map<std::string, std::unique_ptr<struct Function>> functions;
};

struct Function {
  Module* module = nullptr;
  std::string name;
  int (*run)(void**, unsigned, unsigned, unsigned, unsigned) = nullptr;
  std::string kinds;  // see cuda_on_host::kinds
};

/// Everything that is known, under one lock: the double is for order, not for speed.
struct State {
  std::mutex mutex;
  int next_stream = 1;
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<std::uint64_t, Allocation> memory;  // by address
  std::uint64_t used = 0;
  Clock host;  // what the host knows to be over
  std::vector<std::string> faults;
  std::uint64_t waits = 0;
  std::int64_t dropped = -1;  // the wait that is forgotten, counted from 0
  std::uint64_t launches = 0;
};

State& state() {
  static State* all = new State;  // streams may outlive statics
  return *all;
}

thread_local std::vector<void*> contexts;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : strtoull(text, nullptr, 10);
}

bool current() { return !contexts.empty(); }

/// Notes that a command of a stream uses memory; a fault when it is not ordered with another use. State locked.
void use(State& s, Stream& stream, std::uint64_t begin, std::uint64_t bytes, bool writes, const std::string& what) {
  auto at = s.memory.upper_bound(begin);
  if (at == s.memory.begin() || bytes == 0) {
    if (bytes != 0) s.faults.push_back(what + ": no device memory");
    return;
  }
  --at;
  if (begin + bytes > at->first + at->second.bytes) {
    s.faults.push_back(what + ": beyond its device memory");
    return;
  }
  const Access now = {begin, begin + bytes, writes, stream.id, stream.clock[stream.id], what};
  auto& before = at->second.accesses;
  for (const Access& a : before) {
    if (a.end <= now.begin || now.end <= a.begin || (!a.writes && !writes)) continue;
    if (a.tick > stream.clock[a.stream])
      s.faults.push_back(a.what + " and " + what + " use the same memory in any order");
  }
  // Whatever is ordered before a write over all of it cannot be in a race that the write is not in.
  if (writes)
    std::erase_if(before, [&](const Access& a) {
      return a.begin >= now.begin && a.end <= now.end && a.tick <= stream.clock[a.stream];
    });
  before.push_back(now);
}

/// Begins a command: it comes after what the host knows and after the stream's commands before. State locked.
void begin_command(State& s, Stream& stream) {
  merge(stream.clock, s.host);
  ++stream.clock[stream.id];
}

std::string name_of(const Stream& stream, const char* what) {
  return std::string(what) + " of stream " + std::to_string(stream.id) + " (command " +
         std::to_string(stream.clock.at(stream.id)) + ")";
}

}  // namespace

struct EventObject {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

extern "C" {

int cuInit(unsigned) { return number_of("FAKE_CUDA_INIT", success) == 0 ? success : 100; }
int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(number_of("FAKE_CUDA_DRIVER", 13000));
  return success;
}
int cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> names = {
      {0, "CUDA_SUCCESS"},           {1, "CUDA_ERROR_INVALID_VALUE"},   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"}, {200, "CUDA_ERROR_INVALID_IMAGE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {500, "CUDA_ERROR_NOT_FOUND"}, {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  const auto found = names.find(code);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? invalid_value : success;
}
int cuGetErrorString(int, const char** words) {
  *words = "as the test double says";
  return success;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(number_of("FAKE_CUDA_DEVICES", 1));
  return success;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return success;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  snprintf(name, static_cast<std::size_t>(bytes), "Test Double %d", device);
  return success;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = number_of("FAKE_CUDA_MEMORY", 1U << 28U);
  return success;
}
int cuDeviceGetAttribute(int* value, int what, int device) {
  const auto architecture = static_cast<int>(number_of("FAKE_CUDA_ARCHITECTURE", 90));
  *value = what == 16 ? 8 : what == 75 ? architecture / 10 : what == 76 ? architecture % 10 : 0;
  const auto bus = static_cast<int>(number_of("FAKE_CUDA_BUS", 0));
  if (what == 33 && bus != 0) *value = bus + device;
  return success;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
  return success;
}
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuCtxPushCurrent_v2(void* context) {
  contexts.push_back(context);
  return success;
}
int cuCtxPopCurrent_v2(void** context) {
  if (!current()) return invalid_context;
  *context = contexts.back();
  contexts.pop_back();
  return success;
}

int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  if (!current()) return invalid_context;
  const std::scoped_lock lock(state().mutex);
  (void)cuDeviceTotalMem_v2(total, 0);
  *free = *total - std::min<std::uint64_t>(*total, state().used);
  return success;
}
int cuMemAlloc_v2(std::uint64_t* pointer, std::size_t bytes) {
  if (!current()) return invalid_context;
  if (bytes == 0) return invalid_value;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  if (s.used + bytes > number_of("FAKE_CUDA_MEMORY", 1U << 28U)) return out_of_memory;
  void* room = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (room == nullptr) return out_of_memory;
  memset(room, 0xCD, bytes);  // whoever reads what nobody wrote shall notice
  *pointer = reinterpret_cast<std::uintptr_t>(room);
  s.used += bytes;
  s.memory[*pointer] = {bytes, {}};
  return success;
}
int cuCtxSynchronize() {
  if (!current()) return invalid_context;
  State& s = state();
  std::vector<Stream*> all;
  {
    const std::scoped_lock lock(s.mutex);
    for (const auto& [stream, owned] : s.streams) all.push_back(stream);
  }
  for (Stream* stream : all) stream->drain();
  const std::scoped_lock lock(s.mutex);
  for (const auto& [stream, owned] : s.streams) merge(s.host, stream->clock);
  return success;
}
int cuMemFree_v2(std::uint64_t pointer) {
  if (cuCtxSynchronize() != success) return invalid_context;  // as the real one does
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  const auto at = s.memory.find(pointer);
  if (at == s.memory.end()) return invalid_value;
  s.used -= at->second.bytes;
  s.memory.erase(at);
  free(reinterpret_cast<void*>(pointer));
  return success;
}
int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  if (!current()) return invalid_context;
  *pointer = malloc(bytes);
  return *pointer == nullptr ? out_of_memory : success;
}
int cuMemFreeHost(void* pointer) {
  free(pointer);
  return current() ? success : invalid_context;
}

int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, Stream* stream) {
  if (!current()) return invalid_context;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  begin_command(s, *stream);
  use(s, *stream, to, bytes, true, name_of(*stream, "copy in"));
  stream->put([=] { memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return success;
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, Stream* stream) {
  if (!current()) return invalid_context;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  begin_command(s, *stream);
  use(s, *stream, from, bytes, false, name_of(*stream, "copy out"));
  stream->put([=] { memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  return success;
}
int cuMemsetD8Async(std::uint64_t to, unsigned char value, std::size_t bytes, Stream* stream) {
  if (!current()) return invalid_context;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  begin_command(s, *stream);
  use(s, *stream, to, bytes, true, name_of(*stream, "clear"));
  stream->put([=] { memset(reinterpret_cast<void*>(to), value, bytes); });
  return success;
}

int cuStreamCreate(Stream** stream, unsigned) {
  if (!current()) return invalid_context;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  auto made = std::make_unique<Stream>(s.next_stream++, static_cast<unsigned>(number_of("FAKE_CUDA_SEED", 1)));
  *stream = made.get();
  s.streams[*stream] = std::move(made);
  return success;
}
int cuStreamDestroy_v2(Stream* stream) {
  if (!current()) return invalid_context;
  State& s = state();
  std::unique_ptr<Stream> owned;
  {
    const std::scoped_lock lock(s.mutex);
    owned = std::move(s.streams.at(stream));
    s.streams.erase(stream);
  }
  return success;  // the destructor lets it end
}
int cuStreamSynchronize(Stream* stream) {
  if (!current()) return invalid_context;
  stream->drain();
  const std::scoped_lock lock(state().mutex);
  merge(state().host, stream->clock);
  return success;
}

int cuEventCreate(EventObject** event, unsigned) {
  if (!current()) return invalid_context;
  *event = new EventObject;
  return success;
}
int cuEventDestroy_v2(EventObject* event) {
  delete event;
  return current() ? success : invalid_context;
}
int cuEventRecord(EventObject* event, Stream* stream) {
  if (!current()) return invalid_context;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  begin_command(s, *stream);
  std::uint64_t generation = 0;
  {
    const std::scoped_lock inner(event->state->mutex);
    generation = ++event->state->recorded;
    event->state->clock = stream->clock;
  }
  stream->put([generation, e = event->state] {
    const std::scoped_lock inner(e->mutex);
    e->completed = generation;
    e->when = std::chrono::steady_clock::now();
    e->changed.notify_all();
  });
  return success;
}
int cuStreamWaitEvent(Stream* stream, EventObject* event, unsigned) {
  if (!current()) return invalid_context;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  if (static_cast<std::int64_t>(s.waits++) == s.dropped) return success;
  std::uint64_t generation = 0;
  {
    const std::scoped_lock inner(event->state->mutex);
    generation = event->state->recorded;
    merge(stream->clock, event->state->clock);
  }
  stream->put([generation, e = event->state] {
    std::unique_lock inner(e->mutex);
    e->changed.wait(inner, [&] { return e->completed >= generation; });
  });
  return success;
}
int cuEventSynchronize(EventObject* event) {
  if (!current()) return invalid_context;
  Clock clock;
  {
    std::unique_lock inner(event->state->mutex);
    event->state->changed.wait(inner, [&] { return event->state->completed >= event->state->recorded; });
    clock = event->state->clock;
  }
  const std::scoped_lock lock(state().mutex);
  merge(state().host, clock);
  return success;
}
int cuEventElapsedTime(float* milliseconds, EventObject* from, EventObject* to) {
  if (!current()) return invalid_context;
  const auto when = [](EventObject* e, bool& over) {
    const std::scoped_lock inner(e->state->mutex);
    over = over && e->state->recorded != 0 && e->state->completed >= e->state->recorded;
    return e->state->when;
  };
  bool over = true;
  const auto a = when(from, over);
  const auto b = when(to, over);
  *milliseconds = std::chrono::duration<float, std::milli>(b - a).count();
  return over ? success : not_ready;
}

int cuModuleLoadDataEx(Module** module, const void* data, unsigned, int*, void**) {
  if (!current()) return invalid_context;
  const char* bytes = static_cast<const char*>(data);
  if (memcmp(bytes,
             "\x7f"
             "ELF",
             4) == 0) {
    std::uint16_t machine = 0;
    memcpy(&machine, bytes + 18, sizeof machine);
    if (machine != 190) return invalid_image;  // EM_CUDA
    *module = new Module;
    return success;
  }
  if (strncmp(bytes, fake_image_head, sizeof fake_image_head - 1) != 0) return invalid_image;
  char* begin = nullptr;
  const std::size_t length = strtoull(bytes + sizeof fake_image_head - 1, &begin, 10);
  char file[] = "/tmp/fake-cuda-module-XXXXXX";
  const int descriptor = mkstemp(file);
  const bool written = descriptor >= 0 && write(descriptor, begin + 1, length) == static_cast<ssize_t>(length);
  if (descriptor >= 0) close(descriptor);
  void* library = written ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(file);
  if (library == nullptr) return invalid_image;
  *module = new Module;
  (*module)->library = library;
  return success;
}
int cuModuleUnload(Module* module) {
  if (!current()) return invalid_context;
  if (module->library != nullptr) dlclose(module->library);
  delete module;
  return success;
}
int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  if (!current()) return invalid_context;
  const std::scoped_lock lock(state().mutex);
  auto& made = module->functions[name];
  if (!made) {
    auto f = std::make_unique<Function>();
    f->module = module;
    f->name = name;
    if (module->library != nullptr) {
      f->run = reinterpret_cast<decltype(f->run)>(dlsym(module->library, ("fake_run_" + f->name).c_str()));
      const auto kinds = reinterpret_cast<int (*)(char*)>(dlsym(module->library, ("fake_kinds_" + f->name).c_str()));
      if (f->run == nullptr || kinds == nullptr) {
        module->functions.erase(name);
        return not_found;
      }
      char text[64] = {};
      f->kinds.assign(text, static_cast<std::size_t>(kinds(text)));
    }
    made = std::move(f);
  }
  *function = made.get();
  return success;
}
int cuFuncGetAttribute(int* value, int what, Function*) {
  *value = what == 0 ? 1024 : what == 4 ? 32 : 0;
  return current() ? success : invalid_context;
}

int cuLaunchKernel(Function* function, unsigned groups_0, unsigned groups_1, unsigned groups_2, unsigned items_0,
                   unsigned items_1, unsigned items_2, unsigned, Stream* stream, void** values, void**) {
  if (!current()) return invalid_context;
  if (groups_0 * groups_1 * groups_2 == 0 || items_0 * items_1 * items_2 == 0 || items_0 * items_1 * items_2 > 1024)
    return invalid_value;
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  ++s.launches;
  begin_command(s, *stream);
  if (function->run == nullptr) {
    stream->put([] {});
    return success;
  }
  const std::string what = name_of(*stream, function->name.c_str());
  auto kept = std::make_shared<std::vector<std::uint64_t>>();  // pointers and numbers have at most 8 bytes
  for (std::size_t i = 0; i < function->kinds.size(); ++i) {
    std::uint64_t value = 0;
    memcpy(&value, values[i], function->kinds[i] == '4' ? 4 : 8);
    kept->push_back(value);
  }
  const auto is_pointer = [&](std::size_t i) { return function->kinds[i] == 'r' || function->kinds[i] == 'w'; };
  // A pointer is used from where it points to where the next one into the same memory does.
  for (std::size_t i = 0; i < kept->size(); ++i) {
    const std::uint64_t begin = (*kept)[i];
    if (!is_pointer(i) || begin == 0) continue;
    auto at = s.memory.upper_bound(begin);
    if (at == s.memory.begin()) {
      s.faults.push_back(what + ": no device memory");
      continue;
    }
    --at;
    std::uint64_t end = at->first + at->second.bytes;
    for (std::size_t j = 0; j < kept->size(); ++j)
      if (is_pointer(j) && (*kept)[j] > begin) end = std::min(end, (*kept)[j]);
    if (begin < end) use(s, *stream, begin, end - begin, function->kinds[i] == 'w', what);
  }
  stream->put([=] {
    std::vector<void*> pointers;
    for (std::uint64_t& v : *kept) pointers.push_back(&v);
    int torn = 0;
    {
      const std::scoped_lock one(function->module->running);
      torn = function->run(pointers.data(), groups_0, groups_1, items_0, items_1);
    }
    if (torn == 0) return;
    const std::scoped_lock inner(state().mutex);
    state().faults.push_back(what + ": work-items ended while others waited at a barrier");
  });
  return success;
}

// ---- what tests ask and say

void fake_cuda_reset(std::int64_t dropped_wait) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.faults.clear();
  s.waits = s.launches = 0;
  s.dropped = dropped_wait;
}
std::uint64_t fake_cuda_waits() {
  const std::scoped_lock lock(state().mutex);
  return state().waits;
}
std::uint64_t fake_cuda_launches() {
  const std::scoped_lock lock(state().mutex);
  return state().launches;
}
std::uint64_t fake_cuda_used_bytes() {
  const std::scoped_lock lock(state().mutex);
  return state().used;
}
const char* fake_cuda_fault(std::uint64_t number) {
  const std::scoped_lock lock(state().mutex);
  return number < state().faults.size() ? state().faults[number].c_str() : nullptr;
}
}
