"""Call any public function of TensorFlow with small tensors: arguments by their names, tensors by trying."""

import inspect
import re

import tensorflow as tf
from schema import NotBuilt, builds, emptied, shapes_for  # beside this file

MODULES = {
    "tf": tf, "tf.math": tf.math, "tf.linalg": tf.linalg, "tf.nn": tf.nn, "tf.signal": tf.signal, "tf.image": tf.image,
    "tf.strings": tf.strings, "tf.sets": tf.sets, "tf.sparse": tf.sparse, "tf.ragged": tf.ragged,
    "tf.random": tf.random, "tf.bitwise": tf.bitwise, "tf.quantization": tf.quantization, "tf.debugging": tf.debugging,
    "tf.audio": tf.audio, "tf.experimental.numpy": tf.experimental.numpy, "tf.keras.ops": tf.keras.ops,
    "tf.keras.activations": tf.keras.activations, "tf.keras.losses": tf.keras.losses,
}  # fmt: skip
_NO_COMPUTATION = re.compile(
    r"set_|get_|enable_|disable_|load_|register_|is_|assert_(same|proper|type|scalar$)|create_|init_scope$|device$|"
    r"function$|py_function$|numpy_function$|print$|Assert$|finfo$|iinfo$|experimental_"
)
_WORDS = {
    "axis": 0, "axes": 0, "dim": 0, "dtype": tf.float32, "depth": 2, "n": 2, "k": 2, "num": 2, "seed": [1, 2],
    "shape": [2, 2], "size": [2, 2], "perm": [1, 0], "strides": 1, "ksize": 2, "padding": "SAME", "rate": 0.5,
    "equation": "ab,bc->ac", "repeats": 2, "num_segments": 2, "num_classes": 2, "num_partitions": 2, "shift": 1,
    "frame_length": 2, "frame_step": 1, "delta": 0.1, "reps": 2, "multiples": [2, 2], "newshape": [4], "lam": 1.0,
    "target_height": 2, "target_width": 2, "factor": 0.5, "num_or_size_splits": 2, "indices_or_sections": 2,
    "paddings": [[1, 1], [1, 1]], "pad_width": 1, "offset": 0, "name": "a", "source": 0, "destination": 0,
    "clip_norm": 1.0, "block_size": 2, "num_lower": 1, "num_upper": 1, "num_samples": 2, "decimals": 1, "axis1": 0,
    "axis2": 1, "pool_size": 2, "window_shape": 2, "pooling_type": "MAX", "message": "a", "length": 2, "width": 8,
    "maxlen": 4, "max_output_size": 2, "sequence_length": 2, "fft_length": 4, "num_buckets": 4, "minlength": 2,
}  # fmt: skip
_WORDS |= {"N": 2, "M": 2, "T": tf.quint8, "true_fn": lambda: 1.0, "false_fn": lambda: 2.0, "output_size": 2}
_FUNCTIONS = ("fn", "func", "f", "body", "body_fun", "fun")
_LISTS = ("values", "tensors", "arrays", "xs", "arys", "tup", "data", "t_list", "array_list")
_SPARSE = ("sp_input", "sp_inputs", "sp_a", "sp_b", "sparse_tensor", "hypothesis", "truth", "a_sparse")


def names():
    """List the functions of the surface that may compute something, each once."""
    found = {}
    for module, content in MODULES.items():
        for name in dir(content):
            value = getattr(content, name)
            if not name.startswith("_") and callable(value) and not inspect.isclass(value):
                named = "" if _NO_COMPUTATION.match(name) else f"{module}.{name}"
                found.setdefault(id(value), (named, value))  # kept alive: another object could get its number
    return sorted(name for name, _ in found.values() if name)


class Function:
    """Build calls of one function."""

    takes_references = False

    def __init__(self, name):
        module, _, attribute = name.rpartition(".")
        self._callable = getattr(MODULES[module], attribute)
        self._takes_strings = module == "tf.strings" and attribute != "as_string"
        self._known = []

    def function(self, dtype, empty):
        """Return a Python function of tensors, with the type and shape of each; raise `NotBuilt`."""
        required = self._required()
        tensors = [each for each in required if each.name not in _WORDS and each.name not in _FUNCTIONS]
        if len(tensors) > 4 or (not tensors and dtype != "float32"):
            raise NotBuilt("it takes many tensors, or none")
        kind, errors = tf.as_dtype(dtype).as_datatype_enum, []
        for shapes in self._known + shapes_for(len(tensors)):
            specs = [(kind, emptied(shape, empty)) for shape in shapes]
            made = self._bound(required)
            if builds(made, specs, errors):
                self._known = [shapes]
                return made, specs
        raise NotBuilt(errors[-1])

    def _required(self):
        try:
            given = inspect.signature(self._callable).parameters.values()
        except ValueError as error:
            raise NotBuilt("its signature is not known") from error
        return [each for each in given if each.default is each.empty and each.kind is not each.VAR_KEYWORD]

    def _bound(self, required):
        def made(*tensors):
            left = iter(tensors)
            positional = [self._value(each.name, left) for each in required if each.kind is not each.KEYWORD_ONLY]
            named = {each.name: self._value(each.name, left) for each in required if each.kind is each.KEYWORD_ONLY}
            flat = tf.nest.flatten(self._callable(*positional, **named), expand_composites=True)
            tensors = [each for each in flat if not (each is None or callable(each) or isinstance(each, tf.Operation))]
            return [tf.convert_to_tensor(each) for each in tensors]

        return made

    def _value(self, name, left):
        if name in _WORDS:
            return _WORDS[name]
        if name in _FUNCTIONS:
            return lambda *arguments: arguments[0]
        tensor = tf.strings.as_string(next(left)) if self._takes_strings else next(left)
        if name in _SPARSE:
            return tf.sparse.from_dense(tensor)
        return [tensor] * 2 if name in _LISTS else tensor
