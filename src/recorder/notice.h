/* What is to be told at the start of a recording by those who knew it before. */
#ifndef MT_RECORDER_NOTICE_H
#define MT_RECORDER_NOTICE_H

struct session;

/* Brings notices and facts that came before the session into it; called once, by its start. */
void notice_tell_early(struct session *);

#endif
