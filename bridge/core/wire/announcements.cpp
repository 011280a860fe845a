// SPDX-License-Identifier: Apache-2.0
#include "wire/announcements.hpp"

namespace bridge {
namespace {

// The ways in which fields are encoded.
constexpr uint32_t VARINT = 0;
constexpr uint32_t FIXED64 = 1;
constexpr uint32_t BYTES = 2;

// Numbers of fields; all fit in one byte with the way they are encoded.
constexpr uint32_t REPLY_DECISIONS = 3;
constexpr uint32_t DECISION_ID = 1;
constexpr uint32_t DECISION_JOB_ID = 2;
constexpr uint32_t DECISION_JOB_VERSION = 3;
constexpr uint32_t DECISION_PLANNED_START = 5;
constexpr uint32_t DECISION_PENDING = 6;
constexpr uint32_t START_START_S = 1;
constexpr uint32_t START_NODES = 2;
constexpr uint32_t START_PARTITION = 3;
constexpr uint32_t START_REASON = 4;

void append_varint(std::string &text, uint64_t value) {
    for (; value > 0x7F; value >>= 7) {
        text.push_back(static_cast<char>(value | 0x80));
    }
    text.push_back(static_cast<char>(value));
}

void append_tag(std::string &text, uint32_t field, uint32_t encoding) {
    text.push_back(static_cast<char>(field << 3 | encoding));
}

size_t size_of_varint(uint64_t value) {
    size_t size = 1;
    for (; value > 0x7F; value >>= 7) {
        ++size;
    }
    return size;
}

size_t size_of_bytes(size_t length) {
    return 1 + size_of_varint(length) + length;
}

// The beginning of a field of so many bytes.
void append_length(std::string &text, uint32_t field, size_t length) {
    append_tag(text, field, BYTES);
    append_varint(text, length);
}

void append_bytes(std::string &text, uint32_t field, std::string_view value) {
    append_length(text, field, value.size());
    text.append(value);
}

} // namespace

void append(std::string &reply, const Announcement &one) {
    const auto start_s = static_cast<uint64_t>(one.start_s);
    const size_t content =
        one.planned ? 1 + size_of_varint(start_s) + size_of_bytes(one.nodes.size()) +
                          size_of_bytes(one.partition.size()) + size_of_bytes(one.reason.size())
                    : one.reason.size();
    append_length(reply, REPLY_DECISIONS,
                  1 + size_of_varint(one.id) + size_of_bytes(one.job_id.size()) + 1 +
                      sizeof one.version + size_of_bytes(content));
    append_tag(reply, DECISION_ID, VARINT);
    append_varint(reply, one.id);
    append_bytes(reply, DECISION_JOB_ID, one.job_id);
    append_tag(reply, DECISION_JOB_VERSION, FIXED64);
    for (size_t byte = 0; byte < sizeof one.version; ++byte) { // lowest first
        reply.push_back(static_cast<char>(one.version >> 8 * byte));
    }
    if (!one.planned) {
        append_bytes(reply, DECISION_PENDING, one.reason);
        return;
    }
    append_length(reply, DECISION_PLANNED_START, content);
    append_tag(reply, START_START_S, VARINT);
    append_varint(reply, start_s);
    append_bytes(reply, START_NODES, one.nodes);
    append_bytes(reply, START_PARTITION, one.partition);
    append_bytes(reply, START_REASON, one.reason);
}

} // namespace bridge
