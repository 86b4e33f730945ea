/* src/cli/sparse_checkpoint.py as a string of the tool. */
	.section .rodata
	.globl sparse_checkpoint_script
	.hidden sparse_checkpoint_script
	.type sparse_checkpoint_script, @object
sparse_checkpoint_script:
	.incbin "src/cli/sparse_checkpoint.py"
	.byte 0
	.size sparse_checkpoint_script, . - sparse_checkpoint_script
	.section .note.GNU-stack,"",@progbits
