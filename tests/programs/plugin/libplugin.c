/* A library that is opened and closed again and again: its one function calls back. */
void plugin_run(void (*callback)(void *), void *argument);

void plugin_run(void (*callback)(void *), void *argument)
{
	volatile char room[200];
	room[0] = 1;
	callback(argument);
	room[1] = room[0];
}
