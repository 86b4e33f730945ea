# env: HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
"""LoRA by PEFT on a GPT-2 read from a folder in bf16, with gradient checkpointing."""

import tempfile

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

import truth

config = GPT2Config(vocab_size=5000, n_layer=4, n_embd=512, n_head=8, n_positions=256)
config.bos_token_id = config.eos_token_id = 0
with tempfile.TemporaryDirectory() as folder:
    GPT2LMHeadModel(config).save_pretrained(folder)
    base = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.bfloat16, device_map="cuda")
base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
base.enable_input_require_grads()
lora = LoraConfig(r=8, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM")
model = get_peft_model(base, lora).train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for _ in range(3):
    ids = torch.randint(0, 5000, (8, 256)).cuda()
    truth.batch(ids)
    loss = model(input_ids=ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
