"""The values that are read on a host, and what the stack wants of each. Pure.

What could not be asked gives no reading; what was looked for and is not there is a reading of nothing.
"""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from hostwright.audit.look import Look, Unread
from hostwright.audit.questions import RELEASE_LAYER, Question, meant, question_probes, questions, read_answers
from hostwright.audit.readings_gpu import gpu_readings
from hostwright.audit.readings_program import COMPLETE
from hostwright.audit.values import GPU_LAYER, Reading
from hostwright.compatibility import kernel_version
from hostwright.fitting import Ground, kernels_of
from hostwright.model import Probe
from hostwright.stack import Driver

Answers = dict[str, str]


def readings(look: Look, venv: str) -> tuple[Reading, ...]:
    """The readings of a host, of the layers that are looked at. ``venv`` as for ``questions``."""
    layers = {*look.changes, GPU_LAYER, RELEASE_LAYER}
    user, root = (_answers(look, probe) for probe in question_probes(look.stack, venv))
    asked = (_reading(one, user, root) for one in meant(questions(look.stack, venv), user))
    found = (*asked, _kernel_fits(user, look.stack.driver), *gpu_readings(look, user.get("product_name", "")))
    return tuple(one for one in found if one is not None and one.layer in layers)


def _answers(look: Look, probe: Probe) -> Answers:
    """What a program said, as far as it came; nothing when it was not asked."""
    try:
        return read_answers(look.answer(probe).text)
    except Unread:
        return {}


def _reading(question: Question, user: Answers, root: Answers) -> Reading | None:
    """What a question's line holds. A line that is not there means nothing there, if the program came to its end."""
    answers = root if question.root else user
    if question.answer not in answers and COMPLETE not in answers:
        return None
    have = answers.get(question.answer, "")
    return Reading(question.layer, question.name, have, question.want, user.get(question.among, ""))


def _kernel_fits(answers: Answers, driver: Driver) -> Reading | None:
    """Whether the driver's module is known to build on the running kernel; no stack wants it of a host that works."""
    own = {driver.version: driver.kernels} if driver.kernels is not None else {}
    kernels = kernels_of(driver.version, Ground(kernels=own))
    running = kernel_version(answers.get("kernel", ""))
    if running is None or kernels is None:
        return None
    return Reading("driver", "kernel fits", "yes" if SpecifierSet(kernels).contains(running) else "no")
