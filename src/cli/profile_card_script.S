/* src/cli/profile_card.py as a string of the tool. */
	.section .rodata
	.globl profile_card_script
	.hidden profile_card_script
	.type profile_card_script, @object
profile_card_script:
	.incbin "src/cli/profile_card.py"
	.byte 0
	.size profile_card_script, . - profile_card_script
	.section .note.GNU-stack,"",@progbits
