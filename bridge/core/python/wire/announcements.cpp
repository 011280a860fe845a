// SPDX-License-Identifier: Apache-2.0
// Python bindings of write_announcements and due_announcements.
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
                              const nb::list &job_id, Array<uint64_t> version,
                              Array<int64_t> start_s, Array<int32_t> partition,
                              const nb::list &partitions, Array<int64_t> reason,
                              const nb::list &reasons, Array<int64_t> indptr,
                              Array<int32_t> nodes) {
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

Tuple<Array<int64_t>, Array<int64_t>, int64_t>
due_announcements_py(int64_t now_s, Array<int64_t> start_s, Array<int32_t> partition,
                     Array<int64_t> indptr, Array<int32_t> nodes, Array<int64_t> reason,
                     Array<int64_t> code, Array<int64_t> words, Array<int64_t> mix,
                     Array<int64_t> row_of, Array<uint64_t> version, Array<int64_t> serial,
                     nb::handle announced, Array<int64_t> in_order, int64_t words_s, int64_t prompt,
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
    scalar("calm_s", calm_s, 1, MAX_COUNT);
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
          "calm_s"_a, R"(Compare a plan with what was announced of it. O(rows + nodes planned).

``bridge/rpc/controller/announcements.py`` has the rules.

Args:
    now_s: the present.
    start_s: (n_rows,) s; ``NEVER`` or ``UNPLANNED``: only the reason is announced.
    partition: (n_rows,) of the planned starts.
    indptr: (n_rows + 1,) offsets into ``nodes``.
    nodes: of all rows.
    reason: (n_rows,) positions in ``code`` and ``words``.
    code: of each reason.
    words: a fingerprint of the text of each reason.
    mix: (n_nodes,) random weights, for fingerprints of sets of nodes.
    row_of: (n_jobs,) the row that is announced; -1: none.
    version: (n_jobs,) of the jobs.
    serial: (n_jobs,) of the jobs, in whose seconds their intervals begin.
    said: (8, n_jobs) the table of the last announcements; zeros: none was made.
    in_order: the jobs with a row, in the plan's order.
    words_s: seconds between two announcements of which only the words differ.
    prompt: so many jobs that have only moved may be announced each second.
    calm_s: the longest interval between announcements of the others, s.

Returns:
    8 * n_jobs numbers: the table of the present announcements, row after row; the jobs to be
    announced, in order; and seconds until others are due, 0 if there are none.

Raises:
    ValueError: a column has another length or type, or a number that refers to nothing.)");
    m.def("write_announcements", &write_announcements, "folder"_a, nb::kw_only(), "first_id"_a,
          "job_id"_a, "version"_a, "start_s"_a, "partition"_a, "partitions"_a, "reason"_a,
          "reasons"_a, "indptr"_a, "nodes"_a,
          R"(Write n announcements as a ``CycleReply`` that has them as its decisions.

Args:
    folder: writes the hostlists.
    first_id: number of the first decision; the others follow.
    job_id: n ids.
    version: (n,) of the jobs.
    start_s: (n,) s; ``NEVER`` or ``UNPLANNED``: only the reason is announced.
    partition: (n,) positions in ``partitions``, of planned starts.
    partitions: their names.
    reason: (n,) positions in ``reasons``.
    reasons: ``Pending`` messages, encoded.
    indptr: (n + 1,) CSR offsets into ``nodes``.
    nodes: node indices.

Returns:
    The encoded message.)");
}

} // namespace bridge
