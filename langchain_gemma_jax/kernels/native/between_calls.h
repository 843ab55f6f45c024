// The fused operations as XLA and Python's tests call them: checks, and rows shared among XLA's threads.
#pragma once

#include <cstring>
#include <string>

#include "between.h"
#include "calls.h"
#include "share.h"
#include "variant.h"

namespace between_products {
namespace {

constexpr int64_t kAloneNumbers = 32 << 10;  // fewer are done before another thread has woken
constexpr int64_t kPartNumbers = 8 << 10;

enum Which { NORM, JOIN, HEADS, GATED, BEST };
const char* const names[] = {"gemma_jax_norm", "gemma_jax_join", "gemma_jax_heads", "gemma_jax_gated", "gemma_jax_best"};

// What there is to do, however it was asked for. `rows` are rows of tokens for heads, with `tokens` each.
struct Task {
  Which which;
  const Between* variant;
  int64_t rows, n;              // numbers of a row that is made
  const float *x, *h, *post, *next;
  float *out, *second, *third;  // what is made, in order
  HeadsOf how;
  int64_t tokens;
  int64_t valid;  // of the best of some numbers: how many of a row count
  int32_t* at;
};

void one_row(const Task& task, int64_t row) {
  const int64_t at = row * task.n;
  switch (task.which) {
    case NORM: return task.variant->norm(task.x + at, task.next, task.n, task.how.eps, task.out + at);
    case JOIN:
      return task.variant->join(task.x + at, task.h + at, task.post, task.next, task.n, task.how.eps, task.out + at,
                                task.second + at);
    case BEST: return task.variant->best(task.x + at, task.n, task.valid, task.out + row, task.at + row);
    case GATED: return task.variant->gated(task.x + 2 * at, task.n, task.out + at);
    case HEADS: {
      HeadsOf how = task.how;
      const int64_t all = how.queries + how.pairs * (how.values_apart ? 2 : 1);
      how.sin += row * how.dim / 2, how.cos += row * how.dim / 2;
      const int64_t to = (row / task.tokens * how.pairs * task.tokens + row % task.tokens) * how.dim;
      return task.variant->heads(how, task.x + row * all * how.dim, task.out + row * how.queries * how.dim,
                                 task.second + to, task.third + to, task.tokens * how.dim);
    }
  }
}

void run(ffi::ThreadPool* pool, int64_t threads, const Task& task) {
  const int64_t each = task.n < kPartNumbers ? kPartNumbers / task.n : 1;
  if (task.rows * task.n < kAloneNumbers) threads = 1;
  share(pool, threads, (task.rows + each - 1) / each, [&task, each](int64_t index) {
    for (int64_t row = index * each; row < task.rows && row < (index + 1) * each; row++) one_row(task, row);
  });
}

// ---- the handlers

ffi::Error wrong(Which which, const std::string& what) {
  return ffi::Error::InvalidArgument(std::string(names[which]) + ": " + what);
}

bool alike(Dims a, Dims b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); i++)
    if (a[i] != b[i]) return false;
  return true;
}

ffi::Error between(int number, ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                   ffi::Dictionary attrs) {
  const Which which = (Which)number;
  const auto given = attrs.get<float>("eps"), size = attrs.get<float>("size");
  const auto normed = attrs.get<int64_t>("value_norm"), valid = attrs.get<int64_t>("valid");
  if (!given.has_value() || !size.has_value() || !normed.has_value() || !valid.has_value()) {
    return wrong(which, "expected the attributes eps and size (f32), value_norm and valid (s64)");
  }
  struct Counts {
    size_t least, most, results;
  };
  static const Counts counts[] = {{1, 2, 1}, {3, 4, 2}, {3, 5, 3}, {1, 1, 1}, {1, 1, 2}};
  const Counts& wanted = counts[which];
  if (args.size() < wanted.least || args.size() > wanted.most || (which == HEADS && args.size() == 4) ||
      rets.size() != wanted.results) {
    return wrong(which, "expected " + std::to_string(wanted.least) + " to " + std::to_string(wanted.most) +
                            " arrays and " + std::to_string(wanted.results) + " results, found " +
                            std::to_string(args.size()) + " and " + std::to_string(rets.size()));
  }
  Task task = {};
  const float* in[5] = {};
  float* out[3] = {};
  Dims dims[5], to[3];
  for (size_t i = 0; i < args.size(); i++) {
    const auto array = args.get<ffi::AnyBuffer>(i);
    if (!array.has_value() || array->element_type() != ffi::DataType::F32) {
      return wrong(which, "expected array " + std::to_string(i) + " in f32");
    }
    in[i] = static_cast<const float*>(array->untyped_data()), dims[i] = array->dimensions();
  }
  for (size_t i = 0; i < rets.size(); i++) {
    auto array = rets.get<ffi::AnyBuffer>(i);
    const bool whole = which == BEST && i == 1;
    if (!array.has_value() || (*array)->element_type() != (whole ? ffi::DataType::S32 : ffi::DataType::F32)) {
      return wrong(which, "expected result " + std::to_string(i) + (whole ? " in s32" : " in f32"));
    }
    if (whole) task.at = static_cast<int32_t*>((*array)->untyped_data());
    out[i] = static_cast<float*>((*array)->untyped_data()), to[i] = (*array)->dimensions();
  }
  const Dims x = dims[0];
  const int64_t last = x.size() ? x[x.size() - 1] : 0;
  int64_t numbers = 1;
  for (size_t i = 0; i < x.size(); i++) numbers *= x[i];
  if (last < 1 || numbers < 1) return wrong(which, "expected rows of a multiple of 16 numbers, found " + shape(x));
  task.which = which, task.variant = between_of(*chosen_variant());
  task.rows = numbers / last, task.n = last, task.tokens = 1;
  task.x = in[0], task.out = out[0], task.second = out[1], task.third = out[2];
  task.how.eps = *given, task.how.size = *size;
  if (which == BEST) {
    if (x.size() != 2 || *valid < 1 || *valid > last) {
      return wrong(which, "expected rows [row, number] of which 1 or more count, found " + shape(x) + " and " +
                              std::to_string(*valid));
    }
    for (size_t i = 0; i < 2; i++) {
      if (to[i].size() != 1 || to[i][0] != x[0]) {
        return wrong(which, "expected results of " + std::to_string(x[0]) + " rows, found " + shape(to[i]));
      }
    }
    task.valid = *valid;
  } else if (which == GATED) {
    task.n = last / 2;
    Dims made = to[0];
    bool fits = last % 32 == 0 && made.size() == x.size() && made[made.size() - 1] == task.n;
    for (size_t i = 0; fits && i + 1 < x.size(); i++) fits = made[i] == x[i];
    if (!fits) return wrong(which, "expected [..., 2 n], n a multiple of 16, and [..., n], found " + shape(x) + " and " + shape(made));
  } else if (which != HEADS) {
    if (last % 16) return wrong(which, "expected rows of a multiple of 16 numbers, found " + shape(x));
    const size_t scales = which == NORM ? 1 : 2;
    for (size_t i = 1; i < scales; i++) {
      if (!alike(dims[i], x)) return wrong(which, "expected two arrays alike, found " + shape(x) + " and " + shape(dims[i]));
    }
    for (size_t i = scales; i < args.size(); i++) {
      if (dims[i].size() != 1 || dims[i][0] != last) {
        return wrong(which, "expected a scale for each of " + std::to_string(last) + " numbers, found " + shape(dims[i]));
      }
    }
    for (size_t i = 0; i < rets.size(); i++) {
      if (!alike(to[i], x)) return wrong(which, "expected results like " + shape(x) + ", found " + shape(to[i]));
    }
    task.h = in[1], task.next = which == NORM ? in[1] : in[2], task.post = which == NORM ? nullptr : in[3];
  } else {
    const Dims queries = to[0], keys = to[1], turn = dims[1];
    const bool ranks = x.size() == 4 && queries.size() == 4 && keys.size() == 4 && turn.size() == 4;
    if (!ranks || last % 32 || queries[0] != x[0] || queries[1] != x[1] || queries[2] < 1 || queries[3] != last) {
      return wrong(which, "expected heads [row, token, head, dim], dim a multiple of 32, and queries of the same, found " +
                              shape(x) + " and " + shape(queries));
    }
    if (keys[0] != x[0] || keys[1] < 1 || keys[2] != x[1] || keys[3] != last || !alike(to[2], keys)) {
      return wrong(which, "expected keys and values [row, head, token, dim] for heads " + shape(x) + ", found " +
                              shape(keys) + " and " + shape(to[2]));
    }
    const int64_t rest = x[2] - queries[2];
    if (rest != keys[1] && rest != 2 * keys[1]) {
      return wrong(which, "expected " + std::to_string(rest) + " heads of keys, or half as many, found " + shape(keys));
    }
    if (turn[0] != x[0] || turn[1] != x[1] || turn[2] != 1 || 2 * turn[3] != last || !alike(dims[2], turn)) {
      return wrong(which, "expected sines and cosines [row, token, 1, dim / 2] for heads " + shape(x) + ", found " +
                              shape(turn) + " and " + shape(dims[2]));
    }
    for (size_t i = 3; i < args.size(); i++) {
      if (dims[i].size() != 1 || dims[i][0] != last) {
        return wrong(which, "expected a scale for each of " + std::to_string(last) + " numbers, found " + shape(dims[i]));
      }
    }
    task.rows = x[0] * x[1], task.tokens = x[1], task.n = x[2] * x[3];
    task.how.queries = queries[2], task.how.pairs = keys[1], task.how.dim = last;
    task.how.values_apart = rest != keys[1], task.how.value_norm = *normed != 0;
    task.how.sin = in[1], task.how.cos = in[2], task.how.query_norm = in[3], task.how.key_norm = in[4];
  }
  run(&pool, pool.num_threads(), task);
  return ffi::Error::Success();
}

}  // namespace

DEFINE_HANDLER(norm, between, NORM)
DEFINE_HANDLER(join, between, JOIN)
DEFINE_HANDLER(heads, between, HEADS)
DEFINE_HANDLER(gated, between, GATED)
DEFINE_HANDLER(best, between, BEST)

// The same by a variant, in this thread and without XLA: how variants are compared. 0: done. `sizes`: rows, numbers of a
// row that is made, tokens (of the best: how many count), heads of queries, of keys, numbers of a head, values apart, values
// normed. Arrays as XLA's.
EXPORTED int gemma_jax_between(const char* variant, int which, const int64_t* sizes, float eps, float size,
                               const float* const* in, float* const* out) {
  const Variant* found = variant_named(variant);
  if (!found || which < NORM || which > BEST || (which != BEST && sizes[1] % 16)) return 1;
  Task task = {};
  task.which = (Which)which, task.variant = between_of(*found), task.rows = sizes[0], task.n = sizes[1];
  task.tokens = sizes[2], task.x = in[0], task.out = out[0], task.second = out[1], task.third = out[2];
  task.h = in[1], task.next = which == NORM ? in[1] : in[2], task.post = which == JOIN ? in[3] : nullptr;
  task.how = {sizes[3], sizes[4], sizes[5], sizes[6] != 0, in[1], in[2], in[3], in[4], sizes[7] != 0, eps, size};
  task.valid = sizes[2], task.at = reinterpret_cast<int32_t*>(out[1]);
  run(nullptr, 1, task);
  return 0;
}

}  // namespace between_products
