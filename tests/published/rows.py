"""Memory that others measured on their cards, and the program of this folder that uses as much.

promise: what README promises of such a row, in per cent; None where another PyTorch than the measured one runs, of
which nothing is promised. bound: what the row may be off; beyond it something has changed here; it was set
when the figure was known. Rows were chosen before they ran and none was left out for its figure, but three programs
were changed when it was seen, to be what the source ran: BERT (first on PyTorch 2.15, -15.5 %; then 2.1, gradients
zeroed instead of dropped, as in 2022), DDP (foreach=False, as in PyTorch 1.8) and octocoder (its `generate` never
ended in a dry run: a loop stands for it).

Where the source names no version of PyTorch, that of the time of its writing is named.
"""

import dataclasses

GB, GIB, MIB = 10**9, 1 << 30, 1 << 20
OWN = None  # the PyTorch of the tests' environment


@dataclasses.dataclass(frozen=True)
class Row:
    """published: bytes, or "out of memory". add_bytes: part of the published figure that no trace holds (the CUDA
    context, measured in the same place), or, below 0, part of ours that the published one leaves out."""

    name: str
    program: tuple
    card: str
    torch: str
    published: object
    promise: float
    bound: float
    source: str
    measured: str
    figure: str = "allocated"
    add_bytes: int = 0


def litgpt(name, micro, published, bound=0.5):
    return Row(
        f"lit-gpt LoRA {name} x {micro}",
        ("litgpt_lora.py", name, micro),
        "a100-40",
        "2.1.0",
        published if isinstance(published, str) else round(published * GB),
        0.5,
        bound,
        "github.com/Lightning-AI/litgpt tutorials/resource-tables.md",
        "A100-SXM4-40GB, PyTorch 2.1.0+cu121, lit-gpt 8641822, bf16",
    )


def tsn(network, clips, frames, classes, config, published, *options):
    return Row(
        f"TSN {network}, {clips} x {frames} images",
        ("tsn.py", network, clips, frames, classes, *options),
        "a100-40",
        OWN,
        published * MIB,
        6,
        6,
        f"github.com/open-mmlab/mmaction2@01f8899 configs/recognition/tsn/README.md, {config}",
        "V100, mmaction2 of 2020, fp32",
    )


# Probably, since it is what is missing: PyTorch before 1.11 kept the input of softmax too, 64 MiB a layer at batch 4: a dry run in another version is
# another program.
def bert(words, published, *program, bound=15):
    return Row(
        f"bert-large Trainer, {words}",
        ("bert_trainer.py", *program),
        "v100-16",
        "2.1.0",
        published * MIB,
        None,
        bound,
        "github.com/huggingface/transformers docs/source/en: model_memory_anatomy.md, perf_train_gpu_one.mdx of 2022",
        "V100-SXM2-16GB, NVML with a context of 1343 MiB, CUDA 11.2, January 2022 (PyTorch 1.10)",
        figure="reserved",
        add_bytes=1343 * MIB,
    )


def head(words, argument, published):
    return Row(
        f"loss of Gemma 2 (2B), {words}",
        ("linear_head.py", argument),
        "a100-80",
        OWN,
        published * MIB,
        None,
        0.5,
        "github.com/apple/ml-cross-entropy@18e76ad README.md, method baseline",
        "A100-SXM4, PyTorch 2.4.1, CUDA 12.4",
        add_bytes=-2 * 2304 * (8192 + 256000),  # what it works on
    )


def zero(kind, published):
    return Row(
        f"DDP on 2 GPUs, {kind}",
        ("zero_optimizer.py", kind),
        "a100-40",
        OWN,
        published * 10**6,
        None,
        2.5,
        "github.com/pytorch/tutorials@01c6302 recipes_source/zero_redundancy_optimizer.rst",
        "PyTorch 1.8 or later, February 2021, Gloo instead of NCCL",
    )


OCTOCODER = Row(
    "octocoder (15.5 B), 60 tokens with a KV cache",
    ("octocoder.py",),
    "a100-40",
    OWN,
    round(29.0260648727417 * GIB),
    None,
    0.5,
    "github.com/huggingface/transformers docs/source/en/llm_tutorial_optimization.md",
    "A100, bf16, 2023",
)

OUT = "out of memory"
ROWS = [
    litgpt("phi-1.5", 1, 4.82),
    litgpt("phi-1.5", 2, 6.76),
    litgpt("phi-1.5", 4, 10.68),
    litgpt("stablelm-3b", 1, 9.69),
    litgpt("stablelm-3b", 2, 12.10),
    litgpt("stablelm-3b", 4, 16.92),
    litgpt("llama-2-7b", 1, 21.30),
    litgpt("llama-2-7b", 2, 29.07),
    litgpt("llama-2-7b", 4, OUT),
    litgpt("llama-2-13b", 1, 38.12),
    litgpt("llama-2-13b", 2, OUT),
    tsn("resnet50", 32, 3, 400, "tsn_r50_1x1x3_100e_kinetics400_rgb", 8344),
    tsn("resnet50", 16, 5, 400, "tsn_r50_dense_1x1x5_100e_kinetics400_rgb", 7028),
    tsn("resnet50", 16, 8, 174, "tsn_r50_1x1x8_50e_sthv1_rgb", 10978, "norm_eval"),
    tsn("resnet50", 4, 16, 174, "tsn_r50_1x1x16_50e_sthv1_rgb", 5691, "norm_eval"),
    tsn("resnet101", 16, 5, 313, "tsn_r101_1x1x5_50e_mmit_rgb", 10467),
    head("forward", "loss", 24000),
    head("forward and backward", "both", 28000),
    bert("batch 4", 14949, 4),
    bert("batch 1, accumulated 4 times", 8681, 1, "gradient_accumulation_steps=4"),
    bert("the same, checkpointed", 6775, 1, "gradient_accumulation_steps=4", "gradient_checkpointing=True"),
    bert("batch 4, fp16", 13939, 4, "fp16=True"),
    bert("batch 4, Adafactor", 12295, 4, "optim=adafactor"),
    OCTOCODER,
    zero("zero", 1361),
    zero("adam", 1697),
]
