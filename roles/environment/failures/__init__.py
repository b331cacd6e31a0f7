"""Failures of what programs find without any variables, and of the variables that users set."""

from __future__ import annotations

from hostwright.failures import FailureRule, Sign, Try
from hostwright.standard.roles.cuda.failures.toolkits import TOOLKITS
from hostwright.standard.roles.driver.failures.loader_cache import LOADER
from hostwright.standard.roles.environment.failures.loader import LOADER_RULES, no_ptxas, not_cached
from hostwright.standard.roles.environment.failures.sonames import SONAME_RULES
from hostwright.standard.roles.environment.failures.texts import NOT_FOUND, OPTIONAL, TEXT_RULES
from hostwright.standard.roles.environment.failures.variables import VARIABLES_RULES

TRIES = (
    # a framework without a compiler of its own
    Try(("ptxas",), ("Relying on driver to perform ptx", "Falling back to the CUDA driver for PTX"), 3),
)

FAILURES = (
    *TEXT_RULES,
    FailureRule(
        "library-not-found",
        NOT_FOUND,
        "the loader does not find one of CUDA's or cuDNN's libraries in the release that the program opens; TensorFlow"
        " then runs without the GPU, others stop",
        "Provision again: the environment role lists them in /etc/ld.so.conf.d, which needs no variable; where the"
        " message names another release, install a build for the stack's CUDA",
        "tensorflow/tensorflow#56413, #45930",
        unless=OPTIONAL,
        sign=Sign("environment", not_cached, (LOADER,), provision=True),
        weight="general",
    ),
    FailureRule(
        "ptxas-not-found",
        r"Couldn't (?:get|invoke) ptxas|Can't find ptxas|Unable to find ptxas|Cannot find (?:a triton )?ptxas"
        r"|Missing libdevice file"
        r"|libNVVM cannot be found|Searched for CUDA in the following directories|ptxas: (?:command )?not found"
        r"|ptxas not found|Can't find libdevice"
        r"|libdevice not found at|Could not find ptxas|Failed to launch ptxas"
        r"|libdevice is required by|No PTX compilation provider|(?:Couldn't|cannot) find ptxas|ptxas: No such file",
        "the CUDA toolkit's bin directory is not on PATH",
        "Provision again: the environment role puts it there",
        "tensorflow/tensorflow#33375, #58681",
        sign=Sign("environment", no_ptxas, (TOOLKITS,), provision=True),
    ),
    *LOADER_RULES,
    *SONAME_RULES,
    *VARIABLES_RULES,
)
