"""The cases of the benchmark, one module each. ``case.Case`` describes what a module defines."""
