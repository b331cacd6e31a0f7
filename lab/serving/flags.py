"""The flags of ``tensorflow_model_server`` that this stand-in heeds; the real one's others are taken and ignored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: those that count, with their defaults
HEEDED: dict[str, Any] = {
    "rest_api_port": 0,
    "model_config_file": "",
    "model_config_file_poll_wait_seconds": 0,
    "model_name": "default",
    "model_base_path": "",
    "max_num_load_retries": 5,
    "file_system_poll_wait_seconds": 1,
    "allow_version_labels_for_unavailable_models": False,
    "version": False,
}
IGNORED: dict[str, Any] = {
    "port": 8500, "grpc_socket_path": "", "rest_api_num_threads": 0, "rest_api_timeout_in_ms": 30000,
    "rest_api_enable_cors_support": False, "enable_batching": False, "batching_parameters_file": "",
    "num_load_threads": 0, "num_unload_threads": 0, "load_retry_interval_micros": 60000000,
    "flush_filesystem_caches": True, "tensorflow_session_parallelism": 0, "tensorflow_intra_op_parallelism": 0,
    "tensorflow_inter_op_parallelism": 0, "per_process_gpu_memory_fraction": 0.0, "saved_model_tags": "serve",
    "grpc_channel_arguments": "", "enable_model_warmup": True, "monitoring_config_file": "",
    "platform_config_file": "", "ssl_config_file": "",
}  # fmt: skip


def read_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """The flags of a command line. Raises ``ValueError`` for one whose value is of the wrong kind, and for others."""
    known = {**HEEDED, **IGNORED}
    flags = dict(known)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        name = name[2:] if name.startswith("--") else ""
        if name not in known:
            raise ValueError(f"unknown argument: {argument}")
        kind = type(known[name])
        if kind is bool:
            if value not in ("", "true", "false", "1", "0"):
                raise ValueError(f"Couldn't interpret value {value} for flag {name}.")
            flags[name] = not equals or value in ("true", "1")
        else:
            try:
                flags[name] = kind(value)
            except ValueError as error:
                raise ValueError(f"Couldn't interpret value {value} for flag {name}.") from error
    return flags
