"""The options that Keras takes for each layer that is supported, and its types; it refuses to load others.

Read from the signatures of Keras 3.15, in a test that compares both.
"""

from __future__ import annotations

from collections.abc import Mapping

_KERNEL = "kernel_constraint kernel_initializer kernel_regularizer"
_BIAS = "bias_constraint bias_initializer bias_regularizer"
_BETA_GAMMA = "beta_constraint beta_initializer beta_regularizer gamma_constraint gamma_initializer gamma_regularizer"
_ADAPTER = "lora_alpha lora_rank"
_CONV = f"activation data_format dilation_rate kernel_size padding rank strides use_bias {_BIAS}"
_DEPTHWISE = "depth_multiplier depthwise_constraint depthwise_initializer depthwise_regularizer"
_POINTWISE = "pointwise_constraint pointwise_initializer pointwise_regularizer"
_POOLING = "data_format padding pool_dimensions pool_mode pool_size strides"
_GLOBAL_POOLING = "data_format keepdims pool_dimensions"
_MOVING = "momentum moving_mean_initializer moving_variance_initializer renorm renorm_clipping renorm_momentum"

_OF_EVERY_LAYER = frozenset("activity_regularizer autocast dtype input_dim input_shape name trainable".split())
_OF_LAYER = {
    "Activation": "activation",
    "ActivityRegularization": "l1 l2",
    "Add": "",
    "AlphaDropout": "noise_shape rate seed",
    "Average": "",
    "AveragePooling1D": _POOLING,
    "AveragePooling2D": _POOLING,
    "BatchNormalization": f"axis center epsilon scale synchronized {_BETA_GAMMA} {_MOVING}",
    "Concatenate": "axis",
    "Conv1D": f"filters groups {_CONV} {_KERNEL} {_ADAPTER}",
    "Conv2D": f"filters groups {_CONV} {_KERNEL} {_ADAPTER}",
    "Conv2DTranspose": f"filters output_padding {_CONV} {_KERNEL}",
    "Cropping2D": "cropping data_format",
    "Dense": f"activation quantization_config units use_bias {_BIAS} {_KERNEL} {_ADAPTER}",
    "DepthwiseConv2D": f"{_CONV} {_DEPTHWISE}",
    "Dropout": "noise_shape rate seed",
    "ELU": "alpha",
    "Embedding": "embeddings_constraint embeddings_initializer embeddings_regularizer input_dim input_length mask_zero "
    f"output_dim quantization_config weights {_ADAPTER}",
    "Flatten": "data_format",
    "GaussianDropout": "rate seed",
    "GaussianNoise": "seed stddev",
    "GlobalAveragePooling1D": _GLOBAL_POOLING,
    "GlobalAveragePooling2D": _GLOBAL_POOLING,
    "GlobalMaxPooling1D": _GLOBAL_POOLING,
    "GlobalMaxPooling2D": _GLOBAL_POOLING,
    "InputLayer": "batch_input_shape batch_shape batch_size input_tensor optional ragged shape sparse",
    "LayerNormalization": f"axis center epsilon rms_scaling scale {_BETA_GAMMA}",
    "LeakyReLU": "alpha negative_slope",
    "MaxPooling1D": _POOLING,
    "MaxPooling2D": _POOLING,
    "Maximum": "",
    "Minimum": "",
    "Multiply": "",
    "PReLU": "alpha_constraint alpha_initializer alpha_regularizer shared_axes",
    "Permute": "dims",
    "ReLU": "max_value negative_slope threshold",
    "Rescaling": "offset scale",
    "Reshape": "target_shape",
    "SeparableConv2D": f"filters {_CONV} {_DEPTHWISE} {_POINTWISE}",
    "Softmax": "axis",
    "SpatialDropout1D": "rate seed",
    "SpatialDropout2D": "data_format rate seed",
    "Subtract": "",
    "ZeroPadding1D": "data_format padding",
    "ZeroPadding2D": "data_format padding",
}
OPTIONS: Mapping[str, frozenset[str]] = {kind: _OF_EVERY_LAYER | set(own.split()) for kind, own in _OF_LAYER.items()}
_FLOATS = "bfloat16 float16 float32 float64 float8_e4m3fn float8_e5m2 complex64 complex128"
DTYPES = frozenset(f"bool string int8 int16 int32 int64 uint8 uint16 uint32 uint64 {_FLOATS}".split())
