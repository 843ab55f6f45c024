// Products of some rows with a matrix, for the variant that includes this.
//
// Weights are unpacked to floats in registers, with the same bits as models/packed/block_formats.py, and multiplied by
// float32 activations. A weight is read once for up to eight rows. Each sum has W lanes, which run along the inputs
// from the first to the last and are added at the end.
//
// Memory is read one output after the other, or in several streams that are far apart: with two streams in one page, a
// processor does not prefetch either of them.
#pragma once

#include "simd.h"
#include "variant.h"

namespace {

enum { AHEAD = 1024 };       // bytes that are prefetched
enum { KEPT = 96 << 10 };    // bytes of a matrix that stay in a core's cache, for one group of rows after the other

// ---- dense

// W numbers of R outputs, so many apart, with those of M rows.
template <class D, int M, int R>
INLINE void dense_step(const typename D::T* w, int64_t n, const float* x, int64_t apart, V (*sums)[M]) {
  V v[R];
  for (int r = 0; r < R; r++) v[r] = D::get(w + r * apart * n);
  for (int m = 0; m < M; m++) {
    const V those = load(x + m * n);
    for (int r = 0; r < R; r++) sums[r][m] = fma(v[r], those, sums[r][m]);
  }
}

// M rows of activations with R outputs: M * R sums are under way, enough to hide how long one addition takes. What comes
// so many bytes later is asked for.
template <class D, int M, int R>
INLINE void dense_outputs(const typename D::T* w, int64_t n, const float* x, float* out, int64_t outputs, int64_t apart,
                          int64_t later) {
  enum { LINE = 64 / sizeof(typename D::T) };  // what memory gives at a time
  V sums[R][M];
  for (int r = 0; r < R; r++)
    for (int m = 0; m < M; m++) sums[r][m] = zero();
  int64_t k = 0;
  for (; k + LINE <= n; k += LINE) {
    for (int r = 0; r < R; r++) fetch((const char*)(w + r * apart * n + k) + later);
    for (int i = 0; i < LINE; i += W) dense_step<D, M, R>(w + k + i, n, x + k + i, apart, sums);
  }
  for (; k + W <= n; k += W) dense_step<D, M, R>(w + k, n, x + k, apart, sums);
  if (k < n) {
    typename D::T some[W];
    float those[W];
    for (int r = 0; r < R; r++) {
      memset(some, 0, sizeof some);
      memcpy(some, w + r * apart * n + k, (size_t)(n - k) * sizeof some[0]);
      const V v = D::get(some);
      for (int m = 0; m < M; m++) {
        memset(those, 0, sizeof those);
        memcpy(those, x + m * n + k, (size_t)(n - k) * sizeof those[0]);
        sums[r][m] = fma(v, load(those), sums[r][m]);
      }
    }
  }
  for (int r = 0; r < R; r++)
    for (int m = 0; m < M; m++) out[m * outputs + r * apart] = sum(sums[r][m]);
}

template <class D, int M>
void dense_rows(const Matrix& matrix, const float* x, float* out, int64_t first, int64_t last, int64_t later) {
  enum { R = !ONE_PASS ? 1 : M <= 2 ? 4 : 3 };  // outputs at once: with as many rows, what registers hold
  const int64_t n = matrix.inputs;
  const typename D::T* w = (const typename D::T*)matrix.parts[0];
  const int64_t apart = (last - first) / R;
  for (int64_t o = first; o < first + apart; o++) {
    dense_outputs<D, M, R>(w + o * n, n, x, out + o, matrix.outputs, apart, later);
  }
  for (int64_t o = first + R * apart; o < last; o++) {  // the last few
    dense_outputs<D, M, 1>(w + o * n, n, x, out + o, matrix.outputs, 1, later);
  }
}

// ---- blocks: runs of 32 numbers, eight runs at a time. A number is scale * code + offset.
//
// Where the halves of a run have scales of their own, those of eight first halves come before those of eight second ones.

struct Runs {  // some runs of one output
  const Matrix& matrix;
  int64_t at;     // the first of them, counted through the whole matrix
  int64_t super;  // the block of 256 that they are, where the format has such
};

template <int PART, class T>
INLINE const T* part(const Runs& runs, int64_t each, int64_t index) {
  return (const T*)runs.matrix.parts[PART] + index * each;
}

// Have the codes fetched that come so many bytes later.
template <class F>
INLINE void fetch_later(const Runs& runs, int64_t bytes) {
  const char* codes = (const char*)runs.matrix.parts[F::CODES] + runs.at * F::BYTES + bytes;
  for (int line = 0; line < 8 * F::BYTES; line += 64) fetch(codes + line);
}

template <int COUNT>
INLINE void times(const float* from, float factor, float* to) {
  for (int i = 0; i < COUNT; i++) to[i] = from[i] * factor;
}

// Eight numbers, of which those from `count` on are zero.
INLINE void f16_to_f32(const uint16_t* p, int count, float* out) {
  if (count == 8) return eight_f16(p, out);
#if defined(VARIANT_AVX512)
  const __m128i some = _mm_maskz_loadu_epi16((__mmask8)((1 << count) - 1), p);
  return _mm256_storeu_ps(out, _mm256_cvtph_ps(some));
#endif
  const Up8 found = up_to_8(p, count);
  eight_f16(found.number, out);
}

struct OfQ8_0 {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 0, CODES = 1, BYTES = 32 };
  INLINE void scales(const Runs& runs, int count, float* scale, float*) {
    f16_to_f32(part<0, uint16_t>(runs, 1, runs.at), count, scale);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return load_codes(part<1, int8_t>(runs, 32, runs.at + B));
  }
};

struct OfQ4_0 {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 1, CODES = 1, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {
    f16_to_f32(part<0, uint16_t>(runs, 1, runs.at), count, scale);
    times<8>(scale, -8, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return nibbles_of_16(part<1, uint8_t>(runs, 16, runs.at + B));
  }
};

struct OfINT4 : OfQ4_0 {
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {
    const uint16_t* from = part<0, uint16_t>(runs, 1, runs.at);
    const Up8 found = count == 8 ? Up8{} : up_to_8(from, count);
    eight_bf16(count == 8 ? from : found.number, scale);
    times<8>(scale, -8, offset);
  }
};

struct OfQ4_1 {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 1, CODES = 2, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {
    f16_to_f32(part<0, uint16_t>(runs, 1, runs.at), count, scale);
    f16_to_f32(part<1, uint16_t>(runs, 1, runs.at), count, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return nibbles_of_16(part<2, uint8_t>(runs, 16, runs.at + B));
  }
};

template <int PART>
INLINE uint32_t word(const Runs& runs, int64_t index) {
  uint32_t found;
  memcpy(&found, part<PART, uint8_t>(runs, 4, index), 4);
  return found;
}

struct OfQ5_0 {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 1, CODES = 2, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {
    f16_to_f32(part<0, uint16_t>(runs, 1, runs.at), count, scale);
    times<8>(scale, -16, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return with_bits_of_word(nibbles_of_16(part<2, uint8_t>(runs, 16, runs.at + B)), word<1>(runs, runs.at + B));
  }
};

struct OfQ5_1 {
  enum { SUPER = 0, SCALES = 1, OFFSETS = 1, CODES = 3, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {
    f16_to_f32(part<0, uint16_t>(runs, 1, runs.at), count, scale);
    f16_to_f32(part<1, uint16_t>(runs, 1, runs.at), count, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return with_bits_of_word(nibbles_of_16(part<3, uint8_t>(runs, 16, runs.at + B)), word<2>(runs, runs.at + B));
  }
};

struct OfQ4_K {
  enum { SUPER = 1, SCALES = 1, OFFSETS = 1, CODES = 4, BYTES = 16 };
  INLINE void scales(const Runs& runs, int, float* scale, float* offset) {
    u8_to_f32(part<2, uint8_t>(runs, 8, runs.super), one_f16(part<0, uint16_t>(runs, 1, runs.super)), scale);
    u8_to_f32(part<3, uint8_t>(runs, 8, runs.super), -one_f16(part<1, uint16_t>(runs, 1, runs.super)), offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    return nibbles_of_32<B % 2>(part<4, uint8_t>(runs, 128, runs.super) + B / 2 * 32);
  }
};

struct OfQ5_K {
  enum { SUPER = 1, SCALES = 1, OFFSETS = 1, CODES = 5, BYTES = 16 };
  INLINE void scales(const Runs& runs, int count, float* scale, float* offset) {
    OfQ4_K::scales(runs, count, scale, offset);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    const C32 low = nibbles_of_32<B % 2>(part<5, uint8_t>(runs, 128, runs.super) + B / 2 * 32);
    return with_bit_of_bytes<B>(low, part<4, uint8_t>(runs, 32, runs.super));
  }
};

struct OfQ6_K {
  enum { SUPER = 1, SCALES = 2, OFFSETS = 0, CODES = 3, BYTES = 16 };
  INLINE void scales(const Runs& runs, int, float* scale, float*) {
    const float d = one_f16(part<0, uint16_t>(runs, 1, runs.super));
    const int8_t* each = part<1, int8_t>(runs, 16, runs.super);
    i8_pairs_to_f32(each, d, scale);
  }
  template <int B>
  INLINE C32 codes(const Runs& runs) {
    enum { HALF = B / 4, QUARTER = B % 4 };
    const uint8_t* low = part<3, uint8_t>(runs, 128, runs.super) + HALF * 64 + QUARTER % 2 * 32;
    return minus<32>(with_two_bits_of_bytes<2 * QUARTER>(nibbles_of_32<QUARTER / 2>(low),
                                                         part<2, uint8_t>(runs, 64, runs.super) + HALF * 32));
  }
};

}  // namespace

#include "few_bits.h"
#include "grid_blocks.h"

namespace {

struct Multiplied {  // what is done with W weights: multiplied and added up
  const float* x;
  V* sum_of;
  INLINE_MEMBER void take(int at, V v) const { *sum_of = fma(v, load(x + at), *sum_of); }
};

struct PutDown {  // or kept
  float* to;
  INLINE_MEMBER void take(int at, V v) const { store(to + at, v); }
};

template <class F, int B, int I, class Then>
INLINE void lanes(C32 codes, const float* scale, const float* offset, const Then& then) {
  enum { S = F::SCALES == 2 ? B + I * W / 16 * 8 : B };
  const V code = widen<I>(codes);
  then.take(32 * B + I * W, F::OFFSETS ? fma(code, all(scale[S]), all(offset[S])) : mul(code, all(scale[S])));
}

template <class F, int B, class Then>
INLINE void run(const Runs& runs, const float* scale, const float* offset, const Then& then) {
  const C32 codes = F::template codes<B>(runs);
  lanes<F, B, 0>(codes, scale, offset, then);
  lanes<F, B, 1>(codes, scale, offset, then);
  if constexpr (W == 8) {
    lanes<F, B, 2>(codes, scale, offset, then);
    lanes<F, B, 3>(codes, scale, offset, then);
  }
}

template <class F, class Then>
INLINE void each_run(const Runs& runs, int some, const float* scale, const float* offset, const Then& then) {
  run<F, 0>(runs, scale, offset, then);
  if (F::SUPER || some > 1) run<F, 1>(runs, scale, offset, then);
  if (F::SUPER || some > 2) run<F, 2>(runs, scale, offset, then);
  if (F::SUPER || some > 3) run<F, 3>(runs, scale, offset, then);
  if (F::SUPER || some > 4) run<F, 4>(runs, scale, offset, then);
  if (F::SUPER || some > 5) run<F, 5>(runs, scale, offset, then);
  if (F::SUPER || some > 6) run<F, 6>(runs, scale, offset, then);
  if (F::SUPER || some > 7) run<F, 7>(runs, scale, offset, then);
}

enum { AT_ONCE = 2 };  // outputs that are gone through together

// One row, the usual case, with some outputs that are so many apart: nothing is put down between reading a weight and
// multiplying by it. What is done with 256 weights is there once, for whichever of the outputs.
template <class F>
INLINE void block_outputs(const Matrix& matrix, int64_t o, int outputs, int64_t apart, const float* x, float* out) {
  const int64_t n = matrix.inputs, count = n / 32;
  V sums[AT_ONCE];
  for (int r = 0; r < AT_ONCE; r++) sums[r] = zero();
  for (int64_t at = 0; at < count; at += 8) {
    const int some = count - at < 8 ? (int)(count - at) : 8;
    ONCE for (int r = 0; r < outputs; r++) {
      const int64_t run = (o + r * apart) * count + at;
      const Runs runs = {matrix, run, F::SUPER ? run / 8 : 0};
      fetch_later<F>(runs, AHEAD);
      float scale[8 * F::SCALES], offset[8 * F::SCALES];
      F::scales(runs, some, scale, offset);
      each_run<F>(runs, some, scale, offset, Multiplied{x + 32 * at, sums + r});
    }
  }
  for (int r = 0; r < outputs; r++) out[o + r * apart] = sum(sums[r]);
}

// Some rows: 256 weights of a few outputs at a time are put down as floats, to be multiplied by each of the rows.
template <class F>
void unpack(const Matrix& matrix, int64_t o, int64_t at, int some, float* to) {
  const int64_t count = matrix.inputs / 32;
  const Runs runs = {matrix, o * count + at, F::SUPER ? (o * count + at) / 8 : 0};
  fetch_later<F>(runs, AHEAD);
  float scale[8 * F::SCALES], offset[8 * F::SCALES];
  F::scales(runs, some, scale, offset);
  each_run<F>(runs, some, scale, offset, PutDown{to});
}

typedef void (*Unpack)(const Matrix& matrix, int64_t o, int64_t at, int some, float* to);

template <int M, int R>
INLINE void unpacked_outputs(const Matrix& matrix, Unpack unpack, const float* x, float* out, int64_t o, int64_t apart) {
  const int64_t n = matrix.inputs, count = n / 32;
  float weights[R][256];
  V sums[R][M];
  for (int r = 0; r < R; r++)
    for (int m = 0; m < M; m++) sums[r][m] = zero();
  for (int64_t at = 0; at < count; at += 8) {
    const int some = count - at < 8 ? (int)(count - at) : 8;
    for (int r = 0; r < R; r++) unpack(matrix, o + r * apart, at, some, weights[r]);
    const float* from = x + 32 * at;
    for (int k = 0; k < 32 * some; k += W) {
      for (int m = 0; m < M; m++) {
        const V those = load(from + m * n + k);
        for (int r = 0; r < R; r++) sums[r][m] = fma(load(weights[r] + k), those, sums[r][m]);
      }
    }
  }
  for (int r = 0; r < R; r++)
    for (int m = 0; m < M; m++) out[m * matrix.outputs + o + r * apart] = sum(sums[r][m]);
}

template <int M>
void unpacked_rows(const Matrix& matrix, Unpack unpack, const float* x, float* out, int64_t first, int64_t last) {
  enum { R = !ONE_PASS || M > 4 ? 1 : M > 2 ? 2 : 4 };
  const int64_t apart = (last - first) / R;
  for (int64_t o = first; o < first + apart; o++) unpacked_outputs<M, R>(matrix, unpack, x, out, o, apart);
  for (int64_t o = first + R * apart; o < last; o++) unpacked_outputs<M, 1>(matrix, unpack, x, out, o, 1);
}

// ---- any number of rows, eight at most at a time

// Eight rows at a time, then four, then what is left: each number of rows is a function of its own.
INLINE int64_t some_of(int64_t rows) { return rows >= 8 ? 8 : rows >= 4 ? 4 : rows; }

// More than four rows: some outputs come from memory for the first of them, and from a cache for the others, while which
// the next outputs are asked for. So memory and arithmetic take their time together, not one after the other.
template <class D>
void dense(const Matrix& matrix, const Rows& rows_of, int64_t rows, float* out, int64_t first, int64_t last) {
  const int64_t n = matrix.inputs, bytes = n * (int64_t)sizeof(typename D::T), fit = KEPT / bytes / 12 * 12;
  const int64_t at_once = rows <= 4 ? last - first : fit ? fit : 12;
  for (int64_t o = first; o < last; o += at_once) {
    const int64_t end = last - o < at_once ? last : o + at_once;
    for (int64_t m = 0; m < rows;) {
      const float* x = rows_of.numbers + m * n;
      float* to = out + m * matrix.outputs;
      const int64_t some = rows - m >= 4 ? 4 : rows - m, later = m ? (end - o) * bytes : AHEAD;
      if (some == 4) dense_rows<D, 4>(matrix, x, to, o, end, later);
      else if (some == 3) dense_rows<D, 3>(matrix, x, to, o, end, later);
      else if (some == 2) dense_rows<D, 2>(matrix, x, to, o, end, later);
      else dense_rows<D, 1>(matrix, x, to, o, end, later);
      m += some;
    }
  }
}

template <class F>
void blocks(const Matrix& matrix, const Rows& rows_of, int64_t rows, float* out, int64_t first, int64_t last) {
  const float* x = rows_of.numbers;
  if constexpr (ONE_PASS) {
    if (rows == 1) {
      const int64_t apart = (last - first + AT_ONCE - 1) / AT_ONCE;
      for (int64_t o = first; o < first + apart; o++) {
        block_outputs<F>(matrix, o, (int)((last - o + apart - 1) / apart), apart, x, out);
      }
      return;
    }
  }
  while (rows > 0) {
    const int64_t some = some_of(rows);
    if (some == 8) unpacked_rows<8>(matrix, unpack<F>, x, out, first, last);
    else if (some == 4) unpacked_rows<4>(matrix, unpack<F>, x, out, first, last);
    else if (some == 3) unpacked_rows<3>(matrix, unpack<F>, x, out, first, last);
    else if (some == 2) unpacked_rows<2>(matrix, unpack<F>, x, out, first, last);
    else unpacked_rows<1>(matrix, unpack<F>, x, out, first, last);
    rows -= some, x += some * matrix.inputs, out += some * matrix.outputs;
  }
}

}  // namespace
