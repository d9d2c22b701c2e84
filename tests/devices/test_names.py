"""The cases of TensorFlow's device_name_utils_test.cc that concern parsing, printing and merging, and their laws.

Not expressible, because simplace has no need of the function: LocalName and ParseLocalName ("CPU:10"), SplitDeviceName,
GetNamesForDeviceMappings, CanonicalizeDeviceName, CompareFullNames.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.devices.device_name import DeviceConflict, DeviceName

Fields = tuple[str | None, int | None, int | None, str | None, int | None]


def name(text: str) -> DeviceName:
    parsed = DeviceName.parse(text)
    assert parsed is not None, f"{text} is a device name"
    return parsed


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("/", (None, None, None, None, None)),
        ("", (None, None, None, None, None)),
        ("/job:foo/replica:1/task:2/device:GPU:3", ("foo", 1, 2, "GPU", 3)),
        ("/job:foo_bar/replica:1/task:2/device:GPU:3", ("foo_bar", 1, 2, "GPU", 3)),
        ("/job:*/replica:4/gpu:*", (None, 4, None, "GPU", None)),
        ("/job:*/replica:4/device:GPU:*", (None, 4, None, "GPU", None)),
        ("/job:*/device:GPU/replica:4", (None, 4, None, "GPU", None)),
        ("/job:*/replica:4/device:GPU:5", (None, 4, None, "GPU", 5)),
        ("/job:*/replica:4/device:myspecialdevice:13", (None, 4, None, "myspecialdevice", 13)),
        ("/gpu:*/job:*/replica:4", (None, 4, None, "GPU", None)),
        ("/cpu:1/device:GPU", (None, None, None, "GPU", None)),
        ("/device:*:3", (None, None, None, None, 3)),
    ],
)
def test_basic_name_parses(text: str, fields: Fields) -> None:
    assert DeviceName.parse(text) == DeviceName(*fields)


@pytest.mark.parametrize(
    "text",
    [
        "foobar",
        "gpu:3",
        "/job:123/replica:1/task:2/device:GPU:3",
        "/job:foo/replica:1/task:2/gpu:",
        "/job:foo/replica:1/task:2/device:gpu:",
        "/job:foo/replica:-1/task:2/device:GPU:3",
        "/job:foo/replica:1/task:-2/device:GPU:3",
        "/job:foo/replica:1/task:2/bar:3",
        "/job:foo/replica:1/task:2/device:GPU:3/extra",
        "/job:foo/task:0/replica/cpu:1",
        "/Gpu:0",
        "/cpu",
    ],
)
def test_malformed_name_does_not_parse(text: str) -> None:
    assert DeviceName.parse(text) is None


@pytest.mark.parametrize("device", ["/CPU:3", "/gpu:3", "/device:CPU:3", "/device:gpu:3", "/device:someDevice:3"])
def test_every_part_survives_a_round_trip(device: str) -> None:
    canonical = device if device.startswith("/device:") else f"/device:{device[1:].upper()}"
    parts = [("/job:foo",) * 2, ("/replica:3",) * 2, ("/task:2",) * 2, (device, canonical)]
    for chosen in itertools.product((False, True), repeat=4):
        kept = [part for part, here in zip(parts, chosen, strict=True) if here]
        assert str(name("".join(given for given, _ in kept))) == "".join(printed for _, printed in kept)


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        ("/job:work/replica:1/task:3/device:GPU:*", "/device:CPU:*", False),
        ("/job:work/replica:1/task:3", "/device:CPU:*", True),
    ],
)
def test_compatible(one: str, other: str, answer: bool) -> None:
    assert name(one).compatible_with(name(other)) is answer


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("/job:foo/replica:1/task:2/cpu:3", "/job:foo/replica:1/task:2/device:GPU:4", True),
        ("/job:foo/replica:1/task:2/cpu:3", "/job:foo/replica:1/task:3/device:GPU:4", False),
        ("/job:foo/replica:1/task:2/cpu:3", "/job:foo/replica:10/task:2/device:GPU:4", False),
        ("/job:foo/replica:1/task:2/cpu:3", "/job:bar/replica:1/task:2/device:GPU:4", False),
    ],
)
def test_address_space(one: str, other: str, same: bool) -> None:
    assert name(one).same_address_space(name(other)) is same
    assert name(one).different_address_space(name(other)) is not same


GPU3 = "/job:work/replica:1/task:2/device:GPU:3"
MATCHING = [
    *((pattern, GPU3) for pattern in ("/job:*", "/job:*/replica:*", "/job:*/task:*", "/job:*/replica:*/task:*")),
    *((pattern, GPU3) for pattern in ("/job:*/replica:*/gpu:*", "/gpu:*", "/job:work/replica:1/gpu:*")),
    *((pattern, GPU3) for pattern in ("/job:work/replica:1/device:GPU:3", "/job:work/replica:*/task:2")),
    *(("/job:*", actual) for actual in ("/job:work/replica:1/device:GPU:3", "/job:work/replica:1", "/replica:1")),
    ("/task:*", "/job:*/replica:1/task:2/device:GPU:3"),
    ("/task:2", "/job:*/replica:1/task:2/device:GPU:3"),
    ("/cpu:*", "/job:*/replica:1/task:2/cpu:1"),
    ("/cpu:0", "/cpu:0"),
]
NOT_MATCHING = [
    ("/cpu:*", GPU3),
    ("/device:GPU:2", "/job:worker/replica:1/task:2/device:GPU:1"),
    (GPU3, "/gpu:*"),
    ("/cpu:*", "/job:*/replica:1/task:2"),
    ("/job:work/replica:*/task:0", GPU3),
    ("/job:work/replica:0/task:2", "/job:work/replica:*/task:2/device:GPU:3"),
]


@pytest.mark.parametrize(
    ("pattern", "actual", "answer"),
    [*((*pair, True) for pair in MATCHING), *((*pair, False) for pair in NOT_MATCHING)],
)
def test_specification(pattern: str, actual: str, answer: bool) -> None:
    assert name(pattern).matches(name(actual)) is answer


MERGES = [
    ("", "", ""),
    ("/job:foo/replica:1/task:2/cpu:1", "/job:foo/replica:1/task:2/cpu:1", "/job:foo/replica:1/task:2/cpu:1"),
    ("", "/job:foo", "/job:foo"),
    ("", "/replica:2", "/replica:2"),
    ("", "/task:7", "/task:7"),
    ("", "/device:GPU:1", "/device:GPU:1"),
    ("/job:foo", "/task:7", "/job:foo/task:7"),
    ("/job:foo", "/device:GPU:1", "/job:foo/device:GPU:1"),
    ("/job:foo/replica:0", "/replica:0/task:1", "/job:foo/replica:0/task:1"),
    ("", "/gpu:*", "/gpu:*"),
    ("/gpu:*", "/gpu:*", "/gpu:*"),
    ("/device:GPU:1", "/gpu:*", "/device:GPU:1"),
]


@pytest.mark.parametrize(("one", "other", "merged"), MERGES)
def test_names_that_agree_merge_in_every_way(one: str, other: str, merged: str) -> None:
    for a, b in ((one, other), (other, one)):
        assert name(a).merged(name(b), "strict") == name(merged)
        assert name(a).merged(name(b), "soft") == name(merged)
        assert name(a).merged(name(b), "override") == name(merged)
        assert name(a).filled_from(name(b)) == name(merged)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("/job:foo", "/job:bar", "incompatible jobs: '/job:foo' and '/job:bar'"),
        ("/replica:0", "/replica:1", "incompatible replicas: '/replica:0' and '/replica:1'"),
        ("/task:0", "/task:1", "incompatible tasks: '/task:0' and '/task:1'"),
        ("/gpu:*", "/cpu:*", "incompatible types: '/device:GPU:*' and '/device:CPU:*'"),
        ("/gpu:0", "/gpu:1", "incompatible ids: '/device:GPU:0' and '/device:GPU:1'"),
        # what was merged before the conflict is part of the first name by then
        ("/gpu:0", "/job:a/cpu:0", "incompatible types: '/job:a/device:GPU:0' and '/job:a/device:CPU:0'"),
    ],
)
def test_strict_merge_names_the_conflict(one: str, other: str, message: str) -> None:
    with pytest.raises(DeviceConflict) as caught:
        name(one).merged(name(other), "strict")
    assert str(caught.value) == f"Cannot merge devices with {message}"


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("/gpu:*", "/cpu:1", ""),
        ("/cpu:*", "/gpu:1", ""),
        ("/gpu:1", "/gpu:2", "/gpu:*"),
        ("/gpu:1", "/task:1/cpu:1", "/task:1"),
    ],
)
def test_soft_merge_clears_what_differs(one: str, other: str, merged: str) -> None:
    assert name(one).merged(name(other), "soft") == name(merged)
    assert name(other).merged(name(one), "soft") == name(merged)


@pytest.mark.parametrize(
    ("target", "other", "merged"),
    [
        ("/gpu:0", "/cpu:1", "/cpu:1"),
        ("/gpu:*", "/cpu:1", "/cpu:1"),
        ("/cpu:*", "/gpu:1", "/gpu:1"),
        ("/gpu:1", "/gpu:2", "/gpu:2"),
        ("/job:foo/CPU:*", "/gpu:1", "/job:foo/GPU:1"),
        ("/cpu:*", "/job:foo/gpu:1", "/job:foo/GPU:1"),
        ("/task:0/cpu:*", "/gpu:1", "/task:0/GPU:1"),
        ("/cpu:*", "/task:0/gpu:1", "/task:0/GPU:1"),
    ],
)
def test_override_merge_takes_the_other(target: str, other: str, merged: str) -> None:
    assert name(target).merged(name(other), "override") == name(merged)


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("/job:foo", "/job:bar", "/job:foo"),
        ("/gpu:*", "/cpu:*", "/gpu:*"),
        ("/gpu:0", "/gpu:1", "/gpu:0"),
        ("/job:bar", "/job:foo/device:GPU", "/job:bar/device:GPU"),
    ],
)
def test_unset_fields_are_filled(one: str, other: str, merged: str) -> None:
    assert name(one).filled_from(name(other)) == name(merged)


NAMES = st.builds(
    DeviceName,
    st.none() | st.sampled_from(["a", "worker", "ps_1"]),
    st.none() | st.integers(0, 1),
    st.none() | st.integers(0, 2),
    st.none() | st.sampled_from(["CPU", "GPU", "FakeCPU"]),
    st.none() | st.integers(0, 3),
)


@given(NAMES)
def test_parse_undoes_str(one: DeviceName) -> None:
    assert DeviceName.parse(str(one)) == (one if one.type is not None else one._replace(id=None))


@given(st.text(alphabet="/:*jobtaskdeviceCGPUgpu_019", max_size=24))
def test_parse_accepts_what_it_prints_and_never_raises(text: str) -> None:
    parsed = DeviceName.parse(text)
    assert parsed is None or DeviceName.parse(str(parsed)) is not None


@given(NAMES, NAMES)
def test_strict_merge_commutes_where_it_succeeds(one: DeviceName, other: DeviceName) -> None:
    if not one.compatible_with(other):
        with pytest.raises(DeviceConflict):
            one.merged(other, "strict")
        return
    merged = one.merged(other, "strict")
    assert merged == other.merged(one, "strict") == one.merged(other, "soft") == one.merged(other, "override")
    assert one.matches(merged)
    assert other.matches(merged)


@given(NAMES, NAMES)
def test_soft_and_override_never_refuse_type_and_id(one: DeviceName, other: DeviceName) -> None:
    other = other._replace(job=one.job, replica=one.replica, task=one.task)
    soft, override = one.merged(other, "soft"), one.merged(other, "override")
    assert soft.matches(override) or soft.id is None
    assert other.matches(override)


@given(NAMES, NAMES)
def test_overwriting_keeps_the_other(one: DeviceName, other: DeviceName) -> None:
    assert other.matches(one.overwritten_by(other))
    assert one.matches(one.filled_from(other))
