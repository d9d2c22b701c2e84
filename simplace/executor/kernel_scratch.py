"""What kernels on a CPU allocate besides their outputs, and free when they end.

Mirrors tensorflow/core/kernels/conv_grad_filter_ops.cc, conv_grad_input_ops.h and maxpooling_op.cc, as they are without
oneDNN. What cuDNN takes on a GPU depends on the algorithm that it chooses there, and is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from simplace.costs.cost_model import Tensor

_WORKING_SET = 30 << 20  # bytes of the images that one product takes together (target_working_set_size)
_LEAST_WORK = 256 << 10  # bytes of one image for each thread, from which images are taken one by one (l2_cache_size)
_INDEX = 8  # bytes of the position of a maximum, an int64
FILTER, INPUT = "Conv2DBackpropFilter", "Conv2DBackpropInput"
POOLINGS = frozenset({"MaxPoolGrad", "MaxPoolGradV2"})
_LARGEST = 1  # the number of the input that the gradient of a pooling computes again


def compute_scratch(op: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], threads: int) -> int:
    """Return the bytes of scratch memory that a kernel takes on a CPU with so many intra-op threads.

    >>> image, window = Tensor("float32", (64, 15, 15, 16), 921_600), Tensor("float32", (3, 3, 16, 32), 18_432)
    >>> sizes, gradient = Tensor("int32", (4,), 16), Tensor("float32", (64, 13, 13, 32), 1_384_448)
    >>> compute_scratch("Conv2DBackpropFilter", [image, sizes, gradient], [window], threads=1)
    22291776
    >>> compute_scratch("Conv2DBackpropInput", [sizes, window, gradient], [image], threads=1)
    22291776
    """
    if op in POOLINGS and len(inputs) > _LARGEST:
        return _INDEX * prod(inputs[_LARGEST].shape)
    if op not in (FILTER, INPUT) or len(inputs) < 3 or not outputs:
        return 0
    window, gradient = (outputs[0] if op == FILTER else inputs[1]), inputs[2]
    if len(window.shape) != 4 or len(gradient.shape) != 4 or not window.size or not gradient.size:
        return 0
    places, columns, depth = prod(gradient.shape[1:3]), prod(window.shape[:3]), window.shape[3]
    element = window.size // prod(window.shape)
    work = places * columns + places * depth + columns * depth
    is_one_by_one = op == INPUT and (gradient.shape[0] == 1 or work // threads >= _LEAST_WORK // element)
    images = 1 if is_one_by_one else -(-(_WORKING_SET // element) // work)
    return images * places * columns * element


def find_overwritten(op: str) -> int:
    """Return the number of the input that a kernel writes into, and copies if others need it; -1 for none."""
    return _LARGEST if op in POOLINGS else -1
