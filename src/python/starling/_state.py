"""What stands beside the vector: buffers and frozen parameters. Means of any dtype in its own
precision, and rank 0's bits for all.

Everything here is sums over all peers, in double, of numbers that keep them exact: equal numbers
stay equal, whatever their magnitude and however many peers there are. `add`: see _mean.py.
"""

import torch

from starling._library import Error, naming
from starling._sums import LOW, SCALE, WORD, add_all, agree


class Entry:
    """One tensor of a module, and where it hangs: tensors of `owner` (a dict) by `key`."""

    def __init__(self, name, tensor, owner, key):
        self.name, self.tensor, self.owner, self.key = name, tensor, owner, key

    def put(self, value):
        """Writes in place; a tensor that cannot be written, as an expanded one, is replaced."""
        tensor = self.tensor.detach()
        try:
            if _is_writable(tensor):
                tensor.copy_(value)
                return
        except RuntimeError:  # of torch, for memory that several elements share
            pass
        is_parameter = isinstance(self.tensor, torch.nn.Parameter)
        self.owner[self.key] = torch.nn.Parameter(value, False) if is_parameter else value


def _is_writable(tensor):
    """False for expanded tensors, and for memory that this process may only read, as of a file that
    was mapped: torch would not notice."""
    if any(step == 0 and side > 1 for step, side in zip(tensor.stride(), tensor.shape)):
        return False
    if tensor.device.type != "cpu":
        return True
    at = tensor.data_ptr()
    try:
        with open("/proc/self/maps") as file:
            for line in file:
                span, access = line.split(maxsplit=2)[:2]
                begin, end = (int(side, 16) for side in span.split("-"))
                if begin <= at < end:
                    return "w" in access
    except OSError:
        pass
    return True


def entries(module, left_out, trained=False):
    """Buffers and frozen parameters, but for the names in `left_out`, each once. trained: and those
    that are trained."""
    found, seen = [], set()
    for prefix, part in module.named_modules():
        for owner in (part._parameters, part._buffers):
            for key, tensor in owner.items():
                name = f"{prefix}.{key}" if prefix else key
                if tensor is None or id(tensor) in seen or name in left_out:
                    continue
                with naming(name):
                    if owner is part._parameters and tensor.requires_grad and not trained:
                        continue
                    seen.add(id(tensor))
                    if tensor.numel() > 0:
                        found.append(Entry(name, _checked(name, tensor), owner, key))
    return found


def _checked(name, tensor):
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
        kind = "quantized" if tensor.is_quantized else f"of {tensor.layout} on {tensor.device}"
        raise Error(
            f"{name} is {kind}: Starling takes dense tensors with numbers; keep it outside of the "
            "module's buffers and parameters"
        )
    return tensor


def layout(found):
    """What they are, a line each."""
    return "".join(f"{e.name} {e.tensor.dtype} {tuple(e.tensor.shape)}\n" for e in found)


def changes(before, now):
    """What of a layout has changed, in words; "": nothing."""
    before, now = before.splitlines(), now.splitlines()
    gone = [line for line in before if line not in now]
    new = [line for line in now if line not in before]
    said = [f"this one had {', '.join(gone)} at join()"] if gone else []
    return " and ".join(said + ([f"this one has {', '.join(new)} now"] if new else []))


# ---- numbers that are added up ----


def _cut(x):
    """Three float64, whose sums over peers are exact where x is equal on all: the upper half of its
    bits, scaled where it is large, so that a sum cannot overflow, and else as it is; and the rest.
    """
    finite = torch.isfinite(x)
    high = torch.where(finite, (x.view(torch.int64) & ~LOW).view(torch.float64), x)
    large, zero = high.abs() >= 1, torch.zeros_like(x)
    return (
        torch.where(large, high / SCALE, torch.where(finite, zero, high)),
        torch.where(large | ~finite, zero, high),
        torch.where(finite, x - high, zero),
    )


def _flat(tensor):
    return tensor.detach().to("cpu").contiguous().reshape(-1)


def encode(tensor):
    """(parts, elements) in float64."""
    x = _flat(tensor)
    if x.dtype.is_complex:
        both = torch.view_as_real(x.resolve_conj()).unbind(-1)
        return torch.cat([encode(part) for part in both])
    if x.dtype is torch.float64:
        return torch.stack(_cut(x))
    if x.dtype.is_floating_point:
        return x.to(torch.float64)[None]
    x = x.to(torch.int64)
    if tensor.dtype is torch.int64:
        return torch.stack((x >> 32, x & (WORD - 1))).to(torch.float64)
    return x.to(torch.float64)[None]


def decode(sums, dtype, givers):
    """The mean of so many peers' elements: floats are divided, integers rounded."""
    if dtype.is_complex:
        real = torch.float64 if dtype is torch.complex128 else torch.float32
        half = len(sums) // 2
        both = [decode(part, real, givers) for part in (sums[:half], sums[half:])]
        return torch.view_as_complex(torch.stack(both, -1)).to(dtype)
    if dtype is torch.float64:
        large, small, rest = sums / givers
        return large * SCALE + small + rest
    if dtype.is_floating_point:
        return (sums[0] / givers).to(dtype)
    if dtype is torch.int64:
        high, low = sums.to(torch.int64)
        whole = torch.div(high, givers, rounding_mode="floor")
        rest = (high - whole * givers) * WORD + low + givers // 2
        return whole * WORD + torch.div(rest, givers, rounding_mode="floor")
    return torch.floor((sums[0] + givers // 2) / givers).to(torch.int64).to(dtype)


def _add_all(add, numbers):
    return add_all(add, numbers.data_ptr(), numbers.numel())


def _encode_entry(e):
    with naming(e.name):
        return encode(e.tensor)


def means(add, entries):
    """The means over all peers of entries whose dtypes and shapes are equal on all: as CPU tensors
    of their dtypes and shapes. They wait for all peers. Integers: rounded, a half up."""
    if not entries:
        return []
    tensors, encoded = [e.tensor for e in entries], [_encode_entry(e) for e in entries]
    numbers = torch.cat([each.reshape(-1) for each in encoded])
    givers = _add_all(add, numbers)
    found, at = [], 0
    for tensor, each in zip(tensors, encoded):
        sums = numbers[at : at + each.numel()].reshape(each.shape)
        found.append(decode(sums, tensor.dtype, givers).reshape(tensor.shape))
        at += each.numel()
    return found


# ---- rank 0's bits ----


def _bytes_of(e):
    with naming(e.name):
        return _bytes(e.tensor)


def _bytes(tensor):
    x = _flat(tensor)
    x = torch.view_as_real(x.resolve_conj()).reshape(-1) if x.dtype.is_complex else x
    return x.view(torch.uint8)


def _of_bytes(data, tensor):
    """A tensor like `tensor` of these bytes."""
    dtype = tensor.dtype
    if dtype.is_complex:
        real = torch.float64 if dtype is torch.complex128 else torch.float32
        both = data.clone().view(real).reshape(*tensor.shape, 2)
        return torch.view_as_complex(both).to(tensor.device)
    return data.clone().view(dtype).reshape(tensor.shape).to(tensor.device)


def _from_rank_0(add, data, is_rank_0):
    """Its bytes, (count) uint8: four in a double, which the others add zeros to."""
    pad = -data.numel() % 4
    words = torch.cat([data, data.new_zeros(pad)]).view(torch.int32).to(torch.float64)
    _add_all(add, words if is_rank_0 else words.zero_())
    return words.to(torch.int32).view(torch.uint8)[: data.numel()]


def share(add, found, is_rank_0):
    """Gives these entries rank 0's bits, on all peers. They wait for all peers."""
    if not agree(add, layout(found).encode()):
        raise Error(
            "buffers and frozen parameters differ between the peers in name, dtype or shape; this "
            f"one has {layout(found).strip() or 'none'}: all join with the same module"
        )
    if not found:
        return
    data = torch.cat([_bytes_of(e) for e in found])
    if agree(add, memoryview(data.numpy())):
        return
    data, at = _from_rank_0(add, data, is_rank_0), 0
    with torch.no_grad():
        for e in found:
            size = _bytes(e.tensor).numel()
            with naming(e.name):
                e.put(_of_bytes(data[at : at + size], e.tensor))
            at += size
