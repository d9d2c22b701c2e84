"""How much of a GPU's memory TensorFlow takes for itself.

Mirrors SingleVirtualDeviceMemoryLimit of tensorflow/core/common_runtime/gpu/gpu_device.cc. `allow_growth` changes
when memory is taken, not how much. The limit of a logical GPU is what the program sets for it.
"""

from __future__ import annotations

from simplace.errors import SimplaceError

MIB = 1 << 20
# Of a card's memory the driver has 1 % for itself, and the libraries that TensorFlow has started by then take 400 MiB:
# so comes out, within 2 %, what TensorFlow's logs say ("Created device ... with 13757 MB memory"); docs/memory-model.md
# has the table.
_SEEN = 0.99
_STARTED = 400 * MIB
_SMALL = 1 << 31  # bytes: GPUs below this keep less back
_SMALL_RESERVE = 225 * MIB
_RESERVES = ((6, 500 * MIB), (7, 1050 * MIB), (8, 1536 * MIB))  # up to this compute capability
_NEWEST_RESERVE = 1800 * MIB


def compute_usable_bytes(total: int, capability: int, fraction: float = 0.0) -> int:
    """Return the bytes that TensorFlow's allocator may hand out of `total`, those of a card that nobody else uses.

    `capability` is the major compute capability, `fraction` per_process_gpu_memory_fraction, where 0 leaves all but a
    reserve to TensorFlow. Raises `SimplaceError` for a fraction that needs unified memory.

    >>> compute_usable_bytes(15 << 30, 7) >> 20, compute_usable_bytes(80 << 30, 8) >> 20
    (13756, 79164)
    >>> compute_usable_bytes(1 << 30, 7) >> 20
    388
    >>> compute_usable_bytes(15 << 30, 7, fraction=0.5) >> 20
    7603
    """
    if not 0 <= fraction <= 1:
        raise SimplaceError(f"the GPU memory fraction must be between 0 and 1 (0: all but a reserve); got {fraction:g}")
    seen = int(total * _SEEN)
    if fraction:
        return int(seen * fraction)
    available = seen - _STARTED
    if available < _SMALL:
        return available - _SMALL_RESERVE
    return available - next((bytes_ for upto, bytes_ in _RESERVES if capability <= upto), _NEWEST_RESERVE)
