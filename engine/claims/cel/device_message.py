"""The type of the variable ``device`` as a protobuf message, which is how the CEL library knows fields of a value."""

from typing import Any, Final

_STRING, _BOOL, _MESSAGE = 9, 8, 11
_OPTIONAL, _REPEATED = 1, 3


def _encode_varint(value: int) -> bytes:
    output = bytearray()
    while value > 127:
        output.append(value & 127 | 128)
        value >>= 7
    return bytes((*output, value))


def _encode_number(field: int, value: int) -> bytes:
    return _encode_varint(field << 3) + _encode_varint(value)


def _encode_bytes(field: int, value: bytes) -> bytes:
    return _encode_varint(field << 3 | 2) + _encode_varint(len(value)) + value


def _encode_field(name: str, number: int, kind: int, label: int = _OPTIONAL, message: str = "") -> bytes:
    """Encode a FieldDescriptorProto."""
    encoded = (
        _encode_bytes(1, name.encode()) + _encode_number(3, number) + _encode_number(4, label) + _encode_number(5, kind)
    )
    return encoded + (_encode_bytes(6, message.encode()) if message else b"")


def _encode_map_entry(name: str) -> bytes:
    """Encode the message of one entry of ``map<string, google.protobuf.Struct>``."""
    key, value = (
        _encode_field("key", 1, _STRING),
        _encode_field("value", 2, _MESSAGE, message=".google.protobuf.Struct"),
    )
    return (
        _encode_bytes(1, name.encode())
        + _encode_bytes(2, key)
        + _encode_bytes(2, value)
        + _encode_bytes(7, _encode_number(7, 1))
    )


def _encode_message() -> bytes:
    fields = (
        _encode_field("driver", 1, _STRING),
        _encode_field("allowMultipleAllocations", 2, _BOOL),
        _encode_field("attributes", 3, _MESSAGE, _REPEATED, ".kubernetes.DRADevice.AttributesEntry"),
        _encode_field("capacity", 4, _MESSAGE, _REPEATED, ".kubernetes.DRADevice.CapacityEntry"),
    )
    entries = (_encode_map_entry("AttributesEntry"), _encode_map_entry("CapacityEntry"))
    encoded = b"".join(_encode_bytes(2, field) for field in fields) + b"".join(
        _encode_bytes(3, entry) for entry in entries
    )
    return _encode_bytes(1, b"DRADevice") + encoded


_FILE: Final = "device.proto"


class DeviceFile:
    """The file descriptor that holds the message, in the form that the library asks for."""

    serialized_pb: bytes = (
        _encode_bytes(1, _FILE.encode())
        + _encode_bytes(2, b"kubernetes")
        + _encode_bytes(3, b"google/protobuf/struct.proto")
        + _encode_bytes(4, _encode_message())
        + _encode_bytes(12, b"proto3")
    )


class DescriptorPool:
    """The part of Python's ``google.protobuf.descriptor_pool`` that the library calls."""

    def FindFileByName(self, name: str) -> Any:  # noqa: N802 - the library calls it by this name
        """Return the file of a name."""
        if name == _FILE:
            return DeviceFile
        raise KeyError(name)

    def FindFileContainingSymbol(self, name: str) -> Any:  # noqa: N802
        """Return the file that declares a symbol."""
        if name.startswith("kubernetes.DRADevice"):
            return DeviceFile
        raise KeyError(name)

    def FindMessageTypeByName(self, name: str) -> Any:  # noqa: N802
        """Refuse: the message has no extensions."""
        raise KeyError(name)
