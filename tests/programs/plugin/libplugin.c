/* A library that is opened and closed again and again: one function calls back, and so does its destructor if it is
 * to. */
static void (*ending)(void *);

void plugin_run(void (*callback)(void *), void *argument);
void plugin_at_end(void (*callback)(void *));

void plugin_run(void (*callback)(void *), void *argument)
{
	volatile char room[200];
	room[0] = 1;
	callback(argument);
	room[1] = room[0];
}

void plugin_at_end(void (*callback)(void *))
{
	ending = callback;
}

__attribute__((destructor)) static void plugin_ends(void)
{
	if (ending)
		ending((void *)0);
}
