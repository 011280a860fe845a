// SPDX-License-Identifier: Apache-2.0
// Columns of the tables of bridge.model, read by name; an error names the column.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/arrays.hpp"

namespace bridge {

namespace nb = nanobind;

// A column of a table by name. Unlike the arguments of kernels it may have another type or not be
// contiguous.
template <typename T> class View {
  public:
    View(nb::handle table, const char *name, size_t dimensions = 1) : name_(name) {
        if (!array_.read(attribute(table, name), true) || array_.ndim() != dimensions) {
            refuse("is not a column");
        }
    }
    View &rows(size_t n) {
        if (array_.shape(0) != n) {
            refuse("has " + std::to_string(array_.shape(0)) + " rows, not " + std::to_string(n));
        }
        return *this;
    }
    View &columns(size_t n) {
        if (array_.shape(1) != n) {
            refuse("has " + std::to_string(array_.shape(1)) + " columns, not " + std::to_string(n));
        }
        return *this;
    }
    View &below(size_t n) {
        if (!all_below(n)) {
            refuse("points outside");
        }
        return *this;
    }
    View &offsets(size_t n) {
        if (!ascends() || static_cast<size_t>(data()[size() - 1]) != n) {
            refuse("holds no offsets");
        }
        return *this;
    }
    bool all_below(size_t n) const {
        bool below = true;
        for (size_t i = 0; i < size(); ++i) { // without a branch, to vectorise
            below &= static_cast<uint64_t>(data()[i]) < n;
        }
        return below;
    }
    bool ascends() const {
        for (size_t i = 0; i < size(); ++i) {
            if (i == 0 ? data()[0] != 0 : data()[i] < data()[i - 1]) {
                return false;
            }
        }
        return size() > 0;
    }
    const T *data() const { return array_.data(); }
    size_t size() const { return array_.shape(0); }
    size_t width() const { return array_.shape(1); }

  private:
    const char *name_;
    ArrayView<T> array_;

    [[noreturn]] void refuse(const std::string &what) const {
        throw nb::value_error((std::string(name_) + " " + what).c_str());
    }
};

// A column of Python objects.
class Objects {
  public:
    Objects(nb::handle table, const char *name, size_t rows) : column_(attribute(table, name)) {
        if (PyObject_GetBuffer(column_.ptr(), &view_, PyBUF_FULL_RO) != 0) {
            throw nb::python_error();
        }
        const bool fits = view_.ndim == 1 && view_.itemsize == sizeof(PyObject *) &&
                          view_.format != nullptr && std::string(view_.format) == "O" &&
                          static_cast<size_t>(view_.shape[0]) == rows;
        if (!fits) {
            PyBuffer_Release(&view_);
            throw nb::value_error((std::string(name) + " is not a column of objects").c_str());
        }
    }
    Objects(const Objects &) = delete;
    Objects &operator=(const Objects &) = delete;
    ~Objects() { PyBuffer_Release(&view_); }

    nb::handle operator[](size_t row) const {
        const char *at =
            static_cast<const char *>(view_.buf) + static_cast<Py_ssize_t>(row) * view_.strides[0];
        return *reinterpret_cast<PyObject *const *>(at);
    }

  private:
    nb::object column_;
    Py_buffer view_{};
};

} // namespace bridge
