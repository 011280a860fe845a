// SPDX-License-Identifier: Apache-2.0
// Writes sets of nodes as Slurm hostlists: n[001-064,070],big1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bridge {

class HostlistFolder {
  public:
    // Throws std::invalid_argument for names that cannot be written unambiguously.
    explicit HostlistFolder(const std::vector<std::string> &names);

    size_t size() const { return place_.size(); }

    // Indices must be in range; any order, repeats count once. O(k log k).
    std::string fold(const int32_t *nodes, size_t n) const;

  private:
    // Names that differ only in a number with the same padding: none, or the same number of digits.
    struct Family {
        std::string prefix;
        int padded_to; // 0: no leading zeros
    };
    struct Entry {
        uint32_t family;
        int64_t number; // -1: no number
    };
    std::vector<Family> families_;
    std::vector<Entry> entries_;  // in the order they are written
    std::vector<uint32_t> place_; // of each node in entries_
};

} // namespace bridge
