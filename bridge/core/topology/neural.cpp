// SPDX-License-Identifier: Apache-2.0
#include "topology/neural.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

// Vector loops are compiled for several machines, and the widest supported one runs. Without fused
// multiplication (see CMakeLists.txt) all of them give the same numbers.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define BRIDGE_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define BRIDGE_WIDE
#endif

namespace bridge {
namespace {

constexpr size_t LANES = 8, CHANNELS = 4;

// Chances of states, all dropped when full. 16 MiB.
constexpr size_t MAX_REMEMBERED = size_t{1} << 22;

[[noreturn]] void misfit(size_t layer, const std::string &why) {
    throw std::invalid_argument("layers: layer " + std::to_string(layer) + " " + why);
}

// Lanes computed side by side on any machine, and their bits.
typedef float Vector __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t Bits __attribute__((vector_size(LANES * sizeof(float))));

inline void load(Vector &vector, const float *from) {
    std::memcpy(&vector, from, sizeof vector);
}

// values[i] = 2^(values[i] * scale), for what lies within 100 of 0 after scaling, to some 2e-7 of
// it; n is a multiple of LANES.
BRIDGE_WIDE void powers_of_two(float *values, size_t n, float scale) {
    for (size_t i = 0; i < n; i += LANES) {
        Vector t;
        load(t, values + i);
        t *= scale;
        const Vector low = Vector{} - 100.0f, high = Vector{} + 100.0f;
        t = t < low ? low : t;
        t = t > high ? high : t;
        const Vector shifted = t + 12582912.0f; // whole numbers are the last bits now
        const Vector f = t - (shifted - 12582912.0f);
        Bits exponent;
        std::memcpy(&exponent, &shifted, sizeof exponent);
        exponent = (exponent - (0x4B400000 - 127)) << 23;
        Vector power;
        std::memcpy(&power, &exponent, sizeof power);
        Vector p = 1.54035304e-4f * f + 1.33335581e-3f; // ln(2)^6 / 6! and so on, for |f| <= 1/2
        p = p * f + 9.61812911e-3f;
        p = p * f + 5.55041087e-2f;
        p = p * f + 2.40226507e-1f;
        p = p * f + 6.93147181e-1f;
        p = p * f + 1.0f;
        p *= power;
        std::memcpy(values + i, &p, sizeof p);
    }
}

// tanh: 1 - 2 / (exp(2x) + 1); n is a multiple of LANES.
BRIDGE_WIDE void bend(float *values, size_t n) {
    powers_of_two(values, n, 2.88539008f); // 2 / ln 2
    for (size_t i = 0; i < n; i += LANES) {
        Vector power;
        load(power, values + i);
        power = 1.0f - 2.0f / (power + 1.0f);
        std::memcpy(values + i, &power, sizeof power);
    }
}

// sums[o] += x[i] * weights[i][o] over n inputs and some outputs, a multiple of LANES.
BRIDGE_WIDE void add_rows(const float *x, const float *weights, size_t n, size_t outputs,
                          float *sums) {
    size_t o = 0;
    for (; o + 4 * LANES <= outputs; o += 4 * LANES) {
        Vector a, b, c, d, w;
        load(a, sums + o);
        load(b, sums + o + LANES);
        load(c, sums + o + 2 * LANES);
        load(d, sums + o + 3 * LANES);
        for (size_t i = 0; i < n; ++i) {
            const float *row = weights + i * outputs + o;
            load(w, row);
            a += x[i] * w;
            load(w, row + LANES);
            b += x[i] * w;
            load(w, row + 2 * LANES);
            c += x[i] * w;
            load(w, row + 3 * LANES);
            d += x[i] * w;
        }
        std::memcpy(sums + o, &a, sizeof a);
        std::memcpy(sums + o + LANES, &b, sizeof b);
        std::memcpy(sums + o + 2 * LANES, &c, sizeof c);
        std::memcpy(sums + o + 3 * LANES, &d, sizeof d);
    }
    for (; o < outputs; o += LANES) {
        Vector a, w;
        load(a, sums + o);
        for (size_t i = 0; i < n; ++i) {
            load(w, weights + i * outputs + o);
            a += x[i] * w;
        }
        std::memcpy(sums + o, &a, sizeof a);
    }
}

// A convolution over LANES of its outputs: sums[t][o] += x[t * step + i] * weights[i][o] over n
// inputs i, for `length` places t, rounded up to fours. Rows of weights and sums have length `row`.
BRIDGE_WIDE void convolve(const float *x, size_t step, const float *weights, size_t n, size_t row,
                          size_t length, float *sums) {
    for (size_t t = 0; t < length; t += 4) {
        const float *from = x + t * step;
        float *to = sums + t * row;
        Vector a, b, c, d, w;
        load(a, to);
        load(b, to + row);
        load(c, to + 2 * row);
        load(d, to + 3 * row);
        for (size_t i = 0; i < n; ++i) {
            load(w, weights + i * row);
            a += from[i] * w;
            b += from[step + i] * w;
            c += from[2 * step + i] * w;
            d += from[3 * step + i] * w;
        }
        std::memcpy(to, &a, sizeof a);
        std::memcpy(to + row, &b, sizeof b);
        std::memcpy(to + 2 * row, &c, sizeof c);
        std::memcpy(to + 3 * row, &d, sizeof d);
    }
}

size_t padded(size_t n) {
    return (n + LANES - 1) / LANES * LANES;
}

} // namespace

RepairNetwork::RepairNetwork(const std::vector<Layer> &layers, const std::vector<size_t> &strides) {
    if (layers.size() <= strides.size()) {
        throw std::invalid_argument("layers: there is no linear one at the end");
    }
    size_t channels = CHANNELS, length = VIEW, room = CHANNELS;
    widest_ = 2 * (VIEW + 3 * (strides.empty() ? 1 : strides[0]));
    for (size_t l = 0; l < layers.size(); ++l) {
        const Layer &layer = layers[l];
        const bool convolves = l < strides.size();
        Packed packed;
        if (layer.shape.size() != (convolves ? 3U : 2U)) {
            misfit(l, convolves ? "is not a convolution" : "is not linear");
        }
        packed.out = layer.shape[0];
        packed.padded = padded(packed.out);
        if (convolves) {
            packed.in = layer.shape[1];
            packed.width = layer.shape[2];
            packed.stride = strides[l];
            if (packed.in != channels || packed.width < 1 || packed.width > length ||
                packed.stride < 1) {
                misfit(l, "does not fit what comes before it");
            }
            packed.length = (length - packed.width) / packed.stride + 1;
        } else {
            packed.in = channels; // of each place
            packed.width = length;
            if (layer.shape[1] != channels * length) {
                misfit(l, "does not fit what comes before it");
            }
        }
        if (packed.out < 1 || layer.weights.size() != packed.out * packed.in * packed.width ||
            layer.bias.size() != packed.out) {
            misfit(l, "lacks weights");
        }
        // By place, then by channel in memory order, `room` numbers for each place.
        packed.weights.assign(packed.width * room * packed.padded, 0.0f);
        for (size_t o = 0; o < packed.out; ++o) {
            for (size_t c = 0; c < packed.in; ++c) {
                for (size_t k = 0; k < packed.width; ++k) {
                    packed.weights[(k * room + c) * packed.padded + o] =
                        layer.weights[(o * packed.in + c) * packed.width + k];
                }
            }
        }
        packed.bias = layer.bias;
        packed.bias.resize(packed.padded, 0.0f);
        packed.in = room;
        if (l == 0) {
            split_first(packed);
        }
        channels = packed.out;
        length = packed.length;
        room = packed.padded;
        // Convolutions are computed four places at once.
        const size_t next = l + 1 < strides.size() ? strides[l + 1] : 1;
        widest_ = std::max(widest_, (length + 3 * next) * room);
        (convolves ? convolutions_ : dense_).push_back(std::move(packed));
    }
    if (dense_.back().out != VIEW) {
        misfit(layers.size() - 1, "does not give " + std::to_string(VIEW) + " numbers");
    }
}

void RepairNetwork::split_first(Packed &layer) {
    const size_t size = (layer.width + 1) * layer.padded;
    layer.constant.assign(2 * size, 0.0f);
    std::vector<float> own;
    for (size_t k = 0; k < layer.width; ++k) {
        const auto row =
            layer.weights.begin() + static_cast<ptrdiff_t>(k * CHANNELS * layer.padded);
        const auto step = static_cast<ptrdiff_t>(layer.padded);
        own.insert(own.end(), row, row + 2 * step);
        for (size_t o = 0; o < layer.padded; ++o) {
            const size_t before = k * layer.padded + o, after = before + layer.padded;
            const auto at = static_cast<ptrdiff_t>(o);
            layer.constant[after] = layer.constant[before] + row[2 * step + at];
            layer.constant[size + after] = layer.constant[size + before] + row[3 * step + at];
        }
    }
    layer.weights = std::move(own);
    layer.in = 2;
}

void RepairNetwork::run(const View &view, float *scratch, float *out) const {
    float *from = scratch, *to = scratch + widest_;
    const Packed &first = convolutions_.empty() ? dense_[0] : convolutions_[0];
    // By place, the two numbers that differ between nodes; the common part depends only on the
    // number of places.
    for (size_t i = 0; i < VIEW; ++i) {
        to[2 * i] = view.leaf[i];
        to[2 * i + 1] = view.pod[i];
    }
    std::fill(to + 2 * VIEW, to + 2 * (VIEW + 3 * first.stride), 0.0f);
    const size_t half = (first.width + 1) * first.padded;
    float *target = convolutions_.empty() && dense_.size() == 1 ? out : from;
    for (size_t t = 0; t < (convolutions_.empty() ? 1 : (first.length + 3) / 4 * 4); ++t) {
        const size_t begin = t * first.stride;
        const size_t there = std::min(view.n > begin ? view.n - begin : 0, first.width);
        const float *constant = first.constant.data() + there * first.padded;
        for (size_t o = 0; o < first.padded; ++o) {
            target[t * first.padded + o] =
                first.bias[o] + view.job * constant[o] + view.others * constant[half + o];
        }
    }
    if (convolutions_.empty()) {
        add_rows(to, first.weights.data(), 2 * view.n, first.padded, target);
    }
    for (size_t block = 0; !convolutions_.empty() && block < first.padded; block += LANES) {
        convolve(to, 2 * first.stride, first.weights.data() + block, 2 * first.width, first.padded,
                 first.length, from + block);
    }
    size_t length = first.length, room = first.padded;
    for (size_t l = 1; l < convolutions_.size(); ++l) {
        const Packed &layer = convolutions_[l];
        bend(from, length * room);
        std::fill(from + length * room, from + (length + 3 * layer.stride) * room, 0.0f);
        for (size_t t = 0; t < (layer.length + 3) / 4 * 4; ++t) {
            std::copy(layer.bias.begin(), layer.bias.end(), to + t * layer.padded);
        }
        for (size_t block = 0; block < layer.padded; block += LANES) {
            convolve(from, layer.stride * room, layer.weights.data() + block, layer.width * room,
                     layer.padded, layer.length, to + block);
        }
        std::swap(from, to);
        length = layer.length;
        room = layer.padded;
    }
    for (size_t l = convolutions_.empty() ? 1 : 0; l < dense_.size(); ++l) {
        const Packed &layer = dense_[l];
        if (l > 0) {
            bend(from, length * room);
        }
        float *sums = l + 1 == dense_.size() ? out : to;
        std::copy(layer.bias.begin(), layer.bias.end(), sums);
        add_rows(from, layer.weights.data(), length * room, layer.padded, sums);
        std::swap(from, to);
        length = 1;
        room = layer.padded;
    }
}

void look(const Tree &tree, const IdleSequence &sequence, const std::vector<int32_t> &idle,
          size_t first, double numbers, View &view) {
    view.n = std::min(idle.size(), VIEW);
    const auto step = static_cast<float>(1 / numbers);
    int32_t leaf_before = -1, pod_before = -1, leaves = 0, pods = 0;
    for (size_t i = 0; i < view.n; ++i) {
        const int32_t leaf = tree.leaf_of_node()[sequence.nodes[idle[first]]];
        const int32_t pod = tree.parent()[leaf];
        first = first + 1 == idle.size() ? 0 : first + 1;
        leaves += i > 0 && leaf != leaf_before ? 1 : 0;
        pods += i > 0 && pod != pod_before ? 1 : 0;
        view.leaf[i] = static_cast<float>(leaves) * step;
        view.pod[i] = static_cast<float>(pods) * step;
        leaf_before = leaf;
        pod_before = pod;
    }
    std::fill(view.leaf.begin() + static_cast<ptrdiff_t>(view.n), view.leaf.end(), 0.0f);
    std::fill(view.pod.begin() + static_cast<ptrdiff_t>(view.n), view.pod.end(), 0.0f);
}

NeuralChooser::NeuralChooser(const Tree &tree, const IdleSequence &sequence,
                             const std::vector<int32_t> &sizes, const RepairNetwork &network,
                             const NeuralEffort &effort)
    : tree_(tree), sequence_(sequence), network_(network), effort_(effort),
      largest_(effort.largest), scratch_(network.scratch()), out_(network.outputs()) {
    for (const int32_t size : sizes) {
        largest_ = std::max(largest_, static_cast<double>(size));
    }
}

size_t NeuralChooser::first(const Repair &repair, std::mt19937_64 &random) {
    std::uniform_real_distribution<double> chance(0, 1);
    const size_t idle = repair.idle.size();
    if (idle == 1 || repair.done < effort_.since ||
        (effort_.wander > 0 && chance(random) < effort_.wander)) {
        return random() % idle;
    }
    // Views begin half a view after each other, so that every idle node is near the middle of one.
    size_t offset = 0;
    if (effort_.rotate && idle > VIEW) {
        constexpr size_t half = VIEW / 2;
        offset = random() % ((idle + half - 1) / half) * half;
    }
    const size_t n = std::min(idle, VIEW);
    const float *sums = chances(repair, offset, n);
    const auto aim = static_cast<float>(chance(random) * static_cast<double>(sums[n - 1]));
    const auto chosen = static_cast<size_t>(std::upper_bound(sums, sums + n - 1, aim) - sums);
    return (offset + chosen) % idle;
}

const float *NeuralChooser::chances(const Repair &repair, size_t offset, size_t n) {
    // Two jobs of the same size with the same idle nodes have the same state; others collide only
    // by chance.
    uint64_t key = repair.key;
    for (const uint64_t part :
         {static_cast<uint64_t>(repair.size), static_cast<uint64_t>(repair.others),
          static_cast<uint64_t>(repair.n_others), static_cast<uint64_t>(offset)}) {
        key = (key ^ part) * 0x9E3779B97F4A7C15U;
        key ^= key >> 29;
    }
    ++asked_;
    if (sums_.size() > MAX_REMEMBERED) {
        sums_.clear();
        where_.clear();
    }
    const auto [found, fresh] = where_.try_emplace(key, sums_.size());
    if (!fresh) {
        ++remembered_;
        return sums_.data() + found->second;
    }
    look(tree_, sequence_, repair.idle, offset, effort_.numbers, view_);
    view_.job = static_cast<float>(repair.size / largest_);
    view_.others =
        repair.n_others == 0
            ? 0.0f
            : static_cast<float>(static_cast<double>(repair.others) / repair.n_others / largest_);
    network_.run(view_, scratch_.data(), out_.data());
    const float highest = *std::max_element(out_.data(), out_.data() + n);
    for (float &number : out_) {
        number -= highest;
    }
    powers_of_two(out_.data(), out_.size(), static_cast<float>(1.44269504 / effort_.warmth));
    float sum = 0;
    for (size_t i = 0; i < n; ++i) {
        sum += out_[i];
        sums_.push_back(sum);
    }
    return sums_.data() + found->second;
}

} // namespace bridge
