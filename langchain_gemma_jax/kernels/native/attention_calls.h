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

// A row's place in its context. Tokens from `count` on are padding.
struct Place {
  int32_t first, count, until;
};

struct Task {
  const Attention* variant;
  Stored stored;
  int64_t rows, tokens, heads, kv_heads, dim;
  int64_t pages, page_tokens, entries;
  Sight sight;
  const float* queries;
  const Place* places;   // [row]
  const int32_t* table;  // [row, entry]
  const char *keys, *values;  // [page, kv_head, slot, dim]
  float* out;

  int64_t group() const { return heads / kv_heads; }
  int64_t block_tokens() const { return group() < kBlockRows ? kBlockRows / group() : 1; }
  int64_t blocks() const { return (tokens + block_tokens() - 1) / block_tokens(); }
  int64_t pieces() const { return rows * kv_heads * blocks(); }
  bool rounded() const { return stored == STORED_I8; }
  int64_t size() const { return stored == STORED_F32 ? 4 : rounded() ? 1 : 2; }  // of a number
  int64_t each() const { return rounded() ? dim + SCALE_BYTES : dim; }           // numbers of a token's head
  int64_t of_head() const { return page_tokens * each(); }                       // numbers of a page
  int64_t real_tokens(int64_t row) const {
    const int64_t count = places[row].count;
    return count < 0 ? 0 : count < tokens ? count : tokens;
  }
};

// Some tokens' queries of one key-value head.
struct Piece {
  Pages pages;
  Queries queries;
  float* out;
  int64_t low, high;  // the positions that any of them sees
};

// A piece of a task. What is made of padding is zero, and is written here.
Piece piece_of(const Task& task, int64_t index) {
  const int64_t block = index % task.blocks(), head = index / task.blocks() % task.kv_heads;
  const int64_t row = index / task.blocks() / task.kv_heads;
  const int64_t token = block * task.block_tokens();
  const int64_t some = task.tokens - token < task.block_tokens() ? task.tokens - token : task.block_tokens();
  const int64_t left = task.real_tokens(row) - token, real = left < 0 ? 0 : left < some ? left : some;
  const int64_t at = head * task.of_head() * task.size();
  const int64_t to = ((row * task.tokens + token) * task.heads + head * task.group()) * task.dim;
  Piece piece;
  piece.pages = {task.keys + at,   task.values + at,                task.table + row * task.entries, task.entries,
                 task.page_tokens, task.kv_heads * task.of_head(), task.pages};
  piece.queries = {task.queries + to,       real * task.group(),           task.group(),           task.heads * task.dim,
                   task.dim,                (int64_t)task.places[row].first + token, task.places[row].until};
  piece.out = task.out + to;
  for (int64_t each = real; each < some; each++) {
    memset(piece.out + each * task.heads * task.dim, 0, task.group() * task.dim * sizeof(float));
  }
  piece.low = piece.high = 0;
  if (!real) return piece;
  piece.low = seen_by(piece.pages, piece.queries, task.sight, 0).low;
  piece.high = seen_by(piece.pages, piece.queries, task.sight, piece.queries.rows - 1).high;
  return piece;
}

// Puts down the heads of tokens that follow each other: as they are, or rounded.
void put_down(const Task& task, const char* from, int64_t tokens, char* to) {
  if (!task.rounded()) return (void)memcpy(to, from, tokens * task.dim * task.size());
  thread_local std::vector<float> head;
  head.resize(task.dim);
  for (int64_t token = 0; token < tokens; token++) {
    memcpy(head.data(), from + token * task.dim * sizeof(float), task.dim * sizeof(float));
    task.variant->turn(head.data(), task.dim);
    task.variant->round(head.data(), task.dim, reinterpret_cast<int8_t*>(to) + token * task.each());
  }
}

// Writes new keys and values, [row, kv_head, token, dim], where the pages have their positions.
void write(const Task& task, const char* new_keys, const char* new_values, char* keys, char* values) {
  const int64_t bytes = task.each() * task.size(), page_bytes = task.kv_heads * task.of_head() * task.size();
  const int64_t new_bytes = task.dim * (task.rounded() ? (int64_t)sizeof(float) : task.size());
  for (int64_t row = 0; row < task.rows; row++) {
    const int64_t real = task.real_tokens(row), first = task.places[row].first;
    for (int64_t token = 0; token < real && first >= 0;) {
      const int64_t position = first + token, slot = position % task.page_tokens;
      const int64_t page = task.table[row * task.entries + position / task.page_tokens % task.entries];
      const int64_t room = task.page_tokens - slot, some = real - token < room ? real - token : room;
      for (int64_t head = 0; head < task.kv_heads && page >= 0 && page < task.pages; head++) {
        const int64_t from = ((row * task.kv_heads + head) * task.tokens + token) * new_bytes;
        const int64_t to = page * page_bytes + (head * task.page_tokens + slot) * bytes;
        put_down(task, new_keys + from, some, keys + to);
        put_down(task, new_values + from, some, values + to);
      }
      token += some;
    }
  }
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

// Memory for the queries of a piece, if they are turned.
int64_t turned_floats(const Task& task, const Queries& q) { return task.rounded() ? q.rows * q.dim : 0; }

// The queries as the keys are: in this memory, if these are turned.
Queries as_keys(const Task& task, const Queries& q, float* room) {
  if (!task.rounded()) return q;
  for (int64_t row = 0; row < q.rows; row++) {
    memcpy(room + row * q.dim, q.first + row / q.group * q.token + row % q.group * q.dim, q.dim * sizeof(float));
    task.variant->turn(room + row * q.dim, q.dim);
  }
  Queries turned = q;
  turned.first = room, turned.token = q.group * q.dim;
  return turned;
}

void finish(const Task& task, const Queries& q, const Mixed& mixed, float* out) {
  task.variant->finish(q, mixed, out);
  for (int64_t row = 0; row < q.rows && task.rounded(); row++) {
    task.variant->turn(out + row / q.group * q.token + row % q.group * q.dim, q.dim);
  }
}

void one_span(const Task& task, const Piece& piece, const Queries& q, int64_t span, float* scores, const Mixed& out) {
  const int64_t from = (piece.low / SPAN + span) * SPAN;
  task.variant->part[task.stored](piece.pages, q, task.sight, from, scores, out);
}

// A piece from its first span to its last.
void whole_piece(const Task& task, const Piece& piece) {
  const Queries& q = piece.queries;
  float* room = scratch(q.rows * SPAN + 2 * floats_of(q) + turned_floats(task, q));
  const Mixed mixed = mixed_at(room + q.rows * SPAN, q), part = mixed_at(room + q.rows * SPAN + floats_of(q), q);
  const Queries turned = as_keys(task, q, room + q.rows * SPAN + 2 * floats_of(q));
  for (int64_t row = 0; row < q.rows; row++) mixed.sums[row] = 0;
  for (int64_t span = 0, spans = spans_of(piece); span < spans; span++) {
    one_span(task, piece, turned, span, room, part);
    task.variant->join(q.rows, q.dim, mixed, part);
  }
  finish(task, q, mixed, piece.out);
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
  float* room = scratch(q.rows * SPAN + turned_floats(task, q));
  const Queries turned = as_keys(task, q, room + q.rows * SPAN);
  one_span(task, piece, turned, index - first, room, mixed_at(mine + (index - first) * each, q));
  if (apart.left[number].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Mixed mixed = mixed_at(mine, q);
  for (int64_t span = 1, spans = spans_of(piece); span < spans; span++) {
    task.variant->join(q.rows, q.dim, mixed, mixed_at(mine + span * each, q));
  }
  finish(task, q, mixed, piece.out);
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
  if (dtype == ffi::DataType::S8) return *stored = STORED_I8, true;
  return false;
}

const char* data_of(const ffi::AnyBuffer& array) { return static_cast<const char*>(array.untyped_data()); }

// queries, places, table, keys, values; and, where something is written first: new keys, new values. Then keys and
// values are results too, in the same memory.
ffi::Error attention(int, ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets, ffi::Dictionary attrs) {
  const auto window = attrs.get<int64_t>("window");
  const auto cap = attrs.get<float>("cap");
  if (!window.has_value() || !cap.has_value()) return wrong("expected the attributes window and cap");
  const bool writes = args.size() == 7;
  if ((!writes && args.size() != 5) || rets.size() != (writes ? 3u : 1u)) {
    return wrong("expected queries, places, a table, keys, values and one result, or new keys and values too and three, "
                 "found " + std::to_string(args.size()) + " arrays and " + std::to_string(rets.size()));
  }
  ffi::AnyBuffer given[7] = {*args.get<ffi::AnyBuffer>(0), *args.get<ffi::AnyBuffer>(1), *args.get<ffi::AnyBuffer>(2),
                             *args.get<ffi::AnyBuffer>(3), *args.get<ffi::AnyBuffer>(4),
                             *args.get<ffi::AnyBuffer>(writes ? 5 : 0), *args.get<ffi::AnyBuffer>(writes ? 6 : 0)};
  const ffi::AnyBuffer &queries = given[0], &places = given[1], &table = given[2], &keys = given[3], &values = given[4];
  auto out = rets.get<ffi::AnyBuffer>(0);
  if (queries.element_type() != ffi::DataType::F32 || (*out)->element_type() != ffi::DataType::F32) {
    return wrong("expected queries and a result in f32");
  }
  const Dims q = queries.dimensions(), to = (*out)->dimensions(), in = keys.dimensions(), at = table.dimensions();
  if (q.size() != 4 || q[0] < 1 || q[1] < 1 || q[2] < 1 || q[3] < 1 || q[3] % 16) {
    return wrong("expected queries [row, token, head, dim], dim a multiple of 16, found " + shape(q));
  }
  if (to.size() != 3 || to[0] != q[0] || to[1] != q[1] || to[2] != q[2] * q[3]) {
    return wrong("expected a result [row, token, head * dim] for queries " + shape(q) + ", found " + shape(to));
  }
  const Dims placed = places.dimensions();
  const bool whole = places.element_type() == ffi::DataType::S32 && table.element_type() == ffi::DataType::S32;
  if (!whole) return wrong("expected places and a table in s32");
  if (placed.size() != 2 || placed[0] != q[0] || placed[1] != 3) {
    return wrong("expected places [" + std::to_string(q[0]) + ", 3], found " + shape(placed));
  }
  if (at.size() != 2 || at[0] != q[0] || at[1] < 1) {
    return wrong("expected a table [" + std::to_string(q[0]) + ", entry], found " + shape(at));
  }
  Task task;
  if (!stored_as(keys.element_type(), &task.stored)) return wrong("expected keys in f32, f16, bf16 or s8");
  task.dim = q[3];
  if (in.size() != 4 || in[0] < 1 || in[1] < 1 || q[2] % in[1] || in[2] < 1 || in[3] != task.each()) {
    return wrong("expected keys [page, kv_head, slot, " + std::to_string(task.each()) + "] for queries " + shape(q) +
                 ", found " + shape(in));
  }
  if (values.element_type() != keys.element_type() || shape(values.dimensions()) != shape(in)) {
    return wrong("expected values as the keys " + shape(in) + ", found " + shape(values.dimensions()));
  }
  if (*window < 1) return wrong("expected a window of 1 or more, found " + std::to_string(*window));
  if (!(*cap >= 0)) return wrong("expected a cap that is not negative, found " + std::to_string(*cap));
  task.rows = q[0], task.tokens = q[1], task.heads = q[2];
  task.pages = in[0], task.kv_heads = in[1], task.page_tokens = in[2], task.entries = at[1];
  task.variant = attention_of(*chosen_variant()), task.sight = {*window, *cap};
  task.queries = queries.typed_data<float>(), task.out = (*out)->typed_data<float>();
  task.places = reinterpret_cast<const Place*>(places.typed_data<int32_t>()), task.table = table.typed_data<int32_t>();
  task.keys = data_of(keys), task.values = data_of(values);
  if (writes) {
    const std::string wanted = "[" + std::to_string(q[0]) + ", " + std::to_string(in[1]) + ", " + std::to_string(q[1]) +
                               ", " + std::to_string(q[3]) + "]";
    const ffi::DataType type = task.rounded() ? ffi::DataType::F32 : keys.element_type();
    for (int i = 5; i < 7; i++) {
      if (given[i].element_type() != type || shape(given[i].dimensions()) != wanted) {
        return wrong("expected new keys and values " + wanted + " as the pages are, or in f32 where these are in s8, found " +
                     shape(given[i].dimensions()));
      }
    }
    char* same[2] = {static_cast<char*>((*rets.get<ffi::AnyBuffer>(1))->untyped_data()),
                     static_cast<char*>((*rets.get<ffi::AnyBuffer>(2))->untyped_data())};
    if (same[0] != task.keys || same[1] != task.values) return wrong("expected pages that are written in place");
    write(task, data_of(given[5]), data_of(given[6]), same[0], same[1]);
  }
  attend(&pool, pool.num_threads(), task, HOW_FITS);
  return ffi::Error::Success();
}

// Memory that is not written to: the system gives a page of it when something is.
ffi::Error vacant(int, ffi::ThreadPool, ffi::RemainingArgs, ffi::RemainingRets, ffi::Dictionary) {
  return ffi::Error::Success();
}

}  // namespace

DEFINE_HANDLER(attention, attention, 0)
DEFINE_HANDLER(vacant, vacant, 0)

// The same by a variant, in this thread and without XLA, whole or span by span: how variants are compared. 0: done.
// `sizes`: rows, tokens, heads, kv_heads, dim, pages, slots of a page, entries, window.
EXPORTED int gemma_jax_attend(const char* variant, int stored, int apart, const int64_t* sizes, float cap,
                              const float* queries, const int32_t* places, const int32_t* table, const void* keys,
                              const void* values, float* out) {
  const Variant* found = variant_named(variant);
  if (!found || stored < 0 || stored >= STORED_WAYS || sizes[4] % 16) return 1;
  Task task;
  task.variant = attention_of(*found), task.stored = (Stored)stored;
  task.rows = sizes[0], task.tokens = sizes[1], task.heads = sizes[2], task.kv_heads = sizes[3], task.dim = sizes[4];
  task.pages = sizes[5], task.page_tokens = sizes[6], task.entries = sizes[7], task.sight = {sizes[8], cap};
  task.queries = queries, task.places = reinterpret_cast<const Place*>(places), task.table = table, task.out = out;
  task.keys = static_cast<const char*>(keys), task.values = static_cast<const char*>(values);
  attend(nullptr, 1, task, apart ? HOW_APART : HOW_WHOLE);
  return 0;
}

}  // namespace attending
