// The features of this processor that its operating system enables.
#pragma once

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdint.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static inline uint32_t kept_registers() {  // those that are kept when another program has its turn
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static inline bool has_all(uint32_t found, uint32_t wanted) { return (found & wanted) == wanted; }

static inline bool has_avx2() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
  if (!has_all(c, 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29)) return false;  // FMA, OSXSAVE, AVX, F16C
  if (!has_all(kept_registers(), 6)) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && has_all(b, 1u << 5);
}

static inline bool has_avx512() {  // F, DQ, BW, VL and VNNI
  uint32_t a, b, c, d;
  if (!has_avx2() || !has_all(kept_registers(), 0xe6)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return has_all(b, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) && has_all(c, 1u << 11);
}

// AMX for whole numbers. Linux keeps tiles for those alone who ask for them: once for all threads.
static inline bool has_amx() {
#if defined(__linux__)
  uint32_t a, b, c, d;
  if (!has_avx512() || !has_all(kept_registers(), 3u << 17)) return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(d, 1u << 24 | 1u << 25)) return false;
  enum { ASK_FOR_REGISTERS = 0x1023, OF_TILES = 18 };
  return syscall(SYS_arch_prctl, ASK_FOR_REGISTERS, OF_TILES) == 0;
#else
  return false;
#endif
}

#elif defined(__aarch64__) && defined(__APPLE__)

#include <sys/sysctl.h>

static inline bool has_feature(const char* name) {
  int found = 0;
  size_t size = sizeof found;
  return sysctlbyname(name, &found, &size, nullptr, 0) == 0 && found;
}
static inline bool has_dotprod() { return has_feature("hw.optional.arm.FEAT_DotProd"); }
static inline bool has_i8mm() { return has_dotprod() && has_feature("hw.optional.arm.FEAT_I8MM"); }

#elif defined(__aarch64__) && defined(__linux__)

#include <sys/auxv.h>

static inline bool has_dotprod() { return getauxval(AT_HWCAP) & 1ul << 20; }
static inline bool has_i8mm() { return has_dotprod() && getauxval(AT_HWCAP2) & 1ul << 13; }

#elif defined(__aarch64__)

static inline bool has_dotprod() { return false; }
static inline bool has_i8mm() { return false; }

#endif
