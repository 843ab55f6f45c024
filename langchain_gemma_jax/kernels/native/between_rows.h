// The fused operations between products, for the variant that includes this.
#pragma once

#include "between.h"
#include "softmax.h"

namespace {
namespace rows {

#if defined(VARIANT_AVX2) || defined(VARIANT_AVX512)
INLINE float root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
#else
INLINE float root(float x) { return __builtin_sqrtf(x); }
#endif

INLINE V inverse_size(const float* x, int64_t n, float eps) {
  V sums[4];
  for (int i = 0; i < 4; i++) sums[i] = zero();
  int64_t k = 0;
  for (; k + 4 * W <= n; k += 4 * W) {
    for (int i = 0; i < 4; i++) {
      const V v = load(x + k + i * W);
      sums[i] = fma(v, v, sums[i]);
    }
  }
  for (int i = 0; k < n; k += W, i++) {
    const V v = load(x + k);
    sums[i] = fma(v, v, sums[i]);
  }
  const float total = sum(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
  return all(1.0f / root(total / (float)n + eps));
}

INLINE V scaled(V x, V inverse, const float* scale, int64_t k) {
  return scale ? mul(mul(x, inverse), load(scale + k)) : mul(x, inverse);
}

void norm(const float* x, const float* scale, int64_t n, float eps, float* out) {
  const V inverse = inverse_size(x, n, eps);
  for (int64_t k = 0; k < n; k += W) store(out + k, scaled(load(x + k), inverse, scale, k));
}

void join(const float* x, const float* h, const float* post, const float* next, int64_t n, float eps, float* sum,
          float* out) {
  if (post) {
    const V inverse = inverse_size(h, n, eps);
    for (int64_t k = 0; k < n; k += W) store(sum + k, add(load(x + k), scaled(load(h + k), inverse, post, k)));
  } else {
    for (int64_t k = 0; k < n; k += W) store(sum + k, add(load(x + k), load(h + k)));
  }
  norm(sum, next, n, eps, out);
}

// A head, normed and turned: its first half against its second.
INLINE void one_head(const HeadsOf& how, const float* x, const float* scale, float size, float* out) {
  const int64_t half = how.dim / 2;
  const V inverse = scale ? inverse_size(x, how.dim, how.eps) : all(1.0f), by = all(size);
  for (int64_t k = 0; k < half; k += W) {
    const V a = scale ? scaled(load(x + k), inverse, scale, k) : load(x + k);
    const V b = scale ? scaled(load(x + half + k), inverse, scale, half + k) : load(x + half + k);
    const V sin = load(how.sin + k), cos = load(how.cos + k);
    store(out + k, mul(sub(mul(a, cos), mul(b, sin)), by));
    store(out + half + k, mul(add(mul(b, cos), mul(a, sin)), by));
  }
}

void heads(const HeadsOf& how, const float* x, float* queries, float* keys, float* values, int64_t stride) {
  for (int64_t i = 0; i < how.queries; i++) {
    one_head(how, x + i * how.dim, how.query_norm, how.size, queries + i * how.dim);
  }
  for (int64_t i = 0; i < how.pairs; i++) {
    const float* key = x + (how.queries + i) * how.dim;
    const float* value = how.values_apart ? key + how.pairs * how.dim : key;
    one_head(how, key, how.key_norm, 1.0f, keys + i * stride);
    if (how.value_norm) norm(value, 0, how.dim, how.eps, values + i * stride);
    else memcpy(values + i * stride, value, (size_t)how.dim * sizeof(float));
  }
}

// gelu(x) = x / (1 + e^(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): the form with tanh, without what that loses
INLINE V gelu(V x) {
  const V cube = mul(mul(x, x), x);
  const V twice = mul(all(1.5957691216f), fma(all(0.044715f), cube, x));
  const V low = larger(all(-87.0f), twice);  // in this order NaN stays NaN
  const V power = exp_of(sub(zero(), low));
  return div(x, add(all(1.0f), power));
}

void gated(const float* x, int64_t n, float* out) {
  for (int64_t k = 0; k < n; k += W) store(out + k, mul(gelu(load(x + k)), load(x + n + k)));
}

enum { NEAR = 1024 };  // numbers that are looked through for where the best is

// The largest of a multiple of W numbers. A NaN is detected separately.
INLINE float largest(const float* x, int64_t n, bool* none) {
  V tops = all(f32_of_bits(0xff800000)), odd = zero();
  for (int64_t k = 0; k < n; k += W) {
    const V v = load(x + k);
    tops = larger(v, tops);  // in this order NaN is skipped
    odd = add(odd, sub(v, v));  // zero, except for NaN and infinities
  }
  float each[W], found = f32_of_bits(0xff800000);
  store(each, tops);
  for (int i = 0; i < W; i++) found = each[i] > found ? each[i] : found;
  const float rest = sum(odd);
  if (rest != rest) {  // seldom: which of them it was
    for (int64_t k = 0; k < n; k++) *none |= x[k] != x[k];
  }
  return found;
}

void best(const float* x, int64_t n, int64_t valid, float* out, int32_t* at) {
  float top = f32_of_bits(0xff800000);
  bool none = false;
  int64_t where = 0, k = 0;
  for (; k + NEAR <= valid; k += NEAR) {
    const float found = largest(x + k, NEAR, &none);
    if (found > top) top = found, where = k;
  }
  for (int64_t i = k; i < valid; i++) {
    none |= x[i] != x[i];
    if (x[i] > top) top = x[i], where = i;
  }
  for (int64_t i = valid; i < n; i++) none |= x[i] != x[i];
  while (where + 1 < valid && x[where] != top) where++;
  *out = none ? f32_of_bits(0x7fc00000) : top, *at = none ? 0 : (int32_t)where;
}

}  // namespace rows
}  // namespace

#define DEFINE_BETWEEN(NAME) \
  static const Between between_##NAME = {#NAME, rows::norm, rows::join, rows::heads, rows::gated, rows::best};
