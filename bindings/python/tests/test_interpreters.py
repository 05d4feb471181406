"""Several interpreters in a process."""

from __future__ import annotations

import sys
from typing import Any

import pytest

CODE = """
import {module} as interpreters
import gcx

def refused():
    try:
        gcx.split([1000])
    except gcx.ResourceConfigurationError as error:
        assert type(error).__module__ == "gcx" and "1000" in str(error)
        return True

OTHER = '''
import gcx, logging
logging.getLogger("gcx").setLevel(10)
try:
    gcx.split([2000])
except gcx.ResourceConfigurationError as error:
    assert "2000" in str(error)
else:
    raise SystemExit("no error")
with gcx.split([8]):
    pass
with gcx.acquire(100) as lease:
    try:
        gcx.acquire(64, timeout=0.01)
    except gcx.AlreadyAcquiredError as error:
        assert "timed out after 10 ms" in str(error)
    else:
        raise SystemExit("no error")
'''
assert refused()
for _ in range(3):
    other = interpreters.create({arguments})
    answer = interpreters.{run}(other, OTHER)
    assert answer is None, answer
    assert refused()
    interpreters.destroy(other)
    assert refused()
print("fine")
"""


def test_errors_are_those_of_the_interpreter(script: Any) -> None:
    """One that shares the GIL can use gcx too; whichever ends first, each has its own classes."""
    if sys.version_info >= (3, 13):
        names = {"module": "_interpreters", "arguments": "'legacy'", "run": "exec"}
    else:
        names = {"module": "_xxsubinterpreters", "arguments": "", "run": "run_string"}
        if sys.version_info >= (3, 12):
            names["arguments"] = "isolated=False"
    assert script(CODE.format(**names)) == "fine\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="all interpreters share a GIL before 3.12")
def test_one_with_a_gil_of_its_own_is_refused(script: Any) -> None:
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    run = "exec" if sys.version_info >= (3, 13) else "run_string"
    code = f"""
import {module} as interpreters
other = interpreters.create()
try:
    print(interpreters.{run}(other, "import gcx"))
except Exception as error:
    print(error)
interpreters.destroy(other)
"""
    assert "subinterpreters" in script(code)
