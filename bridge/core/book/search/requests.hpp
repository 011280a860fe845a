// SPDX-License-Identifier: Apache-2.0
// The requests of a book, each distinct one once.
//
// A *shape* is what one chunk needs of a node: which nodes, how much, shared or whole. A request is
// *sought* as one or more triples (shape, count, most per node): one per group of chunks, or for
// PACK one for all groups together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "book/availability/lines.hpp"
#include "book/availability/nodes.hpp"

namespace bridge {

enum class Arrangement : int { FREE = 0, PACK = 1, SCATTER = 2 };

struct Shape {
    std::vector<int32_t> classes; // a node must be in all of them, and open in all of them
    // The nodes in all of them, ascending; one list for all shapes with the same classes.
    std::shared_ptr<const std::vector<int32_t>> shared_positions;
    std::vector<int64_t> want; // (columns,) amounts that a chunk takes; occupancy 1
    bool exclusive;
    std::vector<int64_t> need; // amounts that a line must have for one chunk; see need_columns
    std::vector<uint32_t> need_columns;
    std::vector<int64_t> rough;   // at most `need`, rounded: equal for similar shapes
    int32_t lacks;                // index of what is known about `rough`
    std::vector<int64_t> maximum; // by node type: chunks an empty node holds

    const std::vector<int32_t> &positions() const { return *shared_positions; }
    LineNeed line_need() const { return {need.data(), need_columns.data(), need.size()}; }
    LineNeed rough_need() const { return {rough.data(), need_columns.data(), need.size()}; }
};

struct Group {
    int32_t shape;
    int64_t count;
    int64_t max_per_node;

    bool operator==(const Group &other) const {
        return shape == other.shape && count == other.count && max_per_node == other.max_per_node;
    }
};

struct Request {
    Arrangement arrangement;
    bool exclusive;
    std::vector<Group> groups;      // as given
    std::vector<Group> sought;      // as searched
    std::vector<int32_t> cache_ids; // for each sought, the index of its search cache
};

class BookRequests {
  public:
    static constexpr int64_t NO_LIMIT = int64_t{1} << 30;

    int32_t add_class(std::vector<int32_t> positions, size_t n_nodes);
    // Replaces the nodes of a class that is never closed.
    void set_class(int32_t id, std::vector<int32_t> positions, size_t n_nodes);
    size_t n_classes() const { return classes_.size(); }
    BookClass &cls(int32_t id) { return classes_[static_cast<size_t>(id)]; }
    const BookClass &cls(int32_t id) const { return classes_[static_cast<size_t>(id)]; }

    struct Asked {
        int32_t cls;
        int64_t count;
        int64_t max_per_node;      // NO_LIMIT: as many as fit
        std::vector<int64_t> want; // (n_res,)
    };
    int32_t add(const std::vector<Asked> &groups, Arrangement arrangement, bool exclusive,
                const BookNodes &nodes);

    size_t size() const { return requests_.size(); }
    const Request &operator[](int32_t id) const { return requests_[static_cast<size_t>(id)]; }
    const Shape &shape(int32_t id) const { return shapes_[static_cast<size_t>(id)]; }

    // Whether a node is in all classes of a shape.
    bool may_use(int32_t shape, int32_t position) const;

    // How many chunks an empty node of this type holds; allocates entries for new types.
    int64_t maximum(int32_t shape, uint32_t type, const BookNodes &nodes);

    // The earliest start >= `start` (the latest <= it) at which a node is open for a shape.
    int64_t next_open(const Shape &shape, size_t position, int64_t start, int64_t length) const;
    int64_t last_open(const Shape &shape, size_t position, int64_t start, int64_t length) const;

  private:
    std::vector<BookClass> classes_;
    std::vector<Shape> shapes_;
    std::vector<Request> requests_;
    std::map<std::vector<int64_t>, int32_t> shape_ids_;
    std::map<std::vector<int64_t>, int32_t> request_ids_;
    std::map<std::vector<int64_t>, int32_t> caches_;
    std::map<std::vector<int64_t>, int32_t> lacks_;
    std::map<std::vector<int32_t>, std::shared_ptr<const std::vector<int32_t>>> positions_;

    std::vector<int32_t> in_all(const std::vector<int32_t> &classes) const;
    int32_t intern_shape(std::vector<int32_t> classes, const std::vector<int64_t> &want,
                         bool exclusive, const BookNodes &nodes);
};

} // namespace bridge
