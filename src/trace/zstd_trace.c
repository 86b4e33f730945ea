/* zstd calls these functions, if any library of the process defines them, around each compression. Our
 * zstd is linked statically, so without definitions of our own it would bind to those of the traced
 * program. A result of 0 says "not traced", and the _end functions are then never called. They are
 * functions and not zero addresses, because a linker refuses or relocates an absolute zero. */
unsigned long long ZSTD_trace_compress_begin(const void *context);
void ZSTD_trace_compress_end(unsigned long long trace, const void *facts);
unsigned long long ZSTD_trace_decompress_begin(const void *context);
void ZSTD_trace_decompress_end(unsigned long long trace, const void *facts);

unsigned long long ZSTD_trace_compress_begin(const void *context)
{
	(void)context;
	return 0;
}

void ZSTD_trace_compress_end(unsigned long long trace, const void *facts)
{
	(void)trace;
	(void)facts;
}

unsigned long long ZSTD_trace_decompress_begin(const void *context)
{
	(void)context;
	return 0;
}

void ZSTD_trace_decompress_end(unsigned long long trace, const void *facts)
{
	(void)trace;
	(void)facts;
}
