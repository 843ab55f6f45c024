// The parts of attention, for the variant that includes this.
#pragma once

#include "attention.h"
#include "softmax.h"

namespace {
namespace spans {

enum { NEAR_BYTES = 16 << 10 };  // of keys or values that all queries go through before the next ones come
enum { MOST_ALONE = 8 };         // so few queries are done with keys before the values are there
#if defined(VARIANT_AVX512)
enum { UNDER_WAY = 16 };  // sums, of 32 registers
#else
enum { UNDER_WAY = 8 };  // enough to hide how long an addition takes
#endif

INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

INLINE float minus_infinity() { return f32_of_bits(0xff800000); }

INLINE float exp_of_one(float x) {
  float out[W];
  store(out, exp_of(all(x)));
  return out[0];
}

// Positions that follow each other in memory too: `offset` numbers after those of page 0.
struct Run {
  int64_t offset, count;
};

INLINE Run run_at(const Pages& at, int64_t position, int64_t end, int64_t each) {
  const int64_t slot = position % at.tokens, page = at.table[position / at.tokens % at.entries];
  const int64_t real = page >= 0 && page < at.count ? page : 0;
  return {real * at.stride + slot * each, least(end - position, at.tokens - slot)};
}

INLINE const float* query(const Queries& q, int64_t row) {
  return q.first + row / q.group * q.token + row % q.group * q.dim;
}

// ---- how numbers are stored

template <class D>
struct As {  // a head's numbers follow those of the head before
  enum { SCALED = 0 };
  static INLINE_MEMBER int64_t row(int64_t dim) { return dim; }
};

struct OfI8 {
  typedef int8_t T;
  static INLINE_MEMBER V get(const T* p) { return load_i8(p); }
};

template <>
struct As<OfI8> {  // with a scale behind them
  enum { SCALED = 1 };
  static INLINE_MEMBER int64_t row(int64_t dim) { return dim + SCALE_BYTES; }
};

// Multiplies what belongs to `count` tokens, of each of some queries, by the tokens' scales.
INLINE void scale(const int8_t* stored, int64_t count, int64_t dim, int64_t rows, float* numbers) {
  float scales[SPAN];
  for (int64_t i = 0; i < count; i++) memcpy(scales + i, stored + i * As<OfI8>::row(dim) + dim, sizeof(float));
  for (int64_t row = 0; row < rows; row++) {
    float* to = numbers + row * SPAN;
    int64_t i = 0;
    for (; i + W <= count; i += W) store(to + i, mul(load(to + i), load(scales + i)));
    for (; i < count; i++) to[i] *= scales[i];
  }
}

template <int H>
INLINE void sums_and_differences(float* x, int64_t dim) {  // of numbers that lie H apart
  for (int64_t i = 0; i < dim; i += 2 * H)
    for (int64_t j = i; j < i + H; j++) {
      const float a = x[j], b = x[j + H];
      x[j] = a + b, x[j + H] = a - b;
    }
}

void turn(float* x, int64_t dim) {
  const int64_t block = dim & -dim;  // at least 16
  sums_and_differences<1>(x, dim);
  sums_and_differences<2>(x, dim);
  sums_and_differences<4>(x, dim);
  sums_and_differences<8>(x, dim);
  for (int64_t h = 16; h < block; h *= 2) {
    for (int64_t i = 0; i < dim; i += 2 * h)
      for (int64_t j = i; j < i + h; j += W) {
        const V a = load(x + j), b = load(x + j + h);
        store(x + j, add(a, b)), store(x + j + h, sub(a, b));
      }
  }
  float size = 1;  // 1 over the root of the block
  for (int64_t left = block; left > 1; left /= 4) size *= left == 2 ? 0.707106781f : 0.5f;
  for (int64_t i = 0; i < dim; i += W) store(x + i, mul(load(x + i), all(size)));
}

void round(const float* x, int64_t dim, int8_t* to) {
  V tops = zero(), broken = zero();
  for (int64_t i = 0; i < dim; i += W) {
    const V v = load(x + i);
    tops = larger(sub(zero(), v), larger(v, tops));
    broken = fma(v, zero(), broken);  // NaN, if any number is none
  }
  float each[W], most = 0;
  store(each, tops);
  for (int i = 0; i < W; i++) most = each[i] > most ? each[i] : most;
  const float inverse = most > 0 ? 127.0f / most : 0, scale = most / 127.0f + sum(broken);
  for (int64_t i = 0; i < dim; i++) {
    const float whole = x[i] * inverse + TO_WHOLE;
    uint32_t bits;
    memcpy(&bits, &whole, 4);
    to[i] = (int8_t)(uint8_t)bits;
  }
  memcpy(to + dim, &scale, sizeof scale);
}

// ---- scores

// M queries with S keys: M * S sums are under way.
template <class D, int M, int S>
INLINE void some_scores(const float* const* q, const typename D::T* const* k, int64_t dim, float* out) {
  V sums[M * S];
  for (int i = 0; i < M * S; i++) sums[i] = zero();
  for (int64_t d = 0; d < dim; d += W) {
    V keys[S];
    for (int s = 0; s < S; s++) keys[s] = D::get(k[s] + d);
    for (int m = 0; m < M; m++) {
      const V v = load(q[m] + d);
      for (int s = 0; s < S; s++) sums[m * S + s] = fma(v, keys[s], sums[m * S + s]);
    }
  }
  for (int i = 0; i < M * S; i += 8) eight_sums(sums + i, out + i);
}

// `soon` are the values that go with these keys: they come to the caches while keys are gone through.
template <class D, int M>
INLINE void scores_of_rows(const Queries& q, int64_t row, const typename D::T* keys, int64_t count, float* scores,
                           const typename D::T* soon) {
  enum { S = UNDER_WAY / M };
  const int64_t each_key = As<D>::row(q.dim);
  const float* rows[M];
  float found[UNDER_WAY];
  for (int m = 0; m < M; m++) rows[m] = query(q, least(row + m, q.rows - 1));
  const int64_t real = least(M, q.rows - row);
  for (int64_t i = 0; i < count; i += S) {
    if (soon) {
      const int64_t each = 64 / sizeof(typename D::T), last = least(i + S, count) * each_key;
      for (int64_t d = i * each_key; d < last; d += each) fetch(soon + d);
    }
    const typename D::T* k[S];
    for (int s = 0; s < S; s++) k[s] = keys + least(i + s, count - 1) * each_key;
    some_scores<D, M, S>(rows, k, q.dim, found);
    const int64_t some = least(S, count - i);
    for (int64_t m = 0; m < real; m++)
      for (int64_t s = 0; s < some; s++) scores[(row + m) * SPAN + i + s] = found[m * S + s];
  }
}

// ---- values

// What is wanted next, and comes to the caches while something else is gone through.
struct Soon {
  const char* from;
  int64_t bytes;
};

// M queries, N registers of a value: what is there already goes on. Values are `each` numbers apart.
template <class D, int M, int N>
INLINE void some_values(const float* const* shares, const typename D::T* values, int64_t count, int64_t each,
                        float* const* out) {
  V sums[M][N];
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) sums[m][n] = load(out[m] + n * W);
  for (int64_t s = 0; s < count; s++) {
    V v[N];
    for (int n = 0; n < N; n++) v[n] = D::get(values + s * each + n * W);
    for (int m = 0; m < M; m++) {
      const V share = all(shares[m][s]);
      for (int n = 0; n < N; n++) sums[m][n] = fma(share, v[n], sums[m][n]);
    }
  }
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) store(out[m] + n * W, sums[m][n]);
}

template <class D, int M>
INLINE void values_of_rows(const Queries& q, int64_t row, const float* scores, const typename D::T* values,
                           int64_t count, float* out, const Soon& soon) {
  enum { N = UNDER_WAY / M };
  const float* shares[M];
  float* to[M];
  for (int m = 0; m < M; m++) shares[m] = scores + least(row + m, q.rows - 1) * SPAN;
  int64_t d = 0;
  for (; d + N * W <= q.dim; d += N * W) {
    const int64_t first = d * soon.bytes / q.dim, last = (d + N * W) * soon.bytes / q.dim;
    for (int64_t line = (first + 63) / 64 * 64; line < last; line += 64) fetch(soon.from + line);
    for (int m = 0; m < M; m++) to[m] = out + least(row + m, q.rows - 1) * q.dim + d;
    some_values<D, M, N>(shares, values + d, count, As<D>::row(q.dim), to);
  }
  for (; d < q.dim; d += W) {
    for (int m = 0; m < M; m++) to[m] = out + least(row + m, q.rows - 1) * q.dim + d;
    some_values<D, M, 1>(shares, values + d, count, As<D>::row(q.dim), to);
  }
}

// ---- shares

// Scores at low <= i < high become shares of the largest, the others of first <= i < last zero.
INLINE void softmax(float* scores, int64_t first, int64_t last, int64_t low, int64_t high, float cap, float* top,
                    float* whole) {
  *top = minus_infinity(), *whole = 0;
  const int64_t begin = first / W * W, end = (last + W - 1) / W * W;
  if (low >= high) {
    for (int64_t i = begin; i < end; i += W) store(scores + i, zero());
    return;
  }
  if (cap > 0) {
    const V by = all(cap);
    for (int64_t i = begin; i < end; i += W) store(scores + i, mul(tanh_of(div(load(scores + i), by)), by));
  }
  for (int64_t i = begin; i < low; i++) scores[i] = minus_infinity();
  for (int64_t i = high; i < end; i++) scores[i] = minus_infinity();
  V tops = all(minus_infinity()), sums = zero();
  for (int64_t i = begin; i < end; i += W) tops = larger(load(scores + i), tops);
  float each[W];
  store(each, tops);
  for (int i = 0; i < W; i++) *top = each[i] > *top ? each[i] : *top;
  const V from = all(*top);
  for (int64_t i = begin; i < end; i += W) {
    const V share = exp_of(sub(load(scores + i), from));
    store(scores + i, share);
    sums = add(sums, share);
  }
  *whole = sum(sums);
}

template <class D>
void part(const Pages& at, const Queries& q, const Sight& sight, int64_t from, float* scores, const Mixed& out) {
  typedef typename D::T T;
  const int64_t low = most(seen_by(at, q, sight, 0).low, from);
  const int64_t all_high = seen_by(at, q, sight, q.rows - 1).high, high = least(all_high, from + SPAN);
  if (low >= high) {
    for (int64_t row = 0; row < q.rows; row++) out.sums[row] = 0;
    return;
  }
  const bool alone = q.rows <= MOST_ALONE;
  const int64_t each = As<D>::row(q.dim), some = most(1, NEAR_BYTES / (each * (int64_t)sizeof(T)));
  for (int64_t position = low; position < high;) {
    const Run run = run_at(at, position, least(position + some, high), each);
    const T* keys = (const T*)at.keys + run.offset;
    const T* soon = alone ? (const T*)at.values + run.offset : 0;
    float* to = scores + (position - from);
    int64_t row = 0;
    for (; row + 2 < q.rows; row += 4) scores_of_rows<D, 4>(q, row, keys, run.count, to, soon);
    if (row + 1 < q.rows) scores_of_rows<D, 2>(q, row, keys, run.count, to, soon), row += 2;
    if (row < q.rows) scores_of_rows<D, 1>(q, row, keys, run.count, to, soon);
    if constexpr (As<D>::SCALED) scale(keys, run.count, q.dim, q.rows, to);
    position += run.count;
  }
  for (int64_t row = 0; row < q.rows; row++) {
    const Seen seen = seen_by(at, q, sight, row);
    softmax(scores + row * SPAN, low - from, high - from, most(seen.low, low) - from, least(seen.high, high) - from,
            sight.cap, out.tops + row, out.sums + row);
  }
  memset(out.values, 0, (size_t)(q.rows * q.dim) * sizeof(float));
  for (int64_t position = low; position < high;) {
    const Run run = run_at(at, position, least(position + some, high), each);
    const T* values = (const T*)at.values + run.offset;
    float* shares = scores + (position - from);
    if constexpr (As<D>::SCALED) scale(values, run.count, q.dim, q.rows, shares);
    Soon soon = {0, 0};
    if (alone && position + SPAN < all_high) {  // the next span's keys
      const Run next = run_at(at, position + SPAN, least(position + SPAN + run.count, all_high), each);
      soon = {(const char*)((const T*)at.keys + next.offset), next.count * each * (int64_t)sizeof(T)};
    }
    int64_t row = 0;
    for (; row + 2 < q.rows; row += 4) values_of_rows<D, 4>(q, row, shares, values, run.count, out.values, soon);
    if (row + 1 < q.rows) values_of_rows<D, 2>(q, row, shares, values, run.count, out.values, soon), row += 2;
    if (row < q.rows) values_of_rows<D, 1>(q, row, shares, values, run.count, out.values, soon);
    position += run.count;
  }
}

void join(int64_t rows, int64_t dim, const Mixed& into, const Mixed& part) {
  for (int64_t row = 0; row < rows; row++) {
    float *mine = into.values + row * dim, *other = part.values + row * dim;
    if (part.sums[row] == 0) continue;
    if (into.sums[row] == 0) {
      memcpy(mine, other, (size_t)dim * sizeof(float));
      into.tops[row] = part.tops[row], into.sums[row] = part.sums[row];
      continue;
    }
    const float top = into.tops[row] > part.tops[row] ? into.tops[row] : part.tops[row];
    const float keep = exp_of_one(into.tops[row] - top), take = exp_of_one(part.tops[row] - top);
    into.tops[row] = top;
    into.sums[row] = into.sums[row] * keep + part.sums[row] * take;
    for (int64_t d = 0; d < dim; d += W) store(mine + d, fma(load(other + d), all(take), mul(load(mine + d), all(keep))));
  }
}

void finish(const Queries& q, const Mixed& mixed, float* out) {
  for (int64_t row = 0; row < q.rows; row++) {
    float* to = out + row / q.group * q.token + row % q.group * q.dim;
    const float whole = mixed.sums[row];
    const V by = all(whole == 0 ? 0 : 1 / whole);
    for (int64_t d = 0; d < q.dim; d += W)
      store(to + d, whole == 0 ? zero() : mul(load(mixed.values + row * q.dim + d), by));
  }
}

}  // namespace spans
}  // namespace

#define DEFINE_ATTENTION(NAME)                                                                                      \
  static const Attention attention_##NAME = {                                                                       \
      #NAME,                                                                                                        \
      {spans::part<OfF32>, spans::part<OfF16>, spans::part<OfBF16>, spans::part<spans::OfI8>},                      \
      spans::join, spans::finish, spans::turn, spans::round};
