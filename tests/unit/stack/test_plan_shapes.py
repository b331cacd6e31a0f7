"""Plans of every standard stack on every release, for six kinds of cards, are those of a table.

``python -m tests.unit.support.stackfleet`` writes the table anew; its differences say what a change of a stack, a rule
or a role does to plans.
"""

from __future__ import annotations

from tests.unit.support.planned import HOSTS, SHAPES, releases, shapes
from tests.unit.support.standard import targets


def test_the_plans_of_all_stacks_have_the_recorded_shapes() -> None:
    made = list(shapes())
    assert made == SHAPES.read_text("utf-8").splitlines(), "see what differs, and write the table anew"
    stacks = [target for target in targets() if target.name == target.stack.name]
    assert len(made) == len(stacks) + sum(len(releases(target)) for target in stacks)
    assert {one for target in stacks for one in releases(target)} == {*HOSTS}
