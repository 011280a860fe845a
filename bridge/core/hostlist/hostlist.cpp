// SPDX-License-Identifier: Apache-2.0
#include "hostlist/hostlist.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>
#include <unordered_set>

namespace bridge {
namespace {

// More digits than any node number has, few enough for int64.
constexpr size_t MAX_DIGITS = 18;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// The position of the number at the end of a name; the name's size if it has none that can be
// folded.
size_t number_begin(const std::string &name) {
    size_t begin = name.size();
    while (begin > 0 && is_digit(name[begin - 1])) {
        --begin;
    }
    return name.size() - begin > MAX_DIGITS ? name.size() : begin;
}

void append_number(std::string &text, int64_t number, int padded_to) {
    char digits[20];
    const char *end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    const auto width = static_cast<int>(end - digits);
    if (width < padded_to) {
        text.append(static_cast<size_t>(padded_to - width), '0');
    }
    text.append(digits, static_cast<size_t>(width));
}

} // namespace

HostlistFolder::HostlistFolder(const std::vector<std::string> &names) {
    std::unordered_set<std::string> seen;
    // Beside n09, n10 is written with two digits.
    std::set<std::pair<std::string, size_t>> padded;
    for (const std::string &name : names) {
        if (name.empty() || name.find_first_of("[], \t\n") != std::string::npos) {
            throw std::invalid_argument("names: '" + name + "' is not a node name");
        }
        if (!seen.insert(name).second) {
            throw std::invalid_argument("names: '" + name + "' occurs twice");
        }
        const size_t begin = number_begin(name);
        const size_t digits = name.size() - begin;
        if (digits > 1 && name[begin] == '0') {
            padded.emplace(name.substr(0, begin), digits);
        }
    }
    std::map<std::pair<std::string, int>, uint32_t> known;
    std::vector<Entry> by_node;
    by_node.reserve(names.size());
    for (const std::string &name : names) {
        const size_t begin = number_begin(name);
        const size_t digits = name.size() - begin;
        std::string prefix = name.substr(0, begin);
        int64_t number = -1;
        int padded_to = -1; // not folded with other names
        if (digits > 0) {
            std::from_chars(name.data() + begin, name.data() + name.size(), number);
            padded_to = padded.count({prefix, digits}) != 0 ? static_cast<int>(digits) : 0;
        }
        const auto [at, is_new] =
            known.try_emplace({prefix, padded_to}, static_cast<uint32_t>(families_.size()));
        if (is_new) {
            families_.push_back({std::move(prefix), padded_to});
        }
        by_node.push_back({at->second, number});
    }
    std::vector<uint32_t> order(names.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return by_node[a].family != by_node[b].family ? by_node[a].family < by_node[b].family
                                                      : by_node[a].number < by_node[b].number;
    });
    place_.resize(names.size());
    for (size_t i = 0; i < order.size(); ++i) {
        entries_.push_back(by_node[order[i]]);
        place_[order[i]] = static_cast<uint32_t>(i);
    }
}

std::string HostlistFolder::fold(const int32_t *nodes, size_t n) const {
    std::vector<uint32_t> places(n);
    for (size_t i = 0; i < n; ++i) {
        places[i] = place_[static_cast<size_t>(nodes[i])];
    }
    if (!std::is_sorted(places.begin(), places.end())) {
        std::sort(places.begin(), places.end());
    }
    places.erase(std::unique(places.begin(), places.end()), places.end());

    std::string text;
    for (size_t i = 0; i < places.size();) {
        const uint32_t family_index = entries_[places[i]].family;
        const Family &family = families_[family_index];
        size_t family_end = i + 1;
        while (family_end < places.size() && entries_[places[family_end]].family == family_index) {
            ++family_end;
        }
        if (!text.empty()) {
            text += ',';
        }
        text += family.prefix;
        const bool bracketed = family_end - i > 1;
        if (bracketed) {
            text += '[';
        }
        for (bool first_range = true; i < family_end; first_range = false) {
            const int64_t low = entries_[places[i]].number;
            int64_t high = low;
            for (++i; i < family_end && entries_[places[i]].number == high + 1; ++i) {
                ++high;
            }
            if (low < 0) {
                break; // no number
            }
            if (!first_range) {
                text += ',';
            }
            append_number(text, low, family.padded_to);
            if (high > low) {
                text += '-';
                append_number(text, high, family.padded_to);
            }
        }
        if (bracketed) {
            text += ']';
        }
    }
    return text;
}

} // namespace bridge
