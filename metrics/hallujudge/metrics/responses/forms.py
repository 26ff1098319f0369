"""The marks by which models tell their thoughts and answers apart, with a public source of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """A form in which models mark thoughts or answers."""

    opening: str
    """The opening mark. Letters match in upper and lower case."""
    closing: str
    """The closing mark; empty for the end of the text."""
    families: str = ""
    """Model families that write it."""
    source: str = ""
    """Where the form is documented, or a parser of it."""
    alone: bool = True
    """Whether the closing mark counts without the opening one."""

    @property
    def name(self) -> str:
        """The name in notes: the opening mark."""
        return self.opening.strip()


FORMS = (
    Form(
        "<think>",
        "</think>",
        "DeepSeek-R1, Qwen3(-VL), QwQ, GLM-4.1V to 4.7, MiMo-VL, InternVL3.5, Kimi-K2, MiniMax-M2, "
        "Nemotron 3, Step3, Olmo 3, ERNIE-4.5, Hunyuan-A13B",
        "vllm/reasoning/deepseek_r1_reasoning_parser.py, qwen3_reasoning_parser.py",
    ),
    Form(
        "<thinking>",
        "</thinking>",
        "prompts of reasoning tasks",
        "lmms_eval/filters/transformation.py (0.7.3)",
    ),
    Form(
        "<reasoning>",
        "</reasoning>",
        "GRPO recipes, LLaVA-CoT",
        "lighteval/utils/utils.py, remove_reasoning_tags (0.13.0)",
    ),
    Form(
        "<reason>",
        "</reason>",
        "prompts of reasoning tasks",
        "Open WebUI backend/open_webui/utils/middleware.py",
    ),
    Form(
        "<analysis>",
        "</analysis>",
        "Keye-VL",
        "lmms_eval/__main__.py, reasoning_tags (0.7.3); VLMEvalKit, keye_vl",
    ),
    Form("<thought>", "</thought>", "prompted agents", "no model family's parser"),
    Form(
        "[THINK]",
        "[/THINK]",
        "Magistral, Ministral 3 Reasoning",
        "mistral_common tokens/tokenizers/base.py (1.13.1); vllm mistral_reasoning_parser.py",
    ),
    Form("◁think▷", "◁/think▷", "Kimi-VL-Thinking", "VLMEvalKit vlmeval/vlm/kimi_vl.py"),
    Form("<seed:think>", "</seed:think>", "Seed-OSS", "vllm seed_oss_reasoning_parser.py"),
    Form("<|channel>thought", "<channel|>", "Gemma 4", "vllm/reasoning/gemma4_utils.py"),
    Form("<mm:think>", "</mm:think>", "MiniMax-M3", "sglang srt/parser/reasoning_parser.py"),
    Form("<longcat_think>", "</longcat_think>", "LongCat", "vllm longcat_reasoning_parser.py"),
    Form(
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        "Command A and R7B",
        "vllm cohere_command_reasoning_parser.py",
    ),
    Form(
        "<|begin_of_thought|>",
        "<|end_of_thought|>",
        "what is trained on OpenThoughts-114k",
        "Open WebUI backend/open_webui/utils/middleware.py",
    ),
    Form("<|inner_prefix|>", "<|inner_suffix|>", "Apertus", "vllm apertus_reasoning_parser.py"),
    Form(
        "Here is my thought process:",
        "Here is my response:",
        "Granite 3.2",
        "vllm granite_reasoning_parser.py",
        alone=False,
    ),
    Form(
        "Here's my thought process:",
        "Here's my response:",
        "Granite 3.2",
        "vllm granite_reasoning_parser.py",
        alone=False,
    ),
)
"""The marks of thoughts. gpt-oss's channels have rules of their own."""

CHANNELS = "<|channel|>"
"""The name of gpt-oss's form: channels ``analysis``, ``commentary`` and ``final``."""
BOXED = r"\boxed{}"
"""The name of the form ``\\boxed{…}``."""

ANSWER_MARKS = (
    Form(
        "<answer>",
        "</answer>",
        "R1-style training, Hunyuan-A13B, Keye-VL",
        "lmms_eval/models/model_utils/reasoning_model_utils.py (0.7.3)",
    ),
    Form("<|begin_of_box|>", "<|end_of_box|>", "GLM-4.1V, 4.5V, 4.6V", "tokenizer of GLM-4.5V"),
    Form(
        "<response>",
        "</response>",
        "ERNIE-4.5-Thinking, ERNIE-X1",
        "vllm ernie45_reasoning_parser.py",
    ),
    Form("<conclusion>", "</conclusion>", "LLaVA-CoT", "model card of Llama-3.2V-11B-cot"),
    Form("<final_answer>", "</final_answer>", "prompts of agents", "no model family's parser"),
    Form(
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "Command A and R7B",
        "vllm cohere_command_reasoning_parser.py",
    ),
    Form(
        "<|begin_of_solution|>",
        "<|end_of_solution|>",
        "what is trained on OpenThoughts-114k",
        "Open WebUI backend/open_webui/utils/middleware.py",
    ),
    Form(
        "[BEGIN FINAL RESPONSE]",
        "[END FINAL RESPONSE]",
        "Apriel 1.5 and 1.6",
        "chat template of Apriel-1.5-15b-Thinker",
    ),
)
r"""The marks of answers; ``\boxed{…}`` has rules of its own."""


def own_forms(text: str) -> tuple[Form, ...]:
    """Return the forms that a user names: a line of an opening and a closing mark each.

    Raises:
        ValueError: A line does not have two marks.
    """
    forms = []
    for line in filter(None, map(str.strip, text.splitlines())):
        marks = line.split()
        if len(marks) != 2:
            raise ValueError(
                f"{line!r:.80} is not an opening and a closing mark separated by a space"
            )
        forms.append(Form(opening=marks[0], closing=marks[1]))
    return tuple(forms)
