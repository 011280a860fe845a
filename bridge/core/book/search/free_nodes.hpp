// SPDX-License-Identifier: Apache-2.0
// The number of nodes of a class that no job holds whole, over time: an upper bound on the nodes
// for jobs that request whole nodes, much cheaper than checking every node.
//
// A start that it rules out is impossible. It may be too high, because nodes may be shared or
// closed, and because the free nodes change from second to second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "book/availability/lines.hpp"
#include "book/search/requests.hpp"
#include "counts/count_profile.hpp"

namespace bridge {

// For numbers of nodes and lengths: starts at which too few nodes are free, kept while nodes are
// taken and given back.
class FreeStarts {
  public:
    // More nodes are free within [from, until) now.
    void rise(const CountProfile &free, int64_t from, int64_t until);

    // Whether at some start in [from, until) so many nodes are free for `length`, or up to `end` if
    // that comes first; `end` must not precede `until`.
    bool any(const CountProfile &free, int64_t nodes, int64_t length, int64_t from, int64_t until,
             int64_t end);

  private:
    struct Rise {
        int64_t from;
        int64_t until;
        int64_t greatest; // number of nodes free within it
    };
    struct Key {
        int64_t nodes;
        int64_t length;
        bool operator==(const Key &other) const {
            return nodes == other.nodes && length == other.length;
        }
    };
    struct Hash {
        size_t operator()(const Key &key) const {
            return (static_cast<size_t>(key.nodes) * 0x9E3779B97F4A7C15u) ^
                   (static_cast<size_t>(key.length) * 0xC2B2AE3D27D4EB4Fu);
        }
    };
    struct None {
        int64_t since; // no start in [since, until)
        int64_t until;
        size_t rises; // how many are applied
    };
    std::vector<Rise> rises_;
    std::unordered_map<Key, None, Hash> none_;

    void take_in(None &none, const CountProfile &free, const Key &key) const;
};

class FreeNodes {
  public:
    struct Kept {
        int32_t cls;
        CountProfile profile;
        FreeStarts starts;
        int64_t nodes; // of the job that is being written
    };

    // Those of a class, made when they are first asked for; nullptr: too many classes have some.
    Kept *of(int32_t cls, const BookRequests &requests, const NodeLines &lines);

    // Records that a node's line gains or loses an exclusive job within [start, end). Call it
    // before the line loses amounts and after it gained them.
    void change(size_t position, int64_t start, int64_t end, int64_t sign, const NodeLines &lines,
                const BookRequests &requests);
    // Call it after all nodes of a job.
    void apply(int64_t start, int64_t end, int64_t sign);
    // Nodes were given back for good within [from, until): call it after `apply`.
    void rise(int64_t from, int64_t until);

    void trim(int64_t now);
    void drop(int32_t cls);

  private:
    static constexpr size_t MAX = 8; // every booking changes them all
    std::vector<Kept> kept_;
};

} // namespace bridge
