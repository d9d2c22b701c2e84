"""What a converted notebook imports first: seeds, small random data in place of downloads, no plots."""

import os
import random
import sys
import types
from pathlib import Path

import numpy as np
import tensorflow as tf

_MOST_EPOCHS = 2
_ROWS = 96  # of a dataset
_IMAGES = {"mnist": (28, 28), "fashion_mnist": (28, 28), "cifar10": (32, 32, 3), "cifar100": (32, 32, 3)}
_CLASSES = {"cifar100": 100}
_ABSENT = ("matplotlib", "IPython", "seaborn", "tqdm", "imageio", "pydot", "tensorflow_docs", "pandas.plotting")


class _Nothing(types.ModuleType):
    """Stand for a package that draws: whatever is asked of it gives it back."""

    __path__ = ()
    __all__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing(name)

    def __call__(self, *args, **kwargs):
        return _Nothing("result")

    def __iter__(self):
        return iter((_Nothing("first"), _Nothing("second")))

    def __getitem__(self, key):
        return _Nothing("item")

    def __setitem__(self, key, value):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __repr__(self):
        return "<nothing>"

    def __mro_entries__(self, bases):
        return (object,)


class _Finder:
    """Find the packages that are replaced."""

    def find_spec(self, name, path=None, target=None):
        import importlib.machinery

        if name.partition(".")[0] in _ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Nothing(spec.name)

    def exec_module(self, module):
        if module.__name__ == "tqdm":
            module.tqdm = module.trange = lambda each, *args, **kwargs: each


def _cap_epochs(value):
    """Return a number of epochs, or less."""
    return min(value, _MOST_EPOCHS) if isinstance(value, int) else value


def _print_value(value):
    """Print the value of a cell's last line, as a notebook does."""
    if value is not None and not isinstance(value, _Nothing):
        print(repr(value))


def _report_error(cell, error):
    """Print what a cell ended with."""
    print(f"cell {cell} ended with {type(error).__name__}")
    print(f"cell {cell}: {type(error).__name__}: {error}", file=sys.stderr)


def _load_images(name):
    def load_data(*args, **kwargs):
        shape = _IMAGES[name]

        def part(count):
            drawn = np.random.RandomState(count)
            labels = drawn.randint(0, _CLASSES.get(name, 10), count).astype("uint8")
            return drawn.randint(0, 256, (count, *shape)).astype("uint8"), labels[:, None] if len(shape) > 2 else labels

        return part(_ROWS), part(_ROWS // 2)

    return load_data


def _load_imdb(*args, num_words=10000, **kwargs):
    def part(count):
        drawn = np.random.RandomState(count)
        rows = np.empty(count, object)
        rows[:] = [drawn.randint(1, num_words or 10000, drawn.randint(20, 200)).tolist() for _ in range(count)]
        return rows, drawn.randint(0, 2, count)

    return part(_ROWS), part(_ROWS // 2)


def _load_housing(*args, **kwargs):
    def part(count):
        drawn = np.random.RandomState(count)
        return drawn.rand(count, 8).astype("float32"), drawn.rand(count).astype("float32")

    return part(_ROWS), part(_ROWS // 2)


def _get_file(fname=None, origin=None, *args, **kwargs):
    """Write a file of random content, of the kind that its name says."""
    name = os.path.basename(str(fname or origin).split("?")[0])
    path = Path.cwd() / "downloads" / name
    path.parent.mkdir(exist_ok=True)
    drawn = np.random.RandomState(len(name))
    words = ("the", "of", "king", "and", "sea", "to", "storm", "in", "night", "a", "horse", "speaks", "no")
    if path.suffix in (".jpg", ".jpeg", ".png"):
        pixels = drawn.randint(0, 256, (128, 96, 3)).astype("uint8")
        with tf.device("CPU:0"):
            encode = tf.io.encode_png if path.suffix == ".png" else tf.io.encode_jpeg
            path.write_bytes(encode(pixels).numpy())
    elif path.suffix in (".txt", ".csv", "") and "." in name:
        lines = (" ".join(words[i] for i in drawn.randint(0, len(words), 9)) for _ in range(300))
        path.write_text("\n".join(lines))
    else:
        raise OSError(f"no stand-in for {name}")
    return str(path)


def _load_tfds(name, split=None, as_supervised=False, with_info=False, batch_size=None, **kwargs):
    """Return data sets as tensorflow_datasets would, of random images or sentences."""
    drawn = np.random.RandomState(len(name))
    if "imdb" in name or "ag_news" in name:
        key, words = "text", np.array(["the", "film", "was", "good", "bad", "and", "long"])
        values = np.array([" ".join(drawn.choice(words, 12)) for _ in range(_ROWS)])
        classes = 2
    else:
        shape = (28, 28, 1) if "mnist" in name else (32, 32, 3) if "cifar" in name else (96, 96, 3)
        key, classes = "image", 2 if "cats" in name else 10
        values = drawn.randint(0, 256, (_ROWS, *shape)).astype("uint8")
    labels = drawn.randint(0, classes, _ROWS).astype("int64")
    rows = tf.data.Dataset.from_tensor_slices((values, labels) if as_supervised else {key: values, "label": labels})
    rows = rows.batch(batch_size) if batch_size else rows
    if split is None:
        found = {"train": rows, "test": rows.take(_ROWS // 2)}
    else:
        found = [rows for _ in split] if isinstance(split, (list, tuple)) else rows
    label = types.SimpleNamespace(num_classes=classes, names=[str(i) for i in range(classes)], int2str=str)
    sizes = {part: types.SimpleNamespace(num_examples=_ROWS) for part in ("train", "test", "validation")}
    info = types.SimpleNamespace(features={"label": label}, splits=sizes)
    return (found, info) if with_info else found


def _make_tfds():
    made = types.ModuleType("tensorflow_datasets")
    made.load = _load_tfds
    made.disable_progress_bar = lambda: None
    made.as_numpy = lambda rows: rows.as_numpy_iterator()
    return made


def _without_weights(create):
    def made(*args, **kwargs):
        kwargs["weights"] = None
        return create(*args, **kwargs)

    return made


def _several_cpus(count):
    """Show as many CPUs as the other run has GPUs, and mirror onto them: the same values without any GPU."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    base = tf.distribute.MirroredStrategy.__init__

    def mirrored(self, devices=None, *args, **kwargs):
        base(self, devices or [f"CPU:{i}" for i in range(count)], *args, **kwargs)

    tf.distribute.MirroredStrategy.__init__ = mirrored


for _name in [name for name in sys.modules if name.partition(".")[0] in _ABSENT]:
    del sys.modules[_name]  # Keras imports matplotlib where it is installed
sys.modules["tensorflow_datasets"] = _make_tfds()
sys.meta_path.insert(0, _Finder())
random.seed(0)
np.random.seed(0)
tf.random.set_seed(0)
if "GUIDES_CPUS" in os.environ:
    _several_cpus(int(os.environ["GUIDES_CPUS"]))
for _name in _IMAGES:
    getattr(tf.keras.datasets, _name).load_data = _load_images(_name)
tf.keras.datasets.imdb.load_data = _load_imdb
tf.keras.datasets.california_housing.load_data = tf.keras.datasets.boston_housing.load_data = _load_housing
tf.keras.utils.get_file = _get_file
for _name in ("MobileNetV2", "VGG19", "InceptionV3", "EfficientNetB0", "MobileNet", "ResNet50"):
    setattr(tf.keras.applications, _name, _without_weights(getattr(tf.keras.applications, _name)))
