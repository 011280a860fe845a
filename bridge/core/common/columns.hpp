// SPDX-License-Identifier: Apache-2.0
// NumPy columns in and out of the kernels: every refusal names the argument.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/arrays.hpp"
#include "common/buffer.hpp"

namespace bridge {

namespace nb = nanobind;

// Amounts are kept in 32 bits; the sum of two must not overflow.
constexpr int64_t MAX_COUNT = int64_t{1} << 30;

// Large enough for a node's memory in MiB, small enough for fixed-point shares of it.
constexpr int64_t MAX_AMOUNT = int64_t{1} << 40;

[[noreturn]] inline void refuse(const std::string &what) {
    throw nb::value_error(what.c_str());
}

template <typename T> const char *dtype_name() {
    if constexpr (std::is_same_v<T, bool>) {
        return "bool";
    } else if constexpr (std::is_same_v<T, int8_t>) {
        return "int8";
    } else if constexpr (std::is_same_v<T, int32_t>) {
        return "int32";
    } else if constexpr (std::is_same_v<T, uint64_t>) {
        return "uint64";
    } else {
        static_assert(std::is_same_v<T, int64_t>);
        return "int64";
    }
}

template <typename T> constexpr auto array_name() {
    using nb::detail::const_name;
    if constexpr (std::is_same_v<T, bool>) {
        return const_name("numpy.typing.NDArray[numpy.bool_]");
    } else if constexpr (std::is_same_v<T, int8_t>) {
        return const_name("numpy.typing.NDArray[numpy.int8]");
    } else if constexpr (std::is_same_v<T, int32_t>) {
        return const_name("numpy.typing.NDArray[numpy.int32]");
    } else if constexpr (std::is_same_v<T, int64_t>) {
        return const_name("numpy.typing.NDArray[numpy.int64]");
    } else if constexpr (std::is_same_v<T, uint64_t>) {
        return const_name("numpy.typing.NDArray[numpy.uint64]");
    } else if constexpr (std::is_same_v<T, float>) {
        return const_name("numpy.typing.NDArray[numpy.float32]");
    } else {
        static_assert(std::is_same_v<T, double>);
        return const_name("numpy.typing.NDArray[numpy.float64]");
    }
}

// A NumPy array in a signature. An argument may be any object: Column says what is wrong with it.
template <typename T> struct Array : nb::object {
    static constexpr auto Name = array_name<T>();
    static bool check_(nb::handle) { return true; }

    Array() = default;
    Array(nb::object array) : nb::object(std::move(array)) {}
    Array(nb::handle array, nb::detail::borrow_t) : nb::object(array, nb::detail::borrow_t()) {}
    Array(nb::handle array, nb::detail::steal_t) : nb::object(array, nb::detail::steal_t()) {}
};

template <typename... T> using Tuple = nb::typed<nb::tuple, T...>;

// Refuses values out of bounds.
template <typename T>
void expect_within(const char *name, const T *values, size_t size, T minimum, T maximum) {
    for (size_t i = 0; i < size; ++i) {
        if (values[i] < minimum || values[i] > maximum) {
            refuse(std::string(name) + ": " + std::to_string(values[i]) + " at position " +
                   std::to_string(i) +
                   (values[i] < minimum ? " is less than " + std::to_string(minimum)
                                        : " is more than " + std::to_string(maximum)));
        }
    }
}

// A checked view of an argument; holds a reference to the array.
template <typename T> class Column {
  public:
    // `gather`: an array that is not contiguous is copied, not refused.
    Column(const char *name, nb::handle argument, size_t dimensions = 1, bool gather = false)
        : name_(name) {
        if (!array_.read(argument, gather)) {
            refuse(text() + "expected a C-contiguous NumPy array of " + dtype_name<T>() + ", got " +
                   describe(argument));
        }
        if (array_.ndim() != dimensions) {
            refuse(text() + "expected " + std::to_string(dimensions) + " dimension(s), got " +
                   std::to_string(array_.ndim()));
        }
    }

    size_t rows() const { return array_.shape(0); }
    size_t columns() const { return array_.shape(1); }
    const T *data() const { return array_.data(); }
    T operator[](size_t i) const { return array_.data()[i]; }

    const Column &expect_rows(size_t n, const char *as) const {
        if (rows() != n) {
            refuse(text() + "expected " + std::to_string(n) + " rows (" + as + "), got " +
                   std::to_string(rows()));
        }
        return *this;
    }
    const Column &expect_columns(size_t n, const char *as) const {
        if (columns() != n) {
            refuse(text() + "expected " + std::to_string(n) + " columns (" + as + "), got " +
                   std::to_string(columns()));
        }
        return *this;
    }
    const Column &at_least(T minimum) const {
        return within(minimum, std::numeric_limits<T>::max());
    }
    const Column &within(T minimum, T maximum) const {
        expect_within(name_, array_.data(), array_.size(), minimum, maximum);
        return *this;
    }
    // CSR offsets: from 0, ascending, to `n`.
    const Column &expect_offsets(size_t n, const char *into) const {
        if (rows() == 0 || array_.data()[0] != 0) {
            refuse(text() + "offsets must begin with 0");
        }
        for (size_t i = 1; i < rows(); ++i) {
            if (array_.data()[i] < array_.data()[i - 1]) {
                refuse(text() + "offsets fall at position " + std::to_string(i));
            }
        }
        if (static_cast<size_t>(array_.data()[rows() - 1]) != n) {
            refuse(text() + "the last offset is " + std::to_string(array_.data()[rows() - 1]) +
                   ", but " + into + " has " + std::to_string(n) + " rows");
        }
        return *this;
    }

  private:
    const char *name_;
    ArrayView<T> array_;

    std::string text() const { return std::string(name_) + ": "; }
    static std::string describe(nb::handle argument) {
        std::string text = nb::str(argument.type().attr("__name__")).c_str();
        if (nb::hasattr(argument, "dtype")) {
            const nb::object dtype = nb::getattr(argument, "dtype");
            text += std::string(" of ") + nb::str(dtype).c_str();
        }
        if (nb::hasattr(argument, "flags")) {
            const nb::object flags = nb::getattr(argument, "flags");
            const nb::object contiguous = nb::getattr(flags, "c_contiguous", nb::none());
            if (contiguous.is(nb::handle(Py_False))) {
                text += ", not contiguous";
            }
        }
        return text;
    }
};

inline int64_t scalar(const char *name, int64_t value, int64_t minimum,
                      int64_t maximum = std::numeric_limits<int64_t>::max()) {
    if (value < minimum || value > maximum) {
        refuse(std::string(name) + ": " + std::to_string(value) +
               (value < minimum ? " is less than " + std::to_string(minimum)
                                : " is more than " + std::to_string(maximum)));
    }
    return value;
}

template <typename T> Array<T> to_array(T *values, size_t n, nb::handle owner) {
    return Array<T>(nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(values, {n}, owner)));
}

// Hands a vector to NumPy without copying it.
template <typename T> Array<T> to_numpy(std::vector<T> values) {
    auto *kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return to_array(kept->data(), kept->size(), owner);
}

template <typename T> Array<T> to_numpy(Buffer<T> values) {
    const size_t n = values.size();
    T *kept = values.release();
    nb::capsule owner(kept, [](void *p) noexcept { std::free(p); });
    return to_array(kept, n, owner);
}

} // namespace bridge
