"""The vLLM server that the settings of the judges describe."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from ..errors import InvalidInputError
from ..llm.vllm import VllmServer, VllmSettings
from ..settings.judges import JudgeSettings

__all__ = ["vllm_server"]


def vllm_server(
    settings: JudgeSettings,
    *,
    environ: Mapping[str, str],
    data_folder: Path,
    progress: Callable[[str], None],
) -> VllmServer:
    """Return the vLLM server that the settings describe; it is not started.

    Args:
        settings: The settings of the judges.
        environ: The server's environment. Unless ``vllm_download`` is set, the model hub is
            disabled in it.
        data_folder: The folder for its log.
        progress: Called with one line for each event.

    Raises:
        InvalidInputError: ``llm_url`` is set as well.
    """
    if settings.llm_url:
        raise InvalidInputError(
            f"vllm is {settings.vllm!r}, which starts a server, and llm_url is "
            f"{settings.llm_url!r}, which names a running one; set only one of them"
        )
    offline = {} if settings.vllm_download else {"HF_HUB_OFFLINE": "1"}
    return VllmServer(
        _vllm_settings(settings, data_folder), environ={**environ, **offline}, progress=progress
    )


def _vllm_settings(settings: JudgeSettings, data_folder: Path) -> VllmSettings:
    return VllmSettings(
        model=settings.vllm,
        data_folder=data_folder,
        tensor_parallel_size=settings.vllm_tensor_parallel_size,
        max_model_len=settings.vllm_max_model_len,
        executable=tuple(shlex.split(settings.vllm_command)) or ("vllm",),
        extra_arguments=tuple(shlex.split(settings.vllm_arguments)),
    )
