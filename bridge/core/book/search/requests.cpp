// SPDX-License-Identifier: Apache-2.0
#include "book/search/requests.hpp"

#include <algorithm>

namespace bridge {
namespace {

constexpr int64_t TOO_MUCH = int64_t{1} << 60;

// The largest power of two that is not greater.
int64_t rough(int64_t amount) {
    int64_t power = 1;
    while (power <= amount / 2) {
        power *= 2;
    }
    return power;
}

} // namespace

int32_t BookRequests::add_class(std::vector<int32_t> positions, size_t n_nodes) {
    classes_.emplace_back(std::move(positions), n_nodes);
    return static_cast<int32_t>(classes_.size()) - 1;
}

void BookRequests::set_class(int32_t id, std::vector<int32_t> positions, size_t n_nodes) {
    cls(id) = BookClass(std::move(positions), n_nodes);
    for (auto &[classes, shared] : positions_) {
        if (std::find(classes.begin(), classes.end(), id) != classes.end()) {
            shared = std::make_shared<const std::vector<int32_t>>(in_all(classes));
        }
    }
    for (Shape &shape : shapes_) {
        shape.shared_positions = positions_[shape.classes];
    }
}

std::vector<int32_t> BookRequests::in_all(const std::vector<int32_t> &classes) const {
    std::vector<int32_t> positions;
    for (const int32_t p : cls(classes.front()).positions()) {
        if (std::all_of(classes.begin(), classes.end(),
                        [&](int32_t c) { return cls(c).has(static_cast<size_t>(p)); })) {
            positions.push_back(p);
        }
    }
    return positions;
}

int32_t BookRequests::intern_shape(std::vector<int32_t> classes, const std::vector<int64_t> &want,
                                   bool exclusive, const BookNodes &nodes) {
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    std::vector<int64_t> key(want);
    key.push_back(exclusive ? 1 : 0);
    key.insert(key.end(), classes.begin(), classes.end());
    const auto [at, is_new] =
        shape_ids_.try_emplace(std::move(key), static_cast<int32_t>(shapes_.size()));
    if (!is_new) {
        return at->second;
    }
    Shape shape{classes, {}, want, exclusive, {}, {}, {}, 0, {}};
    auto &shared = positions_[classes];
    if (shared == nullptr) {
        shared = std::make_shared<const std::vector<int32_t>>(in_all(classes));
    }
    shape.shared_positions = shared;
    if (exclusive) {
        shape.need = {WHOLE};
        shape.need_columns = {static_cast<uint32_t>(nodes.occupancy())};
    } else {
        for (size_t c = 0; c < want.size(); ++c) {
            if (want[c] > 0) {
                shape.need.push_back(want[c]);
                shape.need_columns.push_back(static_cast<uint32_t>(c));
            }
        }
    }
    std::vector<int64_t> like;
    for (size_t i = 0; i < shape.need.size(); ++i) {
        shape.rough.push_back(rough(shape.need[i]));
        like.insert(like.end(), {shape.need_columns[i], shape.rough[i]});
    }
    shape.lacks =
        lacks_.try_emplace(std::move(like), static_cast<int32_t>(lacks_.size())).first->second;
    shapes_.push_back(std::move(shape));
    return at->second;
}

int32_t BookRequests::add(const std::vector<Asked> &groups, Arrangement arrangement, bool exclusive,
                          const BookNodes &nodes) {
    std::vector<int64_t> key{static_cast<int64_t>(arrangement), exclusive ? 1 : 0};
    for (const Asked &asked : groups) {
        key.insert(key.end(), {asked.cls, asked.count, asked.max_per_node});
        key.insert(key.end(), asked.want.begin(), asked.want.end());
    }
    const auto [at, is_new] =
        request_ids_.try_emplace(std::move(key), static_cast<int32_t>(requests_.size()));
    if (!is_new) {
        return at->second;
    }
    Request request{arrangement, exclusive, {}, {}, {}};
    std::vector<int64_t> amounts(nodes.columns());
    std::vector<int64_t> together(nodes.columns(), 0);
    std::vector<int32_t> classes;
    bool packs = true;
    for (const Asked &asked : groups) {
        nodes.extend(asked.want.data(), amounts.data());
        const int32_t shape = intern_shape({asked.cls}, amounts, exclusive, nodes);
        request.groups.push_back({shape, asked.count, asked.max_per_node});
        for (size_t c = 0; c < together.size(); ++c) {
            // All amounts beyond the capacity of every node are equivalent.
            const int64_t all =
                amounts[c] > TOO_MUCH / asked.count ? TOO_MUCH : asked.count * amounts[c];
            together[c] = std::min(TOO_MUCH, together[c] + all);
        }
        classes.push_back(asked.cls);
        packs = packs && asked.count <= asked.max_per_node;
    }
    if (arrangement == Arrangement::PACK) {
        const int32_t shape = intern_shape(classes, together, exclusive, nodes);
        request.sought.push_back({shape, 1, packs ? 1 : 0});
    } else {
        request.sought = request.groups;
        for (Group &group : request.sought) {
            if (arrangement == Arrangement::SCATTER) {
                group.max_per_node = 1;
            }
        }
    }
    for (const Group &sought : request.sought) {
        const Shape &shape = this->shape(sought.shape);
        // An exclusive request without protected resources may have fewer nodes than one that needs
        // more.
        std::vector<int64_t> like{shape.exclusive ? nodes.protected_in(shape.want.data()) : -1,
                                  sought.max_per_node};
        like.insert(like.end(), shape.classes.begin(), shape.classes.end());
        const auto [cached, unused] =
            caches_.try_emplace(std::move(like), static_cast<int32_t>(caches_.size()));
        request.cache_ids.push_back(cached->second);
    }
    requests_.push_back(std::move(request));
    return at->second;
}

bool BookRequests::may_use(int32_t shape, int32_t position) const {
    const std::vector<int32_t> &classes = this->shape(shape).classes;
    return std::all_of(classes.begin(), classes.end(),
                       [&](int32_t c) { return cls(c).has(static_cast<size_t>(position)); });
}

int64_t BookRequests::maximum(int32_t id, uint32_t type, const BookNodes &nodes) {
    Shape &shape = shapes_[static_cast<size_t>(id)];
    while (shape.maximum.size() < nodes.n_types()) {
        const int64_t *capacity = nodes.type_capacity(shape.maximum.size());
        int64_t maximum = capacity[nodes.occupancy()];
        if (shape.exclusive && nodes.keeps_from(capacity, shape.want.data())) {
            maximum = 0;
        }
        for (size_t c = 0; c < shape.want.size(); ++c) {
            const bool counts = c < nodes.n_res() || !shape.exclusive || c == nodes.occupancy();
            if (counts && shape.want[c] > 0) {
                maximum = std::min(maximum, capacity[c] / shape.want[c]);
            }
        }
        shape.maximum.push_back(maximum);
    }
    return shape.maximum[type];
}

int64_t BookRequests::next_open(const Shape &shape, size_t position, int64_t start,
                                int64_t length) const {
    if (shape.classes.size() == 1) {
        return cls(shape.classes.front()).next_open(position, start, length);
    }
    for (int64_t before = -1; before != start;) {
        before = start;
        for (const int32_t c : shape.classes) {
            start = cls(c).next_open(position, start, length);
        }
    }
    return start;
}

int64_t BookRequests::last_open(const Shape &shape, size_t position, int64_t start,
                                int64_t length) const {
    for (int64_t before = NEVER; before != start;) {
        before = start;
        for (const int32_t c : shape.classes) {
            start = cls(c).last_open(position, start, length);
        }
    }
    return start;
}

} // namespace bridge
