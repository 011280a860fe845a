// SPDX-License-Identifier: Apache-2.0
// NumPy arrays as C++ reads them. A cycle with a short queue reads a hundred arrays, most of them
// small; the buffer protocol takes half the time of nanobind's own views.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <type_traits>
#include <unordered_map>

namespace bridge {

namespace nb = nanobind;

// A C-contiguous array of T owned elsewhere; keeps it alive.
template <typename T> class ArrayView {
  public:
    // `convert`: an array of another type, or not contiguous, is copied. False: not such an array.
    bool read(nb::handle array, bool convert) {
        Py_buffer buffer;
        if (PyObject_CheckBuffer(array.ptr()) != 0 &&
            PyObject_GetBuffer(array.ptr(), &buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
            const bool fits = buffer.ndim >= 1 && buffer.ndim <= 2 && is_of_type(buffer);
            if (fits) {
                data_ = static_cast<const T *>(buffer.buf);
                take_shape(static_cast<size_t>(buffer.ndim), buffer.shape);
                holder_ = nb::borrow(array);
            }
            PyBuffer_Release(&buffer); // the array stays: it is held
            if (fits) {
                return true;
            }
        }
        PyErr_Clear();
        nb::ndarray<const T, nb::c_contig, nb::device::cpu> view;
        if (!nb::try_cast(array, view, convert)) {
            return false;
        }
        data_ = view.data();
        dimensions_ = view.ndim();
        size_ = view.size();
        for (size_t axis = 0; axis < 2 && axis < dimensions_; ++axis) {
            shape_[axis] = view.shape(axis);
        }
        holder_ = nb::cast(view);
        return true;
    }

    size_t ndim() const { return dimensions_; }
    size_t size() const { return size_; }
    size_t shape(size_t axis) const { return shape_[axis]; }
    const T *data() const { return data_; }

  private:
    nb::object holder_;
    const T *data_ = nullptr;
    size_t dimensions_ = 0;
    size_t size_ = 0;
    size_t shape_[2] = {0, 0};

    static bool is_of_type(const Py_buffer &buffer) {
        if (buffer.itemsize != sizeof(T) || buffer.format == nullptr || buffer.format[1] != 0) {
            return false;
        }
        switch (buffer.format[0]) {
        case '?':
            return std::is_same_v<T, bool>;
        case 'b':
        case 'i':
        case 'l':
        case 'q':
            return std::is_signed_v<T> && !std::is_same_v<T, bool>;
        case 'I':
        case 'L':
        case 'Q':
            return std::is_unsigned_v<T> && !std::is_same_v<T, bool>;
        default:
            return false;
        }
    }
    void take_shape(size_t dimensions, const Py_ssize_t *shape) {
        dimensions_ = dimensions;
        size_ = 1;
        for (size_t axis = 0; axis < dimensions; ++axis) {
            shape_[axis] = static_cast<size_t>(shape[axis]);
            size_ *= shape_[axis];
        }
    }
};

// An attribute with a literal name, which becomes a Python string once.
inline nb::object attribute(nb::handle of, const char *literal) {
    static auto *known = new std::unordered_map<const char *, PyObject *>();
    PyObject *&name = (*known)[literal];
    if (name == nullptr && (name = PyUnicode_InternFromString(literal)) == nullptr) {
        throw nb::python_error();
    }
    PyObject *found = PyObject_GetAttr(of.ptr(), name);
    if (found == nullptr) {
        throw nb::python_error();
    }
    return nb::steal(found);
}

} // namespace bridge
