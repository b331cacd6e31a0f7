"""Compatibility rule: the role ``environment`` must not put other libraries before wheels' libraries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hostwright.resources import EnvironmentSection
from hostwright.roles import Misfit, Section
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cuda.wheels import libraries_in


def no_wheel_is_shadowed(sections: Mapping[str, Section], cuda_section: CudaSection) -> Iterator[Misfit]:
    """Check that no environment has CUDA wheels, because login shells would load the toolkit's libraries instead."""
    for section in sections.values():
        if isinstance(section, EnvironmentSection) and (wheel := libraries_in(section)):
            yield Misfit(
                "cuda-path",
                f"the role environment adds CUDA {cuda_section.series} to LD_LIBRARY_PATH and the loader's path. "
                f"It would take precedence over the CUDA wheels of {section.title} {section.version} ({wheel})",
                "pytorch/pytorch#134929, #152783; JAX's installation page",
                "the host's roles without environment and cudnn; to compile extensions, the role cuda is enough",
            )


RULES = (no_wheel_is_shadowed,)
