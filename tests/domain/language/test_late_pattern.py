"""Patterns that are compiled late find what compiled ones find, and importing them compiles nothing."""

import re
import subprocess
import sys

import pytest

from recollect.memory.language.late_pattern import compile_late_patterns, late_pattern

IMPORTING = """
import re
compiled, compile = [], re._compiler.compile
re._compiler.compile = lambda source, flags=0: compiled.append(source) or compile(source, flags)
from recollect.memory.language import lexemes, quoted_parts, trivial
from recollect.memory.learning.proof import evidence
from recollect.memory.temporal import dates, time_phrases
own = [module._WORD for module in (lexemes, dates, time_phrases)]
sources = {pattern.__dict__["_source"] for pattern in own}
assert sources.isdisjoint(compiled), sources.intersection(compiled)
from recollect.memory.language.late_pattern import compile_late_patterns
compile_late_patterns()
assert sources <= set(compiled), sources.difference(compiled)
seen = len(compiled)
assert own[0].findall("two words") == ["two", "words"]
compile_late_patterns()
assert len(compiled) == seen
"""


def test_a_late_pattern_works_like_the_compiled_one() -> None:
    late, compiled = late_pattern(r"(?P<word>[a-z]+)", re.IGNORECASE), re.compile(r"(?P<word>[a-z]+)", re.IGNORECASE)
    text = "One two, THREE"
    assert late.findall(text) == compiled.findall(text)
    assert [found["word"] for found in late.finditer(text)] == [found["word"] for found in compiled.finditer(text)]
    assert late.sub("-", text) == compiled.sub("-", text)
    assert late.split(text) == compiled.split(text)
    assert late.match(text, 4).span() == compiled.match(text, 4).span()  # type: ignore[union-attr] - both match
    assert (late.pattern, late.flags, late.groups) == (compiled.pattern, compiled.flags, compiled.groups)


def test_a_wrong_expression_is_an_error_when_it_is_compiled() -> None:
    late = late_pattern("(")
    with pytest.raises(re.error):
        late.search("")
    with pytest.raises(re.error):
        compile_late_patterns()


def test_imports_compile_nothing_and_a_service_compiles_all_once() -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
