"""Packed variables: the handles of one variable on several devices, which are one argument of a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_MEMBERS = "_simplace_members"  # an attribute of packed handles


def note_members(pack: Any) -> Any:
    """Return a function that packs handles as `pack` does; what it returns remembers them."""

    def pack_noted(tensors: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        packed = pack(tensors, *args, **kwargs)
        vars(packed)[_MEMBERS] = tuple(tensors)
        return packed

    return pack_noted


def is_packed(tensor: Any) -> bool:
    """Return whether an input of a call is a packed handle."""
    return bool(getattr(tensor, "is_packed", False)) and hasattr(tensor, _MEMBERS)


def list_members(packed: Any) -> list[str]:
    """List the devices that have a value of a packed variable (CreatePackedHandle of eager/tensor_handle.cc)."""
    return [member.device for member in vars(packed)[_MEMBERS]]


def spread_inputs(inputs: Sequence[Any]) -> Iterator[Any]:
    """Yield the inputs of a call with all handles of a packed one in its place."""
    for tensor in inputs:
        yield from vars(tensor)[_MEMBERS] if is_packed(tensor) else (tensor,)


def split_arguments(definition: Any, inputs: Sequence[Any], devices: Mapping[str, str]) -> None:
    """Add to a function an argument for each handle of a packed one.

    A node reads that of its device, of those that `devices` has by name, as TensorFlow's replicas of the argument are
    read (replicate_per_replica_nodes.cc); one of another device, and what it calls, reads the first.
    """
    arguments = [type(arg).FromString(arg.SerializeToString()) for arg in definition.signature.input_arg]
    del definition.signature.input_arg[:]
    split: dict[str, dict[str, str]] = {}
    for arg, tensor in zip(arguments, inputs, strict=True):
        homes = list_members(tensor) if is_packed(tensor) else [""]
        names = [f"{arg.name}_of_{i}" for i in range(len(homes))] if is_packed(tensor) else [arg.name]
        split[arg.name] = dict(zip(reversed(homes), reversed(names), strict=True))
        split[arg.name][""] = names[0]
        for name in names:
            definition.signature.input_arg.add(name=name, type=arg.type)
    for node in definition.node_def:
        for i, name in enumerate(node.input):
            if name in split:
                node.input[i] = split[name].get(devices.get(node.name, ""), split[name][""])
    for key, name in definition.ret.items():
        definition.ret[key] = split[name][""] if name in split else name
    definition.arg_attr.clear()  # by number
    definition.resource_arg_unique_id.clear()
