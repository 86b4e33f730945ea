/* Lies where only libouter.so's RUNPATH leads. */
int inner_answer(void);

int inner_answer(void)
{
	return 42;
}
