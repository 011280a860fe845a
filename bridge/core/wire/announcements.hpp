// SPDX-License-Identifier: Apache-2.0
// Announcements as the wire has them: decisions of a reply, in the encoding of protobuf.
//
// A reply can announce thousands of starts. Written here they cost a tenth of what messages cost
// that are filled field by field. The numbers are those of proto/schedbridge/v1/scheduler.proto;
// tests/unit/core/test_announcements.py compares the result with messages made from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bridge {

// The announcement of one job. Texts are UTF-8.
struct Announcement {
    uint64_t id;             // of the decision
    std::string_view job_id; // and the version of the job
    uint64_t version;
    bool planned; // otherwise only the reason is announced
    int64_t start_s;
    std::string_view nodes; // a hostlist
    std::string_view partition;
    std::string_view reason; // a Pending, encoded
};

// Appends one more of `CycleReply.decisions`.
void append(std::string &reply, const Announcement &announcement);

} // namespace bridge
