// SPDX-License-Identifier: Apache-2.0
// Networks that say where a job is put back, and the annealing chooser that asks them.
//
// A network sees up to Q idle nodes in a row (a view): of each the numbers of its switch and of the
// switch above, counted from 0 wherever the row goes on under another one; and of the job its size,
// and the mean size of those still out, as parts of the largest. It gives one number for each node.
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
    size_t n = 0; // nodes; what lies behind them is 0
    std::array<float, VIEW> leaf{}, pod{};
    float job = 0, others = 0;
};

// Weights of a layer and what is added, by output: rows of a matrix, or out x in x width.
struct Layer {
    std::vector<size_t> shape;
    std::vector<float> weights, bias;
};

// Convolutions with tanh between them, then linear layers with tanh between them. Sums run in one
// fixed order over vectors of outputs, so that the same numbers come out whatever the width of the
// machine's vectors.
class RepairNetwork {
  public:
    // Convolutions are the first `strides.size()` layers. Throws std::invalid_argument if the
    // layers do not fit each other or the view.
    RepairNetwork(const std::vector<Layer> &layers, const std::vector<size_t> &strides);

    // Room that `run` wants in `scratch`, and in `out`.
    size_t scratch() const { return 2 * widest_; }
    size_t outputs() const { return dense_.back().padded; }
    // One number for each place of the view.
    void run(const View &view, float *scratch, float *out) const;

  private:
    // Weights of a layer by input, then by output: outputs filled up with zeros to whole vectors.
    struct Packed {
        size_t in = 0, width = 1, stride = 1; // inputs of one place; places; steps between outputs
        size_t out = 0, padded = 0, length = 1;
        std::vector<float> weights, bias;
        // Of a first layer: what its first i places add together for a job's size (first half) and
        // for the others' (second half), since those are the same at all nodes.
        std::vector<float> constant;
    };
    std::vector<Packed> convolutions_, dense_;
    size_t widest_ = 0;

    static void split_first(Packed &layer);
};

struct NeuralEffort {
    double warmth = 1;   // logits are divided by it
    double wander = 0;   // part of the jobs that are put anywhere, without asking
    double since = 0;    // part of the moves that pass before it is asked at all
    bool rotate = true;  // false: only the first VIEW idle nodes can be chosen, as in the paper
    double largest = 40; // nodes of the largest job the network was trained with
    double numbers = 5;  // what numbers of switches are divided by
};

// Fills in what a network sees of `idle` (positions in the line) from its `first` on, but for the
// job.
void look(const Tree &tree, const IdleSequence &sequence, const std::vector<int32_t> &idle,
          size_t first, double numbers, View &view);

// Asks a network, and remembers what it said: while a window is annealed states come again often.
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
    std::vector<float> scratch_, out_, sums_; // sums_: of chances, of all states remembered
    std::unordered_map<uint64_t, size_t> where_;
    int64_t asked_ = 0, remembered_ = 0;

    const float *chances(const Repair &repair, size_t offset, size_t n);
};

} // namespace bridge
