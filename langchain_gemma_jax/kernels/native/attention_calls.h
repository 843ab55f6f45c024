// Attention as XLA calls it, and Python's tests: checks, and the work cut into pieces for XLA's threads.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "attention.h"
#include "calls.h"
#include "share.h"
#include "variant.h"

namespace attending {
namespace {

constexpr int64_t kBlockRows = 64;           // queries that go through keys and values together
constexpr int64_t kAloneWork = 250000;       // products of two numbers: fewer are done before another thread has woken
constexpr int64_t kMostBytes = int64_t{8} << 20;  // of parts that wait to be joined

// Rows whose caches lie in one array, [row, head, slot, dim].
struct Cache {
  const char *keys, *values;
  int64_t slots;
};

struct Task {
  const Attention* variant;
  Stored stored;
  int64_t rows, tokens, heads, kv_heads, dim, behind;
  Sight sight;
  const float* queries;
  const int32_t *first, *split;  // [row]
  std::vector<Cache> caches;     // each has its equal share of the rows
  float* out;

  int64_t group() const { return heads / kv_heads; }
  int64_t block_tokens() const { return group() < kBlockRows ? kBlockRows / group() : 1; }
  int64_t blocks() const { return (tokens + block_tokens() - 1) / block_tokens(); }
  int64_t pieces() const { return rows * kv_heads * blocks(); }
};

// Some tokens' queries of one key-value head.
struct Piece {
  Slots slots;
  Queries queries;
  float* out;
  int64_t low, high;  // the positions that any of them sees
};

Piece piece_of(const Task& task, int64_t index) {
  const int64_t block = index % task.blocks(), head = index / task.blocks() % task.kv_heads;
  const int64_t row = index / task.blocks() / task.kv_heads;
  const int64_t token = block * task.block_tokens();
  const int64_t some = task.tokens - token < task.block_tokens() ? task.tokens - token : task.block_tokens();
  const int64_t each = task.rows / (int64_t)task.caches.size();
  const Cache& cache = task.caches[row / each];
  const int64_t at = (row % each * task.kv_heads + head) * cache.slots * task.dim * (task.stored == STORED_F32 ? 4 : 2);
  const int64_t to = ((row * task.tokens + token) * task.heads + head * task.group()) * task.dim;
  Piece piece;
  piece.slots = {cache.keys + at, cache.values + at, cache.slots - task.behind, task.split[row], task.behind};
  piece.queries = {task.queries + to, some * task.group(), task.group(), task.heads * task.dim, task.dim,
                   task.first[row] + token};
  piece.out = task.out + to;
  piece.low = seen_by(piece.slots, piece.queries, task.sight, 0).low;
  piece.high = seen_by(piece.slots, piece.queries, task.sight, piece.queries.rows - 1).high;
  return piece;
}

int64_t spans_of(const Piece& piece) {
  return piece.low < piece.high ? (piece.high - 1) / SPAN - piece.low / SPAN + 1 : 0;
}

int64_t floats_of(const Queries& q) { return q.rows * (q.dim + 2); }

Mixed mixed_at(float* room, const Queries& q) { return {room, room + q.rows, room + 2 * q.rows}; }

// Memory of a thread's own, kept for its next piece.
float* scratch(int64_t floats) {
  thread_local std::vector<float> room;
  if ((int64_t)room.size() < floats) room.resize(floats);
  return room.data();
}

void one_span(const Task& task, const Piece& piece, int64_t span, float* scores, const Mixed& out) {
  const int64_t from = (piece.low / SPAN + span) * SPAN;
  task.variant->part[task.stored](piece.slots, piece.queries, task.sight, from, scores, out);
}

// A piece from its first span to its last.
void whole_piece(const Task& task, const Piece& piece) {
  const Queries& q = piece.queries;
  float* room = scratch(q.rows * SPAN + 2 * floats_of(q));
  const Mixed mixed = mixed_at(room + q.rows * SPAN, q), part = mixed_at(room + q.rows * SPAN + floats_of(q), q);
  for (int64_t row = 0; row < q.rows; row++) mixed.sums[row] = 0;
  for (int64_t span = 0, spans = spans_of(piece); span < spans; span++) {
    one_span(task, piece, span, room, part);
    task.variant->join(q.rows, q.dim, mixed, part);
  }
  task.variant->finish(q, mixed, piece.out);
}

// Few pieces over many spans: each span is a part of the work, and who finishes a piece's last one joins them.
struct Apart {
  std::vector<Piece> pieces;
  std::vector<int64_t> first_span, first_float;  // of each piece
  std::vector<int32_t> piece_of;                 // each span
  std::unique_ptr<std::atomic<int64_t>[]> left;  // spans of each piece
};

void span_apart(const Task& task, Apart& apart, float* parts, int64_t index) {
  const int64_t number = apart.piece_of[index];
  const Piece& piece = apart.pieces[number];
  const Queries& q = piece.queries;
  const int64_t first = apart.first_span[number], each = floats_of(q);
  float* mine = parts + apart.first_float[number];
  one_span(task, piece, index - first, scratch(q.rows * SPAN), mixed_at(mine + (index - first) * each, q));
  if (apart.left[number].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Mixed mixed = mixed_at(mine, q);
  for (int64_t span = 1, spans = spans_of(piece); span < spans; span++) {
    task.variant->join(q.rows, q.dim, mixed, mixed_at(mine + span * each, q));
  }
  task.variant->finish(q, mixed, piece.out);
}

enum How { HOW_FITS, HOW_WHOLE, HOW_APART };

void attend(ffi::ThreadPool* pool, int64_t threads, const Task& task, How how) {
  const int64_t pieces = task.pieces();
  Apart apart;
  int64_t spans = 0, floats = 0, work = 0;
  const bool few = pieces < 4 * threads;
  if (how == HOW_APART || (how == HOW_FITS && few)) {
    for (int64_t i = 0; i < pieces; i++) {
      apart.pieces.push_back(piece_of(task, i));
      const Piece& piece = apart.pieces.back();
      if (piece.low < piece.high) work += 2 * (piece.high - piece.low) * piece.queries.rows * task.dim;
      const int64_t here = spans_of(piece);
      apart.first_span.push_back(spans), apart.first_float.push_back(floats);
      spans += here, floats += here * floats_of(piece.queries);
    }
  }
  if (how == HOW_FITS && few && work < kAloneWork) threads = 1;
  const bool whole = how == HOW_WHOLE || (how == HOW_FITS && (!few || threads < 2 || spans <= pieces ||
                                                              floats * (int64_t)sizeof(float) > kMostBytes));
  if (whole) return share(pool, threads, pieces, [&task](int64_t i) { whole_piece(task, piece_of(task, i)); });
  apart.left.reset(new std::atomic<int64_t>[pieces]);
  for (int64_t i = 0; i < pieces; i++) {
    const int64_t here = spans_of(apart.pieces[i]);
    apart.left[i].store(here, std::memory_order_relaxed);
    apart.piece_of.insert(apart.piece_of.end(), here, (int32_t)i);
    if (!here) whole_piece(task, apart.pieces[i]);  // nothing is seen: zeros
  }
  thread_local std::vector<float> parts;
  if ((int64_t)parts.size() < floats) parts.resize(floats);
  float* at = parts.data();
  // Spans that follow each other go to one thread, as far as all have enough to do: what comes next is fetched meanwhile.
  const int64_t run = spans / (8 * threads) > 1 ? spans / (8 * threads) : 1;
  share(pool, threads, (spans + run - 1) / run, [&task, &apart, at, run, spans](int64_t i) {
    for (int64_t span = i * run; span < spans && span < (i + 1) * run; span++) span_apart(task, apart, at, span);
  });
}

// ---- the handler

ffi::Error wrong(const std::string& what) { return ffi::Error::InvalidArgument("gemma_jax_attention: " + what); }

bool stored_as(ffi::DataType dtype, Stored* stored) {
  if (dtype == ffi::DataType::F32) return *stored = STORED_F32, true;
  if (dtype == ffi::DataType::F16) return *stored = STORED_F16, true;
  if (dtype == ffi::DataType::BF16) return *stored = STORED_BF16, true;
  return false;
}

ffi::Error attention(int, ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Dictionary attrs) {
  enum { BEFORE = 3 };  // queries and positions, then caches
  const auto given_window = attrs.get<int64_t>("window"), given_behind = attrs.get<int64_t>("behind");
  const auto given_cap = attrs.get<float>("cap");
  if (!given_window.has_value() || !given_behind.has_value() || !given_cap.has_value()) {
    return wrong("expected the attributes window, behind and cap");
  }
  const int64_t window = *given_window, behind = *given_behind;
  const float cap = *given_cap;
  if (args.size() < BEFORE || rets.size() != 1) {
    return wrong("expected queries, positions, caches and one result, found " + std::to_string(args.size()) +
                 " arrays and " + std::to_string(rets.size()));
  }
  const auto queries = args.get<ffi::AnyBuffer>(0), first = args.get<ffi::AnyBuffer>(1), split = args.get<ffi::AnyBuffer>(2);
  auto out = rets.get<ffi::AnyBuffer>(0);
  if (!queries.has_value() || queries->element_type() != ffi::DataType::F32 || !out.has_value() ||
      (*out)->element_type() != ffi::DataType::F32) {
    return wrong("expected queries and a result in f32");
  }
  const Dims q = queries->dimensions(), to = (*out)->dimensions();
  if (q.size() != 4 || q[0] < 1 || q[1] < 1 || q[2] < 1 || q[3] < 1 || q[3] % 16) {
    return wrong("expected queries [row, token, head, dim], dim a multiple of 16, found " + shape(q));
  }
  if (to.size() != 3 || to[0] != q[0] || to[1] != q[1] || to[2] != q[2] * q[3]) {
    return wrong("expected a result [row, token, head * dim] for queries " + shape(q) + ", found " + shape(to));
  }
  for (const auto* each : {&first, &split}) {
    if (!each->has_value() || (*each)->element_type() != ffi::DataType::S32) return wrong("expected positions in s32");
    const Dims dims = (*each)->dimensions();
    if (dims.size() != 1 || dims[0] != q[0]) {
      return wrong("expected positions of " + std::to_string(q[0]) + " rows, found " + shape(dims));
    }
  }
  const int64_t arrays = args.size() - BEFORE, caches = arrays / 2;
  if (arrays % 2 || caches < 1 || q[0] % caches) {
    return wrong("expected keys and values in equal shares of " + std::to_string(q[0]) + " rows, found " +
                 std::to_string(arrays) + " arrays");
  }
  if (window < 1) return wrong("expected a window of 1 or more, found " + std::to_string(window));
  if (!(cap >= 0)) return wrong("expected a cap that is not negative, found " + std::to_string(cap));
  Task task;
  task.rows = q[0], task.tokens = q[1], task.heads = q[2], task.dim = q[3], task.behind = behind;
  for (int64_t i = 0; i < 2 * caches; i++) {
    const auto array = args.get<ffi::AnyBuffer>(BEFORE + i);
    const std::string name = (i % 2 ? "values " : "keys ") + std::to_string(i / 2);
    if (!array.has_value()) return wrong(name + " is no array");
    const auto dims = array->dimensions();
    if (dims.size() != 4 || dims[0] != q[0] / caches || dims[1] < 1 || q[2] % dims[1] || dims[2] < 1 ||
        dims[3] != q[3]) {
      return wrong("expected " + name + " [" + std::to_string(q[0] / caches) + ", kv_head, slot, " +
                   std::to_string(q[3]) + "] for queries " + shape(q) + ", found " + shape(dims));
    }
    Stored stored;
    if (!stored_as(array->element_type(), &stored)) return wrong("expected " + name + " in f32, f16 or bf16");
    if (behind < 0 || behind >= dims[2]) {
      return wrong("expected fewer slots behind the ring than there are, found " + std::to_string(behind) + " of " +
                   std::to_string(dims[2]));
    }
    if (i == 0) task.stored = stored, task.kv_heads = dims[1];
    const bool same = task.stored == stored && task.kv_heads == dims[1] && (i % 2 == 0 || task.caches.back().slots == dims[2]);
    if (!same) return wrong("expected " + name + " as the keys before it are, found " + shape(dims));
    const char* data = static_cast<const char*>(array->untyped_data());
    if (i % 2) task.caches.back().values = data;
    else task.caches.push_back({data, nullptr, dims[2]});
  }
  task.variant = attention_of(*chosen_variant());
  task.sight = {window, cap};
  task.queries = queries->typed_data<float>(), task.out = (*out)->typed_data<float>();
  task.first = first->typed_data<int32_t>(), task.split = split->typed_data<int32_t>();
  attend(&pool, pool.num_threads(), task, HOW_FITS);
  return ffi::Error::Success();
}

}  // namespace

DEFINE_HANDLER(attention, attention, 0)

// The same by a variant, in this thread and without XLA, whole or span by span: how variants are compared. 0: done.
// `sizes`: rows, tokens, heads, kv_heads, dim, slots, behind, window.
EXPORTED int gemma_jax_attend(const char* variant, int stored, int apart, const int64_t* sizes, float cap,
                              const float* queries, const int32_t* first, const int32_t* split, const void* keys,
                              const void* values, float* out) {
  const Variant* found = variant_named(variant);
  if (!found || stored < 0 || stored >= STORED_WAYS || sizes[4] % 16) return 1;
  Task task;
  task.variant = attention_of(*found), task.stored = (Stored)stored;
  task.rows = sizes[0], task.tokens = sizes[1], task.heads = sizes[2], task.kv_heads = sizes[3], task.dim = sizes[4];
  task.behind = sizes[6], task.sight = {sizes[7], cap};
  task.queries = queries, task.first = first, task.split = split, task.out = out;
  task.caches.push_back({static_cast<const char*>(keys), static_cast<const char*>(values), sizes[5]});
  attend(nullptr, 1, task, apart ? HOW_APART : HOW_WHOLE);
  return 0;
}

}  // namespace attending
