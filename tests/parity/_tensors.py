"""Files of safetensors, read and written from their specification."""
import json
import struct

import numpy

KINDS = {"F32": "<f4", "F64": "<f8", "U8": "u1", "I64": "<i8", "U64": "<u8", "U32": "<u4"}


def read(path):
    """(name -> array, metadata, the header's own bytes with their length)"""
    with open(path, "rb") as file:
        data = file.read()
    size = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:size])
    metadata, tensors = header.pop("__metadata__", {}), {}
    for name, entry in header.items():
        begin, end = (size + at for at in entry["data_offsets"])
        numbers = numpy.frombuffer(data[begin:end], KINDS[entry["dtype"]])
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors, metadata, data[:size]


def packed(tensors, change=lambda header: None):
    """The bytes of a file that is not padded, with metadata, in the order of `tensors`."""
    header, numbers = {"__metadata__": {"format": "pt"}}, b""
    for name, values in tensors.items():
        content = numpy.ascontiguousarray(values, "<f4").tobytes()
        places = [len(numbers), len(numbers) + len(content)]
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": places}
        numbers += content
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + numbers
