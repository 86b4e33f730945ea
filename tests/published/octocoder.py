"""Generation of 60 tokens by octocoder (15.5 B parameters, bf16) with a KV cache, as the guide "Optimizing LLMs for
Speed and Memory" of transformers has it, from the configuration: the prompt is as long, its words are others. Without
generate(), which asks the GPU whether it is done.
"""

import torch
from transformers import AutoModelForCausalLM, GPTBigCodeConfig

PROMPT_TOKENS = 21

config = GPTBigCodeConfig(
    vocab_size=49152,
    n_positions=8192,
    n_embd=6144,
    n_layer=40,
    n_head=48,
    n_inner=24576,
    activation_function="gelu_pytorch_tanh",
    multi_query=True,
    bos_token_id=0,
    eos_token_id=0,
    pad_token_id=0,
)
torch.set_default_dtype(torch.bfloat16)
with torch.device("meta"):
    model = AutoModelForCausalLM.from_config(config)
model.lm_head.weight = None  # the embedding's own, which to_empty would make twice
model.to_empty(device="cuda").eval()
model.tie_weights()
ids, cache = torch.ones(1, PROMPT_TOKENS, dtype=torch.int64).cuda(), None
with torch.no_grad():
    for _ in range(60):
        output = model(ids, past_key_values=cache, use_cache=True)
        cache, ids = output.past_key_values, output.logits[:, -1:].argmax(-1)
