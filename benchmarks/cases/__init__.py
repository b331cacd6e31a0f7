"""The cases of the benchmark, one module each, with the functions of ``case.Case``."""
