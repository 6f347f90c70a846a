"""ONNX models as bytes, without the package `onnx`: the part of its protobuf form that small graphs need.

The fields' numbers are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

FLOAT, INT64 = 1, 7
OPSET = 17
_IR_VERSION = 8
_INT_ATTRIBUTE = 2


class Node(NamedTuple):
    """One operation: `output` = `operation`(`inputs`), with integer attributes."""

    operation: str
    inputs: Sequence[str]
    output: str
    attributes: Mapping[str, int] = MappingProxyType({})


def model(
    nodes: Sequence[Node], *, inputs: Sequence[str], output: str, constants: dict[str, float | list[int]]
) -> bytes:
    """Return a model over int64 matrices of any size; a constant is one float or a list of int64."""
    graph = b"".join(
        [
            *(_field(1, _node(node)) for node in nodes),
            _field(2, b"graph"),
            *(_field(5, _tensor(name, value)) for name, value in constants.items()),
            *(_field(11, _matrix(name, INT64)) for name in inputs),
            _field(12, _matrix(output, FLOAT)),
        ]
    )
    return _number(1, _IR_VERSION) + _field(7, graph) + _field(8, _number(2, OPSET))


def _node(node: Node) -> bytes:
    names = b"".join(_field(1, name.encode()) for name in node.inputs) + _field(2, node.output.encode())
    attributes = b"".join(
        _field(5, _field(1, name.encode()) + _number(3, value) + _number(20, _INT_ATTRIBUTE))
        for name, value in node.attributes.items()
    )
    return names + _field(4, node.operation.encode()) + attributes


def _tensor(name: str, value: float | list[int]) -> bytes:
    named = _field(8, name.encode())
    if isinstance(value, list):
        return _number(1, len(value)) + _number(2, INT64) + b"".join(_number(7, item) for item in value) + named
    return _number(2, FLOAT) + _field(9, struct.pack("<f", value)) + named


def _matrix(name: str, element: int) -> bytes:
    shape = b"".join(_field(1, _field(2, side.encode())) for side in (f"{name}_rows", f"{name}_columns"))
    return _field(1, name.encode()) + _field(2, _field(1, _number(1, element) + _field(2, shape)))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
