"""What `simplace suggest` prints: the step, at most three changes with their patches, the bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from simplace.suggestions.best_changes import LEAST_GAIN
from simplace.suggestions.edits import write_patch
from simplace.suggestions.find_suggestions import Suggestions
from simplace.suggestions.suggestion_sentences import (
    OUTCOMES,
    describe_causes,
    describe_change,
    describe_gain,
    describe_input,
    describe_memory,
    describe_replicas,
    describe_untimed,
    describe_without_xla,
    lacks_loss_scaling,
    needs_more_inside_xla,
)
from simplace.suggestions.trial import Trial
from simplace.views.text.cost_sentences import format_uncertain
from simplace.views.text.lines import wrap_line
from simplace.views.text.quantities import format_count
from simplace.views.text.summary import agreement_line
from simplace.views.text.verdict import write_step_verdict

_INSIDE_XLA = "what clusters that XLA compiles hold while they run is estimated: leave memory free for more"
_SCALING = (
    "fit scales the loss so that small gradients do not become 0 in float16; a loop of your own has to, with "
    "tf.keras.mixed_precision.LossScaleOptimizer"
)
_RECORDED = (
    "with recorded costs no change was tried that makes other ops, or gives them other numbers of intra-op threads"
)
_OTHER_VALUES = "it computes other values: check that the program still does what it should"


def write_suggestions(found: Suggestions, width: int | None = None) -> str:
    """Return the verdict on the step, the changes, best first, each with its patch, and how near the bound it comes."""
    return "\n\n".join(text for text, _ in write_parts(found, width))


def write_parts(found: Suggestions, width: int | None = None) -> Iterator[tuple[str, bool]]:
    """Yield the paragraphs of the text, each with whether it is a patch, whose lines must stay as they are."""
    memory = "" if found.before.memory.fits else describe_memory(found.before)
    before = found.before.schedule
    inputs = describe_input(found.before.input, before), describe_untimed(found.before.untimed)
    said = [write_step_verdict(before), *inputs, memory]
    yield wrap_line("; ".join(one for one in said if one), width), False
    for number, trial in enumerate(found.best, 1):
        yield _write_suggestion(number, trial, width), False
        patches = (write_patch(file, trial.texts[file.name]) for file in found.changed_files(trial))
        yield "\n".join(patch.rstrip("\n") for patch in patches), True
    yield wrap_line(_write_end(found), width), False
    if found.without_xla and (why := describe_without_xla(found.without_xla, found.before)):
        yield wrap_line(why, width), False
    if found.mirrored is not None:
        yield wrap_line(describe_replicas(found.mirrored), width), False
    yield wrap_line(_write_bound(found), width), False


def _write_suggestion(number: int, trial: Trial, width: int | None) -> str:
    lines = [wrap_line(f"{number}. {describe_gain(trial)}: {describe_change(trial.change)}", width, 3)]
    lines += [wrap_line(f"   {line}", width) for line in describe_causes(trial)]
    if trial.change.changes_values:
        lines.append(wrap_line(f"   note: {_OTHER_VALUES}", width))
    if lacks_loss_scaling(trial):
        lines.append(wrap_line(f"   note: {_SCALING}", width))
    if needs_more_inside_xla(trial):
        lines.append(wrap_line(f"   note: {_INSIDE_XLA}", width))
    assert trial.result is not None
    lines.append(wrap_line(f"   the changed program was run: it {agreement_line(trial.result)}", width))
    return "\n".join(lines)


def _write_end(found: Suggestions) -> str:
    tried = Counter(trial.outcome for trial in found.tried)
    failed = [
        f"{f'{count} times' if count > 1 else 'once'} {OUTCOMES[outcome]}"
        for outcome, count in tried.items() if outcome != "held"
    ]  # fmt: skip
    looked = f"looked at {format_count(found.found, 'change')}, ran the program with {len(found.tried)} of them"
    more = f" ({', '.join(failed)})" if failed else ""
    more += f"; {_RECORDED}" if found.evidence.has_recorded_costs else ""
    cut = "; the time ended before all were tried, --seconds gives it more" if found.is_cut else ""
    if not found.best and not found.before.memory.fits:
        return (
            f"nothing to suggest: no change that was tried makes it fit; {looked}{more}{cut}; "
            f"simplace memory {found.evidence.script} tells what holds the memory, and what else would help"
        )
    if not found.best:
        which = "change that was tried" if found.is_cut else "change"
        unsure = max((trial.gain for trial in found.tried if trial.gain >= LEAST_GAIN), default=0.0)
        beyond = f" beyond its error (the best {unsure:.0%})" if unsure else ""
        return f"nothing to suggest: no {which} saves {LEAST_GAIN:.0%} or more{beyond}; {looked}{more}{cut}"
    return f"{looked}{more}{cut}; --apply N changes the files as in N, and keeps copies of them"


def _write_bound(found: Suggestions) -> str:
    steps = [trial.after for trial in found.best if trial.after is not None and not trial.change.changes_values]
    best = min(step.nanoseconds for step in (found.before, *steps))
    share = f", {found.bound / best:.0%} of the best" if found.bound <= best else ""
    bound = format_uncertain(found.bound, found.before.schedule.uncertainty)
    return (
        f"no placement of these ops takes less than {bound} on this machine{share}; "
        "other ops (another data type, another batch) may"
    )
