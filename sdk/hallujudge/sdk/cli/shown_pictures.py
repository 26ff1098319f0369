"""Where pictures go: the first line of a run whose judge sees."""

from __future__ import annotations

from collections.abc import Mapping

import click

from hallujudge.metrics.framework.metric import SEES


def say_where(
    server: str | None, options: Mapping[str, str], settings: Mapping[str, object]
) -> None:
    """Print which addresses pictures go to, before anything else is done.

    Args:
        server: The server that scores, if this process does not.
        options: The metric's options.
        settings: Settings of the judges.
    """
    from hallujudge.judge_service.engine.judge_options import LLM_NAMES, judges_of
    from hallujudge.judge_service.settings.connection import listed, masked
    from hallujudge.judge_service.settings.server_settings import load_settings

    judge, panel = options.get("judge", "given"), options.get("panel", "")
    if judge == "given" and not panel:
        return
    if server is not None:
        click.echo(f"pictures go to {server}, and from there to its judge", err=True)
        return
    known = load_settings(dict(settings)).judges
    names = listed(panel) if panel else judges_of(known, "llm" if judge == SEES else judge)
    places = [
        f"{masked(url)} (model {getattr(known, f'{name}_model')})"
        for name in names
        if name in LLM_NAMES
        for url in listed(getattr(known, f"{name}_url"))
    ]
    if places:
        click.echo(f"pictures go to {' and '.join(places)}, and nowhere else", err=True)
