/* What the files of the attribution share, grouped by the file that defines it. Blocks are never
 * walked: a block whose label waits for the end of a phase is on one list, which that end empties. */
#ifndef MT_MODEL_ATTRIBUTION_PRIVATE_H
#define MT_MODEL_ATTRIBUTION_PRIVATE_H

#include "model/attribution.h"
#include "model/label_private.h"
#include "model/model.h"
#include "model/table.h"
#include "trace/event.h"
#include "trace/marks.h"

#define LOOPS_MAX	8
#define STEPS_FIRST	64  /* records that are kept from the beginning … */
#define STEPS_LAST	192 /* … and from the end */
#define SIZES_MAX	65536
#define GRAPH_COUNT	4 /* fewer blocks are no graph */
#define SIGNIFICANT_BYTES 4096 /* smaller blocks say nothing by their size */
#define PARAMETER_SITES	8
#define STORE_SITES	8
#define GROWTHS		8
#define PLACES_SEEN	256
#define PLACES_TRIED	8

struct device;

/* ---------- size.c ---------- */

struct size_entry { /* how many long-lived blocks there are of one size */
	uint64_t bytes;
	int32_t parameters, gradients, states;
	int32_t parameters_most;
	int32_t gradients_most; /* of one backward */
	int32_t counted;	/* in the backward `stamp` */
	int32_t predicted;	/* in the same */
	uint32_t stamp;
	int32_t loaded;	      /* by torch.load, ever */
	uint16_t loaded_run;  /* the reading in which the last was, and how many there were in it, at most 65,535 */
	uint16_t loaded_in_run;
	uint32_t keeper;	      /* frame of the program's that has made one which it kept, 0 none */
	uint32_t joiner;	      /* … one which the graph kept in which it was used */
	uint32_t copied;	      /* from the host, by the program */
	uint32_t passed;	      /* the backward `stamp` in which one was last made … */
	int32_t passing;	      /* … and how many of its are alive, unless they were settled */
	uint32_t data_site;	      /* frame of the program's that has made one as data for a pass, 0 none … */
	uint32_t argument_site;	      /* … and one as an argument of a module */
	bool is_part;		      /* the program has joined many inputs of that size to one */
	struct block *newest; /* made outside backward, that may become a parameter */
};

struct sizes {
	struct size_entry *entries;
	uint32_t count, capacity; /* a power of two */
};

struct size_entry *size_find(const struct model *, uint64_t bytes); /* NULL: none */
struct size_entry *size_get(struct model *, uint64_t bytes);  /* never NULL */
bool sizes_are_full(const struct model *);
void size_add_parameter(struct model *, uint64_t bytes, int32_t by);

/* ---------- phase.c ---------- */

struct block_list {
	struct block *first, *last;
};

struct call { /* of a module: its blocks are held by a graph */
	uint32_t left; /* that are alive */
	bool is_used;  /* one was freed by a backward, or one began right after it */
	uint32_t tombstones;
	uint32_t saved; /* its number while the model is saved, else 0 */
};

struct stepper { /* a thread inside Optimizer.step */
	struct block_list blocks;
	uint32_t site; /* frame that called it */
	uint32_t class; /* whose it is, 0 not known */
	uint64_t optimizer; /* the object, 0 not known */
	bool is_stepping;
};

struct loop { /* a thread that trains, and the engine threads that work for it */
	uint32_t main;	  /* thread id, 0 none yet */
	uint32_t stepping; /* the engine's thread that took a step in the backward that goes on, 0 none */
	uint64_t last;	  /* event of main */
	uint64_t call_begin; /* of the call that goes on: sequence */
	uint64_t backward_end; /* of the last one: sequence */
	uint64_t whole_end; /* of the last that took no block of a graph: sequence */
	uint64_t devices; /* bit a slot */
	bool is_used, trains;
	bool in_backward, by_grad; /* torch.autograd.grad */
	bool in_forward;
	bool window_is_open; /* what the program makes now is data */
	bool is_setting_up;
	bool fills_gradients; /* a backward was not torch.autograd.grad: there are leaves that are trained */
	bool call_keeps; /* checkpointing keeps what a pass begins with, as a call without grad its outputs */
	uint32_t backwards, steps, calls;
	uint32_t passes, passes_least; /* forward passes since the last backward; the fewest before one, 0: there was none */
	uint32_t call_count; /* blocks of the call that goes on */
	uint32_t call_stack; /* of the first of them */
	uint32_t call_again; /* of that stack after it: calls that nothing stands between look like one … */
	uint32_t call_period; /* … whose second begins after so many blocks, 0: there is none */
	/* Of blocks of forward passes those alive: made since the last backward, and before. */
	uint32_t young_count, old_count;
	uint32_t whole_backwards; /* in a row, that left every block of a graph where it was */
	bool took; /* the backward that goes on has freed one */
	uint32_t gradients_most; /* of the size of parameters, that a backward without create_graph has left */
	uint64_t gradient_bytes; /* asked for those that the last backward to leave several has left */
	uint64_t recomputed; /* when a module last ran inside a backward: sequence */
	uint64_t flat_bytes;     /* asked for what the program joined them to, 0: it has not */
	uint64_t early_copied_bytes; /* from the host, before anything trained */
	uint32_t late_copies; /* from the host, since: batches come from there */
	uint32_t graph_data; /* the backward `stamp` in which data of a pass were found to be of its graph */
	uint32_t late_data; /* that the program computed for a pass, since: batches are taken from what it has */
	uint32_t computed; /* blocks that the program computed itself, in no constructor */
	uint64_t aged_at, aged_count; /* when those that are kept were looked at last: events; how many they were */
	uint64_t latest; /* address of what the program itself made last, 0: it is gone */
	struct block_list call, passing, data, kept, fresh, young, no_grad;
	struct block_list clones; /* of parameters, by the program */
	struct call *recent;	  /* the last one, until another or a backward: NULL none */
	struct step_record *open[MODEL_DEVICES_MAX + 1];
};

/* What an event says about its thread's work; moves the machine. */
struct moment_facts {
	struct loop *loop;
	const struct stack_marks *marks;
	bool is_engine, is_backward, is_main;
};
void phase_note(struct model *, const struct event *, struct moment_facts *);
struct attribution;
/* The place of a function, by its hash; of one that was not seen, a free one near where it belongs; if there is none,
 * another's. */
struct place_seen *place_of_function(struct attribution *, uint32_t function);
enum model_phase phase_of(const struct model *, const struct loop *, uint32_t thread);
uint64_t loop_backwards_a_step(const struct loop *);
uint64_t loop_age_of_kept(const struct loop *); /* in backwards */

void list_push(struct block_list *, struct block *);
void list_remove(struct block *);
struct block *list_pop(struct block_list *);

/* ---------- settle.c: labels that the end of a phase decides ---------- */

void settle_call(struct model *, struct loop *);
/* Nothing belongs to the most recent call any more: a backward begins, or its graph was dropped. */
void settle_recent(struct model *, struct loop *, bool is_dropped);
/* A block of a call goes now, and has its label. */
void settle_freed(struct model *, struct block *, const struct event *, bool by_backward);
void settle_data(struct model *, struct loop *, const struct stack_marks *of_call);
void settle_backward(struct model *, struct loop *);
void settle_step(struct model *, struct loop *, struct stepper *);
/* One more gradient of that size in this backward. */
struct size_entry *count_gradient(struct model *, uint64_t bytes);

/* ---------- long_lived.c ---------- */

/* It waits for nothing more. */
void block_settle_as(struct model *, struct block *, enum label);
/* The newest copy that the program made of a parameter of that size; NULL: none. */
struct block *clone_of(const struct loop *, uint64_t bytes);
void long_lived_miss(struct model *, const struct loop *, const struct block *gradient);
/* A backward, or while a model is set up a call, has ended. */
void long_lived_age(struct model *, struct loop *, bool after_call);
/* The same of one that the program made. */
void kept_age(struct model *, struct loop *, struct block *, bool after_call);
/* The program keeps what it makes there, of that size. */
bool is_made_to_keep(struct model *, const struct block *);
/* What the program computes there, of that size, a graph keeps. */
bool is_made_for_graph(struct model *, const struct block *);
/* What the first step after it says of what torch.load has read. */
struct loaded_look;
void settle_loaded(struct model *, struct block *, const struct loaded_look *);

/* ---------- settle_report.c ---------- */

/* Of all blocks, so only for an OOM and at the end: those in a graph that should be gone. */
void settle_for_report(struct model *);
/* The same when the program's own code has ended. */
void settle_at_exit(struct model *);

/* ---------- loaded.c ---------- */

struct loaded_look { /* at what torch.load read and the program still has */
	uint64_t state_begin, state_end; /* births of the first and the last of an optimizer's state, 0: none is seen */
	bool has_several; /* of the size of a parameter: more than the weights were read */
};
void loaded_look(struct model *, const struct loop *, struct loaded_look *);
bool loaded_is_state(struct model *, const struct block *, const struct loaded_look *);
/* A block was read by torch.load. */
void loaded_note(struct model *, struct block *);

/* ---------- classify.c; classify_free.c ---------- */

enum kind { /* which rules a block follows */
	KIND_NONE,
	KIND_WORKSPACE,
	KIND_COMMUNICATION,
	KIND_STEP,
	KIND_STATE,
	KIND_BACKWARD,
	KIND_RECOMPUTED,
	KIND_SMALL, /* torch.autograd's own */
	KIND_PARAMETER,
	KIND_LOADED,
	KIND_INPUT,
	KIND_DATA,
	KIND_FORWARD
};

struct block_facts { /* in every live block */
	uint64_t born; /* sequence */
	struct block_list *list;
	struct block *before, *next;
	struct call *call;
	uint32_t backwards, calls; /* of its loop when it was born */
	uint8_t label, kind, context, loop;
	bool is_copied_to : 1; /* from the host */
	bool is_zeros : 1;
	bool is_factory : 1;
	bool is_no_grad : 1;
	bool is_library : 1;
	bool is_early : 1; /* born before anything trained */
	bool is_clone : 1; /* of something as large as a parameter */
	bool is_shared : 1; /* two loops were in backward */
	bool is_in_pass : 1; /* in the loop's young_count or old_count */
	bool is_before_model : 1; /* there was no parameter of its size yet */
	bool is_in_row : 1; /* calls of a module without grad, one after the other, left one each */
	bool is_flat : 1; /* as large as all the gradients of a pass together */
	bool is_joined : 1; /* of several inputs, by the program … */
	bool is_joined_copy : 1; /* … which were copied from the host */
	bool is_argument : 1; /* the line that calls a module computes it for that */
	bool is_gradient : 1; /* whoever takes it back: its backward took its graph apart, or left a second one too */
	uint16_t read_before; /* of its size, by the torch.load that read it */
};

/* What was asked for it, in whole units of 512 bytes: what is left over of a segment may stay with a block, so
 * that those of equal tensors differ. */
uint64_t block_asked(const struct block *);
uint64_t size_asked(uint64_t bytes, uint64_t asked_bytes); /* the same; `asked_bytes` 0: not known */

static inline bool context_is_users(uint8_t context)
{
	return context == MARK_USER || context == MARK_USER_INIT;
}

static inline bool facts_have(const struct moment_facts *facts, enum mark mark)
{
	return facts->marks->flags & MARK_FLAG(mark);
}

/* After the phase was moved; sets block->facts. */
void classify_alloc(struct model *, struct block *, const struct event *, const struct moment_facts *);
void classify_free(struct model *, struct block *, const struct event *, const struct moment_facts *);
void classify_copy(struct model *, struct block *);
/* What replaces a thing that goes is the same kind of thing (successor.c). */
void successor_settle(struct model *, struct block *, const struct moment_facts *);
/* The program has kept the block, as others that it makes there: it is no variable that a loop sets anew. */
bool successor_leaves_kept(struct model *, const struct block *, const struct moment_facts *);
/* Made of one value before its loop was used, never copied to, and still there: a cache, as long as nothing
 * has trained. */
bool block_is_cache(const struct model *, const struct block *);
/* Made of one value in a program that has no modules: what it computes with. */
bool block_is_field(const struct model *, const struct block *);
/* An exception leaves the first pass, which ran out: what goes then, or is still there at the end, stays undecided, as
 * when that was told. (In later ones what goes at once shows that no graph held it.) */
bool block_is_of_first_pass(const struct model *, const struct block *);
uint32_t block_age(const struct model *, const struct block *); /* in backwards of its loop */

/* ---------- step.c ---------- */

struct step_moment {
	uint64_t time_ns, sequence;
	uint64_t allocated_bytes;
	uint64_t bytes[LABEL_COUNT];
	bool is_known;
};

struct step_record {
	uint64_t step, begin_ns, end_ns, end_sequence, peak_bytes;
	uint64_t phase_peak_bytes[MODEL_PHASE_COUNT];
	uint32_t backwards;
	uint8_t loop, slot, peak_phase;
	bool is_open;
	bool is_peak_in_tail;
	uint64_t tail_begin, tail_peak_bytes; /* sequence; since a module's call has ended: the loss, if a backward follows */
	struct step_moment after[MODEL_MOMENT_COUNT];
};

struct steps {
	struct step_record *records; /* STEPS_FIRST, then a ring */
	uint64_t count;		     /* ever */
};

/* Record of place 0, 1, 2 … of those kept, made when `steps.count` covers it; NULL: there is none. */
struct step_record *step_kept(struct model *, uint64_t place);
/* step_find.c: of the last step that was completed before `sequence`; NULL: its record is not kept. */
const struct step_record *last_step_before(const struct model *, unsigned ordinal, uint64_t sequence);
/* The step that went on then, which may have ended since; NULL likewise. */
const struct step_record *step_at(const struct model *, unsigned ordinal, uint64_t sequence);
uint64_t step_most_bytes(const struct model *, uint8_t slot); /* the highest peak of the ended steps that are kept */
void step_note_moment(struct model *, struct loop *, enum model_moment_kind, const struct event *);
/* A module's call has ended at an event, or begins; a backward does, so what came since was of its forward pass. */
void step_begin_tail(struct loop *, uint64_t sequence);
void step_drop_tail(struct loop *);
void step_take_tail(struct model *, struct loop *);
void step_end(struct model *, struct loop *, const struct event *);
void step_note_event(struct model *, struct loop *, struct device *, const struct event *);
void step_move(struct model *, uint8_t slot, uint64_t born, uint64_t died, uint64_t bytes, enum label from,
	       enum label to);
bool step_reaches(const struct model *, uint8_t slot, uint64_t born, uint64_t died);

/* ---------- attribution.c ---------- */

struct attribution {
	bool has_trained;
	bool is_loading;       /* the last block was read by torch.load */
	uint16_t loaded_runs; /* how often that began, modulo 65,536 */
	struct loop loops[LOOPS_MAX];
	uint32_t loop_count;
	uint8_t loop_of_slot[MODEL_DEVICES_MAX + 1]; /* whose main was last active there */
	uint32_t stamp;				     /* of backwards, in all loops */
	uint64_t backwards, forwards, step_count;
	struct sizes sizes;
	struct steps steps;
	struct tombstone *tombstones;
	uint32_t tombstone_count, tombstone_capacity, tombstone_free;
	uint64_t tombstones_lost;
	uint64_t gone_sequence, gone_bytes; /* of the gradient that was taken back last */
	uint32_t parameter_sites[PARAMETER_SITES]; /* frames that made what turned out to be a parameter */
	uint32_t parameter_site_count;		   /* ever */
	uint32_t store_sites[STORE_SITES];	   /* … what the program takes its batches from */
	uint32_t store_site_count;		   /* ever */
	struct place_seen {
		uint32_t function, line; /* hashes; line 0: it was left */
		uint64_t since; /* sequence */
	} places[PLACES_SEEN]; /* where each function is, open addressing. Until something trains */
	struct growth {
		uint32_t line; /* hash */
		uint64_t bytes, by; /* the last one, and how much larger than the one before */
	} growths[GROWTHS]; /* what lines of the program replace with something larger: by hash */
	uint32_t entered[MARKS_PLACES]; /* the functions that the last event was in, innermost first */
	struct known_marks {
		struct stack_marks marks;
		bool is_known;
	} *marks; /* by stack */
	uint32_t marks_capacity;
	struct model_observer *observer;
	struct model_step_observer *step_observer;
};

struct work;
void attribution_describe_work(const struct model *, uint8_t slot, struct work *);
int attribution_init(struct model *); /* 0 or -ENOMEM */
const struct stack_marks *attribution_marks(struct model *, uint32_t stack); /* never NULL */
struct stack_marks attribution_known_marks(const struct model *, uint32_t stack); /* the same, to look only */
bool attribution_is_engine(struct model *, uint32_t thread);
void attribution_note_alloc(struct model *, struct block *, const struct event *);
/* The block is in the figures now. */
void attribution_counted(struct model *, const struct block *, struct device *, const struct event *);
/* `block` NULL: one that is not known. */
void attribution_note_free(struct model *, struct block *, const struct event *);
void attribution_note_phase(struct model *, const struct event *);
void attribution_observe(struct model *, uint64_t born, uint8_t label);
void categories_add(const struct model *, struct model_categories *, uint8_t label, uint64_t bytes);
/* The label of driver memory outside PyTorch's cache, from its owner. */
enum label attribution_of_owner(const char *owner);

#endif
