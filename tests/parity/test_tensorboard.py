#!/usr/bin/env python3
"""Event files (record.tensorboard): protocol buffers' own library, and TensorBoard where it is
installed, find the numbers of the lines of JSON in them, and after --resume no step twice."""
import glob
import json
import os
import socket
import struct
import time

from _here import check, needs, read_lines, run_tests
from _scene import read_bytes

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    descriptor_pb2 = None
try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError:
    event_accumulator = None

NODES, ROUNDS = 3, 20
MESSAGES = {  # of tensorflow's event.proto and summary.proto: name, number, type, repeated
    "Value": [("tag", 1, "STRING"), ("simple_value", 2, "FLOAT")],
    "Summary": [("value", 1, "Value")],
    "SessionLog": [("status", 1, "INT32")],
    "Event": [
        ("wall_time", 1, "DOUBLE"),
        ("step", 2, "INT64"),
        ("file_version", 3, "STRING"),
        ("summary", 5, "Summary"),
        ("session_log", 7, "SessionLog"),
    ],
}


def event_class():
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="t")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            label = kinds.LABEL_REPEATED if kind == "Value" else kinds.LABEL_OPTIONAL
            place = message.field.add(name=field, number=number, label=label)
            place.type = getattr(kinds, f"TYPE_{'MESSAGE' if kind in MESSAGES else kind}")
            if kind in MESSAGES:
                place.type_name = f".t.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    event = pool.FindMessageTypeByName("t.Event")
    if hasattr(message_factory, "GetMessageClass"):  # since 4.22
        return message_factory.GetMessageClass(event)
    return message_factory.MessageFactory(pool).GetPrototype(event)


def masked_sum(data):
    """CRC-32C, as record_writer.h masks it."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    state ^= 0xFFFFFFFF
    return ((state >> 15 | state << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events_of(path, Event):
    data = read_bytes(path)
    while data:
        size, size_sum = struct.unpack_from("<QI", data)
        body, (body_sum,) = data[12 : 12 + size], struct.unpack_from("<I", data, 12 + size)
        check(size_sum == masked_sum(data[:8]) and body_sum == masked_sum(body), (path, size))
        event = Event.FromString(body)
        event.DiscardUnknownFields()
        check(event.SerializeToString() == body, (path, event))
        yield event
        data = data[16 + size :]


def read_folder(folder, Event, count):
    """{tag: {step: value}}; a START takes out what is at its step or later, as TensorBoard does."""
    files, found, before = sorted(os.listdir(folder)), {}, time.time() - 600
    check(len(files) == count, files)
    for number, name in enumerate(files):
        check(name.startswith("events.out.tfevents.") and name.endswith(socket.gethostname()), name)
        events = list(events_of(os.path.join(folder, name), Event))
        check(events[0].file_version == "brain.Event:2", events[0])
        check([e.session_log.status for e in events[1:2]] == [number > 0], (name, events[1]))
        for event in events:
            check(before <= event.wall_time <= time.time(), event)
            before = event.wall_time
            if event.session_log.status:
                for steps in found.values():
                    for step in [step for step in steps if step >= event.step]:
                        del steps[step]
            for value in event.summary.value:
                steps = found.setdefault(value.tag, {})
                check(event.step not in steps, f"{name}: {value.tag} twice in {event.step}")
                steps[event.step] = value.simple_value
    return found


def numbers_of(path):
    """The same of lines of JSON."""
    found = {}
    for line in read_lines(path):
        seconds = {f"seconds/{key}": value for key, value in line.pop("seconds", {}).items()}
        for tag, value in {**line, **seconds}.items():
            if tag not in ("round", "node", "time") and value is not None:
                found.setdefault(tag, {})[line["round"]] = value
    return found


def compare(out, read, count=1):
    pairs = [(f"node-{rank}", f"metrics-{rank}") for rank in range(NODES)]
    for board, lines in [*pairs, ("mean", "consensus")]:
        found = read(os.path.join(out, "tensorboard", board), count)
        expected = numbers_of(os.path.join(out, lines + ".jsonl"))
        check(found.keys() == expected.keys(), (board, found.keys()))
        for tag, steps in expected.items():
            check(found[tag].keys() == steps.keys(), (board, tag, found[tag]))
            for step, value in steps.items():  # lines have 12 digits, events 24 bits
                near = abs(found[tag][step] - value) <= 2**-23 * abs(value)
                check(near, (board, tag, step, found[tag][step], value))
        check(sorted(found["accuracy"])[-1] == ROUNDS, found["accuracy"])


def record(scene, read):
    topology = {"family": "ring", "nodes": NODES}
    data = {"name": "digits", "batch": 8, "train_samples": 300, "test_samples": 100}
    keep = {"record": {"tensorboard": True, "every": 4}, "checkpoint": {"every": 6}}
    experiment = {"rounds": ROUNDS, "topology": topology, "model": "softmax", "data": data, **keep}
    path = scene.write("e.json", json.dumps(experiment))
    scene.call("run", path, "--out", scene.path("run")).check_well()
    compare(scene.path("run"), read)
    out = scene.path("sim")
    scene.call("sim", path, "--out", out, "--end-after", "12").ends(75, 60)
    kept = {name: read_bytes(name) for name in glob.glob(f"{out}/tensorboard/*/*")}
    for count, more in ((2, ()), (3, ("--set", "rounds=20"))):
        scene.call("sim", "--resume", out, *more).check_well()
        check(all(read_bytes(name) == old for name, old in kept.items()), "a file changed")
        compare(out, read, count)


def test_protocol_buffers_decode_what_was_recorded(scene):
    needs(descriptor_pb2, "python3-protobuf is not installed")
    Event = event_class()
    check(masked_sum(b"123456789") == 0xC78AB0E5, "masked, the 0xE3069283 of the standard")
    record(scene, lambda folder, count: read_folder(folder, Event, count))


def accumulate(folder, count):
    """As `read_folder`, by TensorBoard."""
    read = event_accumulator.EventAccumulator(folder, {event_accumulator.SCALARS: 0}).Reload()
    check(len(os.listdir(folder)) == count, os.listdir(folder))
    tags = read.Tags()[event_accumulator.SCALARS]
    return {tag: {one.step: one.value for one in read.Scalars(tag)} for tag in tags}


def test_tensorboard_reads_what_was_recorded(scene):
    needs(event_accumulator, "TensorBoard is not installed, and Debian has none: pip has")
    record(scene, accumulate)


if __name__ == "__main__":
    run_tests()
