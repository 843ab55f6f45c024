// Products of weights in blocks with rows in eight bits by tiles, for processors with AMX: one instruction multiplies a
// block of 16 outputs by that of 16 rows.
//
// The rows are laid side by side first, once a call; what is missing to sixteen of them is zeros, which cost nothing.
// Whole numbers are exact, and everything else is done in the order in which rounded.h does it: the numbers are the same
// to the bit.
//
//   tile 0   sums [output, row]
//   tile 1   weights [output, input]
//   tile 2   rows [inputs / 4, row, 4]
//
// Up to eight rows leave half of a tile free, so there an instruction multiplies two blocks: columns 0 to 7 are the rows
// with the first block, columns 8 to 15 with the second, and what does not belong together is multiplied by zeros.
#pragma once

#include <type_traits>

#include "rounded.h"

namespace {

enum { SIDE = 16 };  // outputs of a tile, and rows

struct TileShapes {  // as the processor wants to be told
  uint8_t palette, start, none[14];
  uint16_t bytes[16];
  uint8_t rows[16];
};

INLINE void shape_tiles(int inputs) {
  const TileShapes shapes = {1, 0, {0}, {64, (uint16_t)inputs, 64}, {SIDE, SIDE, (uint8_t)(inputs / 4)}};
  _tile_loadconfig(&shapes);
}

// What was written so far is in memory for the tiles that are read next: GCC does not know that they read it.
INLINE void written() { __asm__ volatile("" ::: "memory"); }

INLINE int64_t tiles_for(int64_t count) { return (count + SIDE - 1) / SIDE; }

// Sixteen registers of sixteen numbers of 32 bits: number k of register r becomes number r of register k.
INLINE void turn(__m512i* v) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]), a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; j++) {
      b[i + 2 * j] = _mm512_unpacklo_epi64(a[i + j], a[i + j + 2]);
      b[i + 2 * j + 1] = _mm512_unpackhi_epi64(a[i + j], a[i + j + 2]);
    }
  }
  for (int j = 0; j < 4; j++) {  // four lanes of four registers, lane for lane
    a[j] = _mm512_shuffle_i32x4(b[j], b[j + 4], 0x88), a[j + 4] = _mm512_shuffle_i32x4(b[j], b[j + 4], 0xdd);
    a[j + 8] = _mm512_shuffle_i32x4(b[j + 8], b[j + 12], 0x88), a[j + 12] = _mm512_shuffle_i32x4(b[j + 8], b[j + 12], 0xdd);
  }
  for (int j = 0; j < 4; j++) {
    v[j] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0x88), v[j + 8] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0xdd);
    v[j + 4] = _mm512_shuffle_i32x4(a[j + 4], a[j + 12], 0x88), v[j + 12] = _mm512_shuffle_i32x4(a[j + 4], a[j + 12], 0xdd);
  }
}

// Sums [output, row] go to their places in the result.
INLINE void put_sums(__m512i* sums, float* out, int64_t outputs, int some, int64_t rows) {
  turn(sums);
  const __mmask16 those = (__mmask16)((1u << some) - 1);
  for (int m = 0; m < SIDE && m < rows; m++) _mm512_mask_storeu_epi32(out + m * outputs, those, sums[m]);
}

INLINE char* aligned_room(const Rows& x, int64_t bytes) {
  char* room = x.room(bytes + 64);
  return room + (-(intptr_t)room & 63);
}

struct TiledRows {
  int8_t* codes;                     // [sixteen rows, block, eight fours, row, 4]
  float *scales, *totals, *firsts;  // [sixteen rows, block, row]
  Codes* weights;                    // [eight blocks, output]
};

INLINE TiledRows room_for_tiles(const Rows& x, int64_t rows, int64_t count) {
  const int64_t blocks = tiles_for(rows) * count;
  char* room = aligned_room(x, blocks * (512 + 3 * 64) + (count + 7) / 8 * SIDE * (int64_t)sizeof(Codes));
  float *scales = (float*)(room + blocks * 512), *totals = scales + blocks * SIDE, *firsts = totals + blocks * SIDE;
  return {(int8_t*)room, scales, totals, firsts, (Codes*)(firsts + blocks * SIDE)};
}

// Rows as tiles are: numbers that one instruction multiplies lie side by side. What is no row is zeros.
INLINE void lay_out_rows(const Rows& x, int64_t rows, int64_t count, const TiledRows& to) {
  int8_t* codes = to.codes;
  float *scales = to.scales, *totals = to.totals, *firsts = to.firsts;
  for (int64_t m = 0; m < rows; m += SIDE) {
    const __mmask16 those = rows - m >= SIDE ? 0xffff : (__mmask16)((1u << (rows - m)) - 1);
    const __m512i lanes = _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                             _mm512_set1_epi32((int)count));
    for (int64_t at = 0; at < count; at++, scales += SIDE, totals += SIDE, firsts += SIDE) {
      const int64_t from = m * count + at;
      const __m512 none = _mm512_setzero_ps();
      _mm512_store_ps(scales, _mm512_mask_i32gather_ps(none, those, lanes, x.scales + from, 4));
      _mm512_store_ps(totals, _mm512_mask_i32gather_ps(none, those, lanes, x.totals + from, 4));
      _mm512_store_ps(firsts, _mm512_mask_i32gather_ps(none, those, lanes, x.firsts + from, 4));
    }
    for (int64_t at = 0; at < count; at += 2) {
      const __mmask16 some = count - at > 1 ? 0xffff : 0xff;
      __m512i fours[SIDE];
      for (int r = 0; r < SIDE; r++) {
        const bool is_row = m + r < rows;
        fours[r] = _mm512_maskz_loadu_epi32(is_row ? some : 0, x.codes + ((m + (is_row ? r : 0)) * count + at) * 32);
      }
      turn(fours);
      for (int k = 0; k < (count - at > 1 ? 16 : 8); k++, codes += 64) _mm512_store_si512(codes, fours[k]);
    }
  }
}

// One block of sixteen outputs with sixteen rows, added to their sums.
template <int SCALES, bool OFFSETS>
INLINE void tile_block(const TiledRows& tiled, const Codes* weights, int b, int64_t block, V* sums) {
  enum { HALF = 32 / SCALES };
  alignas(64) int32_t dots[SCALES][SIDE][16];
  for (int s = 0; s < SCALES; s++) {
    _tile_zero(0);
    _tile_loadd(1, weights->code + 32 * b + HALF * s, sizeof(Codes));
    _tile_loadd(2, tiled.codes + block * 512 + s * 16 * HALF, 64);
    _tile_dpbssd(0, 1, 2);
    _tile_stored(0, dots[s], 64);
  }
  const V size = load(tiled.scales + block * SIDE);
  for (int r = 0; r < SIDE; r++) {
    const float* offset = weights[r].offset;
    if (OFFSETS) sums[r] = fma(all(offset[8 * (SCALES - 1) + b]), load(tiled.totals + block * SIDE), sums[r]);
    if (OFFSETS && SCALES == 2) sums[r] = fma(all(more_of_first(offset, b)), load(tiled.firsts + block * SIDE), sums[r]);
    for (int s = 0; s < SCALES; s++) {
      const V dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots[s][r]));
      sums[r] = fma(dot, mul(all(weights[r].scale[8 * s + b]), size), sums[r]);
    }
  }
}

// All blocks of them, while the codes of the next outputs are fetched. Every eighth block has a sum of its own, and these
// are added as eight_sum does: what is kept waits for its other half.
template <int SCALES, bool OFFSETS>
INLINE void tile_blocks(const TiledRows& tiled, int64_t group, int64_t count, const char* next, int lines,
                        __m512i* found) {
  static const int eighths[8] = {0, 4, 2, 6, 1, 5, 3, 7};
  V kept[4][SIDE];
  int waiting = 0;
  for (int i = 0; i < 8; i++) {
    const int b = eighths[i];
    V sums[SIDE];
    for (int r = 0; r < SIDE; r++) sums[r] = zero();
    for (int64_t at = b; at < count; at += 8) {
      for (int line = 0; line < lines; line++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
      tile_block<SCALES, OFFSETS>(tiled, tiled.weights + at / 8 * SIDE, b, group * count + at, sums);
    }
    for (int halves = i; halves & 1; halves >>= 1) {
      waiting--;
      for (int r = 0; r < SIDE; r++) sums[r] = _mm512_add_ps(kept[waiting][r], sums[r]);
    }
    for (int r = 0; r < SIDE; r++) kept[waiting][r] = sums[r];
    waiting++;
  }
  for (int r = 0; r < SIDE; r++) found[r] = _mm512_castps_si512(kept[0][r]);
}

// Sixteen outputs at a time: their codes are put down once, and multiplied by all rows.
template <int SCALES, bool OFFSETS>
void in_tiles(const Matrix& matrix, PutDownCodes put_down, const char* codes, int bytes, const Rows& given, int64_t rows,
              float* out, int64_t first, int64_t last) {
  const int64_t count = matrix.inputs / 32;
  const TiledRows tiled = room_for_tiles(given, rows, count);
  lay_out_rows(given, rows, count, tiled);
  shape_tiles(32 / SCALES);
  for (int64_t o = first; o < last; o += SIDE) {
    const int some = last - o < SIDE ? (int)(last - o) : SIDE;
    for (int r = 0; r < SIDE; r++) {
      for (int64_t at = 0; at < count; at += 8) {
        const int runs = count - at < 8 ? (int)(count - at) : 8;
        put_down(matrix, o + (r < some ? r : 0), at, runs, tiled.weights[at / 8 * SIDE + r]);
      }
    }
    written();
    for (int64_t m = 0; m < rows; m += SIDE) {
      __m512i sums[SIDE];
      const char* next = codes + (o + SIDE) * count * bytes;
      tile_blocks<SCALES, OFFSETS>(tiled, m / SIDE, count, next, m ? 0 : SIDE * bytes / 64, sums);
      put_sums(sums, out + m * matrix.outputs + o, matrix.outputs, some, rows - m);
    }
  }
  _tile_release();
}

// Up to eight rows, two blocks at a time.

enum { HALF_SIDE = SIDE / 2, PAIRS = 4 };  // rows; pairs of eight blocks

struct PairedRows {
  int8_t* codes;           // [pair, sixteen fours, column, 4]
  float *scales, *totals;  // [pair, column]
  Codes* weights;          // [eight blocks, output]
};

INLINE PairedRows room_for_pairs(const Rows& x, int64_t count) {
  const int64_t eights = (count + 7) / 8, pairs = eights * PAIRS;
  char* room = aligned_room(x, pairs * (1024 + 2 * 64) + eights * SIDE * (int64_t)sizeof(Codes));
  float* floats = (float*)(room + pairs * 1024);
  return {(int8_t*)room, floats, floats + pairs * SIDE, (Codes*)(floats + 2 * pairs * SIDE)};
}

INLINE void lay_out_pairs(const Rows& x, int64_t rows, int64_t count, const PairedRows& to) {
  const int64_t pairs = (count + 7) / 8 * PAIRS;
  memset(to.codes, 0, pairs * (1024 + 2 * 64));
  for (int64_t at = 0; at < count; at++) {
    const int64_t pair = at / 2, half = at % 2;
    for (int64_t r = 0; r < rows; r++) {
      const int64_t from = r * count + at, column = HALF_SIDE * half + r;
      int8_t* fours = to.codes + 1024 * pair + 512 * half + 4 * column;
      for (int k = 0; k < 8; k++) memcpy(fours + 64 * k, x.codes + 32 * from + 4 * k, 4);
      to.scales[SIDE * pair + column] = x.scales[from];
      to.totals[SIDE * pair + column] = x.totals[from];
    }
  }
}

// Two numbers: the first eight times, then the second.
INLINE V eight_of_each(const float* two) {
  double both;
  memcpy(&both, two, sizeof both);
  const __m512i places = _mm512_set_epi32(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  return _mm512_permutexvar_ps(places, _mm512_castpd_ps(_mm512_set1_pd(both)));
}

// Where the codes of some outputs lie: those of an eighth of blocks after those of another, and outputs a stride apart.
struct Lying {
  const int8_t* code;
  int64_t eight, output;
};

template <bool OFFSETS>
INLINE void tile_pair(const int8_t* codes, int64_t stride, const Codes* weights, int p, const int8_t* x,
                      const float* scales, const float* totals, V* sums) {
  alignas(64) int32_t dots[SIDE][16];
  _tile_zero(0);
  _tile_loadd(1, codes, stride);
  _tile_loadd(2, x, 64);
  _tile_dpbssd(0, 1, 2);
  _tile_stored(0, dots, 64);
  const V size = load(scales);
  for (int r = 0; r < SIDE; r++) {
    if (OFFSETS) sums[r] = fma(eight_of_each(weights[r].offset + 2 * p), load(totals), sums[r]);
    const V dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots[r]));
    sums[r] = fma(dot, mul(eight_of_each(weights[r].scale + 2 * p), size), sums[r]);
  }
}

// As tile_blocks, with the sums of two eighths side by side: they are added in the same order.
template <bool OFFSETS>
INLINE void tile_pairs(const Lying& lying, const PairedRows& paired, int64_t count, const char* next, int lines,
                       __m512i* found) {
  static const int quarters[PAIRS] = {0, 2, 1, 3};
  V kept[2][SIDE];
  const int64_t eights = (count + 7) / 8;
  for (int i = 0; i < PAIRS; i++) {
    const int p = quarters[i];
    V sums[SIDE];
    for (int r = 0; r < SIDE; r++) sums[r] = zero();
    for (int64_t eight = 0; eight < eights && 8 * eight + 2 * p < count; eight++) {
      for (int line = 0; line < 2 * lines; line++, next += 64) _mm_prefetch(next, _MM_HINT_T1);
      const int64_t pair = PAIRS * eight + p;
      tile_pair<OFFSETS>(lying.code + eight * lying.eight + 64 * p, lying.output, paired.weights + eight * SIDE, p,
                         paired.codes + 1024 * pair, paired.scales + SIDE * pair, paired.totals + SIDE * pair, sums);
    }
    for (int r = 0; r < SIDE; r++) {
      if (i % 2) sums[r] = _mm512_add_ps(kept[i / 2][r], sums[r]);
      kept[i / 2][r] = sums[r];
    }
  }
  for (int r = 0; r < SIDE; r++) {
    const V both = _mm512_add_ps(kept[0][r], kept[1][r]);
    found[r] = _mm512_castps_si512(_mm512_add_ps(both, _mm512_shuffle_f32x4(both, both, 0x4e)));
  }
}

// WHOLE: codes are whole bytes, multiplied where they lie, and of their blocks only the scales are put down.
template <bool OFFSETS, bool WHOLE, class F>
void in_pairs(const Matrix& matrix, PutDownCodes put_down, const char* codes, int bytes, const Rows& given, int64_t rows,
              float* out, int64_t first, int64_t last) {
  const int64_t count = matrix.inputs / 32;
  const PairedRows paired = room_for_pairs(given, count);
  lay_out_pairs(given, rows, count, paired);
  shape_tiles(64);
  for (int64_t o = first; o < last; o += SIDE) {
    const int some = last - o < SIDE ? (int)(last - o) : SIDE;
    // A tile of whole bytes reads sixteen outputs, and pairs of blocks.
    const bool lie = WHOLE && some == SIDE && count % 2 == 0;
    const Lying lying = lie ? Lying{(const int8_t*)codes + o * count * bytes, 8 * bytes, count * bytes}
                            : Lying{paired.weights->code, SIDE * (int64_t)sizeof(Codes), sizeof(Codes)};
    for (int r = 0; r < SIDE; r++) {
      for (int64_t at = 0; at < count; at += 8) {
        const int runs = count - at < 8 ? (int)(count - at) : 8;
        Codes& to = paired.weights[at / 8 * SIDE + r];
        if (WHOLE && lie) F::scales({matrix, (o + r) * count + at, 0}, runs, to.scale, to.offset);
        else put_down(matrix, o + (r < some ? r : 0), at, runs, to);
        // What is missing to the last pair is multiplied by zeros: it only may not be infinite.
        for (int b = runs; b < 8; b++) to.scale[b] = to.offset[b] = 0;
      }
    }
    if (lie) {
      const char* scales = (const char*)matrix.parts[0] + (o + SIDE) * count * 2;
      for (int64_t line = 0; line < SIDE * count * 2; line += 64) _mm_prefetch(scales + line, _MM_HINT_T0);
    }
    written();
    __m512i sums[SIDE];
    tile_pairs<OFFSETS>(lying, paired, count, codes + (o + SIDE) * count * bytes, SIDE * bytes / 64, sums);
    put_sums(sums, out + o, matrix.outputs, some, rows);
  }
  _tile_release();
}

enum { WORTH_A_TILE = 3 };  // rows: for fewer, a weight is multiplied while it is in a register

template <class F, int KIND>
void tiled(const Matrix& matrix, const Rows& x, int64_t rows, float* out, int64_t first, int64_t last) {
  if (rows < WORTH_A_TILE) return avx512.rounded[KIND](matrix, x, rows, out, first, last);
  const char* codes = (const char*)matrix.parts[F::CODES];
  if constexpr (F::SCALES == 1) {
    enum { WHOLE = F::BYTES == 32 };
    using Whole = std::conditional_t<WHOLE, F, OfQ8_0>;  // all others share one function
    if (rows <= HALF_SIDE)
      return in_pairs<F::OFFSETS, WHOLE, Whole>(matrix, put_down_codes<F>, codes, F::BYTES, x, rows, out, first, last);
  }
  in_tiles<F::SCALES, F::OFFSETS>(matrix, put_down_codes<F>, codes, F::BYTES, x, rows, out, first, last);
}

}  // namespace
