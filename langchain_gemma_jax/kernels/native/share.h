// Work in parts, shared over XLA's own threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace {

inline void breathe() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Free threads take parts in order: the thread that XLA called, and threads of its pool. A late thread finds no part
// left, and the last thread with a reference to the work frees it.
template <class Part>
struct Shared {
  Shared(Part given, int64_t count) : part(given), parts(count) {}

  const Part part;
  const int64_t parts;
  std::atomic<int64_t> taken{0}, done{0};

  void take_parts() {
    for (int64_t index; (index = taken.fetch_add(1, std::memory_order_relaxed)) < parts;) {
      part(index);
      done.fetch_add(1, std::memory_order_release);
    }
  }
};

// Calls part(0), part(1), ... part(parts - 1), each once, by at most so many threads, and returns when all are done.
// What `part` refers to is looked at by those alone who took one: it can be the caller's own.
template <class Part>
void share(xla::ffi::ThreadPool* pool, int64_t threads, int64_t parts, const Part& part) {
  if (!pool || threads < 2 || parts < 2) {
    for (int64_t index = 0; index < parts; index++) part(index);
    return;
  }
  auto work = std::make_shared<Shared<Part>>(part, parts);
  const int64_t helpers = (threads < parts ? threads : parts) - 1;
  for (int64_t i = 0; i < helpers; i++) {
    pool->Schedule([work]() mutable { work->take_parts(); });
  }
  work->take_parts();
  // Whatever is left was taken by a thread that is at it now: nothing is waited for that has not begun.
  for (int64_t looks = 0; work->done.load(std::memory_order_acquire) < parts; looks++) {
    if (looks < 4096) breathe();
    else std::this_thread::yield();
  }
}

}  // namespace
