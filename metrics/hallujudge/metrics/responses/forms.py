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
    """Whether the closing mark of a thought counts without the opening one."""
    after_thought: bool = False
    """Whether the marks of an answer count after a thought only, as plain texts may hold them."""
    cut: bool = False
    """Whether the opening mark of an answer counts without the closing one, wherever it is."""

    @property
    def name(self) -> str:
        """The name in notes: the opening mark."""
        return self.opening.strip()


FORMS = (
    Form(
        "<think>",
        "</think>",
        "DeepSeek-R1, Qwen3(-VL), QwQ, GLM-4.1V to 4.7, MiMo-VL, InternVL3.5, Kimi-K2, MiniMax-M2, "
        "Nemotron 3, Step3, Olmo 3, ERNIE-4.5, Hunyuan-A13B, MiniCPM-V, Intern-S1, EXAONE 4, "
        "Granite 3.3 and 4.2",
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
        "GRPO recipes, LLaVA-CoT, Reka Flash 3",
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
    Form(
        "<thought>",
        "</thought>",
        "EXAONE Deep, Marco-o1, prompted agents",
        "model card of EXAONE-Deep-32B",
    ),
    Form(
        "<reflection>",
        "</reflection>",
        "Reflection-70B",
        "system prompt of Reflection-Llama-3.1-70B",
        alone=False,
    ),
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
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        "Kimi-K3",
        "vllm kimi_k3_reasoning_parser.py",
    ),
    # The end of a message ends answers too; after a thought another message begins.
    Form(
        "<|content_thinking|>",
        "<|end_message|><|message_model|>",
        "Inkling",
        "vllm/parser/inkling.py",
    ),
    Form(
        "to=self<|message|>",
        "<|eom|><|start|>assistant",
        "Muse Glimmer",
        "vllm/reasoning/muse_glimmer_utils.py",
    ),
    Form(
        "<|think|>",
        "<|end|><|begin|>assistant",
        "Solar Open",
        "chat template of Solar-Open-100B",
    ),
    Form(
        "<|think:start|>",
        "<|think:end|>",
        "Solar Open 2",
        "vllm solar_open2_reasoning_parser.py",
    ),
    Form(
        "<|plamo:begin_think:plamo|>",
        "<|plamo:end_think:plamo|>",
        "PLaMo 3",
        "vllm plamo3_reasoning_parser.py",
    ),
    Form("<ifm|think>", "</ifm|think>", "K2 Horizon", "vllm k2_horizon_reasoning_parser.py"),
    Form(
        "<ifm|think_fast>",
        "</ifm|think_fast>",
        "K2 Horizon",
        "vllm k2_horizon_reasoning_parser.py",
    ),
    Form(
        "<ifm|think_faster>",
        "</ifm|think_faster>",
        "K2 Horizon",
        "vllm k2_horizon_reasoning_parser.py",
    ),
    Form("[unused16]", "[unused17]", "openPangu", "vllm pangu_reasoning_parser.py"),
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
KIMI = "<|open|>think<|sep|>"
"""The name of Kimi-K3's form."""
BOXED = r"\boxed{}"
"""The name of the form ``\\boxed{…}``."""

JSON = '{"answer"}'
"""The name of the form of an object with a thought and an answer."""
ANSWER_KEYS = ("answer", "final_answer", "finalanswer", "choice", "option", "caption", "response")
"""Keys of the answer in such an object, in lower case and with ``_`` for spaces."""

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
        cut=True,
    ),
    Form(
        "<output>",
        "</output>",
        "Reflection-70B, Marco-o1",
        "system prompt of Reflection-Llama-3.1-70B",
        after_thought=True,
    ),
    Form(
        "<|START_TEXT|>",
        "<|END_TEXT|>",
        "Command A Plus",
        "sglang srt/parser/reasoning_parser.py",
        cut=True,
    ),
    Form(
        "<|open|>response<|sep|>",
        "<|close|>response<|sep|>",
        "Kimi-K3",
        "vllm kimi_k3_reasoning_parser.py",
        cut=True,
    ),
    Form("<|content_text|>", "<|end_message|>", "Inkling", "vllm/parser/inkling.py", cut=True),
    Form(
        "to=user<|message|>",
        "<|eot|>",
        "Muse Glimmer",
        "vllm/reasoning/muse_glimmer_utils.py",
    ),
    Form("<|content|>", "<|end|>", "Solar Open", "chat template of Solar-Open-100B", cut=True),
)
r"""The marks of answers; ``\boxed{…}`` and objects have rules of their own."""


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
