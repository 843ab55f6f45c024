// Text to token ids by merges of pairs, as SentencePiece merges them: of all neighbours that make a piece together, those
// with the highest score are merged first, and of equal ones the leftmost.
//
// The vocabulary stays in the caller's arrays; a table of hashed places is all that is made of it.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

enum Kind : uint8_t { NORMAL = 1, USER_DEFINED = 4, UNUSED = 5 };

struct Symbol {
  int32_t before, after;  // neighbours; -1: none
  uint32_t begin, size;   // in the text; 0: merged into another
  bool whole;             // a user-defined piece, which is never merged
};

// A place of the table: most texts that are looked up are no piece, which the hash alone tells.
struct Place {
  int32_t id;  // -1: vacant
  uint32_t hash;
};

struct Pair {
  float score;
  int32_t left, right;
  uint32_t size;
};

struct Later {
  bool operator()(const Pair& a, const Pair& b) const {
    return a.score < b.score || (a.score == b.score && a.left > b.left);
  }
};

class Speller {
 public:
  Speller(const char* bytes, const uint32_t* ends, const float* scores, const uint8_t* kinds, int32_t count,
          const int32_t* of_bytes)
      : bytes_(bytes), ends_(ends), scores_(scores), kinds_(kinds) {
    std::memcpy(of_bytes_, of_bytes, sizeof of_bytes_);
    size_t places = 16;
    while (places < 2 * static_cast<size_t>(count)) places *= 2;
    table_.assign(places, {-1, 0});
    maybe_.assign(places / 8, 0);
    for (int32_t id = 0; id < count; ++id) {
      const std::string_view text = piece(id);
      if (text.empty() || !found_in_texts(id)) continue;
      const uint64_t hash = hashed(text);
      if (Place& at = table_[place(text, hash)]; at.id < 0) at = {id, static_cast<uint32_t>(hash >> 32)};
      else if (again_ < 0) again_ = id;
      maybe_[bit(hash) / 64] |= uint64_t{1} << bit(hash) % 64;
      longest_ = std::max(longest_, text.size());
      if (kinds_[id] == USER_DEFINED) {
        begins_whole_[static_cast<uint8_t>(text[0])] = true;
        if (std::find(lengths_.begin(), lengths_.end(), text.size()) == lengths_.end()) lengths_.push_back(text.size());
      }
    }
    std::sort(lengths_.rbegin(), lengths_.rend());
  }

  // The first piece that is there a second time; -1: each is there once.
  int32_t again() const { return again_; }

  // Appends the ids of a text in UTF-8.
  void spell(std::string_view text, std::vector<int32_t>& out) const {
    std::vector<Symbol> symbols;
    symbols.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      auto [size, whole] = next(text.substr(at));
      const int32_t index = static_cast<int32_t>(symbols.size());
      symbols.push_back({index - 1, index + 1, static_cast<uint32_t>(at), static_cast<uint32_t>(size), whole});
      at += size;
    }
    if (symbols.empty()) return;
    symbols.back().after = -1;

    std::vector<Pair> room;
    room.reserve(symbols.size());
    std::priority_queue<Pair, std::vector<Pair>, Later> waiting(Later(), std::move(room));
    std::unordered_map<int32_t, uint32_t> halves;  // of unused pieces: the bytes of the left one of the pair
    auto offer = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return;
      const Symbol &a = symbols[left], &b = symbols[right];
      const uint32_t size = a.size + b.size;
      if (a.whole || b.whole || size > longest_) return;
      const int32_t id = id_of(text.substr(a.begin, size));
      if (id < 0) return;
      waiting.push({scores_[id], left, right, size});
      if (kinds_[id] == UNUSED) halves[id] = a.size;
    };
    for (size_t at = 1; at < symbols.size(); ++at) offer(static_cast<int32_t>(at) - 1, static_cast<int32_t>(at));
    while (!waiting.empty()) {
      const Pair best = waiting.top();
      waiting.pop();
      Symbol &a = symbols[best.left], &b = symbols[best.right];
      if (a.size == 0 || b.size == 0 || a.size + b.size != best.size) continue;  // one was merged meanwhile
      a.size = best.size;
      a.after = b.after;
      if (b.after >= 0) symbols[b.after].before = best.left;
      b.size = 0;
      offer(a.before, best.left);
      offer(best.left, a.after);
    }
    for (int32_t at = 0; at >= 0; at = symbols[at].after) {
      add(text.substr(symbols[at].begin, symbols[at].size), halves, out);
    }
  }

 private:
  std::string_view piece(int32_t id) const {
    const uint32_t begin = id == 0 ? 0 : ends_[id - 1];
    return {bytes_ + begin, ends_[id] - begin};
  }

  bool found_in_texts(int32_t id) const {
    return kinds_[id] == NORMAL || kinds_[id] == USER_DEFINED || kinds_[id] == UNUSED;
  }

  // The id of a piece; -1: there is none.
  int32_t id_of(std::string_view text) const {
    const uint64_t hash = hashed(text);
    if (!(maybe_[bit(hash) / 64] >> bit(hash) % 64 & 1)) return -1;
    return table_[place(text, hash)].id;
  }

  size_t bit(uint64_t hash) const { return hash >> 24 & (64 * maybe_.size() - 1); }

  // The place of a piece in the table, or the vacant one where it would be.
  size_t place(std::string_view text, uint64_t hash) const {
    const size_t mask = table_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      const Place& found = table_[at];
      if (found.id < 0 || (found.hash == static_cast<uint32_t>(hash >> 32) && piece(found.id) == text)) return at;
    }
  }

  static uint64_t hashed(std::string_view text) {
    const char* data = text.data();
    const size_t size = text.size();
    uint64_t hash = 0x9E3779B97F4A7C15u * size;
    if (size < 4) {  // first, middle and last byte
      const auto byte = [&](size_t at) { return uint64_t{static_cast<uint8_t>(data[at])}; };
      return mixed(hash ^ (byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16));
    }
    if (size < 8) return mixed(hash ^ (read<uint32_t>(data) | uint64_t{read<uint32_t>(data + size - 4)} << 32));
    for (size_t at = 0; at + 8 < size; at += 8) hash = mixed(hash ^ read<uint64_t>(data + at));
    return mixed(hash ^ read<uint64_t>(data + size - 8));  // may overlap the eight bytes before
  }

  template <typename Number>
  static Number read(const char* data) {
    Number number;
    std::memcpy(&number, data, sizeof number);
    return number;
  }

  static uint64_t mixed(uint64_t hash) {
    hash *= 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
  }

  // The bytes of the next symbol: the longest user-defined piece that the text begins with, else one character.
  std::pair<size_t, bool> next(std::string_view text) const {
    const uint8_t first = static_cast<uint8_t>(text[0]);
    if (begins_whole_[first]) {
      for (size_t size : lengths_) {
        if (size > text.size()) continue;
        const int32_t id = id_of(text.substr(0, size));
        if (id >= 0 && kinds_[id] == USER_DEFINED) return {size, true};
      }
    }
    const size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return {std::min(size, text.size()), false};
  }

  // Appends a symbol's id: of an unused piece those of the pair that it was merged from, of other texts their bytes'.
  void add(std::string_view text, const std::unordered_map<int32_t, uint32_t>& halves, std::vector<int32_t>& out) const {
    const int32_t id = id_of(text);
    if (id >= 0 && kinds_[id] != UNUSED) {
      out.push_back(id);
      return;
    }
    if (const auto half = halves.find(id); half != halves.end()) {
      add(text.substr(0, half->second), halves, out);
      add(text.substr(half->second), halves, out);
      return;
    }
    for (const char byte : text) out.push_back(of_bytes_[static_cast<uint8_t>(byte)]);
  }

  const char* bytes_;
  const uint32_t* ends_;
  const float* scores_;
  const uint8_t* kinds_;
  int32_t of_bytes_[256];
  std::vector<Place> table_;
  // One bit or none for a hash: where it is missing there is no such piece. It fits in the processor's cache.
  std::vector<uint64_t> maybe_;
  int32_t again_ = -1;
  size_t longest_ = 0;
  bool begins_whole_[256] = {};  // by the first byte of a user-defined piece
  std::vector<size_t> lengths_;  // of user-defined pieces, the longest first
};

}  // namespace

#define SHOWN extern "C" __attribute__((visibility("default")))

// Null: there is no memory. The arrays stay the caller's, and have to live as long as the speller.
SHOWN void* gemma_jax_speller(const char* bytes, const uint32_t* ends, const float* scores, const uint8_t* kinds,
                              int32_t count, const int32_t* of_bytes) {
  try {
    return new Speller(bytes, ends, scores, kinds, count, of_bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

SHOWN int32_t gemma_jax_speller_again(const void* speller) { return static_cast<const Speller*>(speller)->again(); }

SHOWN void gemma_jax_speller_end(void* speller) { delete static_cast<Speller*>(speller); }

// Writes the ids of a text, and returns their number: at most that of its bytes. -1: there is no memory.
SHOWN int64_t gemma_jax_spell(const void* speller, const char* text, int64_t size, int32_t* out) {
  try {
    std::vector<int32_t> ids;
    ids.reserve(static_cast<size_t>(size));
    static_cast<const Speller*>(speller)->spell({text, static_cast<size_t>(size)}, ids);
    std::copy(ids.begin(), ids.end(), out);
    return static_cast<int64_t>(ids.size());
  } catch (const std::bad_alloc&) {
    return -1;
  }
}
