"""A run's folder, its items and its report: written, resumed, read and recomputed.

Names are imported when they are first used: most commands need only some of them. What a client
and a run need only at times is taken from here by the SDK's own modules, as ``runs.metric_entry``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are for the SDK's own modules.
if TYPE_CHECKING:
    from hallujudge.judge_service import is_whole as is_whole
    from hallujudge.judge_service.engine.registry import checked_entry as checked_entry
    from hallujudge.judge_service.engine.registry import metric_entry as metric_entry
    from hallujudge.judge_service.engine.resources import read_graph as read_graph
    from hallujudge.judge_service.engine.spec import InlineGraph as InlineGraph
    from hallujudge.judge_service.engine.spec import ScoreSpec as ScoreSpec
    from hallujudge.judge_service.engine.spec import ShippedGraph as ShippedGraph
    from hallujudge.judge_service.engine.spec import known_metric as known_metric
    from hallujudge.judge_service.llm.verdict_cache import KeptReplies as KeptReplies
    from hallujudge.judge_service.threads import import_in_thread as import_in_thread
    from hallujudge.judge_service.threads import leave_to_parent as leave_to_parent
    from hallujudge.judge_service.threads import renew_after_fork as renew_after_fork
    from hallujudge.judge_service.wire.convert import scored_bytes as scored_bytes
    from hallujudge.judge_service.wire.convert import scored_of as scored_of
    from hallujudge.metrics.families import DECLARATION as DECLARATION
    from hallujudge.metrics.families import declaration_hash as declaration_hash
    from hallujudge.synonym_graphs import GraphError as GraphError
    from hallujudge.synonym_graphs import is_pickle as is_pickle
    from hallujudge.synonym_graphs import read_released_pickle as read_released_pickle
    from hallujudge.synonym_graphs import released_json as released_json
    from hallujudge.synonym_graphs import shipped_graphs as shipped_graphs
    from hallujudge.synonym_graphs import table_notes as table_notes

    from ..archives.found_files import is_url as is_url
    from ..archives.inputs import own_paths as own_paths
    from ..archives.plain_values import plain as plain
    from ..backends.embedded import EmbeddedBackend as EmbeddedBackend
    from ..backends.remote import RemoteBackend as RemoteBackend
    from ..report.analysis_tables import Analysis as Analysis
    from .folder import RunFolder
    from .journal import read_marks as read_marks
    from .manifest import Manifest
    from .parts import batch_size as batch_size
    from .parts import batches_async as batches_async
    from .parts import batches_of as batches_of
    from .processes import PoolParts as PoolParts
    from .progress_bar import Progress as Progress
    from .progress_bar import shown_progress as shown_progress
    from .progress_bar import shown_reading as shown_reading
    from .report_outputs import items_frame as items_frame
    from .report_outputs import lines_of as lines_of
    from .report_outputs import log_run as log_run
    from .report_outputs import save_report as save_report
    from .report_outputs import write_parquet as write_parquet
    from .report_outputs import wrong_items as wrong_items
    from .response_scores import ReferenceItems as ReferenceItems
    from .response_scores import pairs_of as pairs_of
    from .run_inputs import PreparedRun as PreparedRun
    from .run_report import RunItem, RunItems, RunReport
    from .scoring import RunWatch
    from .scoring import score_into_folder as score_into_folder
    from .scoring import score_parts as score_parts
    from .scoring import score_run_into_folder as score_run_into_folder
    from .server_jobs import RemoteJobs as RemoteJobs
    from .server_jobs import fetch_job as fetch_job
    from .server_jobs import submit_run as submit_run
    from .stored_runs import StoredRun, read_run, recompute
    from .worker import WorkerSettings as WorkerSettings

__all__ = [
    "Manifest",
    "RunFolder",
    "RunItem",
    "RunItems",
    "RunReport",
    "RunWatch",
    "StoredRun",
    "read_run",
    "recompute",
]

__getattr__, __dir__ = names_on_use(__name__)
