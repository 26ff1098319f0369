"""Sixty wrong commands: each ends with one sentence that names value, place and next step."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.running import here

METRICS = ("pope", "chair", "tri-he", "mementos", "infact", "amber")
POPE = "-r pope-example/answers.jsonl -R pope-example/questions.jsonl -o new"
CHAIR = "-r chair-example/captions.jsonl -R chair-example/objects.json -o new"
TRI_HE = "-r tri-he-example/answers.jsonl -R tri-he-example/graphs.json -o new"
ASK = "ask pope -R pope-example/questions.jsonl --url http://127.0.0.1:9/v1 --model m -o a.jsonl"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples of some metrics and two runs, which no command below scores."""
    made = tmp_path_factory.mktemp("wrong")
    for metric in METRICS:
        assert here("new", metric, cwd=made).returncode == 0
    (made / "empty").mkdir()
    for metric, given in (("pope", POPE), ("chair", CHAIR)):
        done = here("score", metric, *given.replace("new", f"runs/{metric}").split(), cwd=made)
        assert done.returncode == 0, done.stderr
    return made


# The command, and what its sentence says.
WRONG = {
    # Commands, metrics and options that do not exist
    "scor pope": "No such command 'scor'; did you mean 'score'? Choose",
    "config set x": "No such command 'set'; choose from show",
    "graph extend coco": "No such command 'extend'; choose from ",
    "metrics show chiar": "'chiar' does not exist; did you mean 'chair'? Choose from amber, ",
    f"score pop {POPE}": "No such command 'pop'; did you mean 'pope'?",
    f"score pope {POPE} --judge llm": "No such option '--judge'",
    f"score pope {POPE} --operators blur": "No such option '--operators' (--help",
    f"score pope {POPE} --confidenc 0.9": "No such option '--confidenc'; did you mean '--confiden",
    "merge runs/pope runs/chair -o new": "metric: pope → chair. Give the parts of one run",
    "new bleu": "no example for metric 'bleu'; choose from amber",
    "ask pop --images . -o a.jsonl": "benchmark 'pop' does not exist, or has no questions; did you",
    # Values that an option does not take
    f"score pope {POPE} --confidence 95": "--confidence is 95.0; give a number above 0",
    f"score pope {POPE} --workers -3": "--workers is '-3'; give 0 or more",
    f"score pope {POPE} --variant corect": "'corect'; choose from published, opera",
    f"score chair {CHAIR} --variant corect": "'corect'; did you mean 'corrected'? Choose from",
    f"score pope {POPE} --join sideways": "--join sideways is unknown; choose from auto, id",
    f"score pope {POPE} --engine dask": "--engine is 'dask'; choose from local, ray",
    f"score pope {POPE} --map foo": "--map foo: write the name, an equals sign and the archive",
    f"score pope {POPE} --map foo=bar": "pope reads no key 'foo', which --map names; choose from",
    f"score pope {POPE} --encoding klingon": "klingon is no code that Python knows; give a name",
    f"score pope {POPE} --group-by categry": "groups by; did you mean 'ca",
    f"score chair {CHAIR} --graph cooco": "nor a file; did you mean 'coco'? Choose from coco, ",
    f"score chair {CHAIR} --count all": "--count is 'all'; choose from mentions, objects",
    f"score tri-he {TRI_HE} --judge gpt4": "--judge is 'gpt4'; choose from matcher, llm",
    f"score tri-he {TRI_HE} --panel llm": "--panel is 'llm'; name two or more different judges",
    f"score tri-he {TRI_HE} --support-above 7": "--support-above is 7.0; give a number from -1",
    f"score tri-he {TRI_HE} --judge llm": "set --llm-url and --llm-model",
    f"score pope {POPE} --server nowhere": "'nowhere' has no port from 1 to 65535; give HOST",
    f"score pope {POPE} --format pdf": "--format 'pdf': choose from table, json",
    "score all . -o out --runs blah": "--runs is 'blah'; choose from newest, largest, all",
    "score all . -o out --option chair.count=all": "choose from mentions, objects",
    "score all . -o out -R chiar=x.json": "--references chiar=x.json: write a metric",
    "report runs/pope --format pdf": "--format 'pdf': choose from table",
    "gate runs/pope --max f2=0.5": "pope has no score 'f2'; choose from accuracy",
    "gate runs/pope --max f1=x": "--max 'f1=x': give a score and a number, such as f1=0.02",
    "gate runs/pope --max-regression f1=0.1": "needs a run to compare with: give --baseline",
    "analyze runs/pope --table x": "no table has the name 'x'; choose from samplings",
    "table runs/pope --rows split": "has the key 'split'; known are model",
    "rescore runs/pope -o new --variant correct": "no variant 'correct'; choose from published",
    "view runs --port 99999 --no-browser": "--port is '99999'; give 65535 or less",
    "build infact --operator blah -o new pope-example": "--operator 'blah': choose from gaussian_",
    "build infact --operator shuffle -o new pope-example": "pope-example has no videos (.3gp",
    "build pope --objects chair-example/objects.json -o q.jsonl --questions 0": "--questions of",
    f"{ASK} --images . --protocol blah": "pope has no protocol 'blah'; choose from plain",
    f"{ASK} --images . --frames blah": "--frames is 'blah'; give uniform:N",
    f"{ASK} --images . --dialect blah": "--dialect is 'blah'; give auto or vllm or openai",
    f"{ASK} --images . --param blah": "--param 'blah': give NAME=VALUE, such as seed=7",
    f"{ASK} --images nothere": "images nothere can't be read: No such file or directory; check",
    f"{ASK} --images . --limit 0": "--limit is '0'; give 1 or more",
    f"{ASK} --images . --model": "Option '--model' requires an argument",
    f"{ASK.replace('--model m ', '')} --images .": "no model to ask is named: set --model,",
    f"{ASK.replace('--url http://127.0.0.1:9/v1 ', '')} --images .": "set --url, the base address",
    "ask chair --images empty --url http://127.0.0.1:9/v1 --model m -o a.jsonl": "empty: no images",
    "keys create ana --scope admins --file k.json": "--scope 'admins' does not exist; did you",
    "keys create ana --scope score --keys-file runs": "Is a directory; name a file in it",
    "judge card": "Missing argument 'RUN', as in: hallujudge judge card results --labels labels",
    "build infact pope-example": "Missing option '--out' / '-o', as in: hallujudge build infact vi",
    "judge card runs/pope": "no judge decided in this run of pope, so there are no costs",
    "analyze runs/pope --ks 1,2": "has --ks (given '1,2'); theirs have no options",
    "report runs/pope --to every-eval-ever": "needs the evaluated model as ORG/NAME",
    "report runs/pope --to every-eval-ever --dataset a/b": "not ''; give it with --model",
    "report runs/pope --to hf-eval-results": "not ''; give it with --dataset",
    "keys create ana --scope score --expires soon --file k.json": "--expires 'soon': write 90d",
    "serve --port abc": "--port is 'abc'; give a whole number",
    # Files that are missing, or of another kind
    "score pope -r nothere.jsonl -o new": "nothere.jsonl: No such file or directory; check",
    "score chair -r chair-example/objects.json -R chair-example/captions.jsonl -o new": (
        "objects.json is objects of images: give it as references"
    ),
    "score pope -r pope-example/questions.jsonl -R pope-example/answers.jsonl -o new": (
        "is a POPE question file: give it as references"
    ),
    f"score pope {POPE.replace('new', 'pope-example/answers.jsonl')}": "is not a folder; give an",
    "score infact -r infact-example/runs.jsonl -R infact-example/runs.jsonl -o new": (
        "give it as responses"
    ),
    "leaderboard runs": "runs: a folder of runs, not a run; give one or more of them, such as runs",
    "leaderboard nothere": "nothere: no such folder; give the folder of a run",
    "compare runs/pope runs/pope": "is given twice; give different runs",
    "view nothere": "nothere: not a folder; give a folder of runs",
    "merge runs/pope -o new --overwrite --out other": "-o and --out are one option; give one",
    "calibrate runs/pope": "no labels.jsonl; label claims",
    "label plan runs/pope": "give a run of chair, tri-he",
    "keys list --file nothere.json": "nothere.json can't be read: No such file or directory; make",
    "jobs list --server localhost:1": "no Hallujudge server answers at 'localhost:1'",
}


def test_there_are_sixty() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_command_ends_with_one_sentence(command: str, folder: Path) -> None:
    done = here(*command.split(), cwd=folder)
    assert done.returncode in (1, 2), done.stdout
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert WRONG[command] in done.stderr
