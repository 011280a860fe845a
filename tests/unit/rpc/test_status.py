# SPDX-License-Identifier: Apache-2.0
import grpc
import pytest

from bridge import errors
from bridge.input_problems import ConfigProblems
from bridge.rpc.transport.status_codes import CODES, code_of, error_of
from schedbridge_contracts.crosses import each

EVERY = [
    thing
    for thing in vars(errors).values()
    if isinstance(thing, type) and issubclass(thing, errors.BridgeError)
]


@each(error=EVERY)
def test_every_error_has_its_own_line_in_the_table(error):
    assert error in CODES


def test_the_table_has_no_line_too_many():
    assert set(CODES) == set(EVERY)


def test_an_error_defined_elsewhere_takes_its_ancestors_code():
    problems = ConfigProblems([errors.ConfigError("a", "b")])
    assert code_of(problems) is grpc.StatusCode.INVALID_ARGUMENT


class Call(grpc.RpcError):
    def __init__(self, code, details="why"):
        self._code, self._details = code, details

    def code(self):
        return self._code

    def details(self):
        return self._details


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.Unreachable, "no answer at unix:/x"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.Unreachable, "in time"),
        (grpc.StatusCode.ABORTED, errors.StaleSnapshot, "why"),
        (grpc.StatusCode.FAILED_PRECONDITION, errors.UnsupportedVersion, "why"),
        (grpc.StatusCode.PERMISSION_DENIED, errors.ControllerError, "not allowed: why"),
        (grpc.StatusCode.INTERNAL, errors.ControllerError, "why"),
        (grpc.StatusCode.NOT_FOUND, errors.ControllerError, "why"),
    ],
)
def test_codes_come_back_as_errors(code, error, text):
    found = error_of(Call(code), "unix:/x")
    assert type(found) is error
    assert text in str(found)
