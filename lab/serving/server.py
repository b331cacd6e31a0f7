"""The program ``tensorflow_model_server`` of the stand-in."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from lab.serving.config import Model, read_config
from lab.serving.flags import read_flags
from lab.serving.rest import STAND_IN, server_of
from lab.serving.status import Failed, invalid
from lab.serving.versions import Load, Versions


def main(arguments: Sequence[str], load: Load, library: str) -> int:
    """Serve until the process is ended; the exit status of a server that cannot."""
    try:
        flags = read_flags(arguments)
    except ValueError as error:
        _log(str(error))
        return 255
    if flags["version"]:
        print(f"TensorFlow ModelServer: 2.9.0 ({STAND_IN})\nTensorFlow Library: {library}")
        return 0
    _log(f"{STAND_IN}, with TensorFlow {library}")
    try:
        serve(flags, load)
    except Failed as error:
        _log(f"Failed to start server. Error: {error}")
    return 255


def serve(flags: dict[str, Any], load: Load) -> None:
    """The server of these flags. Raises ``Failed`` where it cannot start."""
    if not flags["model_config_file"] and not flags["model_base_path"]:
        raise invalid("Both server_options.model_base_path and server_options.model_config_file are empty!")
    early = flags["allow_version_labels_for_unavailable_models"]
    versions = Versions(load, flags["max_num_load_retries"], flags["file_system_poll_wait_seconds"], early, _log)
    versions.reload(_models(flags))
    versions.start()
    versions.await_first()
    if flags["model_config_file"] and flags["model_config_file_poll_wait_seconds"] > 0:
        threading.Thread(target=_reloads, args=(flags, versions), daemon=True).start()
    if not flags["rest_api_port"]:
        threading.Event().wait()  # the real one answers gRPC alone
    server = server_of(versions, ("0.0.0.0", flags["rest_api_port"]))  # noqa: S104 - of the container alone
    _log(f"Exporting HTTP/REST API at:localhost:{flags['rest_api_port']} ...")
    server.serve_forever()


def _models(flags: dict[str, Any]) -> tuple[Model, ...]:
    if flags["model_config_file"]:
        return read_config(flags["model_config_file"])
    return (Model(flags["model_name"], flags["model_base_path"], "tensorflow"),)


def _reloads(flags: dict[str, Any], versions: Versions) -> None:
    while True:
        time.sleep(flags["model_config_file_poll_wait_seconds"])  # as the real one, which looks no sooner
        try:
            models = read_config(flags["model_config_file"])
        except Failed as error:
            _log(f"Failed to read ModelServerConfig file: {error.message}")
            continue
        try:
            versions.reload(models)
        except Failed as error:
            _log(f"PollFilesystemAndReloadConfig failed to ReloadConfig: {error.message}")


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
