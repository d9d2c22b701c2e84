"""Where names and amounts break that are wider than their place: between scopes, never within a word or an amount."""

from __future__ import annotations

import time

from tests.report import worlds
from tests.report.conftest import Opener
from tests.worlds import constant, node, place

SCOPE = "StatefulPartitionedCall/gradient_tape/sequential_layers/convolution_block/batch_normalization_of_all"
# The texts in an element that take more than one line, and are not made of words with spaces between them.
BROKEN = """
  const found = [];
  const walk = document.createTreeWalker(document.querySelector(arguments[0]), NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(walk.currentNode);
    const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
    if (lines.size > 1 && !/[ -]/.test(walk.currentNode.data)) found.push(walk.currentNode.data);
  }
  return found;
"""


def test_names_in_the_search_list_and_in_the_panel_break_between_their_words(opened: Opener) -> None:
    lines = (
        constant("a", (2, 3), device="/gpu:0"),
        *(node(f"{SCOPE}/FusedBatchNormGradV{i}", "Neg", "a") for i in "12"),
    )
    page = opened(worlds.result(place("\n".join(lines))))
    page.find(".search input").send_keys("grad")
    time.sleep(0.5)
    page.wait_until_idle()
    named = [one.get_property("textContent") for one in page.all("#found li bdi")]
    assert [name[-20:] for name in named] == ["FusedBatchNormGradV1", "FusedBatchNormGradV2"]
    assert page.run(BROKEN, "#found") == []
    page.run("location.hash = arguments[0]", f"#node={SCOPE}/FusedBatchNormGradV1")
    time.sleep(0.3)
    page.wait_until_idle()
    assert page.find("#details h2").get_property("textContent") == f"{SCOPE}/FusedBatchNormGradV1"
    assert page.run(BROKEN, "#details h2") == []


def test_amounts_in_the_summary_are_whole(opened: Opener) -> None:
    lines = (constant("a", (2, 3), device="/gpu:0"), node("b", "Neg", "a", device="/cpu:0"))
    page = opened(
        worlds.with_eager(worlds.result(place("\n".join(lines))), "a_folder/of_my_programs/train_the_model.py:17")
    )
    assert [one.text for one in page.all("#panel-summary .whole") if one.text] == ["24 B", "24 B", "0 B"]
    assert page.run(BROKEN, "#panel-summary") == []
