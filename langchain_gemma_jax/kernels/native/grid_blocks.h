// Formats whose codes are rows of a grid, to which signs come: see models/packed/grid_blocks.py. Included by products.h
// alone.
#pragma once

#include "grid_rows.h"

namespace {

typedef uint32_t D8 __attribute__((vector_size(32)));

// The sizes of codes and their signs are had apart, too.
template <class F, class = void>
struct HasSigns {
  enum { value = 0 };
};
template <class F>
struct HasSigns<F, decltype((void)F::SIGNS)> {
  enum { value = 1 };
};

// Scales that eight bytes stand for: 1, 3, 5, ... times a factor.
INLINE void odd_scales(uint64_t bytes, float times, float* scale) {
  const uint64_t odd = 2 * bytes + 0x0101010101010101ULL;
  u8_to_f32((const uint8_t*)&odd, times, scale);
}

// The same of four bits in each byte, those of the lower halves first.
INLINE void odd_scales_of_nibbles(const uint8_t* p, float times, float* scale) {
  const uint64_t both = get<uint64_t>(p), low = 0x0f0f0f0f0f0f0f0fULL;
  odd_scales(both & low, times, scale), odd_scales(both >> 4 & low, times, scale + 8);
}

// Seven signs in each byte: the eighth makes their number even.
const int8_t ODD[16] = {0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0};
INLINE D8 even_signs(U32 bytes) {
  const U32 sevens = bytes & 0x7f;
  return (D8)(sevens ^ bytes_of(looked_up(ODD, codes_of(sevens & 15))) ^ bytes_of(looked_up(ODD, codes_of(sevens >> 4))));
}

// Four bits of a scale are the uppermost ones of four bytes.
INLINE void odd_scales_of_tops(const uint8_t* p, float times, float* scale) {
  const D8 tops = get<D8>(p) >> 7 & 0x01010101, codes = (tops | tops >> 7 | tops >> 14 | tops >> 21) & 15;
  for (int b = 0; b < 8; b++) scale[b] = times * (float)(int)(2 * codes[b] + 1);
}

template <int PART>
INLINE float part_of_f16(const Runs& runs, float times) {
  return one_f16(part<PART, uint16_t>(runs, 1, runs.super)) * times;
}

// What all of these have.
template <class F>
struct Signed {
  enum { SUPER = 1, OFFSETS = 0, CODES = 1, SIGNS = 1 };
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return with_signs(F::template sizes<B>(runs), F::template signs<B>(runs));
  }
};

struct OfIQ2_XXS : Signed<OfIQ2_XXS> {
  enum { SCALES = 1, BYTES = 4 };
  INLINE void scales(const Runs& runs, int, float* scale, float*) {
    odd_scales_of_tops(part<2, uint8_t>(runs, 32, runs.super), part_of_f16<0>(runs, 0.125f), scale);
  }
  template <int B>
  INLINE uint32_t signs(const Runs& runs) {
    return even_signs(get<U32>(part<2, uint8_t>(runs, 32, runs.super)))[B];
  }
  template <int B>
  INLINE C32 sizes(const Runs& runs) {
    const uint8_t* p = part<1, uint8_t>(runs, 32, runs.super) + 4 * B;
    const uint64_t* rows = rows_iq2_xxs.row;
    return codes_of(Q4{rows[p[0]], rows[p[1]], rows[p[2]], rows[p[3]]});
  }
};

struct OfIQ2_XS : Signed<OfIQ2_XS> {
  enum { SCALES = 2, BYTES = 4 };
  INLINE void scales(const Runs& runs, int, float* scale, float*) {
    odd_scales_of_nibbles(part<3, uint8_t>(runs, 8, runs.super), part_of_f16<0>(runs, 0.125f), scale);
  }
  template <int B>
  INLINE uint32_t signs(const Runs& runs) { return OfIQ2_XXS::signs<B>(runs); }
  template <int B>
  INLINE C32 sizes(const Runs& runs) {
    const uint8_t* p = part<1, uint8_t>(runs, 32, runs.super) + 4 * B;
    const uint32_t high = word<2>(runs, 8 * runs.super + B);
    const uint64_t* rows = rows_iq2_xs.row;
    return codes_of(Q4{rows[p[0] | (high << 1 & 256)], rows[p[1] | (high >> 7 & 256)], rows[p[2] | (high >> 15 & 256)],
                       rows[p[3] | (high >> 23 & 256)]});
  }
};

struct OfIQ2_S : Signed<OfIQ2_S> {
  enum { SCALES = 2, BYTES = 4 };
  INLINE void scales(const Runs& runs, int, float* scale, float*) {
    odd_scales_of_nibbles(part<4, uint8_t>(runs, 8, runs.super), part_of_f16<0>(runs, 0.125f), scale);
  }
  template <int B>
  INLINE uint32_t signs(const Runs& runs) { return word<2>(runs, 8 * runs.super + B); }
  template <int B>
  INLINE C32 sizes(const Runs& runs) {
    const uint8_t* p = part<1, uint8_t>(runs, 32, runs.super) + 4 * B;
    const uint32_t high = part<3, uint8_t>(runs, 8, runs.super)[B];
    const uint64_t* rows = rows_iq2_s.row;
    return codes_of(Q4{rows[p[0] | (high << 8 & 0x300)], rows[p[1] | (high << 6 & 0x300)],
                       rows[p[2] | (high << 4 & 0x300)], rows[p[3] | (high << 2 & 0x300)]});
  }
};

// Eight rows of four numbers. Bit i of `high` is the ninth bit of place i.
template <int ROWS>
INLINE C32 eight_rows(const GridRows<uint32_t, ROWS>& grid, const uint8_t* p, uint32_t high) {
  const uint32_t* rows = grid.row;
  const D8 found = {rows[p[0] | (high << 8 & 256)], rows[p[1] | (high << 7 & 256)], rows[p[2] | (high << 6 & 256)],
                    rows[p[3] | (high << 5 & 256)], rows[p[4] | (high << 4 & 256)], rows[p[5] | (high << 3 & 256)],
                    rows[p[6] | (high << 2 & 256)], rows[p[7] | (high << 1 & 256)]};
  return get<C32>(&found);
}

struct OfIQ3_XXS : Signed<OfIQ3_XXS> {
  enum { SCALES = 1, BYTES = 8 };
  INLINE void scales(const Runs& runs, int, float* scale, float*) {
    odd_scales_of_tops(part<2, uint8_t>(runs, 32, runs.super), part_of_f16<0>(runs, 0.25f), scale);
  }
  template <int B>
  INLINE uint32_t signs(const Runs& runs) { return OfIQ2_XXS::signs<B>(runs); }
  template <int B>
  INLINE C32 sizes(const Runs& runs) {
    return eight_rows(rows_iq3_xxs, part<1, uint8_t>(runs, 64, runs.super) + 8 * B, 0);
  }
};

struct OfIQ3_S : Signed<OfIQ3_S> {
  enum { SCALES = 1, BYTES = 8 };
  INLINE void scales(const Runs& runs, int, float* scale, float*) {
    uint64_t codes = get<uint32_t>(part<4, uint8_t>(runs, 4, runs.super));  // eight of four bits, to bytes
    codes = (codes | codes << 16) & 0x0000ffff0000ffffULL;
    codes = (codes | codes << 8) & 0x00ff00ff00ff00ffULL;
    codes = (codes | codes << 4) & 0x0f0f0f0f0f0f0f0fULL;
    odd_scales(codes, one_f16(part<0, uint16_t>(runs, 1, runs.super)), scale);
  }
  template <int B>
  INLINE uint32_t signs(const Runs& runs) { return word<3>(runs, 8 * runs.super + B); }
  template <int B>
  INLINE C32 sizes(const Runs& runs) {
    const uint32_t high = part<2, uint8_t>(runs, 8, runs.super)[B];
    return eight_rows(rows_iq3_s, part<1, uint8_t>(runs, 64, runs.super) + 8 * B, high);
  }
};

// Rows of 0, 1 and 2, minus one, and plus or minus an eighth.

struct OfIQ1_S {
  enum { SUPER = 1, SCALES = 1, OFFSETS = 1, CODES = 1, BYTES = 4 };
  INLINE void scales(const Runs& runs, int, float* scale, float* offset) {
    const float d = one_f16(part<0, uint16_t>(runs, 1, runs.super));
    const uint8_t* p = part<2, uint8_t>(runs, 16, runs.super);
    uint16_t words[8];
    memcpy(words, p, sizeof words);
    for (int b = 0; b < 8; b++) {
      scale[b] = d * (float)(2 * (words[b] >> 12 & 7) + 1);
      offset[b] = scale[b] * (-0.875f - 0.25f * (float)(words[b] >> 15));
    }
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    const uint8_t* p = part<1, uint8_t>(runs, 32, runs.super) + 4 * B;
    const uint32_t high = get<uint16_t>(part<2, uint8_t>(runs, 16, runs.super) + 2 * B);
    const uint64_t* rows = rows_iq1_s.row;
    return codes_of(Q4{rows[p[0] | (high << 8 & 0x700)], rows[p[1] | (high << 5 & 0x700)],
                       rows[p[2] | (high << 2 & 0x700)], rows[p[3] | (high >> 1 & 0x700)]});
  }
};

struct OfIQ1_M {  // eighths: eight times a number of a row, and two where an eighth is added
  enum { SUPER = 1, SCALES = 2, OFFSETS = 1, CODES = 1, BYTES = 4 };
  INLINE void scales(const Runs& runs, int, float* scale, float* offset) {
    const float d = part_of_f16<0>(runs, 0.125f);
    const uint64_t words = get<uint64_t>(part<3, uint8_t>(runs, 8, runs.super)), low = 0x0007000700070007ULL;
    odd_scales((words & low) | (words >> 6 & low) << 8, d, scale);
    odd_scales((words >> 3 & low) | (words >> 9 & low) << 8, d, scale + 8);
    odd_scales((words & low) | (words >> 6 & low) << 8, -9 * d, offset);
    odd_scales((words >> 3 & low) | (words >> 9 & low) << 8, -9 * d, offset + 8);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    const uint8_t* p = part<1, uint8_t>(runs, 32, runs.super) + 4 * B;
    const uint32_t high = get<uint16_t>(part<2, uint8_t>(runs, 16, runs.super) + 2 * B);
    const uint64_t* rows = rows_iq1_s.row;
    const Q4 found = {rows[p[0] | (high << 8 & 0x700)], rows[p[1] | (high << 4 & 0x700)], rows[p[2] | (high & 0x700)],
                      rows[p[3] | (high >> 4 & 0x700)]};
    const uint32_t minus = (high >> 3 & 1) | (high << 1 & 0x100) | (high << 5 & 0x10000) | (high << 9 & 0x1000000);
    return codes_of((U32)(found << 3) | (~bytes_of(set_bits(minus * 255)) & 2));
  }
};

}  // namespace
