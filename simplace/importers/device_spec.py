"""Check a device string as TensorFlow's Python code parses it, with TensorFlow's messages.

Mirrors `DeviceSpecV2._string_to_components` of tensorflow/python/framework/device_spec.py, which
`tf.graph_util.import_graph_def` calls for each node with a device.
"""

from __future__ import annotations

from functools import lru_cache

_TYPES = frozenset({"CPU", "GPU"})  # the device types that Python's TensorFlow knows without plugins
_NUMBERED = ("replica", "task")


@lru_cache(maxsize=4096)
def find_device_fault(text: str) -> str:
    """Return why a device string cannot be read, "" if it can.

    >>> find_device_fault("/job:a/device:GPU:0"), find_device_fault("sum:0")
    ('', "Unknown attribute 'sum' is encountered while parsing the device spec: 'sum:0'.")
    """
    has_type = False
    for part in text.split("/"):
        words = part.split(":")
        is_type = len(words) <= 2 and words[0].upper() in _TYPES
        if is_type or (len(words) == 3 and words[0] == "device"):
            if has_type:
                return f"Multiple device types are not allowed while parsing the device spec: {text}."
            has_type = True
            number = words[-1] if len(words) > 1 else "*"
            fault = "" if number == "*" else _find_number_fault(number)
        elif len(words) == 2 and words[0] in ("job", *_NUMBERED):
            fault = _find_number_fault(words[1]) if words[0] in _NUMBERED else ""
        else:
            fault = words[0] and (
                f"Unknown attribute '{words[0]}' is encountered while parsing the device spec: '{text}'."
            )
        if fault:
            return fault
    return ""


def _find_number_fault(text: str) -> str:
    try:
        int(text)
    except ValueError as error:  # Python's own words, in both programs
        return str(error)
    return ""
