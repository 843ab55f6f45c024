// A few numbers at a time, in the widest registers of one instruction set. Each variant_*.cc includes this once.
//
//   V      W floats                     C32    32 whole numbers of eight bits
//
// Everything is static: the variants must never share a function, or one processor would run another one's instructions.
// For the same reason nothing of the standard library is used here.
#pragma once

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define INLINE_MEMBER inline __attribute__((always_inline))
#if defined(__clang__)
#define ONCE _Pragma("clang loop unroll(disable)")  // what follows is there once, however often it is gone through
#else
#define ONCE _Pragma("GCC unroll 1")
#endif

INLINE float f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

INLINE float f32_of_bf16(uint16_t bits) { return f32_of_bits((uint32_t)bits << 16); }

INLINE float f32_of_f16(uint16_t half) {  // exact: numbers too small for the usual form, infinities and NaN included
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
  if (rest >= 0x7c00) return f32_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  if (rest >= 0x0400) return f32_of_bits(sign | ((rest << 13) + 0x38000000));
  return f32_of_bits(sign | 0x33800000) * (float)rest;
}

INLINE uint16_t get16(const uint16_t* p) {  // wherever it lies
  uint16_t value;
  memcpy(&value, p, 2);
  return value;
}

typedef uint8_t U32 __attribute__((vector_size(32)));  // as GCC and Clang have it for every processor
typedef uint64_t Q4 __attribute__((vector_size(32)));

template <class T>
INLINE T get(const void* p) {
  T found;
  memcpy(&found, p, sizeof found);
  return found;
}

struct Up8 {  // up to eight numbers of sixteen bits, and zeros
  uint16_t number[8];
};

INLINE Up8 up_to_8(const uint16_t* p, int count) {
  Up8 found = {{0}};
  int at = 0;
  if (count & 4) memcpy(found.number, p, 8), at = 4;
  if (count & 2) memcpy(found.number + at, p + at, 4), at += 2;
  if (count & 1) memcpy(found.number + at, p + at, 2);
  return found;
}

#if defined(VARIANT_AVX2) || defined(VARIANT_AVX512)

#define IN_REGISTERS  // what codes come to is summed by instructions made for it

#include <immintrin.h>

typedef __m256i C32;
enum { ONE_PASS = 1 };  // several outputs at once, all of them in registers

#if defined(VARIANT_AVX512)

typedef __m512 V;
enum { W = 16 };
INLINE V zero() { return _mm512_setzero_ps(); }
INLINE V load(const float* p) { return _mm512_loadu_ps(p); }
INLINE void store(float* p, V v) { _mm512_storeu_ps(p, v); }
INLINE V all(float x) { return _mm512_set1_ps(x); }
INLINE V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
INLINE V mul(V a, V b) { return _mm512_mul_ps(a, b); }
INLINE V load_bf16(const uint16_t* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
}
INLINE V load_f16(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
INLINE V load_i8(const int8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p))); }
INLINE __m256 halves_of(V v) {
  return _mm256_add_ps(_mm512_castps512_ps256(v), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
}
template <int I>
INLINE V widen(C32 c) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(I == 0 ? _mm256_castsi256_si128(c) : _mm256_extracti128_si256(c, 1)));
}

#else

typedef __m256 V;
enum { W = 8 };
INLINE V zero() { return _mm256_setzero_ps(); }
INLINE V load(const float* p) { return _mm256_loadu_ps(p); }
INLINE void store(float* p, V v) { _mm256_storeu_ps(p, v); }
INLINE V all(float x) { return _mm256_set1_ps(x); }
INLINE V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
INLINE V mul(V a, V b) { return _mm256_mul_ps(a, b); }
INLINE V load_bf16(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
}
INLINE V load_f16(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }
INLINE V load_i8(const int8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p))); }
INLINE __m256 halves_of(V v) { return v; }
template <int I>
INLINE V widen(C32 c) {
  const __m128i half = I < 2 ? _mm256_castsi256_si128(c) : _mm256_extracti128_si256(c, 1);
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(I % 2 ? _mm_srli_si128(half, 8) : half));
}

#endif

INLINE float sum(V v) {
  const __m256 half = halves_of(v);
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
INLINE float one_f16(const uint16_t* p) { return _cvtsh_ss(get16(p)); }
INLINE void eight_f16(const uint16_t* p, float* out) {
  _mm256_storeu_ps(out, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)));
}
INLINE void eight_bf16(const uint16_t* p, float* out) {
  const __m128i bits = _mm_loadu_si128((const __m128i*)p);
  _mm256_storeu_si256((__m256i*)out, _mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
INLINE void u8_to_f32(const uint8_t* p, float times, float* out) {  // eight, each times a factor
  const __m128i eight = _mm_loadl_epi64((const __m128i*)p);
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight)), _mm256_set1_ps(times)));
}
INLINE void i8_to_f32(const int8_t* p, float times, float* out) {
  const __m128i eight = _mm_loadl_epi64((const __m128i*)p);
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)), _mm256_set1_ps(times)));
}
INLINE void i8_pairs_to_f32(const int8_t* p, float times, float* out) {  // eight first ones, then eight second ones
  const __m128i apart = _mm_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m128i both = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i*)p), apart);
  const __m256 factor = _mm256_set1_ps(times);
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(both)), factor));
  _mm256_storeu_ps(out + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(both, 8))), factor));
}
INLINE C32 load_codes(const int8_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
INLINE C32 nibbles_of_16(const uint8_t* p) {  // the lower halves of sixteen bytes, then the upper ones
  const __m128i t = _mm_loadu_si128((const __m128i*)p);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(t, 4), t), _mm256_set1_epi8(15));
}
template <int UPPER>
INLINE C32 nibbles_of_32(const uint8_t* p) {
  const __m256i t = _mm256_loadu_si256((const __m256i*)p);
  return _mm256_and_si256(UPPER ? _mm256_srli_epi16(t, 4) : t, _mm256_set1_epi8(15));
}
#if defined(VARIANT_AVX512)
INLINE C32 set_bits(uint32_t word) { return _mm256_movm_epi8(word); }
#else
INLINE C32 set_bits(uint32_t word) {  // all bits of number i, where bit i of the word is set
  const __m256i which = _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), which);
  const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ULL);
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
}
#endif
INLINE C32 looked_up(const int8_t* table, C32 nibbles) {  // in sixteen numbers
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)table)), nibbles);
}
template <int BIT>
INLINE C32 with_bit_of_bytes(C32 c, const uint8_t* p) {  // a bit of byte i is worth 16 in number i
  const __m256i t = _mm256_loadu_si256((const __m256i*)p);
  const __m256i moved = BIT < 4 ? _mm256_slli_epi16(t, 4 - BIT) : _mm256_srli_epi16(t, BIT - 4);
  return _mm256_or_si256(c, _mm256_and_si256(moved, _mm256_set1_epi8(16)));
}
template <int BIT>
INLINE C32 with_two_bits_of_bytes(C32 c, const uint8_t* p) {  // two bits of byte i, from BIT on, above four of number i
  const __m256i t = _mm256_loadu_si256((const __m256i*)p);
  const __m256i moved = BIT < 4 ? _mm256_slli_epi16(t, 4 - BIT) : _mm256_srli_epi16(t, BIT - 4);
  return _mm256_or_si256(c, _mm256_and_si256(moved, _mm256_set1_epi8(48)));
}
// Eight sums of whole numbers, for activations in eight bits.
typedef __m256 Eight;
typedef __m256i Whole;
INLINE Eight eight_all(float x) { return _mm256_set1_ps(x); }
INLINE Eight eight_load(const float* p) { return _mm256_loadu_ps(p); }
INLINE Eight eight_fma(Eight a, Eight b, Eight c) { return _mm256_fmadd_ps(a, b, c); }
INLINE Eight eight_of(Whole w) { return _mm256_cvtepi32_ps(w); }
INLINE float eight_sum(Eight v) {
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
#if defined(VARIANT_AVX512)
INLINE Whole dot_unsigned(C32 u, C32 x) { return _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, x); }
#else
INLINE Whole dot_unsigned(C32 u, C32 x) {  // lane i: the four numbers from 4 i on
  return _mm256_madd_epi16(_mm256_maddubs_epi16(u, x), _mm256_set1_epi16(1));
}
#endif
INLINE Whole dot_signed(C32 w, C32 x) { return dot_unsigned(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)); }
INLINE Eight eight_load_some(const float* p, int some) {  // and zeros; what is behind them is not read
  const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(some), lanes));
}
INLINE Eight eight_add(Eight a, Eight b) { return _mm256_add_ps(a, b); }
INLINE Eight eight_sub(Eight a, Eight b) { return _mm256_sub_ps(a, b); }
INLINE Eight eight_mul(Eight a, Eight b) { return _mm256_mul_ps(a, b); }
INLINE Whole no_whole() { return _mm256_setzero_si256(); }
INLINE Whole load_whole(const int32_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
INLINE void fours_of_eight(const Whole* d, Whole& low, Whole& high) {  // of dots 0 to 3, of 4 to 7: first halves, second ones
  low = _mm256_hadd_epi32(_mm256_hadd_epi32(d[0], d[1]), _mm256_hadd_epi32(d[2], d[3]));
  high = _mm256_hadd_epi32(_mm256_hadd_epi32(d[4], d[5]), _mm256_hadd_epi32(d[6], d[7]));
}
INLINE void halves_of_eight(const Whole* d, Whole& first, Whole& second) {  // lane b: what half of dot b comes to
  Whole low, high;
  fours_of_eight(d, low, high);
  first = _mm256_permute2x128_si256(low, high, 0x20), second = _mm256_permute2x128_si256(low, high, 0x31);
}
INLINE Whole totals_of_eight(const Whole* d) {  // lane b: what dot b comes to
  Whole first, second;
  halves_of_eight(d, first, second);
  return _mm256_add_epi32(first, second);
}
INLINE C32 four_of_row(const int8_t* p) {  // four numbers, eight times
  int four;
  memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}
#if !defined(VARIANT_AVX512)
typedef __m256i Pairs;  // sums of two products in sixteen bits, which have to fit
INLINE Pairs pairs_unsigned(C32 u, C32 x) { return _mm256_maddubs_epi16(u, x); }
INLINE Pairs pairs_signed(C32 w, C32 x) { return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)); }
INLINE Pairs add_pairs(Pairs a, Pairs b) { return _mm256_add_epi16(a, b); }
INLINE Whole whole_of(Pairs p) { return _mm256_madd_epi16(p, _mm256_set1_epi16(1)); }
#endif
INLINE Whole add_whole(Whole a, Whole b) { return _mm256_add_epi32(a, b); }
INLINE void turn_fours(C32* v) {  // eight registers of eight fours: four k of register r becomes four r of register k
  C32 a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]), a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; j++) {
      b[i + 2 * j] = _mm256_unpacklo_epi64(a[i + j], a[i + j + 2]);
      b[i + 2 * j + 1] = _mm256_unpackhi_epi64(a[i + j], a[i + j + 2]);
    }
  }
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x20), v[i + 4] = _mm256_permute2x128_si256(b[i], b[i + 4], 0x31);
  }
}
INLINE void fetch(const void* p) { _mm_prefetch((const char*)p, _MM_HINT_T0); }

#elif defined(VARIANT_NEON)

#define IN_REGISTERS
#include "simd_neon.h"

#else  // any processor: vectors as GCC and Clang have them everywhere, made of whatever registers there are

#pragma GCC diagnostic ignored "-Wpsabi"  // of how they are handed to functions: all of these are inlined
enum { ONE_PASS = 0, W = 8 };
typedef float V __attribute__((vector_size(32)));
typedef int8_t C32 __attribute__((vector_size(32)));
typedef uint8_t U16 __attribute__((vector_size(16)));
typedef int32_t Whole __attribute__((vector_size(32)));
typedef int8_t C8 __attribute__((vector_size(8)));
typedef uint8_t U8 __attribute__((vector_size(8)));
typedef uint32_t Bits __attribute__((vector_size(32)));
INLINE V zero() { return V{}; }
INLINE V load(const float* p) { return get<V>(p); }
INLINE void store(float* p, const V& v) { memcpy(p, &v, sizeof v); }
INLINE V all(float x) { return V{} + x; }
INLINE V fma(V a, V b, V c) { return a * b + c; }
INLINE V mul(V a, V b) { return a * b; }
INLINE V load_bf16(const uint16_t* p) {
  Bits bits;
  for (int i = 0; i < W; i++) bits[i] = (uint32_t)get16(p + i) << 16;
  return (V)bits;
}
INLINE V load_f16(const uint16_t* p) {
  V r;
  for (int i = 0; i < W; i++) r[i] = f32_of_f16(get16(p + i));
  return r;
}
typedef int16_t S8 __attribute__((vector_size(16)));
INLINE V floats_of(const void* p) {  // eight codes; in steps that compilers know instructions for
  return __builtin_convertvector(__builtin_convertvector(__builtin_convertvector(get<C8>(p), S8), Whole), V);
}
INLINE V load_i8(const int8_t* p) { return floats_of(p); }
template <int I>
INLINE V widen(C32 c) { return floats_of((const char*)&c + 8 * I); }
INLINE float sum(V v) {
  const float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7];
  return (a + c) + (b + d);
}
INLINE float one_f16(const uint16_t* p) { return f32_of_f16(get16(p)); }
INLINE void eight_f16(const uint16_t* p, float* out) {
  for (int i = 0; i < 8; i++) out[i] = f32_of_f16(get16(p + i));
}
INLINE void eight_bf16(const uint16_t* p, float* out) {
  for (int i = 0; i < 8; i++) out[i] = f32_of_bf16(get16(p + i));
}
INLINE void u8_to_f32(const uint8_t* p, float times, float* out) { store(out, __builtin_convertvector(get<U8>(p), V) * times); }
INLINE void i8_to_f32(const int8_t* p, float times, float* out) { store(out, floats_of(p) * times); }
INLINE void i8_pairs_to_f32(const int8_t* p, float times, float* out) {
  for (int i = 0; i < 8; i++) out[i] = (float)p[2 * i] * times, out[8 + i] = (float)p[2 * i + 1] * times;
}
INLINE C32 load_codes(const int8_t* p) { return get<C32>(p); }
INLINE C32 nibbles_of_16(const uint8_t* p) {
  const U16 t = get<U16>(p), halves[2] = {t & 15, t >> 4};
  return get<C32>(halves);
}
template <int UPPER>
INLINE C32 nibbles_of_32(const uint8_t* p) { return (C32)(UPPER ? get<U32>(p) >> 4 : get<U32>(p) & 15); }
INLINE C32 set_bits(uint32_t word) {
  const uint64_t each = 0x0101010101010101ULL;
  const Q4 bytes = {(word & 255) * each, (word >> 8 & 255) * each, (word >> 16 & 255) * each, (word >> 24) * each};
  return (C32)(((U32)(bytes & 0x8040201008040201ULL)) != 0);
}
INLINE C32 looked_up(const int8_t* table, C32 nibbles) {
  C32 found;
  for (int i = 0; i < 32; i++) found[i] = table[nibbles[i]];
  return found;
}
template <int BIT>
INLINE C32 with_bit_of_bytes(C32 c, const uint8_t* p) { return c | (C32)((get<U32>(p) >> BIT & 1) << 4); }
template <int BIT>
INLINE C32 with_two_bits_of_bytes(C32 c, const uint8_t* p) { return c | (C32)((get<U32>(p) >> BIT & 3) << 4); }
typedef V Eight;
typedef int16_t Pairs __attribute__((vector_size(32)));
INLINE Eight eight_all(float x) { return all(x); }
INLINE Eight eight_load(const float* p) { return load(p); }
INLINE Eight eight_fma(Eight a, Eight b, Eight c) { return fma(a, b, c); }
INLINE Eight eight_of(Whole w) { return __builtin_convertvector(w, V); }
INLINE float eight_sum(Eight v) { return sum(v); }
INLINE Whole dot_signed(C32 w, C32 x) {  // two products of such codes are a number of sixteen bits: 2 * 128 * 127
  const Pairs a = (Pairs)w, b = (Pairs)x;
  const Whole found = (Whole)((a << 8 >> 8) * (b << 8 >> 8) + (a >> 8) * (b >> 8));
  return (found << 16 >> 16) + (found >> 16);
}
INLINE void halves_of_eight(const Whole* d, Whole& first, Whole& second) {  // lane b: what half of dot b comes to
  for (int b = 0; b < 8; b++) {
    first[b] = d[b][0] + d[b][1] + d[b][2] + d[b][3], second[b] = d[b][4] + d[b][5] + d[b][6] + d[b][7];
  }
}
INLINE Whole totals_of_eight(const Whole* d) {  // lane b: what dot b comes to
  Whole first, second;
  halves_of_eight(d, first, second);
  return first + second;
}
INLINE void fetch(const void* p) { __builtin_prefetch(p); }

#endif

// ---- made of these, or of what compilers have for every processor

INLINE C32 codes_of(U32 bytes) { return get<C32>(&bytes); }
INLINE U32 bytes_of(C32 codes) { return get<U32>(&codes); }
INLINE C32 codes_of(Q4 eights) { return get<C32>(&eights); }
INLINE C32 with_bits_of_word(C32 c, uint32_t word) {  // bit i of the word is worth 16 in number i
  return codes_of(bytes_of(c) | (bytes_of(set_bits(word)) & 16));
}
INLINE C32 with_signs(C32 c, uint32_t word) {  // minus number i, where bit i of the word is set
  const U32 minus = bytes_of(set_bits(word));
  return codes_of((bytes_of(c) ^ minus) - minus);
}
template <int MIDDLE>
INLINE C32 minus(C32 c) { return codes_of(bytes_of(c) - (uint8_t)MIDDLE); }

namespace {  // each variant's own, as all of this is: how numbers of a dense array become floats

struct OfF32 {
  typedef float T;
  INLINE V get(const T* p) { return load(p); }
};
struct OfF16 {
  typedef uint16_t T;
  INLINE V get(const T* p) { return load_f16(p); }
};
struct OfBF16 {
  typedef uint16_t T;
  INLINE V get(const T* p) { return load_bf16(p); }
};

}  // namespace
