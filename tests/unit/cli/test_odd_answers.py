# SPDX-License-Identifier: Apache-2.0
"""Whatever texts an answer of the service holds, operators' commands print no control codes."""

from google.protobuf.descriptor import FieldDescriptor as Field

from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import coscheduling_pb2, operator_pb2

ODD = "a\x1b[2Jb\x07\x9b31m"
CONTROLS = {"\x1b", "\x07", "\x9b"}

COMMANDS = (
    "status", "plan", "explain 7", "accuracy", "changes", "policy show", "power show",
    "elastic status", "elastic show 7", "coschedule show", "coschedule export",
    f"unreserve {ODD}", f"reserve {ODD} --start now --duration 60 --nodes 2 --users ann",
)  # fmt: skip


def filled(message, depth=0):
    """The message with odd texts in every field that may have some, two in each list."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        value = {Field.CPPTYPE_STRING: ODD, Field.CPPTYPE_BOOL: True}.get(field.cpp_type, 1)
        if field.message_type is not None:
            if depth > 3:
                continue
            if field.is_repeated:
                for _ in range(2):
                    filled(getattr(message, field.name).add(), depth + 1)
            else:
                filled(getattr(message, field.name), depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend([value, value])
        elif field.cpp_type != Field.CPPTYPE_STRING or field.type == Field.TYPE_STRING:
            setattr(message, field.name, value)
    return message


def test_no_control_character_of_an_answer_is_printed(schedbridge, tmp_path, monkeypatch):
    """By no command: in lines, in tables, and where it is the operator's own."""

    def call(_client, _method, request, _timeout_s=None, **_settings):
        name = type(request).__name__.replace("Request", "Reply")
        package = coscheduling_pb2 if hasattr(coscheduling_pb2, name) else operator_pb2
        return filled(getattr(package, name)())

    monkeypatch.setattr(OperatorClient, "_call", call)
    (tmp_path / "s").touch()
    for command in COMMANDS:
        code, out, err = schedbridge(*command.split(" "), "--socket", tmp_path / "s")
        assert (code, err) == (0, ""), command
        assert not CONTROLS & {*out}, command
        assert "a?[2J" in out, command
