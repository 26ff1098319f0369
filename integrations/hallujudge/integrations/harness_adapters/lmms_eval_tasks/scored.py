"""``process_results`` of the tasks in this folder; the model for tasks of your own."""

from hallujudge.sdk.harness_adapters import lmms_results

chair = lmms_results(
    "chair", ["chair_i", "chair_s", "recall"], reference="gt_object", group="question_id"
)
pope = lmms_results(
    "pope",
    ["accuracy", "precision", "recall", "f1", "yes_ratio"],
    reference="answer",
    group="image_source",
)
