// Formats whose codes of one to four bits are numbers, or places in a table of sixteen: see models/packed/few_bits.py and
// models/packed/code_tables.py. Included by products.h alone.
#pragma once

#include "grid_rows.h"

namespace {

// Two bits of each byte.
template <int FROM>
INLINE U32 two_bits(const uint8_t* p) { return get<U32>(p) >> FROM & 3; }

// Where two-bit numbers of a block lie: four runs in each 32 bytes.
template <int B>
INLINE U32 two_bits_of_run(const uint8_t* p) { return two_bits<B % 4 * 2>(p + B / 4 * 32); }

struct OfQ2_K {
  enum { SUPER = 1, SCALES = 2, OFFSETS = 1, CODES = 3, BYTES = 8 };
  INLINE void scales(const Runs& runs, int, float* scale, float* offset) {
    typedef uint8_t U16 __attribute__((vector_size(16)));
    const U16 both = get<U16>(part<2, uint8_t>(runs, 16, runs.super)), scales = both & 15, leasts = both >> 4;
    i8_pairs_to_f32((const int8_t*)&scales, one_f16(part<0, uint16_t>(runs, 1, runs.super)), scale);
    i8_pairs_to_f32((const int8_t*)&leasts, -one_f16(part<1, uint16_t>(runs, 1, runs.super)), offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return codes_of(two_bits_of_run<B>(part<3, uint8_t>(runs, 64, runs.super)));
  }
};

struct OfQ3_K {
  enum { SUPER = 1, SCALES = 2, OFFSETS = 1, CODES = 3, BYTES = 8 };
  INLINE void scales(const Runs& runs, int, float* scale, float* offset) {
    const float d = one_f16(part<0, uint16_t>(runs, 1, runs.super));
    const int8_t* each = part<1, int8_t>(runs, 16, runs.super);
    i8_pairs_to_f32(each, d, scale), i8_pairs_to_f32(each, -4 * d, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    const U32 third = (B < 2 ? get<U32>(part<2, uint8_t>(runs, 32, runs.super)) << (2 - B)
                             : get<U32>(part<2, uint8_t>(runs, 32, runs.super)) >> (B - 2)) & 4;
    return codes_of(two_bits_of_run<B>(part<3, uint8_t>(runs, 64, runs.super)) | third);
  }
};

const int8_t NOT_LINEAR[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const int8_t E2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};  // times two

struct OfIQ4_NL {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 0, CODES = 1, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float*) {
    f16_to_f32(part<0, uint16_t>(runs, 1, runs.at), count, scale);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return looked_up(NOT_LINEAR, nibbles_of_16(part<1, uint8_t>(runs, 16, runs.at + B)));
  }
};

struct OfIQ4_XS {
  enum { SUPER = 1, SCALES = 1, OFFSETS = 0, CODES = 2, BYTES = 16 };
  INLINE void scales(const Runs& runs, int, float* scale, float*) {
    i8_to_f32(part<1, int8_t>(runs, 8, runs.super), one_f16(part<0, uint16_t>(runs, 1, runs.super)), scale);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return looked_up(NOT_LINEAR, nibbles_of_16(part<2, uint8_t>(runs, 128, runs.super) + 16 * B));
  }
};

// Half of two to the power of byte - 127.
INLINE float half_of_e8m0(uint32_t byte) { return f32_of_bits(byte < 2 ? 0x00200000u << byte : (byte - 1) << 23); }

struct Bytes16 {
  uint8_t byte[16];
};

// Up to sixteen bytes, and zeros.
INLINE Bytes16 up_to_16(const uint8_t* p, int count) {
  Bytes16 found = {{0}};
  for (int i = 0; i < count; i++) found.byte[i] = p[i];
  return found;
}

struct OfMXFP4 {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 0, CODES = 1, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float*) {
    const uint8_t* from = part<0, uint8_t>(runs, 1, runs.at);
    const Bytes16 found = count == 8 ? Bytes16{} : up_to_16(from, count);
    if (count < 8) from = found.byte;
    for (int b = 0; b < 8; b++) scale[b] = half_of_e8m0(from[b]);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return looked_up(E2M1, nibbles_of_16(part<1, uint8_t>(runs, 16, runs.at + B)));
  }
};

struct OfNVFP4 {
  enum { SUPER = 0, SCALES = 2, OFFSETS = 0, CODES = 1, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float*) {
    const uint8_t* from = part<0, uint8_t>(runs, 2, runs.at);
    const Bytes16 found = count == 8 ? Bytes16{} : up_to_16(from, 2 * count);
    if (count < 8) from = found.byte;
    for (int b = 0; b < 8; b++) scale[b] = halves_of_e4m3.row[from[2 * b]];
    for (int b = 0; b < 8; b++) scale[8 + b] = halves_of_e4m3.row[from[2 * b + 1]];
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {  // eight bytes have sixteen numbers: those of the lower halves come first
    const uint8_t* p = part<1, uint8_t>(runs, 16, runs.at + B);
    const uint64_t first = get<uint64_t>(p), second = get<uint64_t>(p + 8), low = 0x0f0f0f0f0f0f0f0fULL;
    return looked_up(E2M1, codes_of(Q4{first & low, first >> 4 & low, second & low, second >> 4 & low}));
  }
};

template <int COUNT>
INLINE void one_for_all(float d, float* scale) {
  for (int b = 0; b < COUNT; b++) scale[b] = d;
}

struct OfTQ2_0 {
  enum { SUPER = 1, SCALES = 1, OFFSETS = 1, CODES = 1, BYTES = 8 };
  INLINE void scales(const Runs& runs, int, float* scale, float* offset) {
    const float d = one_f16(part<0, uint16_t>(runs, 1, runs.super));
    one_for_all<8>(d, scale), one_for_all<8>(-d, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return codes_of(two_bits_of_run<B>(part<1, uint8_t>(runs, 64, runs.super)));
  }
};

// Digit n of the five ternary ones in a byte is at the top of the byte times 3^n, whose upper bits are lost.
INLINE C32 top_digits(U32 grown) { return codes_of(-(U32)(grown > 85) - (U32)(grown > 170)); }

struct OfTQ1_0 {
  enum { SUPER = 1, SCALES = 1, OFFSETS = 1, CODES = 1, BYTES = 6 };
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {
    OfTQ2_0::scales(runs, count, scale, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    const uint8_t* fives = part<1, uint8_t>(runs, 48, runs.super);
    if constexpr (B < 5) {  // five digits of 32 bytes
      U32 grown = get<U32>(fives);
      for (int n = 0; n < B; n++) grown = grown + grown + grown;
      return top_digits(grown);
    } else {  // five of sixteen more, and four of the last four
      const Q4 first = {get<uint64_t>(fives + 32), get<uint64_t>(fives + 40), 0, 0};
      const uint64_t fours = (uint64_t)get<uint32_t>(part<2, uint8_t>(runs, 4, runs.super));
      enum { ONCE_MORE = 2 * (B - 5) };
      U32 grown = (U32)first;
      for (int n = 0; n < ONCE_MORE; n++) grown = grown + grown + grown;
      const Q4 low = (Q4)grown, next = (Q4)(grown + grown + grown);
      if constexpr (B < 7) return top_digits((U32)Q4{low[0], low[1], next[0], next[1]});
      const U32 four = (U32)Q4{fours, 0, 0, 0}, three = four + four + four, nine = three + three + three;
      const U32 last = nine + nine + nine;
      return top_digits((U32)Q4{low[0], low[1], fours | ((Q4)three)[0] << 32, ((Q4)nine)[0] | ((Q4)last)[0] << 32});
    }
  }
};

struct OfQ1_0 {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 1, CODES = 1, BYTES = 4 };
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {  // one of each four runs
    const float d = one_f16(part<0, uint16_t>(runs, 1, runs.at / 4));
    const float next = count > 4 ? one_f16(part<0, uint16_t>(runs, 1, runs.at / 4 + 1)) : 0;
    one_for_all<4>(d, scale), one_for_all<4>(next, scale + 4);
    one_for_all<4>(-d, offset), one_for_all<4>(-next, offset + 4);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {  // 2, or 0
    return codes_of(bytes_of(set_bits(word<1>(runs, runs.at + B))) & 2);
  }
};

}  // namespace
