"""The command line, ``hallujudge``: parse arguments, call a command, map errors to exit codes.

Exit codes: 0 ok, 1 failed, 2 usage or bad input, 3 finished with unscored items.

Names are imported when they are first used. The modules of commands take from here what only runs
once a command is carried out, as ``cli.load_settings``: help pages and mistakes on a command line
need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are for the modules of commands.
if TYPE_CHECKING:
    from hallujudge.judge_service.__main__ import run_server as run_server
    from hallujudge.judge_service.access.spending import Ledger as Ledger
    from hallujudge.judge_service.engine.judge_factory import prices_of as prices_of
    from hallujudge.judge_service.engine.judge_options import LLM_NAMES as LLM_NAMES
    from hallujudge.judge_service.engine.judge_options import judges_of as judges_of
    from hallujudge.judge_service.engine.registry import entries as entries
    from hallujudge.judge_service.engine.registry import entry_of as entry_of
    from hallujudge.judge_service.engine.registry import metric_entry as metric_entry
    from hallujudge.judge_service.engine.spec import known_metric as known_metric
    from hallujudge.judge_service.judges.llm_judge import least_cost as least_cost
    from hallujudge.judge_service.llm.vllm_serving import model_shape as model_shape
    from hallujudge.judge_service.llm.vllm_serving import sizing_table as sizing_table
    from hallujudge.judge_service.settings.loading import load_settings as load_settings
    from hallujudge.judge_service.settings.loading import names_of as names_of
    from hallujudge.judge_service.settings.loading import settings_toml as settings_toml
    from hallujudge.metrics.framework.papers import printed_names as printed_names
    from hallujudge.metrics.framework.papers import published_rows as published_rows

    from ..archives.example_files import usual_files as usual_files
    from ..archives.example_files import write_benchmark as write_benchmark
    from ..archives.inputs import declared_inputs as declared_inputs
    from ..archives.inputs import own_inputs as own_inputs
    from ..archives.label_sets import files_of_labels as files_of_labels
    from ..comparison.compared_runs import differing_references as differing_references
    from ..comparison.label_scores import label_page as label_page
    from ..comparison.label_scores import score_label_sets as score_label_sets
    from ..comparison.named_runs import notes_of_runs as notes_of_runs
    from ..comparison.overview import VARIANT as VARIANT
    from ..comparison.page_comparisons import baseline_of as baseline_of
    from ..comparison.page_comparisons import page_of_two as page_of_two
    from ..report.report_text import escaped as escaped
    from ..report.report_text import judging_sentences as judging_sentences
    from ..report.table_pages import PAGE_FORMATS as PAGE_FORMATS
    from ..report.table_pages import grid_sections as grid_sections
    from ..report.table_pages import render_page as render_page
    from ..runs.progress_bar import Progress as Progress
    from ..runs.progress_bar import shown_progress as shown_progress
    from ..runs.progress_bar import shown_reading as shown_reading
    from ..runs.progress_bar import verdicts_text as verdicts_text
    from ..runs.result_files import stored_analysis as stored_analysis
    from ..runs.run_inputs import PreparedRun as PreparedRun
    from ..runs.saved_items import pictures_of as pictures_of
    from .command_line import command_tree as command_tree
    from .command_line import main as main
    from .installation_checks import installation_findings as installation_findings
    from .installation_checks import vllm_findings as vllm_findings
    from .output import in_flags as in_flags
    from .run_options import ScoreCommand as ScoreCommand
    from .score_execution import ScoreExecution as ScoreExecution
    from .score_execution import executed as executed
    from .viewer import Viewer as Viewer

__getattr__, __dir__ = names_on_use(__name__)
