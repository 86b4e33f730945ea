/*
 * Streams and events.  Nothing computes; whether work counts as complete is told by driver_work.c,
 * and a host function is called at once.  Owns the list of streams and each device's default stream.
 */
#include <stdlib.h>
#include <time.h>

#include "driver_stream.h"

static struct CUstream_st default_streams[DRIVER_DEVICES_MAX];
static struct CUstream_st *streams;
static unsigned long long last_id = DRIVER_DEVICES_MAX; /* those below are the default streams' */

static bool is_default(CUstream handle)
{
	return (uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD;
}

CUstream stream_resolve(CUstream handle)
{
	int device = context_device();

	if (!is_default(handle))
		return handle;
	default_streams[device].device = device;
	default_streams[device].id = (unsigned long long)device + 1;
	return &default_streams[device];
}

CUstream stream_of_id(unsigned long long id)
{
	CUstream stream = streams;

	if (id == 0)
		return NULL;
	if (id <= DRIVER_DEVICES_MAX)
		return &default_streams[id - 1];
	while (stream != NULL && stream->id != id)
		stream = stream->next;
	return stream;
}

void streams_finish(int device)
{
	for (CUstream stream = streams; stream != NULL; stream = stream->next) {
		if (stream->device == device)
			work_finish_stream(stream);
	}
	work_finish_stream(&default_streams[device]);
}

CUresult streams_wait(int device)
{
	struct gate_set all = {0};

	pthread_mutex_lock(&driver_lock);
	for (CUstream stream = streams; stream != NULL; stream = stream->next) {
		if (stream->device == device)
			gates_add(&all, &stream->gates);
	}
	gates_add(&all, &default_streams[device].gates);
	pthread_mutex_unlock(&driver_lock);
	CUresult result = gates_wait(&all);
	gates_release(&all);
	return result;
}

void streams_leave_capture(struct capture *capture)
{
	for (CUstream stream = streams; stream != NULL; stream = stream->next) {
		if (stream->capture == capture)
			stream->capture = NULL;
	}
	for (int i = 0; i < DRIVER_DEVICES_MAX; i++) {
		if (default_streams[i].capture == capture)
			default_streams[i].capture = NULL;
	}
}

/* ---- streams ---- */

CUresult stream_create(CUstream *handle, int device, unsigned flags, int priority)
{
	CUstream stream = calloc(1, sizeof(*stream));
	if (stream == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->device = device;
	stream->flags = flags;
	stream->priority = priority;
	pthread_mutex_lock(&driver_lock);
	stream->id = ++last_id;
	stream->next = streams;
	streams = stream;
	pthread_mutex_unlock(&driver_lock);
	*handle = stream;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority)
{
	int device;
	CUresult result = context_require(&device);

	return result == CUDA_SUCCESS ? stream_create(handle, device, flags, priority) : result;
}

CUresult cuStreamCreate(CUstream *handle, unsigned flags)
{
	return cuStreamCreateWithPriority(handle, flags, 0);
}

static CUstream stream_unlink(CUstream handle)
{
	struct CUstream_st **link = &streams;

	while (*link != NULL && *link != handle)
		link = &(*link)->next;
	CUstream found = *link;
	if (found != NULL)
		*link = found->next;
	return found;
}

CUresult cuStreamDestroy(CUstream handle)
{
	pthread_mutex_lock(&driver_lock);
	CUstream stream = stream_unlink(handle);
	if (stream != NULL)
		work_finish_stream(stream); /* and forget whom it waits for */
	if (stream != NULL)
		gates_release(&stream->gates);
	pthread_mutex_unlock(&driver_lock);
	free(stream);
	return stream != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamQuery(CUstream stream)
{
	CUresult result = capture_check_wait(stream);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	bool is_over = work_is_over(stream_resolve(stream));
	pthread_mutex_unlock(&driver_lock);
	return is_over ? gates_ask(&stream_resolve(stream)->gates) : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	CUresult result = capture_check_wait(stream);

	if (result == CUDA_SUCCESS)
		result = gates_wait(&stream_resolve(stream)->gates);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	work_finish_stream(stream_resolve(stream));
	pools_settle();
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	*priority = stream_resolve(stream)->priority;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
	*flags = stream_resolve(stream)->flags;
	return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	*id = is_default(stream) ? (uintptr_t)stream : stream->id;
	return CUDA_SUCCESS;
}

#undef cuStreamGetCtx
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	*context = context_primary(stream_resolve(stream)->device);
	return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green_context)
{
	if (green_context != NULL)
		*green_context = NULL;
	return cuStreamGetCtx(stream, context);
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	*device = stream_resolve(stream)->device;
	return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
			      unsigned flags)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
			      unsigned flags)
{
	return CUDA_SUCCESS;
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	return CUDA_SUCCESS;
}

/* ---- the host's functions ---- */

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
	capture_note_work(stream, CU_GRAPH_NODE_TYPE_HOST);
	if (stream_resolve(stream)->capture == NULL)
		function(argument);
	return CUDA_SUCCESS;
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *argument,
			     unsigned flags)
{
	callback(stream, CUDA_SUCCESS, argument);
	return CUDA_SUCCESS;
}

/* ---- events ---- */

static unsigned long long clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
}

CUresult cuEventCreate(CUevent *handle, unsigned flags)
{
	int device;
	CUresult result = context_require(&device);

	if (result != CUDA_SUCCESS)
		return result;
	CUevent event = calloc(1, sizeof(*event));
	if (event == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->device = device;
	*handle = event;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
	if (event == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	gates_release(&event->gates);
	free(event);
	return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
	if (event == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&driver_lock);
	event->capture = stream_resolve(stream)->capture;
	event->mark = work_mark(stream_resolve(stream));
	gates_copy(&event->gates, &stream_resolve(stream)->gates);
	pthread_mutex_unlock(&driver_lock);
	event->recorded_ns = clock_ns();
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return cuEventRecordWithFlags(event, stream, 0);
}

static bool is_in_capture(const struct CUevent_st *event)
{
	return event->capture != NULL && event->capture->status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult check_event(CUevent event)
{
	if (event == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (is_in_capture(event))
		return CUDA_ERROR_CAPTURED_EVENT;
	return capture_check_unsafe();
}

static bool is_done(CUevent event)
{
	pthread_mutex_lock(&driver_lock);
	bool is = work_is_done(&event->mark);
	pthread_mutex_unlock(&driver_lock);
	return is;
}

CUresult cuEventQuery(CUevent event)
{
	CUresult result = check_event(event);

	if (result != CUDA_SUCCESS)
		return result;
	return is_done(event) ? gates_ask(&event->gates) : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult result = check_event(event);

	if (result == CUDA_SUCCESS)
		result = gates_wait(&event->gates);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&driver_lock);
	work_finish(&event->mark);
	pools_settle();
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

/* The host's time between the two records; never 0, since programs divide by it. */
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
	if (start == NULL || end == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (start->recorded_ns == 0 || end->recorded_ns == 0)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!is_done(start) || !is_done(end))
		return CUDA_ERROR_NOT_READY;
	double ns = (double)end->recorded_ns - (double)start->recorded_ns;
	*milliseconds = ns != 0 ? (float)(ns / 1e6) : 0.001F;
	return CUDA_SUCCESS;
}

static void wait_on_stream(CUstream stream, const struct CUevent_st *event)
{
	work_wait(stream, &event->mark);
	gates_add(&stream->gates, &event->gates);
}

/* Waiting for a captured event draws the stream into that capture. */
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	if (event == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&driver_lock);
	if (is_in_capture(event))
		stream_resolve(stream)->capture = event->capture;
	else
		wait_on_stream(stream_resolve(stream), event);
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}
