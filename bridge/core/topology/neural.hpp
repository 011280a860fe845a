// SPDX-License-Identifier: Apache-2.0
// Networks that choose where a job is put back, and the annealing chooser that uses them.
//
// A network sees up to Q consecutive idle nodes (a view). For each node: the numbers of its switch
// and of the switch above, counted from 0 where the sequence continues under another one. For the
// job: its size and the mean size of the jobs still to be put back, relative to the largest. It
// returns one number for each node.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "topology/anneal.hpp"

namespace bridge {

// Nodes in a view.
constexpr size_t VIEW = 100;

struct View {
    size_t n = 0; // nodes; 0 beyond them
    std::array<float, VIEW> leaf{}, pod{};
    float job = 0, others = 0;
};

// Weights and biases of a layer, by output: rows of a matrix, or out x in x width.
struct Layer {
    std::vector<size_t> shape;
    std::vector<float> weights, bias;
};

// Convolutions with tanh between them, then linear layers with tanh between them. Sums run in one
// fixed order over vectors of outputs, so that results do not depend on the machine's vector width.
class RepairNetwork {
  public:
    // Convolutions are the first `strides.size()` layers. Throws std::invalid_argument if the
    // layers do not fit each other or the view.
    RepairNetwork(const std::vector<Layer> &layers, const std::vector<size_t> &strides);

    // Sizes of `scratch` and `out` that `run` needs.
    size_t scratch() const { return 2 * widest_; }
    size_t outputs() const { return dense_.back().padded; }
    // One number for each place of the view.
    void run(const View &view, float *scratch, float *out) const;

  private:
    // Weights of a layer by input, then by output; outputs are padded with zeros to whole vectors.
    struct Packed {
        size_t in = 0, width = 1, stride = 1; // inputs of one place; places; steps between outputs
        size_t out = 0, padded = 0, length = 1;
        std::vector<float> weights, bias;
        // For a first layer: the sum of its first i places for the job's size (first half) and for
        // the others' (second half), which are the same at all nodes.
        std::vector<float> constant;
    };
    std::vector<Packed> convolutions_, dense_;
    size_t widest_ = 0;

    static void split_first(Packed &layer);
};

struct NeuralEffort {
    double warmth = 1;   // logits are divided by it
    double wander = 0;   // share of the jobs that are put back at random
    double since = 0;    // share of the moves before the network is first used
    bool rotate = true;  // false: only the first VIEW idle nodes can be chosen, as in the paper
    double largest = 40; // nodes of the largest job the network was trained with
    double numbers = 5;  // divisor of switch numbers
};

// Fills in what a network sees of `idle` (positions in the sequence) from `first` on, except the
// job.
void look(const Tree &tree, const IdleSequence &sequence, const std::vector<int32_t> &idle,
          size_t first, double numbers, View &view);

// Evaluates a network and caches the results: states recur while a window is annealed.
class NeuralChooser : public Chooser {
  public:
    NeuralChooser(const Tree &tree, const IdleSequence &sequence, const std::vector<int32_t> &sizes,
                  const RepairNetwork &network, const NeuralEffort &effort);
    size_t first(const Repair &repair, std::mt19937_64 &random) override;

    int64_t asked() const { return asked_; }
    int64_t remembered() const { return remembered_; }

  private:
    const Tree &tree_;
    const IdleSequence &sequence_;
    const RepairNetwork &network_;
    NeuralEffort effort_;
    double largest_;
    View view_;
    std::vector<float> scratch_, out_, sums_; // sums_: of the chances of all cached states
    std::unordered_map<uint64_t, size_t> where_;
    int64_t asked_ = 0, remembered_ = 0;

    const float *chances(const Repair &repair, size_t offset, size_t n);
};

} // namespace bridge
