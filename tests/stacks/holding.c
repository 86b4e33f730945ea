/* A library whose constructor, which runs under the loader's lock, returns only when another thread
 * has allocated. */
int hold(void);

__attribute__((constructor)) static void hold_at_start(void)
{
	hold();
}
