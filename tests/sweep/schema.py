"""Build any op from its schema: attributes by their types and defaults, tensors of small shapes or of unknown ones."""

import itertools

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2, types_pb2
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.framework import func_graph, kernels, op_def_registry
from tensorflow.python.framework.cpp_shape_inference_pb2 import CppShapeInferenceResult
from tensorflow.python.ops import handle_data_util

SHAPES = ([2, 2], [2], [2, 2, 2], [2, 2, 2, 2], [], [2, 2, 2, 2, 2], [1], [3], [1, 2], [4], [1, 4, 4, 2])
_OTHERS = 130
_STRIDES = ([1, 1, 1, 1], [1, 1, 1, 1, 1], [1], [1, 1], [0])
_SQUARE = tf.TensorShape([2, 2]).as_proto()
_VALUES = {
    "bool": AttrValue(b=False),
    "float": AttrValue(f=1.0),
    "list(float)": AttrValue(list=AttrValue.ListValue(f=[1.0])),
    "list(bool)": AttrValue(list=AttrValue.ListValue(b=[True])),
    "list(string)": AttrValue(list=AttrValue.ListValue(s=[b"a"])),
    "shape": AttrValue(shape=_SQUARE),
    "list(shape)": AttrValue(list=AttrValue.ListValue(shape=[_SQUARE])),
    "tensor": AttrValue(tensor=tf.make_tensor_proto(1.0)),
}
HandleData, HandleShapeAndType = CppShapeInferenceResult.HandleData, CppShapeInferenceResult.HandleShapeAndType
_REF = types_pb2.DT_FLOAT_REF - types_pb2.DT_FLOAT
_WITHOUT_SHAPE = (types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT)


class NotBuilt(Exception):  # noqa: N818  (what became of a case)
    """Report that an op, or a call, cannot be built for a data type, and why."""


def op_names():
    """List the ops that have a kernel on GPUs, without those that only TensorFlow itself adds to graphs."""
    registered = kernels.get_all_registered_kernels().kernel
    names = {kernel.op for kernel in registered if kernel.device_type in ("GPU", "DEFAULT")}
    return sorted(name for name in names if not name.startswith("_") and op_def_registry.get(name))


class Op:
    """Build functions of one op."""

    def __init__(self, name):
        self._definition = op_def_registry.get(name)
        self._known = []
        self._handled = [2, 2] if "SparseMatrix" in name else None  # what a variant stands for, if it is no list

    @property
    def takes_references(self):
        """Return whether only a session can run it."""
        return any(arg.is_ref for arg in (*self._definition.input_arg, *self._definition.output_arg))

    def function(self, dtype, empty):
        """Return a Python function of tensors, with the type and shape of each; raise `NotBuilt`.

        A shape of None is one that the function must not know.
        """
        types = self._types(dtype)
        kinds = [kind for arg in self._definition.input_arg for kind in self._kinds(arg, types)]
        has_strides = any(attr.type == "list(int)" for attr in self._definition.attr)
        errors = []
        for shapes, strides in itertools.product(
            self._known + shapes_for(len(kinds)), _STRIDES if has_strides else [[]]
        ):
            specs = [
                (kind, self._handled if kind in _WITHOUT_SHAPE else emptied(shape, empty))
                for kind, shape in zip(kinds, shapes, strict=True)
            ]
            made = self._bound(types, strides)
            if builds(made, specs, errors):
                self._known = [shapes]
                return made, specs
        raise NotBuilt(errors[-1])

    def _types(self, dtype):
        """Choose the type attributes: the wanted type wherever it is allowed."""
        wanted, chosen = tf.as_dtype(dtype).as_datatype_enum, {}
        for attr in self._definition.attr:
            if attr.type not in ("type", "list(type)"):
                continue
            allowed = list(attr.allowed_values.list.type)
            default = attr.default_value.type or types_pb2.DT_FLOAT
            chosen[attr.name] = (
                wanted if not allowed or wanted in allowed else default if default in allowed else allowed[0]
            )
        if wanted not in chosen.values() and dtype != "float32":
            raise NotBuilt("it takes no such type")
        return chosen

    def _kinds(self, arg, types):
        kind = arg.type or types[arg.type_attr or arg.type_list_attr]
        return [kind + _REF * arg.is_ref] * (self._count(arg.number_attr) if arg.number_attr else 1)

    def _count(self, name):
        return max(2, next(attr.minimum for attr in self._definition.attr if attr.name == name))

    def _bound(self, types, strides):
        """Return the function that makes the op out of a flat list of tensors: TensorFlow fills in the defaults."""

        def made(*tensors):
            node = node_def_pb2.NodeDef(name="made", op=self._definition.name)
            node.input.extend(f"input{number}" for number in range(len(tensors)))
            for attr in self._definition.attr:
                if self._is_number(attr) or attr.type in ("type", "list(type)") or not attr.HasField("default_value"):
                    node.attr[attr.name].CopyFrom(self._attr(attr, types, strides))
            given = {f"input{number}:0": tensor for number, tensor in enumerate(tensors)}
            (op,) = tf.graph_util.import_graph_def(graph_pb2.GraphDef(node=[node]), given, ["made"], name="")
            return [op.outputs, [op]][not op.outputs]

        return made

    def _is_number(self, attr):
        return any(arg.number_attr == attr.name for arg in self._definition.input_arg)

    def _attr(self, attr, types, strides):
        if self._is_number(attr):
            return AttrValue(i=self._count(attr.name))
        if attr.type == "type":
            return AttrValue(type=types[attr.name])
        if attr.type == "list(type)":
            return AttrValue(list=AttrValue.ListValue(type=[types[attr.name]]))
        if attr.allowed_values.list.s:
            return AttrValue(s=attr.allowed_values.list.s[0])
        if attr.type == "int":
            return AttrValue(i=max(1, attr.minimum))
        if attr.type == "list(int)":
            return AttrValue(list=AttrValue.ListValue(i=strides))
        if attr.type == "string":
            return AttrValue(s=b"ab,bc->ac" if attr.name == "equation" else b"a")
        if attr.type in ("func", "list(func)"):
            # The scalar 0, which is false, so that a loop ends; a tensor of another shape is true if it is not empty.
            zero = tf.function(lambda x: tf.reduce_sum(tf.zeros_like(x)))
            function = zero.get_concrete_function(tf.TensorSpec([], tf.float32))
            function.add_to_graph(tf.compat.v1.get_default_graph())
            called = attr_value_pb2.NameAttrList(name=function.name)
            return AttrValue(func=called) if attr.type == "func" else AttrValue(list=AttrValue.ListValue(func=[called]))
        return _VALUES[attr.type]


def shapes_for(tensors):
    """List shapes for so many tensors: one for all, another for the first or the last, others, all unknown."""
    alike = [[shape] * tensors for shape in SHAPES]
    pairs = itertools.permutations(SHAPES, 2) if tensors > 1 else ()
    odd = [each for one, rest in pairs for each in ([one, *[rest] * (tensors - 1)], [*[rest] * (tensors - 1), one])]
    others = itertools.islice(itertools.product(SHAPES[:5], repeat=tensors), _OTHERS)
    return [*alike, *odd, *map(list, others), [None] * tensors]


def emptied(shape, empty):
    """Return the shape, with zero elements where it is to be empty."""
    return [0, *shape[1:]] if empty and shape else shape


def builds(made, specs, errors):
    """Return whether a function can be traced for these types and shapes; append why not."""
    with func_graph.FuncGraph("scratch").as_default():
        try:
            made(*(symbolic(kind, shape) for kind, shape in specs))
        except Exception as error:  # of TensorFlow or of Python, whatever it says to values that make no sense
            errors.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
            return False
    return True


def symbolic(kind, shape):
    """Make a tensor in a graph that is fed, or the reference of a variable."""
    if tf.as_dtype(kind)._is_ref_dtype:
        return tf.raw_ops.VariableV2(shape=[2, 2] if shape is None else shape, dtype=tf.as_dtype(kind).base_dtype)
    if kind in _WITHOUT_SHAPE:
        return _described(tf.compat.v1.placeholder(kind, []), kind, shape)
    return tf.compat.v1.placeholder(kind, shape)


def in_session(kind, shape, dtype):
    """Make a tensor in a session's graph: one that is fed, unless it is the handle of something."""
    if kind == types_pb2.DT_RESOURCE:
        return tf.raw_ops.VarHandleOp(dtype=dtype, shape=[2, 2])
    return argument(kind, shape, dtype) if kind == types_pb2.DT_VARIANT else symbolic(kind, shape)


def _described(tensor, kind, shape):
    """Tell what a variant stands for, as the shape functions of sparse matrices ask."""
    if kind == types_pb2.DT_VARIANT and shape is not None:
        matrix = HandleData(shape_and_type=[HandleShapeAndType(shape=_SQUARE, dtype=types_pb2.DT_FLOAT)], is_set=True)
        handle_data_util.set_handle_data(tensor, matrix)
    return tensor


def argument(kind, shape, dtype):
    """Make an eager tensor; a resource is a variable, a variant an empty list."""
    if kind == types_pb2.DT_RESOURCE:
        return tf.Variable(np.ones([2, 2]), dtype=dtype)
    if kind == types_pb2.DT_VARIANT:
        made = tf.raw_ops.EmptyTensorList(element_shape=[2, 2], max_num_elements=-1, element_dtype=dtype)
        return _described(made, kind, shape)
    return tf.constant(content(kind, shape))


def content(kind, shape):
    """Make the content of a tensor."""
    shape = [2, 2] if shape is None else shape
    return np.full(shape, b"a") if kind == types_pb2.DT_STRING else np.ones(shape, tf.as_dtype(kind).as_numpy_dtype)
