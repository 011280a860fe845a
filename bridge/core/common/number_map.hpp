// SPDX-License-Identifier: Apache-2.0
// A map from numbers to indexes in one array: most lookups read one place in memory. Open
// addressing; the entries after an erased one move up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bridge {

class NumberMap {
  public:
    static constexpr uint32_t NONE = UINT32_MAX; // no index

    size_t size() const { return size_; }

    uint32_t find(int64_t key) const { return entries_[slot_of(key)].index; }

    // The key must be new.
    void insert(int64_t key, uint32_t index) {
        if (2 * ++size_ > entries_.size()) {
            grow();
        }
        entries_[slot_of(key)] = {key, index};
    }

    // The key must be there.
    void erase(int64_t key) {
        const size_t mask = entries_.size() - 1;
        size_t hole = slot_of(key);
        for (size_t at = (hole + 1) & mask; entries_[at].index != NONE; at = (at + 1) & mask) {
            if (((at - home(entries_[at].key)) & mask) >= ((at - hole) & mask)) {
                entries_[hole] = entries_[at];
                hole = at;
            }
        }
        entries_[hole] = {};
        --size_;
    }

    // Calls `visit(index)` for all, in no particular order.
    template <typename Visit> void each(Visit visit) const {
        for (const Entry &entry : entries_) {
            if (entry.index != NONE) {
                visit(entry.index);
            }
        }
    }

  private:
    struct Entry {
        int64_t key = 0;
        uint32_t index = NONE;
    };
    std::vector<Entry> entries_ = std::vector<Entry>(16); // a power of two; at most half is used
    size_t size_ = 0;

    size_t home(int64_t key) const {
        const uint64_t mixed = static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15u;
        return static_cast<size_t>(mixed >> 32) & (entries_.size() - 1);
    }
    // Where it is, or would be.
    size_t slot_of(int64_t key) const {
        size_t at = home(key);
        while (entries_[at].index != NONE && entries_[at].key != key) {
            at = (at + 1) & (entries_.size() - 1);
        }
        return at;
    }
    void grow() {
        const std::vector<Entry> before = std::move(entries_);
        entries_ = std::vector<Entry>(2 * before.size());
        for (const Entry &entry : before) {
            if (entry.index != NONE) {
                entries_[slot_of(entry.key)] = entry;
            }
        }
    }
};

} // namespace bridge
