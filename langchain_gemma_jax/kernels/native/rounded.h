// The same products with activations in eight bits: blocks of 32 with a scale of their own, as the weights have them.
//
// Codes are multiplied by codes and summed as whole numbers, 32 at a time, which is exact. Only the rounding of the
// activations loses precision.
#pragma once

#include "wide_rows.h"

namespace {

// As models/packed/activations.py defines it, to the bit. Sizes are compared as whole numbers, which have the same order:
// the largest of them is NaN or infinite where any is, so the scale is, and whatever comes of the block.
INLINE void round_block(const float* x, int8_t* code, float* scale, float* total, float* first) {
  float numbers[32];  // wherever they lie
  uint32_t bits[32], most = 0;
  memcpy(numbers, x, sizeof numbers);
  memcpy(bits, x, sizeof bits);
  for (int i = 0; i < 32; i++) {
    const uint32_t size = bits[i] & 0x7fffffff;
    most = size > most ? size : most;
  }
  const float d = f32_of_bits(most) * (1.0f / 127), inverse = d > 1e-37f ? 1 / d : 0;
  float moved[32];
  for (int i = 0; i < 32; i++) moved[i] = numbers[i] * inverse + 12582912.0f;  // 1.5 * 2^23: what is left of it is whole
  memcpy(bits, moved, sizeof bits);
  int sums[2] = {0, 0};
  for (int half = 0; half < 2; half++) {
    for (int i = 16 * half; i < 16 * half + 16; i++) {
      code[i] = (int8_t)bits[i];
      sums[half] += code[i];
    }
  }
  *scale = d, *total = d * (float)(sums[0] + sums[1]), *first = d * (float)sums[0];
}

void round_rows(const float* x, int64_t blocks, int8_t* codes, float* scales, float* totals, float* firsts) {
  for (int64_t b = 0; b < blocks; b++) round_block(x + 32 * b, codes + 32 * b, scales + b, totals + b, firsts + b);
}

// Where the halves of a block have offsets of their own, the second one's counts for all of it, and what the first one's
// has more counts for the first half.
INLINE float more_of_first(const float* offset, int b) { return offset[b] - offset[8 + b]; }

INLINE Rows later_rows(Rows x, int64_t rows, int64_t inputs) {
  const int64_t blocks = rows * (inputs / 32);
  x.codes += 32 * blocks, x.scales += blocks, x.totals += blocks, x.firsts += blocks;
  return x;
}

#if defined(IN_REGISTERS)

// What eight blocks come to together: lane b is the sum of every eighth block from b on, so each number has eight sums,
// which are added at the end. A block's dot is one whole number, or two, of its halves, where they have scales of their own.

template <class F, int B>
INLINE Whole dot_of_run(const Runs& runs, const int8_t* x) {
  const C32 those = load_codes(x + 32 * B);
  if constexpr (HasSigns<F>::value) {  // that many instructions less than to give them to the codes
    return dot_unsigned(F::template sizes<B>(runs), with_signs(those, F::template signs<B>(runs)));
  }
  const C32 codes = F::template codes<B>(runs);
  if constexpr (F::OFFSETS) return dot_unsigned(codes, those);
  else return dot_signed(codes, those);
}

template <bool ALL>
INLINE Eight eights(const float* p, int some) { return ALL ? eight_load(p) : eight_load_some(p, some); }

// Of eight runs, or `some`: the whole numbers that they come to, and where halves have scales of their own, those of halves.
template <class F>
INLINE Halves dots_of_runs(const Runs& runs, int some, const int8_t* from) {
  Whole dots[8];
  dots[0] = dot_of_run<F, 0>(runs, from);
  dots[1] = some > 1 ? dot_of_run<F, 1>(runs, from) : no_whole();
  dots[2] = some > 2 ? dot_of_run<F, 2>(runs, from) : no_whole();
  dots[3] = some > 3 ? dot_of_run<F, 3>(runs, from) : no_whole();
  dots[4] = some > 4 ? dot_of_run<F, 4>(runs, from) : no_whole();
  dots[5] = some > 5 ? dot_of_run<F, 5>(runs, from) : no_whole();
  dots[6] = some > 6 ? dot_of_run<F, 6>(runs, from) : no_whole();
  dots[7] = some > 7 ? dot_of_run<F, 7>(runs, from) : no_whole();
  if constexpr (F::SCALES == 1) return {totals_of_eight(dots), no_whole()};
  Halves found;
  halves_of_eight(dots, found.first, found.second);
  return found;
}

template <class F, bool ALL>
INLINE Halves dots_with(const Runs& runs, int some, const Rows& x, const WideRow& wide, int64_t at) {
#if defined(VARIANT_AVX512)
  if constexpr (Wide<F>::IS) {
    return Wide<F>::template dots<ALL>(runs, some, {wide.codes + 32 * at, wide.firsts, wide.seconds}, at);
  }
#endif
  return dots_of_runs<F>(runs, some, x.codes + 32 * at);
}

// They are scaled, and added to the sums.
template <class F, bool ALL>
INLINE Eight add_runs(const Runs& runs, int some, const Rows& x, int64_t at, const Halves& dots, Eight sums) {
  float scale[8 * F::SCALES], offset[8 * F::SCALES];
  F::scales(runs, some, scale, offset);
  const Eight sizes = eights<ALL>(x.scales + at, some);
  if constexpr (F::SCALES == 2) {
    if constexpr (F::OFFSETS) {
      const Eight second = eight_load(offset + 8);
      sums = eight_fma(second, eights<ALL>(x.totals + at, some), sums);
      sums = eight_fma(eight_sub(eight_load(offset), second), eights<ALL>(x.firsts + at, some), sums);
    }
    sums = eight_fma(eight_of(dots.first), eight_mul(eight_load(scale), sizes), sums);
    return eight_fma(eight_of(dots.second), eight_mul(eight_load(scale + 8), sizes), sums);
  } else {
    if constexpr (F::OFFSETS) sums = eight_fma(eight_load(offset), eights<ALL>(x.totals + at, some), sums);
    return eight_fma(eight_of(dots.first), eight_mul(eight_load(scale), sizes), sums);
  }
}

// One output after the other: its sums are whole numbers for the most part, which do not wait for one another.
template <class F>
INLINE void rounded_output(const Matrix& matrix, int64_t o, const Rows& x, const WideRow& wide, float* out) {
  const int64_t count = matrix.inputs / 32;
  Eight sums = eight_all(0);
  int64_t at = 0;
  for (; at + 8 <= count; at += 8) {
    const Runs runs = {matrix, o * count + at, F::SUPER ? (o * count + at) / 8 : 0};
    fetch_later<F>(runs, 2 * AHEAD);
    sums = add_runs<F, true>(runs, 8, x, at, dots_with<F, true>(runs, 8, x, wide, at), sums);
  }
  if (!F::SUPER && at < count) {
    const Runs runs = {matrix, o * count + at, 0};
    fetch_later<F>(runs, 2 * AHEAD);
    const int some = (int)(count - at);
    sums = add_runs<F, false>(runs, some, x, at, dots_with<F, false>(runs, some, x, wide, at), sums);
  }
  *out = eight_sum(sums);
}

#endif

// Several rows: 256 codes are put down at a time, by a function a format, and all else is there once for all formats
// that are alike.
struct Codes {
  int8_t code[256];
  float scale[16], offset[16];
};

template <class F, int B>
INLINE void put_down_run(const Runs& runs, int some, Codes& to) {
  if (!F::SUPER && some <= B) return;
  const C32 codes = F::template codes<B>(runs);
  memcpy(to.code + 32 * B, &codes, 32);
}

template <class F>
void put_down_codes(const Matrix& matrix, int64_t o, int64_t at, int some, Codes& to) {
  const int64_t count = matrix.inputs / 32;
  const Runs runs = {matrix, o * count + at, F::SUPER ? (o * count + at) / 8 : 0};
  const int64_t row = count * F::BYTES;
  fetch_later<F>(runs, row < 2048 ? 8 * row : AHEAD);
  F::scales(runs, some, to.scale, to.offset);
  put_down_run<F, 0>(runs, some, to);
  put_down_run<F, 1>(runs, some, to);
  put_down_run<F, 2>(runs, some, to);
  put_down_run<F, 3>(runs, some, to);
  put_down_run<F, 4>(runs, some, to);
  put_down_run<F, 5>(runs, some, to);
  put_down_run<F, 6>(runs, some, to);
  put_down_run<F, 7>(runs, some, to);
}

typedef void (*PutDownCodes)(const Matrix& matrix, int64_t o, int64_t at, int some, Codes& to);

#if defined(IN_REGISTERS) && !defined(VARIANT_AVX512)

// Eight outputs at a time, side by side: in each register four numbers of every one of them, which four numbers of a row
// are multiplied by; or eight of two of them, where an instruction multiplies those by eight of two rows. They are
// unpacked once for all rows. The sums are those of the above, and in their order.

INLINE int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct EightOutputs {
  int8_t* codes;                // [block, eight fours, output, 4], or [block, four eights, output, 8]
  float *scales, *offsets;      // [block, scale, output]: of offsets as many where there are any
};

INLINE EightOutputs eight_outputs(const Rows& x, int64_t count, int scales) {
  char* room = x.room(count * (256 + 64 * scales) + 64);
  room += -(intptr_t)room & 63;
  float* floats = (float*)(room + 256 * count);
  return {(int8_t*)room, floats, floats + 8 * scales * count};
}

#if defined(MATRICES)
INLINE void lay_side_by_side(const Codes* codes, int block, int8_t* to) {
  for (int r = 0; r < 8; r++)
    for (int k = 0; k < 4; k++) memcpy(to + 64 * k + 8 * r, codes[r].code + 32 * block + 8 * k, 8);
}
#else
INLINE void lay_side_by_side(const Codes* codes, int block, int8_t* to) {
  C32 eight[8];
  for (int r = 0; r < 8; r++) eight[r] = load_codes(codes[r].code + 32 * block);
  turn_fours(eight);
  for (int k = 0; k < 8; k++) memcpy(to + 32 * k, eight + k, 32);
}
#endif

template <int SCALES, bool OFFSETS>
void put_side_by_side(const Matrix& matrix, PutDownCodes put_down, int64_t o, int outputs, const EightOutputs& to) {
  const int64_t count = matrix.inputs / 32;
  Codes codes[8];
  for (int64_t at = 0; at < count; at += 8) {
    const int some = count - at < 8 ? (int)(count - at) : 8;
    for (int r = 0; r < 8; r++) put_down(matrix, o + (r < outputs ? r : 0), at, some, codes[r]);
    for (int b = 0; b < some; b++) {
      lay_side_by_side(codes, b, to.codes + 256 * (at + b));
      for (int s = 0; s < SCALES; s++)
        for (int r = 0; r < 8; r++) to.scales[((at + b) * SCALES + s) * 8 + r] = codes[r].scale[8 * s + b];
      if (!OFFSETS) continue;
      float* offsets = to.offsets + (at + b) * SCALES * 8;
      for (int r = 0; r < 8; r++) offsets[r] = codes[r].offset[8 * (SCALES - 1) + b];
      if (SCALES == 2)
        for (int r = 0; r < 8; r++) offsets[8 + r] = more_of_first(codes[r].offset, b);
    }
  }
}

#if defined(MATRICES)

// A block of eight outputs with M rows, two at a time; one that is left over is taken twice.
template <int SCALES, bool OFFSETS, int M>
INLINE void dots_of_block(const int8_t* codes, const int8_t* from, int64_t n, Whole (*dots)[M]) {
  for (int s = 0; s < SCALES; s++) {
    Squares sums[(M + 1) / 2][4];
    for (int m = 0; m < M; m += 2)
      for (int j = 0; j < 4; j++) sums[m / 2][j] = no_squares();
    for (int k = 4 / SCALES * s; k < 4 / SCALES * (s + 1); k++)
      for (int m = 0; m < M; m += 2) {
        const int8_t *one = from + m * n + 8 * k, *other = m + 1 < M ? one + n : one;
        for (int j = 0; j < 4; j++) sums[m / 2][j] = add_squares(sums[m / 2][j], one, other, codes + 64 * k + 16 * j);
      }
    for (int m = 0; m < M; m++) dots[s][m] = row_of_squares(sums[m / 2], m % 2);
  }
}

#else

// Four numbers of a block of eight outputs with those of M rows. In templates, so that all of it is in registers.
#if defined(DOTS)
struct Pairs {};  // not needed
#endif

template <int SCALES, bool OFFSETS, int M, int K>
INLINE void one_four(const int8_t* codes, const int8_t* from, int64_t n, Pairs* pairs, Whole (*dots)[M]) {
  const C32 four = load_codes(codes + 32 * K);
  for (int m = 0; m < M; m++) {
    const C32 those = four_of_row(from + m * n + 4 * K);
#if defined(DOTS)
    enum { HALF = SCALES == 2 && K > 3, FIRST = SCALES == 2 ? K % 4 == 0 : K == 0 };
    const Whole before = FIRST ? no_whole() : dots[HALF][m];
    dots[HALF][m] = OFFSETS ? add_dot_unsigned(before, four, those) : add_dot_signed(before, four, those);
#else
    if constexpr (OFFSETS) {  // no code is above 31: four sums of two products are less than 2^15
      const Pairs found = pairs_unsigned(four, those);
      pairs[m] = K % 4 ? add_pairs(pairs[m], found) : found;
      if (K == 3) dots[0][m] = whole_of(pairs[m]);
      if (K == 7) dots[SCALES - 1][m] = SCALES == 2 ? whole_of(pairs[m]) : add_whole(dots[0][m], whole_of(pairs[m]));
    } else {
      enum { HALF = SCALES == 2 && K > 3, FIRST = SCALES == 2 ? K % 4 == 0 : K == 0 };
      const Whole found = whole_of(pairs_signed(four, those));
      dots[HALF][m] = FIRST ? found : add_whole(dots[HALF][m], found);
    }
#endif
  }
}

template <int SCALES, bool OFFSETS, int M>
INLINE void dots_of_block(const int8_t* codes, const int8_t* from, int64_t n, Whole (*dots)[M]) {
  Pairs pairs[M];
  one_four<SCALES, OFFSETS, M, 0>(codes, from, n, pairs, dots);
  one_four<SCALES, OFFSETS, M, 1>(codes, from, n, pairs, dots);
  one_four<SCALES, OFFSETS, M, 2>(codes, from, n, pairs, dots);
  one_four<SCALES, OFFSETS, M, 3>(codes, from, n, pairs, dots);
  one_four<SCALES, OFFSETS, M, 4>(codes, from, n, pairs, dots);
  one_four<SCALES, OFFSETS, M, 5>(codes, from, n, pairs, dots);
  one_four<SCALES, OFFSETS, M, 6>(codes, from, n, pairs, dots);
  one_four<SCALES, OFFSETS, M, 7>(codes, from, n, pairs, dots);
}

#endif

// A block of eight outputs with M rows, added to their sums.
template <int SCALES, bool OFFSETS, int M>
INLINE void one_block(const EightOutputs& w, int64_t at, const Rows& x, int64_t n, Eight* sums) {
  Whole dots[SCALES][M];
  dots_of_block<SCALES, OFFSETS, M>(w.codes + 256 * at, x.codes + 32 * at, n, dots);
  const int64_t count = n / 32;
  for (int m = 0; m < M; m++) {
    const Eight size = eight_all(x.scales[m * count + at]);
    const float* offsets = w.offsets + 8 * SCALES * at;
    if (OFFSETS) sums[m] = eight_fma(eight_load(offsets), eight_all(x.totals[m * count + at]), sums[m]);
    if (OFFSETS && SCALES == 2) sums[m] = eight_fma(eight_load(offsets + 8), eight_all(x.firsts[m * count + at]), sums[m]);
    for (int s = 0; s < SCALES; s++) {
      const Eight scale = eight_mul(eight_load(w.scales + (at * SCALES + s) * 8), size);
      sums[m] = eight_fma(eight_of(dots[s][m]), scale, sums[m]);
    }
  }
}

template <int SCALES, bool OFFSETS, int M>
void eight_with_rows(const EightOutputs& w, const Rows& x, int64_t n, float* out, int64_t outputs, int some) {
  const int64_t count = n / 32;
  Eight parts[8][M];
  for (int64_t b = 0; b < 8; b++) {
    Eight sums[M];
    for (int m = 0; m < M; m++) sums[m] = eight_all(0);
    for (int64_t at = b; at < count; at += 8) one_block<SCALES, OFFSETS, M>(w, at, x, n, sums);
    for (int m = 0; m < M; m++) parts[b][m] = sums[m];
  }
  for (int m = 0; m < M; m++) {
    Eight four[4];
    for (int b = 0; b < 4; b++) four[b] = eight_add(parts[b][m], parts[b + 4][m]);  // as eight_sum does
    const Eight found = eight_add(eight_add(four[0], four[2]), eight_add(four[1], four[3]));
    memcpy(out + m * outputs, &found, (size_t)some * sizeof(float));
  }
}

template <int SCALES, bool OFFSETS>
void in_eights(const Matrix& matrix, PutDownCodes put_down, const Rows& given, int64_t rows, float* out, int64_t first,
               int64_t last) {
  const int64_t n = matrix.inputs, count = n / 32;
  const EightOutputs w = eight_outputs(given, count, SCALES);
  for (int64_t o = first; o < last; o += 8) {
    const int some = last - o < 8 ? (int)(last - o) : 8;
    put_side_by_side<SCALES, OFFSETS>(matrix, put_down, o, some, w);
    Rows x = given;
    float* to = out + o;
    for (int64_t left = rows; left > 0;) {
      const int64_t now = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      if (now == 4) eight_with_rows<SCALES, OFFSETS, 4>(w, x, n, to, matrix.outputs, some);
      else if (now == 2) eight_with_rows<SCALES, OFFSETS, 2>(w, x, n, to, matrix.outputs, some);
      else eight_with_rows<SCALES, OFFSETS, 1>(w, x, n, to, matrix.outputs, some);
      left -= now, to += now * matrix.outputs;
      x = later_rows(x, now, n);
    }
  }
}

#elif !defined(IN_REGISTERS)

template <int SCALES, bool OFFSETS, int M>
void rounded_put_down(const Matrix& matrix, PutDownCodes put_down, const Rows& x, float* out, int64_t first, int64_t last) {
  const int64_t n = matrix.inputs, count = n / 32;
  Codes codes;
  for (int64_t o = first; o < last; o++) {
    Eight sums[M];
    for (int m = 0; m < M; m++) sums[m] = eight_all(0);
    for (int64_t at = 0; at < count; at += 8) {
      const int some = count - at < 8 ? (int)(count - at) : 8;
      put_down(matrix, o, at, some, codes);
      for (int m = 0; m < M; m++) {
        float one[8] = {0}, other[8] = {0}, offset[8] = {0}, more[8] = {0}, totals[8] = {0}, firsts[8] = {0};
        Whole dots[8] = {};
        for (int b = 0; b < some; b++) {
          const float size = x.scales[m * count + at + b];
          one[b] = codes.scale[b] * size, other[b] = codes.scale[8 * (SCALES - 1) + b] * size;
          if (OFFSETS) offset[b] = codes.offset[8 * (SCALES - 1) + b], totals[b] = x.totals[m * count + at + b];
          if (OFFSETS && SCALES == 2) more[b] = more_of_first(codes.offset, b), firsts[b] = x.firsts[m * count + at + b];
          dots[b] = dot_signed(load_codes(codes.code + 32 * b), load_codes(x.codes + m * n + 32 * (at + b)));
        }
        if (OFFSETS) sums[m] = eight_fma(eight_load(offset), eight_load(totals), sums[m]);
        if (OFFSETS && SCALES == 2) sums[m] = eight_fma(eight_load(more), eight_load(firsts), sums[m]);
        if (SCALES == 2) {
          Whole first_half, second_half;
          halves_of_eight(dots, first_half, second_half);
          sums[m] = eight_fma(eight_of(first_half), eight_load(one), sums[m]);
          sums[m] = eight_fma(eight_of(second_half), eight_load(other), sums[m]);
        } else {
          sums[m] = eight_fma(eight_of(totals_of_eight(dots)), eight_load(one), sums[m]);
        }
      }
    }
    for (int m = 0; m < M; m++) out[m * matrix.outputs + o] = eight_sum(sums[m]);
  }
}

#endif

}  // namespace

#if defined(VARIANT_AVX512)
#include "sixteens.h"
#endif

namespace {

#if defined(IN_REGISTERS)

// A row or two: outputs one after the other, whose weights are multiplied while they are in registers.
template <class F>
__attribute__((noinline)) void rounded_outputs(const Matrix& matrix, const Rows& x, int64_t rows, float* out, int64_t first,
                                               int64_t last) {
  const Rows both[2] = {x, rows > 1 ? later_rows(x, 1, matrix.inputs) : x};
  WideRow wide[2] = {};
#if defined(VARIANT_AVX512)
  if constexpr (Wide<F>::IS) wide_rows<F>(x, rows, matrix.inputs, wide);
#endif
  for (int64_t o = first; o < last; o++) {
    for (int m = 0; m < rows; m++) rounded_output<F>(matrix, o, both[m], wide[m], out + m * matrix.outputs + o);
  }
}

template <class F>
void rounded(const Matrix& matrix, const Rows& x, int64_t rows, float* out, int64_t first, int64_t last) {
#if defined(VARIANT_AVX512)
  if (rows > 2 || (rows == 2 && (!Wide<F>::IS || matrix.inputs <= INPUTS_OF_TWO))) {
    const InSixteens how = {put_sixteen<F>, Fours<F>::MORE, (const char*)matrix.parts[F::CODES], F::BYTES};
    return in_sixteens<F::SCALES, F::OFFSETS>(matrix, how, x, rows, out, first, last);
  }
#else
  if (rows > 2) return in_eights<F::SCALES, F::OFFSETS>(matrix, put_down_codes<F>, x, rows, out, first, last);
#endif
  rounded_outputs<F>(matrix, x, rows, out, first, last);
}

#else

template <int SCALES, bool OFFSETS>
void one_by_one(const Matrix& matrix, PutDownCodes put_down, Rows x, int64_t rows, float* out, int64_t first, int64_t last) {
  while (rows > 0) {
    const int64_t some = rows >= 4 ? 4 : 1;
    if (some == 4) rounded_put_down<SCALES, OFFSETS, 4>(matrix, put_down, x, out, first, last);
    else rounded_put_down<SCALES, OFFSETS, 1>(matrix, put_down, x, out, first, last);
    rows -= some, out += some * matrix.outputs, x = later_rows(x, some, matrix.inputs);
  }
}

template <class F>
void rounded(const Matrix& matrix, const Rows& x, int64_t rows, float* out, int64_t first, int64_t last) {
  one_by_one<F::SCALES, F::OFFSETS>(matrix, put_down_codes<F>, x, rows, out, first, last);
}

#endif

}  // namespace

// Packed weights as floats are those of AVX2 with AVX-512 too: there is nothing in them that wider registers make faster.
// I8MM has instructions for rounded rows alone: everything else is that of the dot product.
#if defined(VARIANT_I8MM)
#define DENSE(FORMAT) 0
#define BLOCKS(KIND) 0,
#define PARTS(NAME) 0, 0, &dotprod
#elif defined(VARIANT_AVX512)
#define DENSE(FORMAT) dense<FORMAT>
#define BLOCKS(KIND) 0,
#define PARTS(NAME) &attention_##NAME, &between_##NAME, &avx2
#else
#define DENSE(FORMAT) dense<FORMAT>
#define BLOCKS(KIND) blocks<Of##KIND>,
#define PARTS(NAME) &attention_##NAME, &between_##NAME, 0
#endif
#define ROUNDED(KIND) rounded<Of##KIND>,

#define DEFINE_VARIANT(NAME)                                                   \
  extern const Variant NAME = {                                                \
      #NAME,                                                                   \
      {DENSE(OfF32), DENSE(OfF16), DENSE(OfBF16), EACH_IN_BLOCKS(BLOCKS)},     \
      {0, 0, 0, EACH_IN_BLOCKS(ROUNDED)},                                      \
      round_rows, PARTS(NAME)};
