// SPDX-License-Identifier: Apache-2.0
// Nodes with equal timelines, planned together.
//
// A group is a range of positions; positions number the nodes so that nodes that are alike at first
// are neighbours, in the planner's order within each group. A booking on part of a group splits it.
// Splits and bookings are undone in reverse order. Groups only save work: results do not depend on
// the splits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/timelines.hpp"
#include "single_pass/node_classes.hpp"
#include "single_pass/node_problem.hpp"

namespace bridge {

class NodeGroups {
  public:
    struct Group {
        uint32_t begin; // positions
        uint32_t end;
        uint32_t kind; // of nodes alike at first: same classes, capacity and rank
        int32_t node;  // one of them
        uint32_t size() const { return end - begin; }
    };
    // A number of tasks on each of some nodes.
    struct Piece {
        uint32_t begin;
        uint32_t end;
        int32_t tasks;
        bool operator==(const Piece &other) const {
            return begin == other.begin && end == other.end && tasks == other.tasks;
        }
    };

    // `apart`: every node is a group of its own.
    NodeGroups(const NodeProblem &problem, const NodeClasses &classes, const Timelines &timelines,
               bool apart);

    size_t size() const { return groups_.size(); }
    const Group &operator[](size_t group) const { return groups_[group]; }
    // Whether the class contains the group's nodes.
    bool inside(size_t group, size_t cls) const {
        return inside_[groups_[group].kind * n_class_ + cls] != 0;
    }
    // The timelines, by number of the group.
    const Timelines &lines() const { return lines_; }
    // The place of a position in the planner's order of all nodes.
    uint32_t place(uint32_t position) const { return place_[position]; }

    // Takes amounts from [start, end) on the piece's nodes, splitting groups as needed.
    void book(const Piece &piece, int64_t start, int64_t end, const int64_t *amounts);
    // Gives them back.
    void unbook(const Piece &piece, int64_t start, int64_t end, int64_t *amounts);
    // The number of groups; `join` undoes all splits beyond such a number.
    void join(size_t groups);

  private:
    size_t n_class_;
    std::vector<Group> groups_;
    std::vector<uint32_t> parent_; // by group: the one it was split from
    std::vector<uint32_t> owner_;  // by position: its group
    std::vector<uint32_t> place_;  // by position
    std::vector<uint8_t> inside_;  // by kind and class
    Timelines lines_;

    void split(uint32_t position);
};

} // namespace bridge
