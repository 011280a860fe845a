// SPDX-License-Identifier: Apache-2.0
// Checked arguments of the placers on trees, and their results as columns.
#pragma once

#include <cstdint>
#include <vector>

#include "common/columns.hpp"
#include "topology/anneal.hpp"
#include "topology/contiguous.hpp"
#include "topology/tree.hpp"

namespace bridge {

constexpr int32_t MAX_NODES = 1 << 24;

std::vector<int32_t> as_vector(const Column<int32_t> &column);

// Throws if a metric has fewer levels than the tree.
void expect_levels(const Tree &tree, const HopMetric &metric);

// Idle nodes on switches, each once, in the order given.
std::vector<int32_t> idle_nodes(const Tree &tree, nb::handle idle);

// The same, ascending.
IdleSequence sequence_of(const Tree &tree, nb::handle idle);

std::vector<int32_t> job_sizes(nb::handle sizes);

AnnealEffort anneal_effort(int64_t iterations, int64_t seed, bool restore, double hottest,
                           double coldest, int64_t most_removed);

// Sets of nodes by job, each ascending: offsets, nodes.
using NodeSets = Tuple<Array<int64_t>, Array<int32_t>>;

NodeSets as_csr(const std::vector<std::vector<int32_t>> &sets);

// Sets of nodes; a set across two fabrics is refused.
NodeSets from_positions(const Tree &tree, const IdleSequence &sequence,
                        const ContiguousPlacement &placed);

} // namespace bridge
