// SPDX-License-Identifier: Apache-2.0
// Python bindings of write_announcements and due_announcements; _core.pyi documents them.
#include "python/module.hpp"

#include <nanobind/stl/string.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/columns.hpp"
#include "common/times.hpp"
#include "hostlist/hostlist.hpp"
#include "wire/announcements.hpp"
#include "wire/due_announcements.hpp"

namespace bridge {
namespace {

std::string_view text_of(nb::handle value, const char *name) {
    if (!PyUnicode_Check(value.ptr())) {
        refuse(std::string(name) + ": expected texts");
    }
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (text == nullptr) {
        throw nb::python_error();
    }
    return {text, static_cast<size_t>(size)};
}

// Texts that the list keeps alive.
std::vector<std::string_view> texts_of(const nb::list &values, const char *name) {
    std::vector<std::string_view> texts;
    texts.reserve(values.size());
    for (const nb::handle value : values) {
        texts.push_back(text_of(value, name));
    }
    return texts;
}

nb::bytes write_announcements(const HostlistFolder &folder, uint64_t first_id,
                              const nb::list &job_id, nb::handle version, nb::handle start_s,
                              nb::handle partition, const nb::list &partitions, nb::handle reason,
                              const nb::list &reasons, nb::handle indptr, nb::handle nodes) {
    const std::vector<std::string_view> ids = texts_of(job_id, "job_id");
    const size_t n = ids.size();
    const Column<uint64_t> versions("version", version);
    versions.expect_rows(n, "like job_id");
    const Column<int64_t> starts("start_s", start_s);
    starts.expect_rows(n, "like job_id");
    const std::vector<std::string_view> names = texts_of(partitions, "partitions");
    const Column<int32_t> where("partition", partition);
    where.expect_rows(n, "like job_id");
    std::vector<std::string_view> texts;
    for (const nb::handle one : reasons) {
        if (!PyBytes_Check(one.ptr())) {
            refuse("reasons: expected bytes");
        }
        texts.emplace_back(PyBytes_AS_STRING(one.ptr()),
                           static_cast<size_t>(PyBytes_GET_SIZE(one.ptr())));
    }
    const Column<int64_t> why("reason", reason);
    why.expect_rows(n, "like job_id").within(0, static_cast<int64_t>(texts.size()) - 1);
    const Column<int32_t> flat("nodes", nodes);
    flat.within(0, static_cast<int32_t>(folder.size()) - 1);
    const Column<int64_t> offsets("indptr", indptr);
    offsets.expect_rows(n + 1, "one more than job_id").expect_offsets(flat.rows(), "nodes");
    std::string reply;
    {
        nb::gil_scoped_release release;
        for (size_t i = 0; i < n; ++i) {
            Announcement one{first_id + i,
                             ids[i],
                             versions[i],
                             false,
                             0,
                             {},
                             {},
                             texts[static_cast<size_t>(why[i])]};
            std::string hostlist;
            if (starts[i] != NEVER && starts[i] != UNPLANNED) {
                scalar("partition", where[i], 0, static_cast<int64_t>(names.size()) - 1);
                hostlist = folder.fold(flat.data() + offsets[i],
                                       static_cast<size_t>(offsets[i + 1] - offsets[i]));
                one.planned = true;
                one.start_s = starts[i];
                one.nodes = hostlist;
                one.partition = names[static_cast<size_t>(where[i])];
            }
            append(reply, one);
        }
    }
    return nb::bytes(reply.data(), reply.size());
}

nb::tuple due_announcements_py(int64_t now_s, nb::handle start_s, nb::handle partition,
                               nb::handle indptr, nb::handle nodes, nb::handle reason,
                               nb::handle code, nb::handle words, nb::handle mix, nb::handle row_of,
                               nb::handle version, nb::handle serial, nb::handle announced,
                               nb::handle in_order, int64_t words_s, int64_t prompt,
                               int64_t calm_s) {
    const Column<int64_t> starts("start_s", start_s);
    const size_t n_rows = starts.rows();
    const Column<int32_t> where("partition", partition);
    where.expect_rows(n_rows, "like start_s");
    const Column<int32_t> flat("nodes", nodes);
    const Column<int64_t> mixed("mix", mix);
    flat.within(0, static_cast<int32_t>(mixed.rows()) - 1);
    const Column<int64_t> offsets("indptr", indptr);
    offsets.expect_rows(n_rows + 1, "one more than start_s").expect_offsets(flat.rows(), "nodes");
    const Column<int64_t> codes("code", code);
    const Column<int64_t> texts("words", words);
    texts.expect_rows(codes.rows(), "like code");
    const Column<int64_t> why("reason", reason);
    why.expect_rows(n_rows, "like start_s").within(0, static_cast<int64_t>(codes.rows()) - 1);
    const Column<int64_t> rows("row_of", row_of);
    const size_t n_jobs = rows.rows();
    rows.within(-1, static_cast<int64_t>(n_rows) - 1);
    const Column<uint64_t> versions("version", version);
    versions.expect_rows(n_jobs, "like row_of");
    const Column<int64_t> serials("serial", serial);
    serials.expect_rows(n_jobs, "like row_of");
    const Column<int64_t> before("said", announced, 2);
    before.expect_rows(ANNOUNCEMENT_ROWS, "one for each part")
        .expect_columns(n_jobs, "like row_of");
    const Column<int64_t> order("in_order", in_order);
    order.within(0, static_cast<int64_t>(n_jobs) - 1);
    scalar("calm_s", calm_s, 1, MOST_COUNT);
    const AnnouncedPlan plan{now_s,           n_rows,         starts.data(), where.data(),
                             offsets.data(),  flat.data(),    why.data(),    codes.data(),
                             texts.data(),    mixed.data(),   n_jobs,        rows.data(),
                             versions.data(), serials.data(), before.data()};
    DueAnnouncements due;
    {
        nb::gil_scoped_release release;
        due = due_announcements(plan, order.data(), order.rows(), {words_s, prompt, calm_s});
    }
    return nb::make_tuple(to_numpy(std::move(due.current)), to_numpy(std::move(due.jobs)),
                          due.again_s);
}

} // namespace

void define_announcements(nb::module_ &m) {
    using namespace nb::literals;
    m.def("due_announcements", &due_announcements_py, nb::kw_only(), "now_s"_a, "start_s"_a,
          "partition"_a, "indptr"_a, "nodes"_a, "reason"_a, "code"_a, "words"_a, "mix"_a,
          "row_of"_a, "version"_a, "serial"_a, "said"_a, "in_order"_a, "words_s"_a, "prompt"_a,
          "calm_s"_a);
    m.def("write_announcements", &write_announcements, "folder"_a, nb::kw_only(), "first_id"_a,
          "job_id"_a, "version"_a, "start_s"_a, "partition"_a, "partitions"_a, "reason"_a,
          "reasons"_a, "indptr"_a, "nodes"_a);
}

} // namespace bridge
