/* A library that is opened and closed again and again: its one function calls back, and so does its destructor. */
static void (*last)(void *);

void plugin_run(void (*callback)(void *), void *argument);

void plugin_run(void (*callback)(void *), void *argument)
{
	volatile char room[200];
	room[0] = 1;
	last = callback;
	callback(argument);
	room[1] = room[0];
}

__attribute__((destructor)) static void plugin_ends(void)
{
	if (last)
		last((void *)0);
}
