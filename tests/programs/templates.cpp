// Allocates from C++: a template, a class, a lambda, an anonymous namespace. Built by the tests, which
// also work where there is no C++ compiler. Declares what it needs, so that no header of CUDA is needed.
#include <cstddef>

extern "C" int cuMemAlloc_v2(unsigned long long *address, std::size_t bytes);

#define NOINLINE __attribute__((noinline))
#define NO_TAIL_CALL __asm__ volatile("" ::: "memory")

namespace trainer {
namespace {

template <typename T, int rank> class Tensor {
public:
	NOINLINE explicit Tensor(std::size_t count)
	{
		cuMemAlloc_v2(&address, count * sizeof(T) * rank);
		NO_TAIL_CALL;
	}

private:
	unsigned long long address = 0;
};

} // namespace

template <typename F> NOINLINE void apply(F &&f)
{
	f(1 << 18);
	NO_TAIL_CALL;
}

struct Model {
	NOINLINE void operator()(std::size_t count)
	{
		apply([&](std::size_t more) __attribute__((noinline)) {
			Tensor<float, 2> tensor(count + more);
			NO_TAIL_CALL;
		});
		NO_TAIL_CALL;
	}
};

} // namespace trainer

int main()
{
	trainer::Model model;
	model(1000);
	return 0;
}
