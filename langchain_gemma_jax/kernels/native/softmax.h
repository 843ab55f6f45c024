// What a softmax takes beside products: a few more operations on registers, exp and tanh.
#pragma once

#include "simd.h"

#if defined(VARIANT_AVX512)
INLINE V add(V a, V b) { return _mm512_add_ps(a, b); }
INLINE V sub(V a, V b) { return _mm512_sub_ps(a, b); }
INLINE V div(V a, V b) { return _mm512_div_ps(a, b); }
INLINE V larger(V a, V b) { return _mm512_max_ps(a, b); }  // b, if either is NaN
INLINE V zero_below(V x, V limit, V v) {  // v, or 0 where x is below the limit
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), v);
}
INLINE V power_of_two(V t) {  // 2^n, for t = TO_WHOLE + n
  const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(n, _mm512_set1_epi32(127 << 23)));
}
#elif defined(VARIANT_AVX2)
INLINE V add(V a, V b) { return _mm256_add_ps(a, b); }
INLINE V sub(V a, V b) { return _mm256_sub_ps(a, b); }
INLINE V div(V a, V b) { return _mm256_div_ps(a, b); }
INLINE V larger(V a, V b) { return _mm256_max_ps(a, b); }
INLINE V zero_below(V x, V limit, V v) { return _mm256_and_ps(_mm256_cmp_ps(x, limit, _CMP_NLT_UQ), v); }
INLINE V power_of_two(V t) {
  const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(t), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(n, _mm256_set1_epi32(127 << 23)));
}
#elif !defined(VARIANT_NEON)  // which has them beside its registers
INLINE V add(V a, V b) { return a + b; }
INLINE V sub(V a, V b) { return a - b; }
INLINE V div(V a, V b) { return a / b; }
INLINE V larger(V a, V b) { return a > b ? a : b; }
INLINE V zero_below(V x, V limit, V v) { return x < limit ? zero() : v; }
INLINE V power_of_two(V t) { return (V)(((Bits)t << 23) + (127u << 23)); }
#endif

// Adding it rounds to a whole number, which its lowest bits then hold.
#define TO_WHOLE 12582912.0f

// e^x for x up to 88: within two units in the last place. 0 below -87, and NaN where x is NaN.
INLINE V exp_of(V x) {
  const V kept = larger(all(-87.0f), x);  // in this order NaN stays NaN
  const V whole = fma(kept, all(1.44269504f), all(TO_WHOLE)), n = sub(whole, all(TO_WHOLE));
  V r = fma(n, all(-0.693359375f), kept);
  r = fma(n, all(2.12194440e-4f), r);
  V p = fma(r, all(1.9875691500e-4f), all(1.3981999507e-3f));
  p = fma(p, r, all(8.3334519073e-3f));
  p = fma(p, r, all(4.1665795894e-2f));
  p = fma(p, r, all(1.6666665459e-1f));
  p = fma(p, r, all(5.0000001201e-1f));
  p = fma(mul(r, r), p, add(r, all(1.0f)));
  return zero_below(x, all(-87.0f), mul(p, power_of_two(whole)));
}

// tanh(x): exact to 1e-7, not relatively so near zero.
INLINE V tanh_of(V x) {
  const V limit = all(20.0f);
  const V kept = sub(zero(), larger(sub(zero(), limit), sub(zero(), larger(sub(zero(), limit), x))));
  return sub(all(1.0f), div(all(2.0f), add(exp_of(add(kept, kept)), all(1.0f))));
}

// The sums of eight registers, each as sum() makes it.
#if defined(VARIANT_AVX2) || defined(VARIANT_AVX512)
INLINE __m256 two_halves(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}
INLINE __m256 two_quarters(__m256 a, __m256 b) {
  const __m256d x = _mm256_castps_pd(a), y = _mm256_castps_pd(b);
  return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)), _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)));
}
INLINE void eight_sums(const V* v, float* out) {
  __m256 h[8];
  for (int i = 0; i < 8; i++) h[i] = halves_of(v[i]);
  // Lanes of the lower half belong to the first of a pair, those of the upper one to the second.
  const __m256 a = two_quarters(two_halves(h[0], h[4]), two_halves(h[1], h[5]));
  const __m256 b = two_quarters(two_halves(h[2], h[6]), two_halves(h[3], h[7]));
  _mm256_storeu_ps(out, _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd)));
}
#else
INLINE void eight_sums(const V* v, float* out) {
  for (int i = 0; i < 8; i++) out[i] = sum(v[i]);
}
#endif
