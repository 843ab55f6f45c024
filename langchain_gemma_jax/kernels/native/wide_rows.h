// The whole numbers of rounded.h for one row or two, by registers of 64 codes: what a token's step spends its time on.
//
// A register holds two runs of 32 codes, or the nibbles of four. Lanes of four numbers are added once for eight runs.
// All of it is exact, so these are the numbers that 32 codes at a time come to.
//
// Two things are made ready for a row, once for all outputs: its codes, in the order in which they are multiplied; and
// what its blocks come to, where a weight's code is multiplied without its sign and with more than it is.
#pragma once

#include "products.h"

namespace {

// A row made ready; nothing for other instruction sets.
struct WideRow {
  const int8_t* codes;
  const int32_t *firsts, *seconds;  // [block]: the sum of the codes of each half
};

template <class F>
struct Wide {
  enum { IS = 0 };
};

#if defined(IN_REGISTERS)

// Whole numbers that eight runs come to; where halves have scales of their own, those of the halves.
struct Halves {
  Whole first, second;
};

#endif

#if defined(VARIANT_AVX512)

enum RowOrder {
  AS_THEY_ARE,
  BY_HALVES,  // of four blocks, all first halves, then all second ones
  BY_PAIRS,   // of four blocks 0, 2, 1, 3
};

INLINE __m512i codes_at(const void* p) { return _mm512_loadu_si512(p); }

// The first `bytes` of 64, or all if there are more, and zeros: what is behind them is not read.
template <bool ALL>
INLINE __m512i codes_up_to(const void* p, int bytes) {
  if (ALL || bytes >= 64) return codes_at(p);
  return bytes <= 0 ? _mm512_setzero_si512() : _mm512_maskz_loadu_epi8(~0ULL >> (64 - bytes), p);
}
template <bool ALL>
INLINE __m128i words_up_to(const void* p, int words) {
  if (ALL || words >= 4) return _mm_loadu_si128((const __m128i*)p);
  return words <= 0 ? _mm_setzero_si128() : _mm_maskz_loadu_epi32((__mmask8)((1 << words) - 1), p);
}
INLINE __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
INLINE __m512i high_nibbles(__m512i v) { return low_nibbles(_mm512_srli_epi16(v, 4)); }
INLINE __m512i dots_of(__m512i before, __m512i codes, const int8_t* x) {
  return _mm512_dpbusd_epi32(before, codes, codes_at(x));
}

// Eight sums of lanes of four: those of `a`, and then those of `b`, each in the order of a run's number.
template <int LYING>
INLINE Whole sums_of_lanes(__m512i a, __m512i b) {
  const __m512i pairs = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m512i whole = _mm512_add_epi32(pairs, _mm512_shuffle_epi32(pairs, (_MM_PERM_ENUM)0x4e));
  const __m512i order = LYING == BY_PAIRS ? _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 5, 9, 1, 12, 4, 8, 0)
                                          : _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 13, 9, 5, 1, 12, 8, 4, 0);
  return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, whole));
}

// Of four registers with two runs each: the sums of first halves, and of second ones.
template <int LYING>
INLINE Halves halves_of(const __m512i* two) {
  const __m512i first[2] = {_mm512_shuffle_i32x4(two[0], two[1], 0x88), _mm512_shuffle_i32x4(two[2], two[3], 0x88)};
  const __m512i second[2] = {_mm512_shuffle_i32x4(two[0], two[1], 0xdd), _mm512_shuffle_i32x4(two[2], two[3], 0xdd)};
  return {sums_of_lanes<LYING>(first[0], first[1]), sums_of_lanes<LYING>(second[0], second[1])};
}

template <int LYING>
INLINE Whole totals_of(const __m512i* two) {
  __m512i both[2];
  for (int i = 0; i < 2; i++) {
    both[i] = _mm512_add_epi32(_mm512_shuffle_i32x4(two[2 * i], two[2 * i + 1], 0x88),
                               _mm512_shuffle_i32x4(two[2 * i], two[2 * i + 1], 0xdd));
  }
  return sums_of_lanes<LYING>(both[0], both[1]);
}

// ---- formats

// Whole bytes are not among them: eight of them a number are as fast as memory gives them, by registers of 32.

// Sixteen bytes a run: nibbles, with the fifth bits in a word if there are such.
template <int CODES, int WORDS>
struct WideNibbles {
  enum { IS = 1, LYING = BY_HALVES };
  template <bool ALL>
  INLINE Halves dots(const Runs& runs, int some, const WideRow& row, int64_t) {
    __m512i four[2];
    for (int i = 0; i < 2; i++) {
      const int left = some - 4 * i;
      const __m512i bytes = codes_up_to<ALL>(part<CODES, uint8_t>(runs, 16, runs.at + 4 * i), 16 * left);
      __m512i low = low_nibbles(bytes), high = high_nibbles(bytes);
      if constexpr (WORDS) {
        const __m128i words = words_up_to<ALL>(part<WORDS, uint8_t>(runs, 4, runs.at + 4 * i), left);
        const __m128i halves = _mm_set_epi8(15, 14, 11, 10, 7, 6, 3, 2, 13, 12, 9, 8, 5, 4, 1, 0);
        const __m128i apart = _mm_shuffle_epi8(words, halves);
        const __m512i fifth = _mm512_set1_epi8(16);
        low = _mm512_mask_add_epi8(low, (__mmask64)_mm_cvtsi128_si64(apart), low, fifth);
        high = _mm512_mask_add_epi8(high, (__mmask64)_mm_extract_epi64(apart, 1), high, fifth);
      }
      const int8_t* x = row.codes + 128 * i;
      four[i] = dots_of(dots_of(_mm512_setzero_si512(), low, x), high, x + 64);
    }
    return {sums_of_lanes<LYING>(four[0], four[1]), no_whole()};
  }
};

template <>
struct Wide<OfQ4_0> : WideNibbles<1, 0> {};
template <>
struct Wide<OfINT4> : WideNibbles<1, 0> {};
template <>
struct Wide<OfQ4_1> : WideNibbles<2, 0> {};
template <>
struct Wide<OfQ5_0> : WideNibbles<2, 1> {};
template <>
struct Wide<OfQ5_1> : WideNibbles<3, 2> {};

// 32 bytes two runs, of blocks of 256: the lower nibbles are the first one, the upper ones the second. Fifth bits lie by
// runs, in 32 bytes of their own.
template <int CODES, int FIFTHS>
struct WideRuns {
  enum { IS = 1, LYING = BY_PAIRS };
  template <bool>
  INLINE Halves dots(const Runs& runs, int, const WideRow& row, int64_t) {
    const uint8_t* from = part<CODES, uint8_t>(runs, 128, runs.super);
    __m512i two[4];
    for (int i = 0; i < 2; i++) {
      const __m512i bytes = codes_at(from + 64 * i);
      __m512i low = low_nibbles(bytes), high = high_nibbles(bytes);
      if constexpr (FIFTHS) {
        const __m256i each = _mm256_loadu_si256((const __m256i*)part<FIFTHS, uint8_t>(runs, 32, runs.super));
        const __m512i bits = _mm512_broadcast_i64x4(each), fifth = _mm512_set1_epi8(16);
        low = _mm512_mask_add_epi8(low, _mm512_test_epi8_mask(bits, bit_of_runs(4 * i, 4 * i + 2)), low, fifth);
        high = _mm512_mask_add_epi8(high, _mm512_test_epi8_mask(bits, bit_of_runs(4 * i + 1, 4 * i + 3)), high, fifth);
      }
      const int8_t* x = row.codes + 128 * i;
      two[2 * i] = dots_of(_mm512_setzero_si512(), low, x);
      two[2 * i + 1] = dots_of(_mm512_setzero_si512(), high, x + 64);
    }
    return {totals_of<LYING>(two), no_whole()};
  }
  INLINE __m512i bit_of_runs(int one, int other) {
    const __m256i lower = _mm256_set1_epi8((char)(1 << one)), upper = _mm256_set1_epi8((char)(1 << other));
    return _mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1);
  }
};

// 64 bytes four runs, the upper nibbles the later two, and two more bits of each in 32 bytes of their own: 32 more than
// a code has no sign.
template <>
struct Wide<OfQ6_K> {
  enum { IS = 1, LYING = AS_THEY_ARE };
  template <bool>
  INLINE Halves dots(const Runs& runs, int, const WideRow& row, int64_t at) {
    const uint8_t *from = part<3, uint8_t>(runs, 128, runs.super), *upper = part<2, uint8_t>(runs, 64, runs.super);
    const __m512i those = _mm512_set1_epi8(48);
    __m512i two[4];
    for (int i = 0; i < 2; i++) {
      const __m512i bytes = codes_at(from + 64 * i);
      const __m512i bits = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i*)(upper + 32 * i)));
      const __m512i first = _mm512_sllv_epi64(bits, _mm512_set_epi64(2, 2, 2, 2, 4, 4, 4, 4));
      const __m512i later = _mm512_srlv_epi64(bits, _mm512_set_epi64(2, 2, 2, 2, 0, 0, 0, 0));
      const __m512i low = _mm512_or_si512(low_nibbles(bytes), _mm512_and_si512(first, those));
      const __m512i high = _mm512_or_si512(high_nibbles(bytes), _mm512_and_si512(later, those));
      two[2 * i] = dots_of(_mm512_setzero_si512(), low, row.codes + 128 * i);
      two[2 * i + 1] = dots_of(_mm512_setzero_si512(), high, row.codes + 128 * i + 64);
    }
    const Halves found = halves_of<LYING>(two);
    return {_mm256_sub_epi32(found.first, _mm256_slli_epi32(load_whole(row.firsts + at), 5)),
            _mm256_sub_epi32(found.second, _mm256_slli_epi32(load_whole(row.seconds + at), 5))};
  }
};

template <>
struct Wide<OfQ4_K> : WideRuns<4, 0> {};
template <>
struct Wide<OfQ5_K> : WideRuns<5, 4> {};

// ---- rows

template <int LYING>
INLINE void lay_out(const int8_t* codes, int64_t count, int8_t* to) {
  for (int64_t at = 0; at < (count + 7) / 8 * 8; at += 4) {
    const int bytes = (int)(count - at) * 32;
    const __m512i one = codes_up_to<false>(codes + 32 * at, bytes), other = codes_up_to<false>(codes + 32 * at + 64, bytes - 64);
    const __m512i low = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0), high = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
    __m512i first = one, second = other;
    if (LYING == BY_HALVES) {
      first = _mm512_permutex2var_epi64(one, low, other), second = _mm512_permutex2var_epi64(one, high, other);
    } else if (LYING == BY_PAIRS) {
      first = _mm512_shuffle_i64x2(one, other, 0x44), second = _mm512_shuffle_i64x2(one, other, 0xee);
    }
    _mm512_storeu_si512(to + 32 * at, first);
    _mm512_storeu_si512(to + 32 * at + 64, second);
  }
}

INLINE void sum_halves(const int8_t* codes, int64_t count, int32_t* firsts, int32_t* seconds) {
  const __m512i ones = _mm512_set1_epi8(1);
  for (int64_t at = 0; at < count; at += 8) {
    __m512i two[4];
    for (int i = 0; i < 4; i++) {
      const __m512i those = codes_up_to<false>(codes + 32 * at + 64 * i, (int)(count - at) * 32 - 64 * i);
      two[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, those);
    }
    const Halves sums = halves_of<AS_THEY_ARE>(two);
    _mm256_storeu_si256((__m256i*)(firsts + at), sums.first);
    _mm256_storeu_si256((__m256i*)(seconds + at), sums.second);
  }
}

// What is made ready of some rows, with zeros behind them to whole groups of eight blocks.
template <class F>
INLINE void wide_rows(const Rows& x, int64_t rows, int64_t inputs, WideRow* to) {
  const int64_t count = inputs / 32, whole = (count + 7) / 8 * 8;
  char* room = x.room(rows * whole * (32 + 2 * (int64_t)sizeof(int32_t)));
  for (int64_t m = 0; m < rows; m++) {
    int8_t* codes = (int8_t*)room;
    int32_t *firsts = (int32_t*)(room + 32 * whole), *seconds = firsts + whole;
    lay_out<Wide<F>::LYING>(x.codes + m * inputs, count, codes);
    sum_halves(x.codes + m * inputs, count, firsts, seconds);
    to[m] = {codes, firsts, seconds};
    room = (char*)(seconds + whole);
  }
}

#endif

}  // namespace
